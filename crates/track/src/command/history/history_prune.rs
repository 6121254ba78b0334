//! `syscost history prune`: points are forgotten, by a new file in place of the old one.

use super::Place;
use super::history_changes::first_second_of_day;
use crate::record::history_log::HistoryLog;
use crate::study::forgetting::{Forgetting, Pruned};
use std::process::ExitCode;
use syscost_command_line::flag::Filter;
use syscost_command_line::page;
use syscost_platform::error::{Error, Result};

/// Forget points
///
/// Points of which all that is given holds; says what would be forgotten, and does it with --yes: the file is replaced whole. Bridges
/// stay, so that every ratio that is left says what it said. An import from a copy of the file brings back what was forgotten.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  syscost history prune --before 2026-01-01 --weekly --yes\n  \
    syscost history prune --keep-last 365\n  syscost history prune --case '^fork/'")]
pub(super) struct Prune {
    #[command(flatten)]
    which: Which,
    /// Do it
    #[arg(long)]
    yes: bool,
    /// Only say what would be forgotten, which is the default
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
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

pub(super) fn prune(args: &Prune) -> Result<ExitCode> {
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
