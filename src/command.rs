//! The command line: one file for each subcommand, with its flags and their help. A command parses, calls and prints.
//!
//! On a terminal a command writes for a person: aligned, wrapped to the width, in bold and colour where
//! `NO_COLOR` is unset. In a pipe it writes for a program: one row a line, its cells between tabs, no head.

mod ab;
mod answer;
mod archive;
mod baseline;
mod cache_size;
mod compare;
mod completions;
mod displace;
mod doctor;
mod explain;
mod fingerprint;
mod flag;
mod fleet;
mod gate;
mod guest_init;
mod guest_text;
mod help;
mod history;
mod kernels;
mod list;
mod man;
mod manual_page;
mod monitor;
mod overview;
mod page;
mod peer;
mod probe;
mod record;
mod remark_group;
mod report;
mod restore;
mod run;
mod runs;
mod selftest;
mod site;
mod slowdown;
mod validate;

use crate::driver::layout;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::platform::process::inheritance;
use crate::platform::{output, signal};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Measures what a kernel and its hardware charge, and proves what was timed.
#[derive(Parser)]
#[command(version, after_help = help::list() + "
" + EXIT_CODES)]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit code 0: done; 1: a claim failed, a file could not be read or written, or the \
    doctor found something; 2: what was asked for is not there or cannot be meant; 128 and the signal: \
    interrupted.";

/// The help of each is the doc comment of its `Args`.
#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Ab(ab::Args),
    Record(record::Args),
    Baseline(baseline::Args),
    List(list::Args),
    Explain(explain::Args),
    Report(report::Args),
    Compare(compare::Args),
    Displace(displace::Args),
    Gate(Box<gate::Args>),
    History(history::Args),
    Kernels(kernels::Args),
    Fleet(fleet::Args),
    Runs(runs::Args),
    #[command(name = "page")]
    Site(site::Args),
    Doctor(doctor::Args),
    Fingerprint(fingerprint::Args),
    #[command(name = "burden")]
    Slowdown(slowdown::Args),
    #[command(name = "file-cache")]
    CacheSize(cache_size::Args),
    Monitor(monitor::Args),
    Peer(peer::Args),
    Probe(probe::Args),
    Restore(restore::Args),
    Selftest(selftest::Args),
    Validate(validate::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    GuestInit(guest_init::Args),
}

/// Does what this process's command line asks. Every error is one sentence on the standard error.
pub fn run() -> ExitCode {
    if crate::driver::is_measuring_process() || crate::pair::is_side() {
        return crate::harness::suite();
    }
    inheritance::prepare();
    if let Err(error) = signal::prepare() {
        return complain(&error);
    }
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(text) = help::page(&words, layout()) {
        return print(&text);
    }
    match Line::try_parse_from(&words).map(|line| line.command.as_ref().map_or_else(overview::run, obey)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => complain(&error),
        Err(answer) => reply(&answer, &words),
    }
}

/// Whether this command measures for long before it prints: its output is looked at first. `gate` and `run` do so themselves.
fn prints_late(command: &Command) -> bool {
    use Command::{Ab, CacheSize, Displace, Fleet, History, Kernels, Probe, Record, Selftest, Validate};
    matches!(
        command,
        Ab(_)
            | CacheSize(_)
            | Displace(_)
            | Fleet(_)
            | History(_)
            | Kernels(_)
            | Probe(_)
            | Record(_)
            | Selftest(_)
            | Validate(_)
    )
}

fn obey(command: &Command) -> Result<ExitCode> {
    if prints_late(command) {
        output::check()?;
    }
    match command {
        Command::Run(args) => run::run(args),
        Command::Ab(args) => ab::run(args),
        Command::Record(args) => record::run(args),
        Command::Baseline(args) => baseline::run(args),
        Command::List(args) => list::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        Command::Gate(args) => gate::run(args),
        Command::History(args) => history::run(args),
        Command::Kernels(args) => kernels::run(args),
        Command::Fleet(args) => fleet::run(args),
        Command::GuestInit(args) => guest_init::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Displace(args) => displace::run(args),
        Command::Runs(args) => runs::run(args),
        Command::Site(args) => site::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Fingerprint(args) => fingerprint::run(args),
        Command::Slowdown(args) => slowdown::run(args),
        Command::CacheSize(args) => cache_size::run(args),
        Command::Monitor(args) => monitor::run(args),
        Command::Peer(args) => peer::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Selftest(args) => selftest::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// Prints what clap answers: help and version on the standard output, anything else as our error.
fn reply(answer: &clap::Error, words: &[OsString]) -> ExitCode {
    let text = answer.to_string();
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            page::say(text.trim_end());
            ExitCode::from(2)
        }
        kind => {
            let said = || Error::Usage(text.trim_start_matches("error: ").trim_end().to_owned());
            let unknown = (kind == ErrorKind::InvalidSubcommand).then(|| help::unknown(words)).flatten();
            complain(&unknown.unwrap_or_else(said))
        }
    }
}

fn print(text: &str) -> ExitCode {
    page::write(text).map_or_else(|error| complain(&error), |()| ExitCode::SUCCESS)
}

fn complain(error: &Error) -> ExitCode {
    page::warn(error);
    Exit::from(error.kind()).into()
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
