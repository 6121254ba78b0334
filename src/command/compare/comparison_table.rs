//! The comparison table on a terminal: one column for each baseline. Columns that do not fit go into a further block
//! below, with the operations repeated; no number is broken.

use crate::command::page::{Tone, heading, inert, length, paint, wrap};
use crate::record::quantity::format_amount;
use crate::record::verdict::Verdict;
use crate::render::table::Layout;
use crate::render::{pad_right, shorten_middle};
use std::ops::Range;
use syscost_analysis::render::compared::LEGEND;
use syscost_analysis::study::comparison::{Baseline, Cell, Comparison, Row};

/// Spaces between two columns.
const GAP: usize = 2;
/// Width to which a head is shortened, unless its cells are wider.
const LONGEST_HEAD: usize = 24;
/// The least width of an operation name, even if the table then does not fit.
const SHORTEST_OPERATION: usize = 10;
const OPERATION: &str = "operation";

/// Head, unit and widths of a baseline's column.
struct Column<'a> {
    head: String,
    unit: &'a str,
    value: usize,
    mark: usize,
    /// Whether a mark of the column ends in a question mark, so that the other marks are padded by one space.
    asks: bool,
    width: usize,
}

impl<'a> Column<'a> {
    fn new(comparison: &'a Comparison, at: usize) -> Self {
        let cells = || comparison.rows.iter().map(|row| &row.cells[at]);
        let unit = &comparison.baselines[at].unit;
        let mut column = Self {
            head: String::new(),
            unit,
            value: cells().map(|cell| length(&value_text(cell, unit))).max().unwrap_or(0),
            mark: 0,
            asks: cells().any(|cell| change_mark(cell, false).ends_with('?')),
            width: 0,
        };
        column.mark = cells().map(|cell| length(&change_mark(cell, column.asks))).max().unwrap_or(0);
        let name = &comparison.baselines[at].name;
        column.width = column.content_width().max(length(name).min(LONGEST_HEAD));
        column.head = shorten_middle(&inert(name), column.width);
        column
    }

    /// Width of a cell of this column: the value and the mark.
    fn content_width(&self) -> usize {
        self.value + if self.mark > 0 { 1 + self.mark } else { 0 }
    }
}

/// All blocks of the table.
pub fn render_table(comparison: &Comparison, layout: Layout) -> String {
    if comparison.rows.is_empty() {
        return String::new();
    }
    let limit = layout.width.map_or(usize::MAX, usize::from);
    let columns: Vec<Column<'_>> =
        (0..comparison.baselines.len()).map(|at| Column::new(comparison, at)).collect();
    let widest = columns.iter().map(|column| column.width).max().unwrap_or(0);
    let longest = comparison.rows.iter().map(|row| length(operation_name(row))).max().unwrap_or(0);
    let room = limit.saturating_sub(GAP + widest).max(SHORTEST_OPERATION);
    let first = longest.max(OPERATION.len()).min(room);
    let text: Vec<_> = divide_into_blocks(&columns, first, limit)
        .into_iter()
        .map(|range| render_block(comparison, range.clone(), &columns[range], first, layout))
        .collect();
    text.join("\n")
}

/// Divides the columns into blocks that fit, at least one column in each.
fn divide_into_blocks(columns: &[Column<'_>], first: usize, limit: usize) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let (mut start, mut used) = (0, first);
    for (at, column) in columns.iter().enumerate() {
        if at > start && used + GAP + column.width > limit {
            blocks.push(start..at);
            (start, used) = (at, first);
        }
        used += GAP + column.width;
    }
    blocks.push(start..columns.len());
    blocks
}

fn render_block(
    comparison: &Comparison,
    range: Range<usize>,
    columns: &[Column<'_>],
    first: usize,
    layout: Layout,
) -> String {
    let heads = columns.iter().map(|column| format!("{:>1$}", column.head, column.width + GAP));
    let width = first + columns.iter().map(|column| GAP + column.width).sum::<usize>();
    let head = format!("{OPERATION:<first$}{}", heads.collect::<String>());
    let mut text = paint(Tone::Bold, head.trim_end(), layout) + "\n";
    for rows in comparison.rows.chunk_by(|a, b| a.group == b.group) {
        text.push_str(&(heading(&inert(&rows[0].group), width, layout) + "\n"));
        for row in rows {
            let cells = row.cells[range.clone()].iter().zip(columns);
            let cells: String = cells.map(|(shown, column)| render_cell(shown, column, layout)).collect();
            let line = pad_right(&shorten_middle(&inert(operation_name(row)), first), first) + &cells;
            text.push_str(&(line.trim_end().to_owned() + "\n"));
        }
    }
    text
}

fn render_cell(cell: &Cell, column: &Column<'_>, layout: Layout) -> String {
    let before = " ".repeat(GAP + column.width - column.content_width());
    let value = format!("{:>1$}", value_text(cell, column.unit), column.value);
    if column.mark == 0 {
        return before + &value;
    }
    let mark = format!("{:>1$}", change_mark(cell, column.asks), column.mark);
    let mark = match cell.change.as_ref().map(|change| change.verdict) {
        Some(Verdict::Slower) => paint(Tone::Red, &mark, layout),
        Some(Verdict::Faster) => paint(Tone::Green, &mark, layout),
        _ => mark,
    };
    before + &value + " " + &mark
}

fn value_text(cell: &Cell, unit: &str) -> String {
    cell.value.map_or_else(|| "-".into(), |value| format_amount(value.estimate, unit))
}

/// The mark of a change, padded if marks of the column end in a question mark and this one does not.
fn change_mark(cell: &Cell, others_ask: bool) -> String {
    let mark = cell.change.as_ref().map(|change| change.mark()).unwrap_or_default();
    if mark.is_empty() || mark.ends_with('?') || !others_ask { mark } else { mark + " " }
}

/// The id without its group, under whose heading it is shown.
fn operation_name(row: &Row) -> &str {
    row.id.strip_prefix(&row.group).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&row.id)
}

// The text above the comparison table and below it.

/// Width of the column of names; a longer name gets its own line.
const LONGEST: usize = 24;

/// What is compared, how the machines differ, and the legend.
pub fn render_heading(comparison: &Comparison, layout: Layout) -> String {
    let names: Vec<_> = comparison.baselines.iter().map(|baseline| baseline.name.as_str()).collect();
    let (first, others) = names.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    let title = wrap("", &format!("{} against {first}", others.join(", ")), sentence_width(layout));
    let column = names.iter().map(|name| length(name)).max().unwrap_or(0).min(LONGEST) + 2;
    let baselines = comparison.baselines.iter().map(|baseline| baseline_lines(baseline, column, layout));
    let legend = wrap("", LEGEND, sentence_width(layout));
    format!("{}\n\n{}\n{legend}\n\n", paint(Tone::Bold, &title, layout), baselines.collect::<String>())
}

fn baseline_lines(baseline: &Baseline, column: usize, layout: Layout) -> String {
    let indent = " ".repeat(column);
    let name = match length(&baseline.name) {
        short if short + 2 <= column => pad_right(&inert(&baseline.name), column),
        _ => format!("{}\n{indent}", inert(&baseline.name)),
    };
    let summary = wrap(&indent, &baseline.summary(), sentence_width(layout));
    let mut text = name + summary.strip_prefix(&indent).unwrap_or(&summary) + "\n";
    for note in baseline.relation.iter().flat_map(|relation| relation.notes()) {
        let line = wrap(&indent, &note, sentence_width(layout));
        // A mere fact may be the very difference that is compared; only a weightier difference is coloured.
        let line = if is_weighty(&note) { paint(Tone::Yellow, &line, layout) } else { line };
        text.push_str(&(line + "\n"));
    }
    text
}

fn is_weighty(note: &str) -> bool {
    ["warning", "incomparable", "another"].iter().any(|word| note.starts_with(word))
}

/// Why there are no verdicts, how many rows were left out, and the tally.
pub fn render_footer(comparison: &Comparison, layout: Layout) -> String {
    let remarks =
        comparison.remarks().into_iter().map(|remark| wrap("* ", &remark, sentence_width(layout)) + "\n");
    let mut text = format!("\n{}", remarks.collect::<String>());
    if comparison.left_out > 0 {
        let rows = if comparison.left_out == 1 { "1 row" } else { &format!("{} rows", comparison.left_out) };
        text.push_str(&wrap("", &format!("{rows} without a change left out"), sentence_width(layout)));
        text.push('\n');
    }
    let sum = comparison.tally.to_string();
    text + &wrap("", &sum, sentence_width(layout)) + "\n"
}

/// The width at which sentences are wrapped; without a terminal each sentence is one line.
fn sentence_width(layout: Layout) -> usize {
    layout.width.map_or(usize::MAX, usize::from)
}

#[cfg(test)]
mod tests;
