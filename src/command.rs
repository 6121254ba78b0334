//! What a person types: one file a command, each with its flags and their help.
//!
//! On a terminal a command writes for a person: aligned, wrapped to the width, in bold and colour where
//! `NO_COLOR` is unset. In a pipe it writes for a program: one row a line, its cells between tabs, no head.

mod ab;
mod archive;
mod baseline;
mod burden;
mod compare;
mod displace;
mod doctor;
mod explain;
mod fingerprint;
mod flag;
mod gate;
mod list;
mod monitor;
mod page;
mod peer;
mod probe;
mod record;
mod report;
mod restore;
mod run;
mod runs;
mod selftest;
mod validate;

use crate::{Error, Result};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures what a kernel and its hardware charge, and proves what was timed.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit code 0: done; 1: a claim failed, a file could not be read or written, or the \
    doctor found something; 2: what was asked for is not there or cannot be meant; 128 and the signal: \
    interrupted.";

/// The first sentence of each stands in its own file, above its flags.
#[derive(Subcommand)]
enum Command {
    Run(run::Asked),
    Ab(ab::Asked),
    Record(record::Asked),
    Baseline(baseline::Asked),
    List(list::Asked),
    Explain(explain::Asked),
    Report(report::Asked),
    Compare(compare::Asked),
    Displace(displace::Asked),
    Gate(gate::Asked),
    Runs(runs::Asked),
    Doctor(doctor::Asked),
    Fingerprint(fingerprint::Asked),
    Burden(burden::Asked),
    Monitor(monitor::Asked),
    Peer(peer::Asked),
    Probe(probe::Asked),
    Restore(restore::Asked),
    Selftest(selftest::Asked),
    Validate(validate::Asked),
}

/// Does what this process's command line asks. Every error is one sentence on the standard error.
pub fn run() -> ExitCode {
    if crate::driver::is_measuring_process() || crate::pair::is_side() {
        return crate::harness::suite();
    }
    let ended = Line::try_parse().map(|line| obey(&line.command));
    match ended {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => complain(&error),
        Err(answer) => reply(&answer),
    }
}

fn obey(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Run(asked) => run::run(asked),
        Command::Ab(asked) => ab::run(asked),
        Command::Record(asked) => record::run(asked),
        Command::Baseline(asked) => baseline::run(asked),
        Command::List(asked) => list::run(asked),
        Command::Explain(asked) => explain::run(asked),
        Command::Report(asked) => report::run(asked),
        Command::Gate(asked) => gate::run(asked),
        Command::Compare(asked) => compare::run(asked),
        Command::Displace(asked) => displace::run(asked),
        Command::Runs(asked) => runs::run(asked),
        Command::Doctor(asked) => doctor::run(asked),
        Command::Fingerprint(asked) => fingerprint::run(asked),
        Command::Burden(asked) => burden::run(asked),
        Command::Monitor(asked) => monitor::run(asked),
        Command::Peer(asked) => peer::run(asked),
        Command::Probe(asked) => probe::run(asked),
        Command::Selftest(asked) => selftest::run(asked),
        Command::Validate(asked) => validate::run(asked),
        Command::Restore(asked) => restore::run(asked),
    }
}

/// What clap has to say: help and version are answers, anything else is a mistake in our format.
fn reply(answer: &clap::Error) -> ExitCode {
    let text = answer.to_string();
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match page::write(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            page::say(text.trim_end());
            ExitCode::from(2)
        }
        _ => complain(&Error::Usage(text.trim_start_matches("error: ").trim_end().to_owned())),
    }
}

fn complain(error: &Error) -> ExitCode {
    page::warn(error);
    ExitCode::from(error.kind().exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn every_command_and_every_flag_has_its_help() {
        let line = Line::command();
        for command in line.get_subcommands().flat_map(|c| std::iter::once(c).chain(c.get_subcommands())) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
        }
    }
}
