//! `syscost list`: every case, and whether this machine meets its needs now.

use super::flag::{Filter, Form};
use super::page::{self, Tone};
use crate::case::{Cpus, Place, Scale};
use crate::error::Result;
use crate::render::table::Layout;
use crate::trial::scratch;
use serde_json::{Value, json};
use std::path::Path;
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
    /// Every case, and not a line a group
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let rows = filtered_rows(&args.filter)?;
    let is_part = args.all || args.filter.is_given();
    args.form.write(
        || rows.iter().map(Row::json).collect::<Vec<_>>(),
        || page::tabbed_rows(rows.iter().map(Row::tabbed_cells)),
        |layout| if is_part { cases_table(&rows, layout) } else { groups_table(&rows, layout) },
    )?;
    Ok(ExitCode::SUCCESS)
}

struct Row {
    group: &'static str,
    id: String,
    title: String,
    /// A sentence: the first need that is not met, or the reason why default scale omits the case. `None` if it can run.
    missing: Option<String>,
}

fn filtered_rows(filter: &Filter) -> Result<Vec<Row>> {
    let rows = matching_rows(filter.matcher()?)?;
    match filter.no_match_error() {
        Some(error) if rows.is_empty() => Err(error),
        _ => Ok(rows),
    }
}

/// The place (CPUs, directory, scale) in which a case would be measured at default scale.
pub fn default_place(scratch: &Path) -> Place {
    Place { scratch: scratch.into(), scale: Scale::Default, cpus: Cpus::for_measuring_process() }
}

fn matching_rows(matches: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let scratch = scratch::make_directory()?;
    let place = default_place(scratch.path());
    let mut rows = Vec::new();
    for group in super::groups()? {
        let cases = (group.cases)().into_iter().map(|case| (group.id(&case), case));
        let asked = cases.filter(|(id, _)| matches(id));
        rows.extend(asked.map(|(id, case)| Row {
            group: group.name,
            id,
            missing: case.missing_need(&place),
            title: case.title,
        }));
    }
    Ok(rows)
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

/// A table for each group, with its own column widths, so that one long id does not narrow the titles of all groups.
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

/// The number of these cases that can run here.
fn count_runnable(rows: &[Row]) -> usize {
    rows.iter().filter(|row| row.missing.is_none()).count()
}

fn runnable_tally(rows: &[Row]) -> String {
    format!("\n{} of {} cases can run here\n", count_runnable(rows), rows.len())
}

// The default view: one line for each group, with the number of its cases and the range of their parameters.

/// One line for each group, and a hint how to list the cases.
fn groups_table(rows: &[Row], layout: Layout) -> String {
    let head =
        ["group", "here", "cases", "variants, and the first and the last parameter of the longest series"];
    let groups = rows.chunk_by(|a, b| a.group == b.group);
    let lines = groups.map(|rows| (page::Tone::Plain, group_cells(rows)));
    page::table(head, lines, page::table_width(layout), layout)
        + &runnable_tally(rows)
        + "`syscost list ^GROUP/` or `syscost list --all` names them\n"
}

fn group_cells(rows: &[Row]) -> [String; 4] {
    let group = rows.first().map_or("", |row| row.group);
    [group.into(), count_runnable(rows).to_string(), rows.len().to_string(), parameter_spread(rows)]
}

/// The variants and the range of the parameters in words: `89 variants`, `u32 … plt, f32 0 to 8`.
fn parameter_spread(rows: &[Row]) -> String {
    let names: Vec<&str> = rows.iter().map(case_name).collect();
    let series: Vec<Vec<&str>> =
        names.chunk_by(|a, b| variant_part(a) == variant_part(b)).map(<[_]>::to_vec).collect();
    let shown: Vec<&str> = series.iter().filter_map(|of| Some(variant_part(of.first()?))).collect();
    let variants = match shown.as_slice() {
        [first, .., last] if shown.len() > 4 => format!("{first} … {last} ({})", shown.len()),
        few => few.join(", "),
    };
    match series.iter().max_by_key(|of| of.len()).map(Vec::as_slice) {
        Some([first, .., last]) => {
            let (of, from, to) = (variant_part(first), parameter_part(first), parameter_part(last));
            format!("{variants}; {of} {from} to {to}")
        }
        _ => variants,
    }
}

/// The id without the group.
fn case_name(row: &Row) -> &str {
    row.id.split_once('/').map_or(row.id.as_str(), |(_, name)| name)
}

/// The part of a case name before the first slash.
fn variant_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// The part of a case name after the first slash, or an empty text.
fn parameter_part(name: &str) -> &str {
    name.split_once('/').map_or("", |(_, parameter)| parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, missing: Option<&str>) -> Row {
        Row { group: "call", id: id.into(), title: String::new(), missing: missing.map(str::to_owned) }
    }

    #[test]
    fn a_case_that_default_scale_leaves_out_does_not_run_here() {
        let rows = matching_rows(|id| id.starts_with("chase/list/")).expect("listed");
        let of = |id: &str| rows.iter().find(|row| row.id == id).expect("listed").missing.clone();
        assert_eq!(of("chase/list/16KiB"), None);
        let rows = matching_rows(|id| id.starts_with("chase/stride-16/")).expect("listed");
        let missing = rows[0].missing.as_deref().expect("at full scale alone");
        assert!(missing.contains("full scale"), "{missing}");
    }

    #[test]
    fn a_group_is_a_line_with_its_counts_and_its_longest_series() {
        let rows = [row("call/u32/0", None), row("call/u32/8", None), row("call/dyn", Some("no"))];
        let text = groups_table(&rows, Layout::default());
        assert!(text.contains("call   2     3      u32, dyn; u32 0 to 8"), "{text}");
        assert!(text.contains("2 of 3 cases can run here"), "{text}");
    }

    #[test]
    fn many_variants_are_named_by_the_first_and_the_last() {
        let rows: Vec<Row> = ["a", "b", "c", "d", "e"].map(|name| row(&format!("call/{name}"), None)).into();
        assert_eq!(parameter_spread(&rows), "a … e (5)");
    }
}
