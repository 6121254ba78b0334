//! `syscost restore`: puts back settings that `syscost ab` left changed because it and its guard were killed.

use crate::error::{Error, Result};
use crate::flag::Home;
use crate::page;
use crate::start::print_clap_answer;
use clap::{Args as _, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::pair::setting;

/// Put back settings that a killed comparison has left
///
/// `syscost ab --a … --b …` writes down the settings before it changes them. It puts them back at its end and after
/// any signal; a guard process does so if it is killed. If the guard was killed, too, this command does it.
#[derive(clap::Args)]
pub struct Args {
    /// Act as the guard: wait on the standard input, and restore if the owner dies
    #[arg(long, value_name = "FILE", hide = true)]
    guard: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

/// Runs `syscost restore` with these words of a command line: the program, `restore`, its flags.
///
/// # Errors
/// Those of [`run`], or the words are no flags of this command.
pub fn run_words(words: &[OsString]) -> Result<ExitCode> {
    let line = Args::augment_args(clap::Command::new("syscost restore")).try_get_matches_from(&words[1..]);
    match line.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => run(&args),
        Err(answer) => print_clap_answer(&answer),
    }
}

/// Restores the outstanding settings, or waits as a guard to do so.
///
/// # Errors
/// A setting cannot be put back.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.guard {
        setting::guard(file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = args.home.directory();
    let outstanding = setting::outstanding_journals(&home);
    // The lock excludes a comparison that is running and a guard that is restoring.
    let _alone = if outstanding.is_empty() { None } else { Some(setting::Exclusion::acquire_lock()?) };
    let mut failed: Option<Error> = None;
    for (file, journal) in &outstanding {
        match setting::restore_journal(file, journal) {
            Ok(()) => page::write(&format!("{}\n", journal.restore_commands()))?,
            Err(error) => {
                page::warn(&format!("put it back by hand, and remove {}", file.display()));
                failed = failed.or(Some(error));
            }
        }
    }
    if outstanding.is_empty() {
        page::write_to_stderr("nothing is left to be put back");
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Warns of settings that a killed comparison left changed, before anything is measured under them.
pub fn warn_of_outstanding(home: &Path) {
    for (_, journal) in setting::outstanding_journals(home) {
        page::warn(&format!(
            "a comparison that was killed has left its settings; `syscost restore` does: {}",
            journal.restore_commands()
        ));
    }
}
