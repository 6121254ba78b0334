//! `syscost history`: ratios to a reference, night after night, and what changed.

mod history_bisect;
mod history_changes;
mod history_confirm;
mod history_measure;
mod history_prune;
mod history_shown;
mod history_sql;
mod suspicion;

use crate::record::history_log::{Content, HistoryLog};
use crate::record::history_point::HistoryPoint;
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_line::archive::Archive;
use syscost_command_line::flag::Home;
use syscost_command_line::page;
use syscost_engine::exit::Exit;
use syscost_platform::error::Result;

/// Follow cases over nights and commits, by their ratios to a reference
///
/// A reference is a build that is kept. Each night today's build is compared with it by turns, and the ratios are added to a
/// history: one file, a line a night, only ever longer. What disturbs a machine disturbs both sides, so that a ratio varies by a
/// few tenths of a per cent where times vary by many. `syscost help tracking` has a workflow.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Reference(history_measure::Reference),
    Measure(history_measure::Measure),
    Bridge(history_measure::Bridge),
    Add(history_measure::Add),
    Changes(history_changes::Args),
    Confirm(history_confirm::Confirm),
    Bisect(history_bisect::Bisect),
    Show(history_shown::Show),
    List(history_shown::List),
    Export(history_shown::Export),
    Import(Import),
    Prune(history_prune::Prune),
    Verify(Verify),
}

/// Which history.
#[derive(clap::Args)]
struct Place {
    /// File of the history [default: NAME.jsonl in `syscost/history/` of the home]
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    file: Option<PathBuf>,
    /// Name of the history
    #[arg(long, value_name = "NAME", default_value = "main")]
    history: String,
    #[command(flatten)]
    home: Home,
}

impl Place {
    /// # Errors
    /// The name is no file name.
    fn history_log(&self) -> Result<HistoryLog> {
        match &self.file {
            Some(file) => Ok(HistoryLog::from_path(file)),
            None => HistoryLog::in_store(Archive::at(&self.home).store().home(), &self.history),
        }
    }

    /// The points, after a warning for each damaged line.
    ///
    /// # Errors
    /// The file cannot be read, or is of a newer version.
    fn read_points(&self) -> Result<Vec<HistoryPoint>> {
        let log = self.history_log()?;
        let Content { points, damaged } = log.read()?;
        damaged.iter().for_each(page::warn);
        if points.is_empty() {
            page::warn(&format!(
                "{}: no point yet: `syscost history reference NAME` keeps a build, `syscost history measure --reference \
                 NAME` adds a point",
                log.path().display()
            ));
        }
        Ok(points)
    }
}

/// Add the points of another file that are not here yet
#[derive(clap::Args)]
struct Import {
    /// A history of another home, or a copy of this one
    from: PathBuf,
    #[command(flatten)]
    place: Place,
}

/// Check every line of the file; exit code 1 if one is damaged
#[derive(clap::Args)]
struct Verify {
    #[command(flatten)]
    place: Place,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Reference(args) => history_measure::keep_reference(args),
        Command::Measure(args) => history_measure::measure(args),
        Command::Bridge(args) => history_measure::bridge(args),
        Command::Add(args) => history_measure::add(args),
        Command::Changes(args) => history_changes::run(args),
        Command::Confirm(args) => history_confirm::confirm(args),
        Command::Bisect(args) => history_bisect::bisect(args),
        Command::Show(args) => history_shown::show(args),
        Command::List(args) => history_shown::list(args),
        Command::Export(args) => history_shown::export(args),
        Command::Import(args) => import_points(args),
        Command::Prune(args) => history_prune::prune(args),
        Command::Verify(args) => verify_history(args),
    }
}

fn import_points(args: &Import) -> Result<ExitCode> {
    let Content { points, damaged } = HistoryLog::from_existing_file(&args.from)?.read()?;
    damaged.iter().for_each(page::warn);
    let log = args.place.history_log()?;
    let added = log.add(&points)?;
    page::write(&format!(
        "{added} of {} added to {}\n",
        page::count_with_noun(points.len(), "point", "points"),
        log.path().display()
    ))?;
    Ok(Exit::failed_if(!damaged.is_empty()).into())
}

fn verify_history(args: &Verify) -> Result<ExitCode> {
    let log = HistoryLog::from_existing_file(args.place.history_log()?.path())?;
    let Content { points, damaged } = log.read()?;
    damaged.iter().for_each(page::warn);
    let back = points.windows(2).filter(|pair| pair[1].started < pair[0].started).count();
    if back > 0 {
        page::warn(&format!(
            "{}: {} before the one above it: the clock went back, or files were joined; the order of the lines counts",
            log.path().display(),
            page::count_with_noun(back, "point began", "points began")
        ));
    }
    page::write(&format!(
        "{}, {} damaged\n",
        page::count_with_noun(points.len(), "sound point", "sound points"),
        damaged.len()
    ))?;
    Ok(Exit::failed_if(!damaged.is_empty()).into())
}
