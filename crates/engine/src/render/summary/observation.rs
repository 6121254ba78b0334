//! The rows: an operation in words, what it costs, what was expected, and how that compares with the last run.

use super::{Line, Summary};
use crate::record::quantity::{format_change, format_half_width};
use crate::record::{CaseRecord, Headline, Measured, Outcome};
use crate::render::cell::{self, Tone};
use crate::render::figure_line::HeadlineFigure;
use crate::study::alike;
use Column::{Expected, Id, Interval as Ends, Last, Operation, Quiet, Ratio, Share, Typical};

/// A column, in the order from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Operation,
    Quiet,
    Interval,
    Share,
    Typical,
    Expected,
    Ratio,
    Last,
    Id,
}

const ALL: [Column; 8] = [Operation, Quiet, Ends, Typical, Expected, Ratio, Last, Id];
/// The columns of a narrower screen, the widest first.
const NARROWER: [&[Column]; 7] = [
    &[Operation, Quiet, Ends, Typical, Expected, Ratio, Last],
    &[Operation, Quiet, Share, Typical, Expected, Ratio, Last],
    &[Operation, Quiet, Share, Expected, Ratio, Last],
    &[Operation, Quiet, Share, Expected, Ratio],
    &[Operation, Quiet, Expected, Ratio],
    &[Operation, Quiet, Ratio],
    &[Operation, Quiet],
];

/// A headline and its case.
pub struct Row<'a> {
    headline: &'a Headline,
    case: &'a CaseRecord,
    last: Option<f64>,
}

/// The lines of the table: headings and these rows, in this unit. Columns are left out until it fits `width`.
pub fn table_lines(rows: &[Row<'_>], unit: &str, width: usize) -> Vec<Line> {
    let compared = rows.iter().any(|row| row.last.is_some());
    let sheets = std::iter::once(&ALL[..]).chain(NARROWER);
    let sheets = sheets.filter(|columns| width > super::COLUMNS || !columns.contains(&Id));
    let sheets = sheets.map(|columns| {
        let kept: Vec<_> = columns.iter().copied().filter(|column| compared || *column != Last).collect();
        format_columns(&kept, rows, unit)
    });
    let fits = |lines: &Vec<Line>| lines.iter().all(|line| cell::display_width(&line.text) <= width);
    let mut sheets: Vec<Vec<Line>> = sheets.collect();
    let at = sheets.iter().position(fits).unwrap_or(sheets.len() - 1);
    let lines = sheets.swap_remove(at);
    lines.into_iter().map(|line| Line { text: cell::cut_to_width(&line.text, width), ..line }).collect()
}

/// A row for each headline of this run, in the order of their places. A skipped case has no row, nor has one without
/// the derived figure that its headline shows.
pub fn headline_rows<'a>(summary: &Summary<'a>) -> Vec<Row<'a>> {
    let row = |(id, headline): &'a (String, Headline)| {
        let (_, case) = summary.record.cases().find(|(_, case)| case.id == *id)?;
        let last =
            summary.earlier.iter().find_map(|earlier| alike::change_ratio(summary.record, earlier, id));
        let has_figure = |measured| HeadlineFigure::new(headline, measured, &summary.record.unit).is_some();
        let shown = !matches!(case.outcome, Outcome::Skipped(_)) && case.measured().is_none_or(has_figure);
        shown.then_some(Row { headline, case, last })
    };
    let mut rows: Vec<_> = summary.headlines.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.headline.place);
    rows
}

fn format_columns(columns: &[Column], rows: &[Row<'_>], unit: &str) -> Vec<Line> {
    let head: Vec<String> = columns.iter().map(|column| column.heading().to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|column| row.cell_text(*column, unit)).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    let lines = cell::align_columns(&all, |at| columns[at].alignment());
    let tone = |row: &Row<'_>| match row.case.outcome {
        Outcome::Failed(_) => Tone::Red,
        Outcome::Disturbed(_) => Tone::Yellow,
        _ => Tone::Plain,
    };
    let tones = std::iter::once(Tone::Bold).chain(rows.iter().map(tone));
    tones.zip(lines).map(|(tone, line)| Line::new(tone, line)).collect()
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Operation => "operation",
            Quiet => "quiet",
            Ends => "next run",
            Share => "next",
            Typical => "typical",
            Expected => "expected",
            Ratio => "ratio",
            Last => "to last",
            Id => "case",
        }
    }

    /// Numbers end at the right; an interval belongs to the number before it.
    fn alignment(self) -> (bool, usize) {
        let is_text = matches!(self, Operation | Ends | Share | Ratio | Id);
        (is_text, if self == Quiet { 1 } else { 2 })
    }
}

impl Row<'_> {
    fn cell_text(&self, column: Column, unit: &str) -> String {
        match (column, &self.case.outcome) {
            (Operation, _) => self.headline.words.into(),
            (Id, _) => self.case.id.clone(),
            (_, Outcome::Measured(measured)) => self.figure_text(column, measured, unit).unwrap_or_default(),
            (Quiet, Outcome::Failed(_)) => "FAILED".into(),
            (Quiet, _) => "disturbed".into(),
            _ => String::new(),
        }
    }

    fn figure_text(&self, column: Column, measured: &Measured, unit: &str) -> Option<String> {
        let told = HeadlineFigure::new(self.headline, measured, unit)?;
        Some(match column {
            Quiet => told.format_value(told.value.estimate),
            Ends => told.next_run_interval(),
            Share => format_half_width(&told.value),
            Typical => told.format_value(told.typical?),
            Expected => told.format_value(told.expected_value(measured)?),
            Ratio => told.ratio_to_expected(measured)?,
            Last => format_change(self.last?),
            Operation | Id => return None,
        })
    }
}
