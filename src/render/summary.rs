//! The first screen of a whole run: whose numbers these are, a row for each headline case, what to look at, and where the
//! rest is. At most [`LINES`] lines of at most [`COLUMNS`] columns, in a pipe as on a terminal.

mod look;
mod machine;
mod observation;

use super::cell;
use crate::record::{Headline, Record};
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
    /// The name under which the run is kept, if it is.
    pub kept: Option<&'a str>,
}

/// The screen, its lines ended.
pub fn screen(summary: &Summary<'_>, layout: Layout) -> String {
    let width = match layout.width.map_or(COLUMNS, usize::from) {
        narrow if narrow < ROOMY => narrow.min(COLUMNS),
        roomy => roomy,
    };
    let prose = width.min(COLUMNS);
    let above = machine::lines(summary, prose);
    let below = [look::lines(summary.record, prose), whole(summary, prose)].concat();
    // The head of the table, and the empty lines around it.
    let rows = LINES.saturating_sub(above.len() + below.len() + 3);
    let table = observation::lines(summary, rows, width);
    let lines = above.into_iter().chain([Line::plain("")]).chain(table).chain([Line::plain("")]).chain(below);
    lines.map(|line| line.painted(layout.color) + "\n").collect()
}

/// How many cases there are, and how to see them.
fn whole(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let kept = summary.kept.map(|name| format!("; kept as {name}")).unwrap_or_default();
    let tally = summary.record.tally();
    const LONG: &str =
        "More: `syscost report GROUP` one table · `report --all` every one · `explain GROUP` what is timed";
    const SHORT: &str = "More: `syscost report GROUP` · `syscost report --all` · `syscost explain GROUP`";
    let more = if cell::width(LONG) <= width { LONG } else { SHORT };
    vec![Line::heading(cell::cut(&format!("{tally}{kept}"), width)), Line::plain(cell::cut(more, width))]
}

/// A line and how it is shown.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    text: String,
    code: u8,
}

impl Line {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    fn heading(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 31 }
    }

    fn warned(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 33 }
    }

    fn painted(&self, color: bool) -> String {
        let text = self.text.trim_end();
        match self.code {
            code if color && code > 0 && !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
