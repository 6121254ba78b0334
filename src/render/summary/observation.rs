//! The rows: an operation in words, what it costs, what was expected, and how that compares with the last run.

use super::{Line, Summary};
use crate::record::quantity::{change, share};
use crate::record::{CaseRecord, Headline, Measured, Outcome};
use crate::render::cell;
use crate::render::headline_figure::HeadlineFigure;
use crate::render::tone::Tone;
use crate::study::alike;

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

use Column::{Expected, Id, Interval as Ends, Last, Operation, Quiet, Ratio, Share, Typical};

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

/// A head and these rows, in this unit.
pub fn lines(rows: &[Row<'_>], unit: &str, width: usize) -> Vec<Line> {
    let compared = rows.iter().any(|row| row.last.is_some());
    let sheets = std::iter::once(&ALL[..]).chain(NARROWER);
    let sheets = sheets.filter(|columns| width > super::COLUMNS || !columns.contains(&Id));
    let sheets = sheets.map(|columns| {
        let kept: Vec<_> = columns.iter().copied().filter(|column| compared || *column != Last).collect();
        laid_out(&kept, rows, unit)
    });
    let fits = |lines: &Vec<Line>| lines.iter().all(|line| cell::width(&line.text) <= width);
    let mut sheets: Vec<Vec<Line>> = sheets.collect();
    let at = sheets.iter().position(fits).unwrap_or(sheets.len() - 1);
    let lines = sheets.swap_remove(at);
    lines.into_iter().map(|line| Line { text: cell::cut(&line.text, width), ..line }).collect()
}

/// The headlines that were tried, in the order of their places. What this machine cannot measure has no row.
pub fn rows<'a>(summary: &Summary<'a>) -> Vec<Row<'a>> {
    let row = |(id, headline): &'a (String, Headline)| {
        let (_, case) = summary.record.cases().find(|(_, case)| case.id == *id)?;
        let last = summary.earlier.iter().find_map(|earlier| alike::change(summary.record, earlier, id));
        let shown = !matches!(case.outcome, Outcome::Skipped(_));
        shown.then_some(Row { headline, case, last })
    };
    let mut rows: Vec<_> = summary.headlines.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.headline.place);
    rows
}

fn laid_out(columns: &[Column], rows: &[Row<'_>], unit: &str) -> Vec<Line> {
    let head: Vec<String> = columns.iter().map(|column| column.head().to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|column| row.cell(*column, unit)).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    let lines = cell::aligned(&all, |at| columns[at].place());
    let tone = |row: &Row<'_>| match row.case.outcome {
        Outcome::Failed(_) => Tone::Red,
        Outcome::Disturbed(_) => Tone::Yellow,
        _ => Tone::Plain,
    };
    let tones = std::iter::once(Tone::Bold).chain(rows.iter().map(tone));
    tones.zip(lines).map(|(tone, line)| Line::new(tone, line)).collect()
}

impl Column {
    fn head(self) -> &'static str {
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
    fn place(self) -> (bool, usize) {
        let is_text = matches!(self, Operation | Ends | Share | Ratio | Id);
        (is_text, if self == Quiet { 1 } else { 2 })
    }
}

impl Row<'_> {
    fn cell(&self, column: Column, unit: &str) -> String {
        match (column, &self.case.outcome) {
            (Operation, _) => self.headline.words.into(),
            (Id, _) => self.case.id.clone(),
            (_, Outcome::Measured(measured)) => self.figure(column, measured, unit).unwrap_or_default(),
            (Quiet, Outcome::Failed(_)) => "FAILED".into(),
            (Quiet, _) => "disturbed".into(),
            _ => String::new(),
        }
    }

    fn figure(&self, column: Column, measured: &Measured, unit: &str) -> Option<String> {
        let told = HeadlineFigure::new(self.headline, measured, unit);
        Some(match column {
            Quiet => told.amount(told.value.estimate),
            Ends => told.ends(),
            Share => share(&told.value),
            Typical => told.amount(told.typical?),
            Expected => told.amount(told.expected(measured)?),
            Ratio => told.ratio(measured)?,
            Last => change(self.last?),
            Operation | Id => return None,
        })
    }
}
