//! The joint to Criterion: sampling and files are its, the clock, the claims and the table are ours.
//!
//! Two processes share the work. The *driver* ([`main`]) knows which cases match, starts one process a
//! group, shows progress, keeps the record and prints the table; it never measures. The *measuring
//! process* is the same binary started again with `SYSCOST_GROUP` set: it is pinned, silent, and hands
//! each outcome to the driver as one line of JSON.
//!
//! `cargo bench`, `cargo bench --bench call` and `syscost run` are this one path.

mod arguments;
mod bencher;
mod curve;
mod drive;
mod home;
mod measure;
mod measurement;
mod message;
mod plan;
mod progress;

pub use arguments::{Arguments, Mode};
pub use curve::add_curves;
#[cfg(feature = "cli")]
pub use drive::Session;
pub use drive::{Options, run};
pub use home::criterion_home;
#[cfg(feature = "cli")]
pub use home::homes;
pub use measurement::{CycleTime, EventCount};
#[cfg(feature = "cli")]
pub use plan::nearest;
pub use progress::layout;

use crate::case::Group;
use crate::pair::{is_side, side};
use crate::suite;
use std::process::ExitCode;

/// Names the group that a measuring process is to measure. Set by the driver.
pub const GROUP_VARIABLE: &str = "SYSCOST_GROUP";

/// The whole of a bench target: measures these groups as Criterion's command line asks, each in a process
/// of its own, and ends with the observation table.
///
/// Exit code 0: every case was measured or skipped; 1: a claim failed or something could not be saved;
/// 2: the command line asks for what is not there; 128 and the signal: interrupted.
pub fn main(groups: &[Group]) -> ExitCode {
    if is_side() {
        return side::process(groups);
    }
    if is_measuring_process() {
        // Before its command line, which then is not ours either.
        if let Err(error) = message::check_that_a_driver_speaks() {
            return complain(&error);
        }
    }
    if let Some(help) = Arguments::help_of_process() {
        progress::print(&help);
        return ExitCode::SUCCESS;
    }
    let asked = Arguments::of_process().and_then(|a| Ok((a, Options::from_environment()?)));
    match asked {
        Ok((arguments, options)) => main_with(groups, &arguments, &options),
        Err(error) => complain(&error),
    }
}

/// The same with a command line read elsewhere, as `syscost run` does.
pub fn main_with(groups: &[Group], arguments: &Arguments, options: &Options) -> ExitCode {
    let ended = match std::env::var(GROUP_VARIABLE) {
        Ok(name) => measure::process(groups, &name, arguments),
        Err(_) => run_checked(groups, arguments, options),
    };
    ended.unwrap_or_else(|error| complain(&error))
}

/// The same as [`run`], once every prediction of the reader's is known to have a case.
pub fn run_checked(groups: &[Group], arguments: &Arguments, options: &Options) -> crate::Result<ExitCode> {
    #[cfg(feature = "cli")]
    if let Some(file) = options.predictions.as_deref().filter(|_| arguments.mode != Mode::List) {
        plan::check_predictions(groups, file)?;
    }
    run(groups, arguments, options)
}

/// A bench target of one of this crate's groups.
pub fn group(name: &str) -> ExitCode {
    match suite::find(name) {
        Some(group) => main(std::slice::from_ref(group)),
        None => complain(&crate::Error::Usage(format!("there is no group {name}"))),
    }
}

/// The bench target of all of this crate's groups.
pub fn suite() -> ExitCode {
    main(suite::GROUPS)
}

/// Whether this process was started by a driver to measure one group.
pub fn is_measuring_process() -> bool {
    std::env::var_os(GROUP_VARIABLE).is_some() || is_side()
}

fn complain(error: &crate::Error) -> ExitCode {
    progress::say(&format!("syscost: {error}"));
    ExitCode::from(2)
}
