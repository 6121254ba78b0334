//! The screen that ends a run: the machine, a dozen answers and whether they are usual, and the next commands to type. It has at
//! most [`ANSWER_LINES`] lines, so that a terminal of 24 lines shows it whole above the prompt.

use super::{COLUMNS, Line, Summary, case_count_texts, fit_text, look};
use crate::record::quantity::{format_change, format_half_width};
use crate::record::{CaseRecord, Headline, Interval, Measured, Outcome};
use crate::render::cell::{self, Tone};
use crate::render::figure_line::HeadlineFigure;
use crate::render::table::Layout;
use crate::study::alike;
use crate::study::published::UsualRange;
use crate::study::standout::FAR;
use std::collections::BTreeMap;

/// The most lines of the screen.
pub const ANSWER_LINES: usize = 23;
/// Lines about the machine and the run.
const ABOUT: usize = 5;
/// A figure is usual up to this factor beyond the range of its kind of machine, whose members differ in frequency and memory.
const BEYOND_MACHINES: f64 = 1.5;
/// A figure is usual up to this factor beyond the interval of the last run.
const BEYOND_LAST: f64 = 1.1;

/// The text of the screen. `usual` holds the ranges of machines of this kind; `state` describes an unfinished run.
pub fn answer_screen(
    summary: &Summary<'_>,
    usual: &BTreeMap<String, UsualRange>,
    state: Option<&str>,
    layout: Layout,
) -> String {
    let width = layout.width.map_or(COLUMNS, usize::from).min(COLUMNS);
    let plain = |text: String| Line::new(Tone::Plain, cell::cut_to_width(&text, width));
    let mut above = look::machine_lines(summary, width);
    // Mitigations may take two lines: the second of them is left out, since the last lines are the doctor's and the run's.
    while above.len() > ABOUT {
        above.remove(ABOUT - 2);
    }
    if let (Some(last), Some(state)) = (above.last_mut(), state) {
        last.text = cell::cut_to_width(&format!("{}, {state}", last.text), width);
    }
    let answers = answers(summary, usual);
    let table = answer_table(&answers, width);
    let source = answers.iter().find_map(|answer| answer.range.as_ref()).map(UsualBy::source_sentence);
    let source = source.map_or(Vec::new(), |sentence| vec![plain(sentence)]);
    let look = look::worst_line(summary, width).into_iter().collect();
    let counts = Line::new(Tone::Bold, fit_text(&case_count_texts(summary.record), width));
    let next = plain(fit_text(&next_texts(summary.program), width));
    let blank = || vec![Line::new(Tone::Plain, "")];
    let lines: Vec<Line> = [above, blank(), table, source, look, vec![counts, next]].concat();
    lines.into_iter().map(|line| line.tone.paint(line.text.trim_end(), layout.color) + "\n").collect()
}

/// The answers so far, one line each below the headings: operation, figure, and half width of its interval.
pub fn answer_lines(summary: &Summary<'_>) -> Vec<String> {
    let usual = BTreeMap::new();
    let answers = answers(summary, &usual);
    if answers.is_empty() { Vec::new() } else { table_of_shape(&answers, 3, false) }
}

/// Texts with the next commands to type, the longest first.
fn next_texts(program: &str) -> [String; 4] {
    let revisions = "`ab --a-rev main --b-rev HEAD`";
    [
        format!("Next, by `{program}`: `report` more rows · {revisions} two revisions of it · `help`"),
        format!("Next, by `{program}`: `report` · {revisions} · `help`"),
        format!("Next, by `{program}`: `report` more rows · `help`"),
        format!("Next: `{program} help`"),
    ]
}

/// How a figure compares with the usual range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Usual,
    Slow,
    Fast,
    /// The figure's interval is too wide to tell.
    NotSettled,
    /// There is no range with which the figure could be compared.
    Unknown,
}

/// The source of the usual range, with its values.
#[derive(Clone, Debug, PartialEq)]
enum UsualBy<'a> {
    Machines(&'a UsualRange),
    LastRun(Interval),
    Prediction(f64),
}

impl UsualBy<'_> {
    /// The lowest and the highest figure that are usual.
    fn ends(&self) -> (f64, f64) {
        match self {
            Self::Machines(range) => (range.low / BEYOND_MACHINES, range.high * BEYOND_MACHINES),
            Self::LastRun(last) => (last.low / BEYOND_LAST, last.high * BEYOND_LAST),
            Self::Prediction(value) => (value / FAR, value * FAR),
        }
    }

    fn describe_range(&self, figure: &HeadlineFigure) -> String {
        match self {
            Self::Machines(_) => {
                let (low, high) = self.ends();
                format!("{} to {}", figure.format_value(low), figure.format_value(high))
            }
            Self::LastRun(last) => format!("last run {}", figure.format_value(last.estimate)),
            Self::Prediction(value) => format!("expected {}", figure.format_value(*value)),
        }
    }

    /// A sentence on the source of the usual range.
    fn source_sentence(&self) -> String {
        match self {
            Self::Machines(range) => {
                let s = if range.machines == 1 { "" } else { "s" };
                format!(
                    "usual range: lowest to highest cost on {} {}{s}, and half as much again",
                    range.machines, range.kind
                )
            }
            Self::LastRun(_) => {
                "usual: as in this machine's last run; no other machine of its kind is known".into()
            }
            Self::Prediction(_) => format!(
                "as predicted: within {FAR:.0} times the prediction in cycles; no machine of its kind is known"
            ),
        }
    }
}

/// A row of the table.
struct Answer<'a> {
    headline: &'a Headline,
    case: &'a CaseRecord,
    figure: Option<(HeadlineFigure, &'a Measured)>,
    range: Option<UsualBy<'a>>,
    /// The change since the last run.
    last: Option<f64>,
}

/// The answers of this run, ordered by place. A skipped case has no answer.
fn answers<'a>(summary: &Summary<'a>, usual: &'a BTreeMap<String, UsualRange>) -> Vec<Answer<'a>> {
    let answer = |(id, headline): &'a (String, Headline)| {
        let (_, case) = summary.record.cases().find(|(_, case)| case.id == *id)?;
        if matches!(case.outcome, Outcome::Skipped(_)) {
            return None;
        }
        let figure = case.measured().and_then(|measured| {
            Some((HeadlineFigure::new(headline, measured, &summary.record.unit)?, measured))
        });
        let last = summary.earlier.first().and_then(|last| alike::change_ratio(summary.record, last, id));
        let range = figure.as_ref().and_then(|(figure, measured)| {
            let machines = usual.get(id).map(UsualBy::Machines);
            machines
                .or_else(|| last_run_range(summary, headline, id))
                .or_else(|| Some(UsualBy::Prediction(figure.expected_whole(measured)?)))
        });
        Some(Answer { headline, case, figure, range, last })
    };
    let mut answers: Vec<_> =
        summary.headlines.iter().filter(|(_, headline)| headline.is_answer).filter_map(answer).collect();
    answers.sort_by_key(|answer| answer.headline.place);
    answers
}

/// The interval of a headline's figure in the last run.
fn last_run_range<'a>(summary: &Summary<'_>, headline: &Headline, id: &str) -> Option<UsualBy<'a>> {
    let last = summary.earlier.first()?;
    let (_, case) = last.cases().find(|(_, case)| case.id == id)?;
    Some(UsualBy::LastRun(HeadlineFigure::new(headline, case.measured()?, &last.unit)?.value))
}

impl Answer<'_> {
    /// Compares the figure and its interval with the usual range.
    fn standing(&self) -> Standing {
        let (Some((figure, measured)), Some(range)) = (&self.figure, &self.range) else {
            return Standing::Unknown;
        };
        let ((low, high), value) = (range.ends(), figure.value);
        let (above, below) = if figure.is_rate() {
            (Standing::Fast, Standing::Slow)
        } else {
            (Standing::Slow, Standing::Fast)
        };
        let is_inside = value.low >= low && value.high <= high;
        // If an interval is wider than the usual range or lies mostly outside it, the next figures may not be usual.
        let inside = value.high.min(high) - value.low.max(low);
        let is_narrow = value.high * low <= high * value.low && 2.0 * inside >= value.high - value.low;
        match (low..=high).contains(&value.estimate) {
            true if is_inside || (is_narrow && measured.is_settled()) => Standing::Usual,
            false if value.low > high => above,
            false if value.high < low => below,
            _ => Standing::NotSettled,
        }
    }

    fn standing_text(&self) -> String {
        let group = self.case.id.split('/').next().unwrap_or_default();
        match (self.standing(), &self.case.outcome) {
            (_, Outcome::Failed(_)) => "disproved".into(),
            (_, Outcome::Disturbed(_)) => "disturbed".into(),
            (Standing::Usual, _) if matches!(self.range, Some(UsualBy::Prediction(_))) => {
                "as predicted".into()
            }
            (Standing::Usual, _) => "usual".into(),
            (Standing::Slow, _) => format!("slow: `explain {group}`"),
            (Standing::Fast, _) => "fast".into(),
            (Standing::NotSettled, _) => "not settled".into(),
            (Standing::Unknown, _) => String::new(),
        }
    }

    /// The cells from left to right: operation, figure, interval for the next run, standing, usual range, change since the last run.
    fn cells(&self, ends: bool) -> [String; 6] {
        let mut cells = [self.headline.words, "–", "", "", "", ""].map(str::to_owned);
        cells[3] = self.standing_text();
        if let Some((figure, _)) = &self.figure {
            cells[1] = figure.format_value(figure.value.estimate);
            cells[2] = if ends { figure.next_run_interval() } else { format_half_width(&figure.value) };
            cells[4] = self.range.as_ref().map(|range| range.describe_range(figure)).unwrap_or_default();
            cells[5] = self.last.map(format_change).unwrap_or_default();
        }
        cells
    }

    fn tone(&self) -> Tone {
        match (&self.case.outcome, self.standing()) {
            (Outcome::Failed(_), _) => Tone::Red,
            (Outcome::Disturbed(_), _) | (_, Standing::Slow) => Tone::Yellow,
            _ => Tone::Plain,
        }
    }
}

/// The lines of the table. Until it fits, columns are left out from the right, and the ends of an interval become its half width.
fn answer_table(answers: &[Answer<'_>], width: usize) -> Vec<Line> {
    let has = |known: fn(&Answer<'_>) -> bool| answers.iter().any(known);
    let columns = match has(|answer| answer.range.is_some()) {
        true if has(|answer| answer.last.is_some()) => 6,
        true => 5,
        false => 3,
    };
    let shapes = [(6, true), (5, true), (5, false), (4, true), (4, false), (3, true), (3, false), (2, false)];
    let shapes = shapes.into_iter().filter(|(shown, _)| *shown <= columns);
    let sheets: Vec<_> = shapes.map(|(columns, ends)| table_of_shape(answers, columns, ends)).collect();
    let fits = |lines: &Vec<String>| lines.iter().all(|line| cell::display_width(line) <= width);
    let at = sheets.iter().position(fits).unwrap_or(sheets.len() - 1);
    let tones = std::iter::once(Tone::Bold).chain(answers.iter().map(Answer::tone));
    tones.zip(&sheets[at]).map(|(tone, line)| Line::new(tone, cell::cut_to_width(line, width))).collect()
}

fn table_of_shape(answers: &[Answer<'_>], columns: usize, ends: bool) -> Vec<String> {
    let next = if ends { "next run" } else { "next" };
    let head = ["operation", "quiet", next, "is it usual?", "usual range", "to last"].map(str::to_owned);
    let rows = std::iter::once(head).chain(answers.iter().map(|answer| answer.cells(ends)));
    let rows: Vec<Vec<String>> = rows.map(|cells| cells[..columns].to_vec()).collect();
    cell::align_columns(&rows, |at| (matches!(at, 0 | 2 | 3 | 4), if at == 1 { 1 } else { 2 }))
}

#[cfg(test)]
mod tests;
