//! `syscost burden`: a command whose every system call costs more, by an amount that is chosen. It is how the
//! method is put on trial, and how anybody can see whether a regression of that size would be found.

use crate::platform::slowdown::take_on;
use crate::{Error, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Run a command whose system calls cost more, by a chosen amount
///
/// Installs a seccomp filter that allows everything, of so many additions, and runs the command under it: the
/// kernel runs the filter at every entry of the command and its children. Needs no privilege.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Additions that every system call pays, about a third of a nanosecond each, on top of entering a filter
    #[arg(long, value_name = "N", default_value_t = 100)]
    additions: usize,
    /// The command
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    take_on(args.additions)?;
    // The command line asks for at least one word.
    let Some((program, arguments)) = args.command.split_first() else { return Ok(ExitCode::from(2)) };
    let refused = Command::new(program).args(arguments).exec();
    Err(Error::file(program, "starting", refused))
}
