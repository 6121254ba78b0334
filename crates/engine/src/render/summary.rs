//! The first screen of a whole run: whose numbers these are, a row for each headline case, what to look at, and where the
//! rest is. At most [`LINES`] lines of at most [`COLUMNS`] columns, in a pipe as on a terminal.

mod answers;
mod look;
mod observation;

pub use answers::{ANSWER_LINES, answer_lines, answer_screen};
pub use look::format_seconds;

use super::cell;
use crate::record::{CaseRecord, Headline, Outcome, Record};
use crate::render::cell::Tone;
use crate::render::table::Layout;

/// The most lines of a screen.
pub const LINES: usize = 50;
/// The most columns of a screen, unless a terminal has room for the ids as well.
pub const COLUMNS: usize = 100;
/// Columns from which on the ids stand beside the words.
const ROOMY: usize = 140;

/// What a screen is made of.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// The run.
    pub record: &'a Record,
    /// Id and headline of the cases that have a row.
    pub headlines: &'a [(String, Headline)],
    /// Comparable runs of the same machine, the newest first.
    pub earlier: &'a [Record],
    /// What the doctor found, a few words each; `None` if it was not asked.
    pub doctor: Option<&'a [String]>,
    /// How the program is called here: a name or a path.
    pub program: &'a str,
}

/// The screen, its lines ended.
pub fn summary_screen(summary: &Summary<'_>, layout: Layout) -> String {
    let width = match layout.width.map_or(COLUMNS, usize::from) {
        narrow if narrow < ROOMY => narrow.min(COLUMNS),
        roomy => roomy,
    };
    let prose = width.min(COLUMNS);
    let above = look::machine_lines(summary, prose);
    let look = look::look_lines(summary, prose);
    let whole = case_count_lines(summary, prose);
    // The head of the table takes a line.
    let room = LINES.saturating_sub(above.len() + look.len() + whole.len() + 1);
    let rows = observation::headline_rows(summary);
    let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    let mut table = observation::table_lines(&rows[..shown], &summary.record.unit, width);
    if shown < rows.len() {
        let said = format!("and {} rows more: `{} report --all`", rows.len() - shown, summary.program);
        table.push(Line::new(Tone::Plain, cell::cut_to_width(&said, prose)));
    }
    // Empty lines are what goes first where there is no room.
    let empty =
        |spare: usize| if rows.len() + spare <= room { vec![Line::new(Tone::Plain, "")] } else { Vec::new() };
    let lines = [above, empty(2), table, empty(1), look, whole].concat();
    lines.into_iter().map(|line| line.tone.paint(line.text.trim_end(), layout.color) + "\n").collect()
}

/// How many cases there are, and how to see them.
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

/// How many cases ended how, and why some were skipped, the longest text first.
fn case_count_texts(record: &Record) -> [String; 4] {
    let tally = record.tally();
    // The sentence of every case that only a larger scale measures names the variable that chooses it.
    let of_scale =
        |case: &CaseRecord| matches!(&case.outcome, Outcome::Skipped(why) if why.contains("SYSCOST_SCALE"));
    let larger = record.cases().filter(|(_, case)| of_scale(case)).count();
    let told =
        format!("{tally} (skipped: {larger} of full scale, {} not possible here", tally.skipped - larger);
    let brief = tally.to_string().replace(" of them", "");
    [told.clone() + ": `syscost list --all`)", told + ")", tally.to_string(), brief]
}

/// The first text that has room, or the last one cut.
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
