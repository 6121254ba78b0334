//! The command line: one file for each subcommand, with its flags and their help. A command parses, calls and prints.
//!
//! On a terminal a command writes for a person: aligned, wrapped to the width, in bold and colour where
//! `NO_COLOR` is unset. In a pipe it writes for a program: one row on each line, cells separated by tabs, without a header.

mod ab;
mod baseline;
mod cache_size;
mod compare;
mod completions;
mod coverage;
mod displace;
mod doctor;
mod explain;
mod fingerprint;
mod gate;
mod help;
mod list;
mod man;
mod overview;
mod peer;
mod report;
mod run;
mod runs;
mod slowdown;
mod tool;
mod why;

use crate::case::Group;
use crate::driver::layout;
use crate::error::Result;
use crate::platform::output;
use crate::suite::GROUPS;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use syscost_command_line::{
    archive, baselines, flag, judging, outline, page, record, restore, selection, sides, start,
};

/// Measures what a kernel and its hardware charge, and proves what was timed.
#[derive(Parser)]
#[command(version, after_help = [tool::commands_text(), help::topics_text(), EXIT_CODES.into()].join("\n"))]
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
    Coverage(coverage::Args),
    Explain(explain::Args),
    Report(report::Args),
    Compare(compare::Args),
    Displace(displace::Args),
    Gate(Box<gate::Args>),
    Runs(runs::Args),
    Doctor(doctor::Args),
    Fingerprint(fingerprint::Args),
    #[command(name = "burden")]
    Slowdown(slowdown::Args),
    #[command(name = "file-cache")]
    CacheSize(cache_size::Args),
    Peer(peer::Args),
    Restore(restore::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The groups of this crate, and the commands that are declared here.
///
/// # Errors
/// `syscost.toml` is wrong.
fn groups() -> Result<&'static [Group]> {
    syscost_command_case::with_commands(GROUPS)
}

/// Runs the command that this process's command line names.
pub fn run() -> ExitCode {
    // A wrong file is reported by the commands that measure.
    start::start_program(groups().unwrap_or(GROUPS), |words| {
        if let Some(text) = help::topic_page(words, layout()) {
            page::write(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let own = Line::command();
        if let Some(program) =
            tool::find_program(words, |name| name == "help" || own.find_subcommand(name).is_some())?
        {
            return tool::become_program(program, words);
        }
        run_command_line(own, words)
    })
}

/// Runs one of this program's own commands.
///
/// # Errors
/// The command line cannot be parsed, or the command fails.
fn run_command_line(own: clap::Command, words: &[OsString]) -> Result<ExitCode> {
    // The tools' commands are listed only so that clap can suggest them for a misspelt word: they were dispatched
    // before.
    let tools = tool::COMMANDS.iter().map(|(name, ..)| clap::Command::new(*name).hide(true));
    let matches = own.subcommands(tools).try_get_matches_from(words);
    match matches.and_then(|matches| Line::from_arg_matches(&matches)) {
        Ok(line) => line.command.as_ref().map_or_else(overview::run, dispatch),
        Err(answer) => match help::unknown_topic_error(words) {
            Some(error) if answer.kind() == ErrorKind::InvalidSubcommand => Err(error),
            _ => start::print_clap_answer(&answer),
        },
    }
}

/// Whether this command measures for long before it prints, so that its standard output is checked first. `gate` and
/// `run` check theirs themselves.
fn measures_before_printing(command: &Command) -> bool {
    use Command::{Ab, CacheSize, Displace, Record};
    matches!(command, Ab(_) | CacheSize(_) | Displace(_) | Record(_))
}

fn dispatch(command: &Command) -> Result<ExitCode> {
    if measures_before_printing(command) {
        output::check_stdout()?;
    }
    match command {
        Command::Run(args) => run::run(args),
        Command::Ab(args) => ab::run(args),
        Command::Record(args) => record::run(args, groups()?),
        Command::Baseline(args) => baseline::run(args),
        Command::List(args) => list::run(args),
        Command::Coverage(args) => coverage::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Displace(args) => displace::run(args),
        Command::Runs(args) => runs::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Fingerprint(args) => fingerprint::run(args),
        Command::Slowdown(args) => slowdown::run(args),
        Command::CacheSize(args) => cache_size::run(args),
        Command::Peer(args) => peer::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
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
