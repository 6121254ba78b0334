//! `syscost history`: measures ratios to a reference night after night, and reports their changes.

mod history_bisect;
mod history_changes;
mod history_confirm;
mod history_measure;
mod history_shown;

use crate::record::history_log::{Content, HistoryLog};
use crate::record::history_point::HistoryPoint;
use crate::study::forgetting::{Forgetting, Pruned};
use crate::study::ratio_series::{RatioSeries, build_ratio_series};
use clap::Subcommand;
use history_changes::first_second_of_day;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_line::archive::Archive;
use syscost_command_line::flag::{Filter, Home};
use syscost_command_line::page;
use syscost_engine::exit::Exit;
use syscost_platform::error::{Error, Result};

/// Follow cases over nights and commits, by their ratios to a reference
///
/// A reference is a stored build. Each night the current build is compared with it by turns, and the ratios are appended to a
/// history: a file with one line for each night. A disturbance affects both sides, so that a ratio varies by a few tenths of a per
/// cent where times vary by many per cent. `syscost help tracking` has a workflow.
#[derive(Subcommand)]
pub(super) enum Command {
    Reference(history_measure::Reference),
    Measure(history_measure::Measure),
    Bridge(history_measure::Bridge),
    Add(history_measure::Add),
    Changes(history_changes::Args),
    Confirm(history_confirm::Confirm),
    Bisect(history_bisect::Bisect),
    Show(history_shown::Show),
    /// Print the points
    ///
    /// For each point: its time, the number of cases, the reference, and the label, or for a bridge the new reference. In a pipe,
    /// between tabs.
    List(Place),
    Export(history_shown::Export),
    Import(Import),
    Prune(Prune),
    /// Check every line of the file; exit code 1 if one is damaged
    Verify(Place),
}

/// The history that a command is for.
#[derive(clap::Args)]
pub(super) struct Place {
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

    /// The points and the series of their cases. Cases that belong to no series give a warning.
    ///
    /// # Errors
    /// Those of [`Place::read_points`].
    fn read_series(&self) -> Result<(Vec<HistoryPoint>, Vec<RatioSeries>)> {
        let points = self.read_points()?;
        let (series, said) = build_ratio_series(&points);
        said.iter().for_each(page::warn);
        Ok((points, series))
    }
}

/// Add the points of another file that are not here yet
#[derive(clap::Args)]
pub(super) struct Import {
    /// A history of another home, or a copy of this one
    from: PathBuf,
    #[command(flatten)]
    place: Place,
}

pub(super) fn run(command: &Command) -> Result<ExitCode> {
    match command {
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
        Command::Prune(args) => prune(args),
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

fn verify_history(place: &Place) -> Result<ExitCode> {
    let log = HistoryLog::from_existing_file(place.history_log()?.path())?;
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

// `syscost history prune`: removes points, by a new file in place of the old one.

/// Forget points
///
/// Selects the points that meet all given conditions, and prints how many; with --yes it removes them and replaces the file. Bridges
/// stay, so that the remaining ratios do not change. An import from a copy of the file brings the removed points back.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  syscost history prune --before 2026-01-01 --weekly --yes\n  \
    syscost history prune --keep-last 365\n  syscost history prune --case '^fork/'")]
pub(super) struct Prune {
    #[command(flatten)]
    which: Which,
    /// Remove the points
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// Points that began before this day, such as 2026-01-31
    #[arg(long, value_name = "DAY", value_parser = first_second_of_day)]
    before: Option<u64>,
    /// Points with this label
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// All points but the newest N
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,
    /// All points but the first of each week
    #[arg(long)]
    weekly: bool,
    /// Of these points only the cases whose ids match this regular expression
    #[arg(long, value_name = "FILTER")]
    case: Option<String>,
}

fn prune(args: &Prune) -> Result<ExitCode> {
    let log = HistoryLog::from_existing_file(args.place.history_log()?.path())?;
    let is_case = args.which.case.clone().map(|case| Filter::new(Some(case)).matcher()).transpose()?;
    let which = Forgetting {
        before: args.which.before,
        label: args.which.label.as_deref(),
        keep_last: args.which.keep_last,
        weekly: args.which.weekly,
        case: is_case.as_ref().map(|is_case| is_case as &dyn Fn(&str) -> bool),
    };
    if !args.yes {
        let pruned = which.prune(&args.place.read_points()?);
        page::write(&pruned_text(&pruned, false))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut done = None;
    log.rewrite(|points| {
        let mut pruned = which.prune(&points);
        let left = std::mem::take(&mut pruned.points);
        done = Some(pruned);
        left
    })?;
    let done = done.ok_or_else(|| Error::Disproved("the history was rewritten without being read".into()))?;
    page::write(&pruned_text(&done, true))?;
    Ok(ExitCode::SUCCESS)
}

fn pruned_text(pruned: &Pruned, is_done: bool) -> String {
    let (would, do_it) = if is_done { ("forgotten", "") } else { ("would be forgotten", "; --yes does it") };
    let points = page::count_with_noun(pruned.gone, "point", "points");
    let mut text = match pruned.cases {
        0 => format!("{points} {would}{do_it}\n"),
        cases => {
            format!(
                "{points} and {} of others {would}{do_it}\n",
                page::count_with_noun(cases, "ratio", "ratios")
            )
        }
    };
    if pruned.needed > 0 {
        text += "the first point stays: it alone says which reference the others are held against\n";
    }
    let [before, after] = pruned.events;
    if before != after {
        text += &format!(
            "{} reported before, {after} after\n",
            page::count_with_noun(before, "event is", "events are")
        );
    }
    text
}
