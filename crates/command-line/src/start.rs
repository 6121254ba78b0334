//! The start of a program of syscost, either as a measuring process or by its command line. `syscost` and its tools share it.

use crate::error::{Error, Result};
use crate::outline::Outline;
use crate::platform::process::{find_on_path, inheritance, own_program_file};
use crate::platform::signal;
use crate::{outline, page, restore};
use clap::Subcommand;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_engine::Group;
use syscost_engine::exit::Exit;

/// Runs `dispatch` with this process's command line, unless this process was started to measure one of `groups`. An error is printed as one
/// sentence on the standard error.
pub fn start_program(
    groups: &'static [Group],
    dispatch: impl FnOnce(&[OsString]) -> Result<ExitCode>,
) -> ExitCode {
    if syscost_engine::driver::is_measuring_process() || syscost_engine::pair::is_side_process() {
        return syscost_engine::harness::main_of_suite(groups, groups);
    }
    inheritance::allow_owner_access();
    let words: Vec<_> = std::env::args_os().collect();
    match signal::set_initial_dispositions().and_then(|()| dispatch(&words)) {
        Ok(code) => code,
        Err(error) => {
            page::warn(&error);
            Exit::from(error.kind()).into()
        }
    }
}

/// Starts a tool: a program beside `syscost` with the commands `C`. `about` describes the tool; `groups` are those that it may
/// measure.
pub fn start_tool<C: Subcommand>(
    about: &'static str,
    groups: &'static [Group],
    dispatch: impl FnOnce(&C) -> Result<ExitCode>,
) -> ExitCode {
    let line =
        clap::Command::new("syscost").bin_name("syscost").version(env!("CARGO_PKG_VERSION")).about(about);
    let line = C::augment_subcommands(line).subcommand_required(true).arg_required_else_help(true);
    start_program(groups, |words| match words {
        // `syscost man` starts each tool with this word to write its manual pages.
        [_, word, directory] if word == MAN => {
            let pages = outline::write_subcommand_pages(&line, Path::new(directory))?;
            page::write(&format!("{pages}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        [_, word] if word == OUTLINE => {
            page::write_json(&Outline::from_subcommands(&line))?;
            Ok(ExitCode::SUCCESS)
        }
        // The guard of changed settings is the same program, started again.
        [_, word, ..] if word == RESTORE => restore::run_words(words),
        _ => match line.try_get_matches_from(words).and_then(|matches| C::from_arg_matches(&matches)) {
            Ok(command) => dispatch(&command),
            Err(answer) => print_clap_answer(&answer),
        },
    })
}

/// The path of the program of this name, beside this program's file or on the search path.
pub fn find_program_file(name: &str) -> Option<PathBuf> {
    let beside = own_program_file().ok().and_then(|own| Some(own.parent()?.join(name)));
    beside.filter(|file| file.is_file()).or_else(|| find_on_path(name))
}

/// The hidden first argument with which `syscost man` starts a tool to write its manual pages.
pub const MAN: &str = "tool-man";

/// The hidden first argument with which `syscost completions` starts a tool to print its commands.
pub const OUTLINE: &str = "tool-outline";

/// The command that puts changed settings back.
const RESTORE: &str = "restore";

/// Prints clap's help or version on the standard output, or the help for a missing subcommand on the standard error. Anything
/// else becomes an error.
pub fn print_clap_answer(answer: &clap::Error) -> Result<ExitCode> {
    let text = answer.to_string();
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            page::write(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            page::write_to_stderr(text.trim_end());
            Ok(Exit::Usage.into())
        }
        _ => Err(Error::Usage(text.trim_start_matches("error: ").trim_end().to_owned())),
    }
}
