//! `syscost restore`: puts back what a comparison of settings has left changed, if it and its guard were killed.

use super::flag::Home;
use super::page;
use crate::pair::setting;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Put back settings that a killed comparison has left
///
/// `syscost ab --a … --b …` writes down what its settings were before it changes them, and puts them back at its
/// end, after any signal, and, by a guard, after its own death. If the guard was killed too, this does it.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Wait for the owner's word on the standard input, and restore if it dies without one
    #[arg(long, value_name = "FILE", hide = true)]
    guard: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.guard {
        setting::guard(file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = args.home.directory();
    let outstanding = setting::outstanding(&home);
    // Elsewhere a comparison may run, or a guard be at it.
    let _alone = if outstanding.is_empty() { None } else { Some(setting::Exclusion::take()?) };
    let mut failed: Option<Error> = None;
    for (file, journal) in &outstanding {
        match setting::restore(file, journal) {
            Ok(()) => page::write(&format!("{}\n", journal.words()))?,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if outstanding.is_empty() {
        page::say("nothing is left to be put back");
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Says what a killed comparison has left, before anything is measured under it.
pub(super) fn tell_outstanding(home: &Path) {
    for (_, journal) in setting::outstanding(home) {
        page::warn(&format!(
            "a comparison that was killed has left its settings; `syscost restore` does: {}",
            journal.words()
        ));
    }
}
