//! Criterion as this crate uses it: entry points of bench targets, and measurements for a Criterion bench.
//!
//! A bench target calls [`main`] with its groups. The process that `cargo bench` starts is the *driver*: it starts the same
//! binary once per group as a *measuring process*, shows progress, keeps the record and prints the table. A measuring process
//! is pinned to one CPU and silent. In it Criterion calls for the samples and writes its files; the batch sizes, the clock, the
//! claims and the outcome are this crate's.
//!
//! [`CycleTime`] and [`EventCount`] work in any Criterion bench, without the rest of this crate.

mod in_place;
mod measurement;
mod measuring;

#[doc(hidden)]
pub use crate::driver::Work;
#[doc(hidden)]
pub use in_place::{InPlace, Offer};
pub use measurement::{CycleTime, EventCount};
pub use measuring::size_as_run;

use crate::case::{Group, Scale};
use crate::driver::{self, Arguments, Options, report_error};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::pair::{is_side_process, side};
use crate::record::quantity::{CALLGRIND, INSTRUCTIONS};
use std::process::ExitCode;

/// The `main` of a bench target: measures these groups as Criterion's command line asks, each in a process of its own,
/// and prints the observation table.
///
/// Exit code 0: every case was measured or skipped; 1: a claim failed, something could not be saved, or all that was tried was
/// disturbed; 2: the command line or an environment variable is wrong; 128 + n: interrupted by signal n.
pub fn main(groups: &[Group]) -> ExitCode {
    main_of_suite(groups, &[])
}

/// The `main` of a bench target with some groups of a suite. `known` are all groups of the suite: a filter or a prediction that
/// matches no case of `groups` may be meant for another group of the suite.
#[doc(hidden)]
pub fn main_of_suite(groups: &[Group], known: &'static [Group]) -> ExitCode {
    if is_side_process() {
        return side::run_side_process(groups).into();
    }
    run_groups(groups, known).unwrap_or_else(|error| failed_exit(&error).into())
}

fn run_groups(groups: &[Group], known: &'static [Group]) -> Result<ExitCode> {
    // Checked first, because the command line of a measuring process is not the user's.
    if driver::is_measuring_process() {
        return measuring::run_process(groups).map(ExitCode::from);
    }
    match driver_settings()? {
        Some((arguments, options)) => {
            driver::run(groups, &arguments, &Options { known, ..options }).map(ExitCode::from)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The driver's arguments and options, from the command line and the environment; `None` if help was requested, and printed.
fn driver_settings() -> Result<Option<(Arguments, Options)>> {
    if let Some(help) = Arguments::process_help() {
        driver::print(&help);
        return driver::output_error().map_or(Ok(None), Err);
    }
    let (arguments, mut options) = (Arguments::from_process()?, Options::from_environment()?);
    if let Some(how) = &arguments.instructions {
        options.unit = if how == "callgrind" { CALLGRIND } else { INSTRUCTIONS }.into();
    }
    if arguments.quick {
        options.scale = Scale::Smoke;
    }
    options.copies = arguments.copies;
    Ok(Some((arguments, options)))
}

/// Reports an error that ends the process, and returns how the process exits.
#[doc(hidden)]
pub fn failed_exit(error: &Error) -> Exit {
    report_error(error);
    Exit::from(error.kind())
}
