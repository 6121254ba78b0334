//! `syscost selftest`: tests the method and its claims on this machine.
//!
//! `syscost` starts this program for that command. [`liar`] holds cases that lie and the claims that must catch them;
//! [`error_rate`] and its siblings hold the trials of comparisons and of intervals.
#![deny(unsafe_code)]

mod comparison_trial;
mod error_rate;
#[cfg(test)]
#[path = "../../analysis/tests/support/fixture_head.rs"]
mod fixture_head;
mod liar;
mod selftest;

use clap::Subcommand;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::start::start_tool;
use syscost_platform::{self as platform, error, output};
use syscost_statistic as statistic;

#[derive(Subcommand)]
enum Command {
    Selftest(selftest::Args),
}

fn main() -> ExitCode {
    start_tool("Puts the method and its claims on trial", GROUPS, |Command::Selftest(args)| {
        // The command measures for a long time before it prints, so the output is checked first.
        output::check_stdout()?;
        selftest::run(args)
    })
}
