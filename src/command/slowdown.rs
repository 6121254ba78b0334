//! `syscost burden`: runs a command under a known slowdown of every system call. `syscost selftest` uses it to test
//! whether a regression of that size is found.

use crate::error::{Error, Result};
use crate::platform::process::inheritance;
use crate::platform::seccomp::install_filter;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Run a command whose system calls cost more, by a chosen amount
///
/// Installs a seccomp filter of N additions, which allows everything, and runs the command under it: the kernel runs
/// the filter at every system call of the command and its children. Needs no privilege.
#[derive(clap::Args)]
pub struct Args {
    /// Additions that every system call pays, about a third of a nanosecond each, on top of entering a filter
    #[arg(long, value_name = "N", default_value_t = 100)]
    additions: usize,
    /// The command
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    install_filter(args.additions)?;
    // clap requires at least one word.
    let Some((program, arguments)) = args.command.split_first() else { return Ok(ExitCode::from(2)) };
    // The kernel reports the number of filters but not their lengths, so a run keeps the length, from this variable, in its
    // fingerprint.
    let mut command = Command::new(program);
    command.args(arguments).env("SYSCOST_BURDEN", args.additions.to_string());
    let refused = inheritance::restore_inherited(&mut command).exec();
    Err(Error::file(program, "starting", refused))
}
