//! The observation table: each case has a line with its prediction, measurement, interval and evidence; sentences follow below.
//!
//! To fit the terminal, whole columns are left out and named below; rows are never broken.

mod below;
mod column;
pub mod curve_text;

use crate::record::quantity::NANOSECONDS;
use crate::record::{CaseRecord, GroupRun, Measured, Outcome, Record};
use crate::render::cell::{Tone, align_columns, display_width, rule_with_name, wrap_words};
use column::Column;
use std::collections::BTreeMap;

/// The properties of the output on which the table is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the terminal; `None` for a pipe or a file, where the table is as wide as needed.
    pub width: Option<u16>,
    /// Whether headings, skips and failures are coloured.
    pub color: bool,
    /// Whether drawings use ASCII only.
    pub ascii: bool,
}

/// Values for an additional column: published values, or those of another record.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// Heading of the column.
    pub name: &'a str,
    /// The values by case id, ns. The column is left out if the record's unit is not nanoseconds.
    pub values: &'a BTreeMap<String, f64>,
}

/// The table of a record, or of only one of its groups, with the text below it.
pub fn record_table(record: &Record, group: Option<&str>, against: &[Against<'_>], layout: Layout) -> String {
    let rows = table_rows(record, group);
    let sheet = Sheet { rows: &rows, unit: &record.unit, against };
    let shape = fit_to_width(&sheet, layout.width);
    let mut text = table_text(&sheet, &shape, layout.color);
    text.push_str(&below::table_notes(&sheet, &shape, layout));
    text
}

/// Formats sentences for the text below a table: an empty line first, then each sentence on lines of its own.
pub fn format_sentences(sentences: &[String], layout: Layout) -> String {
    let width = layout.width.map_or(usize::MAX, usize::from);
    let text: String = sentences.iter().map(|sentence| wrap_sentence(sentence, width) + "\n").collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A sentence below the table, broken between words; all lines but the first are indented.
fn wrap_sentence(text: &str, width: usize) -> String {
    wrap_words("", 2, text, width)
}

/// A case with its group.
#[derive(Clone, Copy)]
struct Row<'a> {
    group: &'a GroupRun,
    case: &'a CaseRecord,
}

/// The content of a table, for any width.
#[derive(Clone, Copy)]
struct Sheet<'a> {
    rows: &'a [Row<'a>],
    unit: &'a str,
    against: &'a [Against<'a>],
}

/// The layout of a table at one width.
struct Shape {
    columns: Vec<Column>,
    /// Names of the columns that did not fit.
    hidden: Vec<&'static str>,
    /// The longest operation, in characters; longer ones end in `…`.
    longest: usize,
    width: usize,
}

fn table_rows<'a>(record: &'a Record, group: Option<&str>) -> Vec<Row<'a>> {
    let wanted = |(of, _): &(&GroupRun, &CaseRecord)| group.is_none_or(|name| of.name == name);
    record.cases().filter(wanted).map(|(group, case)| Row { group, case }).collect()
}

impl Sheet<'_> {
    /// Whether some case has several executions, and therefore an interval for the next run.
    fn has_next_run_interval(&self) -> bool {
        self.rows.iter().any(|row| row.measured().is_some_and(|measured| measured.quiet.is_some()))
    }

    /// The rows that are shown. Several cases of a group that were skipped for the same reason have no row, unless an
    /// additional column has a value for them.
    fn visible_rows(&self) -> impl Iterator<Item = &Row<'_>> {
        self.rows.iter().filter(|row| {
            let Outcome::Skipped(sentence) = &row.case.outcome else { return true };
            let same =
                |case: &&CaseRecord| matches!(&case.outcome, Outcome::Skipped(other) if other == sentence);
            let alone = row.group.cases.iter().filter(same).count() == 1;
            alone || self.against.iter().any(|other| other.values.contains_key(&row.case.id))
        })
    }
}

impl Row<'_> {
    fn measured(&self) -> Option<&Measured> {
        self.case.measured()
    }

    /// Whether the row shows a time although the clocks contradict each other.
    fn is_time_in_doubt(&self, unit: &str) -> bool {
        self.group.clock.disputed.is_some() && self.measured().is_some() && unit == NANOSECONDS
    }

    /// The tone of the whole line. It is not set per cell, because escape codes within a line would shift columns.
    fn tone(&self) -> Tone {
        match &self.case.outcome {
            Outcome::Measured(measured) if measured.is_unwitnessed() => Tone::Yellow,
            Outcome::Measured(_) => Tone::Plain,
            Outcome::Skipped(_) | Outcome::Disturbed(_) => Tone::Yellow,
            Outcome::Failed(_) => Tone::Red,
        }
    }

    /// The id without its group, for the rows below the group's heading.
    fn operation_name(&self) -> &str {
        let id = &self.case.id;
        id.strip_prefix(&self.group.name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(id)
    }
}

/// The lines of the table itself: a heading, and one line per case. All groups share one table, so that their
/// columns are aligned.
fn table_lines(sheet: &Sheet<'_>, columns: &[Column], longest: usize) -> Vec<String> {
    let head = columns.iter().map(|column| column.heading(sheet)).collect();
    let cells = |row| columns.iter().map(|column| column.cell_text(sheet, row, longest)).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(sheet.visible_rows().map(cells)).collect();
    align_columns(&all, |at| (columns[at].is_text(), columns[at].gap_width()))
}

fn table_text(sheet: &Sheet<'_>, shape: &Shape, color: bool) -> String {
    let mut lines = table_lines(sheet, &shape.columns, shape.longest).into_iter();
    let mut text = String::new();
    let mut add = |tone: Tone, line: &str| {
        text.push_str(&tone.paint(line, color));
        text.push('\n');
    };
    add(Tone::Bold, &lines.next().unwrap_or_default());
    let mut group = "";
    for (row, line) in sheet.visible_rows().zip(lines) {
        if row.group.name != group {
            group = &row.group.name;
            add(Tone::Bold, &rule_with_name(group, shape.width));
        }
        add(row.tone(), &line);
    }
    text
}

#[cfg(test)]
mod tests;

// Fits the table to the terminal: the least important columns are dropped first.

/// On a terminal with fewer columns the parts of a prediction and the typical cost are hidden even if they fit,
/// because a crowded line is hard to read.
const ROOMY: usize = 120;

/// A step that makes the table narrower: a column is removed, or replaced by a shorter form.
type Step = (Column, Option<Column>);

/// The columns that a terminal with fewer than [`ROOMY`] columns does not show.
const NARROW: [Column; 4] = [Column::Evidence, Column::Hardware, Column::Software, Column::Typical];

/// The steps that are taken in this order until the table fits. The prediction is dropped before its parts, whose sum
/// it is. The operation and its figure always stay.
const STEPS: [Step; 12] = [
    (Column::Evidence, Some(Column::Claims)),
    (Column::Interval, Some(Column::Share)),
    (Column::Predicted, None),
    (Column::Hardware, None),
    (Column::Software, None),
    (Column::Typical, None),
    (Column::Cycles, None),
    (Column::Net, None),
    (Column::Claims, None),
    (Column::Ratio, None),
    (Column::Share, None),
    (Column::Rate, None),
];

/// The columns for this width, and the longest operation name that fits.
fn fit_to_width(sheet: &Sheet<'_>, limit: Option<u16>) -> Shape {
    let limit = limit.map_or(usize::MAX, usize::from);
    let mut shape =
        Shape { columns: Column::all_for_sheet(sheet), hidden: Vec::new(), longest: usize::MAX, width: 0 };
    if limit < ROOMY {
        let narrow = STEPS.into_iter().filter(|(column, _)| NARROW.contains(column));
        narrow.for_each(|step| shape.apply_step(step));
    }
    for step in STEPS {
        if table_width(sheet, &shape) > limit {
            shape.apply_step(step);
        }
    }
    shorten_operations(sheet, &mut shape, limit);
    shape.width = table_width(sheet, &shape);
    shape
}

impl Shape {
    fn apply_step(&mut self, (column, shorter): Step) {
        let Some(place) = self.columns.iter().position(|other| *other == column) else { return };
        match shorter {
            Some(shorter) => self.columns[place] = shorter,
            None => {
                self.columns.remove(place);
                self.hidden.push(column.name());
            }
        }
    }
}

fn table_width(sheet: &Sheet<'_>, shape: &Shape) -> usize {
    table_lines(sheet, &shape.columns, shape.longest)
        .iter()
        .map(|line| display_width(line))
        .max()
        .unwrap_or(0)
}

/// Shortens the names of operations: the last resort on a very narrow terminal.
fn shorten_operations(sheet: &Sheet<'_>, shape: &mut Shape, limit: usize) {
    let excess = table_width(sheet, shape).saturating_sub(limit);
    if excess > 0 {
        let longest = sheet.visible_rows().map(|row| display_width(row.operation_name())).max().unwrap_or(0);
        shape.longest = longest.saturating_sub(excess).max(Column::Operation.name().len());
    }
}
