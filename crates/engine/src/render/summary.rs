//! The first screen of a whole run: the machine, a row for each headline case, what to look at, and the commands that show the
//! rest. It has at most [`LINES`] lines of at most [`COLUMNS`] columns, in a pipe and on a terminal.

mod answers;
mod look;

pub use answers::{ANSWER_LINES, answer_lines, answer_screen};
pub use look::format_seconds;

use crate::record::quantity::{format_change, format_half_width};
use crate::record::{CaseRecord, Headline, Measured, Outcome, Record};
use crate::render::cell::{self, Tone};
use crate::render::figure_line::HeadlineFigure;
use crate::render::table::Layout;
use crate::study::alike;
use Column::{Expected, Id, Interval as Ends, Last, Operation, Quiet, Ratio, Share, Typical};

/// The most lines of a screen.
pub const LINES: usize = 50;
/// The most columns of a screen, unless a terminal has room for the ids as well.
pub const COLUMNS: usize = 100;
/// The fewest columns of a terminal with which the rows also show the ids.
const ROOMY: usize = 140;

/// The data of a screen.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// The run.
    pub record: &'a Record,
    /// Ids and headlines of the cases that may have a row.
    pub headlines: &'a [(String, Headline)],
    /// Comparable runs of the same machine, the newest first.
    pub earlier: &'a [Record],
    /// The doctor's findings, a few words each; `None` if the machine was not examined.
    pub doctor: Option<&'a [String]>,
    /// The command that starts the program here: a name or a path.
    pub program: &'a str,
}

/// The text of the screen; each line ends in a newline.
pub fn summary_screen(summary: &Summary<'_>, layout: Layout) -> String {
    let width = match layout.width.map_or(COLUMNS, usize::from) {
        narrow if narrow < ROOMY => narrow.min(COLUMNS),
        roomy => roomy,
    };
    let prose = width.min(COLUMNS);
    let above = look::machine_lines(summary, prose);
    let look = look::look_lines(summary, prose);
    let whole = case_count_lines(summary, prose);
    // The heading of the table takes one line.
    let room = LINES.saturating_sub(above.len() + look.len() + whole.len() + 1);
    let rows = headline_rows(summary);
    let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    let mut table = table_lines(&rows[..shown], &summary.record.unit, width);
    if shown < rows.len() {
        let hidden = format!("and {} rows more: `{} report --all`", rows.len() - shown, summary.program);
        table.push(Line::new(Tone::Plain, cell::cut_to_width(&hidden, prose)));
    }
    // If there is no room, the empty lines are left out first.
    let empty =
        |spare: usize| if rows.len() + spare <= room { vec![Line::new(Tone::Plain, "")] } else { Vec::new() };
    let lines = [above, empty(2), table, empty(1), look, whole].concat();
    lines.into_iter().map(|line| line.tone.paint(line.text.trim_end(), layout.color) + "\n").collect()
}

/// Lines with the number of cases by outcome, and with the commands that show more.
fn case_count_lines(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let program = summary.program;
    let more = [
        format!(
            "More: `{program} report --group NAME` one table · `report --all` every one · `explain NAME` what is timed"
        ),
        format!("More: `{program} report --group NAME` one table · `report --all` all · `explain NAME`"),
        format!("More: `{program} report --group NAME`, `report --all`, `explain NAME`"),
    ];
    vec![
        Line::new(Tone::Bold, fit_text(&case_count_texts(summary.record), width)),
        Line::new(Tone::Plain, fit_text(&more, width)),
    ]
}

/// Texts on the number of cases by outcome and on why some were skipped, the longest first.
fn case_count_texts(record: &Record) -> [String; 4] {
    let tally = record.tally();
    // If only a larger scale measures a case, its sentence names the variable that sets the scale.
    let of_scale =
        |case: &CaseRecord| matches!(&case.outcome, Outcome::Skipped(why) if why.contains("SYSCOST_SCALE"));
    let larger = record.cases().filter(|(_, case)| of_scale(case)).count();
    let explained =
        format!("{tally} (skipped: {larger} of full scale, {} not possible here", tally.skipped - larger);
    let brief = tally.to_string().replace(" of them", "");
    [explained.clone() + ": `syscost list --all`)", explained + ")", tally.to_string(), brief]
}

/// The first text that fits into the width; if none does, the last one, cut to the width.
fn fit_text(texts: &[String], width: usize) -> String {
    let text = texts.iter().find(|text| cell::display_width(text) <= width).or(texts.last());
    text.map_or_else(String::new, |text| cell::cut_to_width(text, width))
}

/// A line and how it is shown.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    text: String,
    tone: Tone,
}

impl Line {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }
}

#[cfg(test)]
mod tests;

// The rows: an operation in words, its cost, the expected cost, and the change since the last run.

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

/// The headings, by column.
const HEADINGS: [&str; 9] =
    ["operation", "quiet", "next run", "next", "typical", "expected", "ratio", "to last", "case"];
const ALL: [Column; 8] = [Operation, Quiet, Ends, Typical, Expected, Ratio, Last, Id];
/// The columns of narrower screens, the widest first.
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
struct Row<'a> {
    headline: &'a Headline,
    case: &'a CaseRecord,
    last: Option<f64>,
}

/// The lines of the table: headings and these rows, in this unit. Columns are left out until the table fits `width`.
fn table_lines(rows: &[Row<'_>], unit: &str, width: usize) -> Vec<Line> {
    let compared = rows.iter().any(|row| row.last.is_some());
    let sheets = std::iter::once(&ALL[..]).chain(NARROWER);
    let sheets = sheets.filter(|columns| width > COLUMNS || !columns.contains(&Id));
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

/// A row for each headline of this run, ordered by place. A case has no row if it was skipped, or if it lacks the derived
/// figure that its headline shows.
fn headline_rows<'a>(summary: &Summary<'a>) -> Vec<Row<'a>> {
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
    let head: Vec<String> = columns.iter().map(|column| HEADINGS[*column as usize].to_owned()).collect();
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
    /// Whether the column is text (aligned left), and the blanks after it. An interval follows its number after one blank.
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
        let figure = HeadlineFigure::new(self.headline, measured, unit)?;
        Some(match column {
            Quiet => figure.format_value(figure.value.estimate),
            Ends => figure.next_run_interval(),
            Share => format_half_width(&figure.value),
            Typical => figure.format_value(figure.typical?),
            Expected => figure.format_value(figure.expected_value(measured)?),
            Ratio => figure.ratio_to_expected(measured)?,
            Last => format_change(self.last?),
            Operation | Id => return None,
        })
    }
}
