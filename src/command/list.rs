//! `syscost list`: every case, and whether this machine meets its needs now.

mod group_line;

use super::flag::{Filter, Form};
use super::page::{self, Tone};
use crate::case::{Case, Cpus, Place, Scale};
use crate::driver::layout;
use crate::error::Result;
use crate::render::table::Layout;
use crate::suite::GROUPS;
use crate::suite::coverage::ids_like;
use crate::trial::scratch;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Print every case, and whether it can run on this machine
///
/// Prints a line a group: how many of its cases can run here, and the spread of their parameters. With a filter or
/// `--all` every case: its id, what it times, and whether this machine offers what it needs. In a pipe: one case a
/// line, with id, title, and `yes` or what is missing, between tabs.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    /// The cases that answer a test of another suite, such as `will-it-scale/futex1`; `syscost coverage` prints them
    #[arg(long, value_name = "SUITE/TEST", conflicts_with = "filter")]
    like: Option<String>,
    /// Every case, and not a line a group
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let rows = match &args.like {
        None => filtered_rows(&args.filter)?,
        Some(test) => {
            let starts = ids_like(test)?;
            matching_rows(|id| starts.iter().any(|start| id.starts_with(start)))?
        }
    };
    match page::is_piped() {
        _ if args.form.json => page::write_json(&rows.iter().map(Row::json).collect::<Vec<_>>())?,
        true => page::write(&page::tabbed_rows(&rows.iter().map(Row::tabbed_cells).collect::<Vec<_>>()))?,
        false if !args.all && args.like.is_none() && !args.filter.is_given() => {
            page::write(&group_line::groups_table(&rows, layout()))?
        }
        false => page::write(&cases_table(&rows, layout()))?,
    }
    Ok(ExitCode::SUCCESS)
}

struct Row {
    group: &'static str,
    id: String,
    title: String,
    /// The first need that is not met, in a sentence.
    missing: Option<String>,
}

fn filtered_rows(filter: &Filter) -> Result<Vec<Row>> {
    let rows = matching_rows(filter.matcher()?)?;
    match filter.no_match_error() {
        Some(error) if rows.is_empty() => Err(error),
        _ => Ok(rows),
    }
}

fn matching_rows(matches: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let scratch = scratch::make_directory()?;
    let place = Place {
        scratch: scratch.path().to_path_buf(),
        scale: Scale::Default,
        cpus: Cpus::for_measuring_process(),
    };
    let mut rows = Vec::new();
    for group in GROUPS {
        let cases = (group.cases)().into_iter().map(|case| (group.id(&case), case));
        let asked = cases.filter(|(id, _)| matches(id));
        rows.extend(asked.map(|(id, case)| Row {
            group: group.name,
            id,
            missing: missing_need(&case, &place),
            title: case.title,
        }));
    }
    Ok(rows)
}

/// The first need that this machine does not meet, in a sentence.
pub fn missing_need(case: &Case, place: &Place) -> Option<String> {
    case.needs.iter().find_map(|need| need.check_place(place).err())
}

impl Row {
    fn json(&self) -> Value {
        let Self { group, id, title, missing } = self;
        json!({ "id": id, "group": group, "title": title, "runs_here": missing.is_none(), "missing": missing })
    }

    fn tabbed_cells(&self) -> [String; 3] {
        [self.id.clone(), self.title.clone(), self.missing.clone().unwrap_or_else(|| "yes".into())]
    }

    /// A row for a terminal; the sentence of a missing need goes below it.
    fn terminal_cells(&self) -> [String; 2] {
        let mark = if self.missing.is_none() { '✓' } else { '–' };
        [format!("{mark} {}", self.id), self.title.clone()]
    }
}

/// The groups, each with columns of its own, so that one long id does not narrow the titles of all.
fn cases_table(rows: &[Row], layout: Layout) -> String {
    let groups = rows.chunk_by(|a, b| a.group == b.group);
    groups.map(|rows| group_section(rows, layout)).collect::<String>() + &runnable_tally(rows)
}

fn group_section(rows: &[Row], layout: Layout) -> String {
    let lines = page::align_columns(
        &rows.iter().map(Row::terminal_cells).collect::<Vec<_>>(),
        page::prose_width(layout),
    );
    let name = rows.first().map_or("", |row| row.group);
    let mut text = page::heading(name, page::prose_width(layout), layout) + "\n";
    for (row, line) in rows.iter().zip(lines) {
        text += &(line + "\n");
        if let Some(sentence) = &row.missing {
            let sentence = page::wrap("    ", sentence, page::prose_width(layout));
            text += &(page::paint(Tone::Yellow, &sentence, layout) + "\n");
        }
    }
    text
}

/// How many of these cases can run here.
fn count_runnable(rows: &[Row]) -> usize {
    rows.iter().filter(|row| row.missing.is_none()).count()
}

fn runnable_tally(rows: &[Row]) -> String {
    format!("\n{} of {} cases can run here\n", count_runnable(rows), rows.len())
}
