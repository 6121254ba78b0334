//! The driver process of a run: it plans, starts one measuring process per group, keeps the record and prints the table.
//!
//! The driver never measures. A measuring process is the same binary started again with `SYSCOST_TASK` set
//! (see [`crate::harness`]); it sends each outcome to the driver as one line of JSON over a pipe. `cargo bench`,
//! `cargo bench --bench call` and `syscost run` all take this path.

mod arguments;
mod bencher;
mod case_names;
mod collected;
mod copies;
mod criterion_files;
mod drive;
mod earlier_runs;
mod final_report;
mod first_checks;
mod first_screen;
mod fitting;
mod frequency_drift;
mod options;
mod other_cpu_load;
mod output_directory;
mod pipe_message;
mod plan;
mod prefetch;
mod process_task;
mod progress;
mod rounds;
mod session_runs;
mod supervision;
mod terminal;
mod time_limit;
mod unquiet;
mod verdict_line;

pub use arguments::{Arguments, Mode};
pub use case_names::check_names;
pub use drive::run;
pub use first_screen::{group_headlines, program_command};
pub use fitting::add_missing_curves;
pub use options::{FEWEST_REPLICATIONS, Options, open_counter, parse_events};
pub use output_directory::criterion_home;
pub use output_directory::homes_of_all_units;
pub use pipe_message::{CaseExecution, ExecutionEnd, Message, Sender};
pub use plan::nearest_names;
pub use process_task::{
    Assignment, Copied, Samples, Task, Wanted, Work, begin_anew, is_measuring_process, read_handed_over,
};
pub use session_runs::Session;
pub use terminal::layout;
pub use terminal::{end_process, output_error, print, report_error};
