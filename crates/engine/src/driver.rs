//! The driver process of a run: it plans, starts one measuring process per group, keeps the record and prints the table.
//!
//! The driver never measures. A measuring process is the same binary started again with `SYSCOST_TASK` set
//! (see [`crate::harness`]); it sends each outcome to the driver as one line of JSON over a pipe. `cargo bench`,
//! `cargo bench --bench call` and `syscost run` all take this path.

mod arguments;
mod collected;
mod copies;
mod criterion_files;
mod drive;
mod final_report;
mod first_checks;
mod group_notes;
mod options;
mod plan;
mod process_task;
mod rounds;
mod session_runs;
mod supervision;
mod terminal;

pub use arguments::{Arguments, Mode};
pub use drive::run;
pub use final_report::{group_headlines, program_command};
pub use group_notes::add_missing_curves;
pub use options::{
    FEWEST_REPLICATIONS, Options, criterion_home, homes_of_all_units, open_counter, parse_events,
};
pub use plan::{check_names, nearest_names};
pub use process_task::{
    Assignment, CaseExecution, Copied, ExecutionEnd, Message, Samples, Sender, Task, Wanted, Work,
    begin_anew, is_measuring_process, read_handed_over,
};
pub use session_runs::Session;
pub use terminal::{end_process, layout, output_error, print, progress_bar, report_error};
