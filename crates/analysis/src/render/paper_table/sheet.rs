//! A table as text for a terminal, as Markdown, as CSV.

use crate::error::Result;
use crate::render::format::{LF, csv_text};
use crate::render::markdown_table::markdown_table;
use serde::Serialize;
use syscost_engine::render::cell;
use syscost_engine::render::table::{Layout, format_sentences};

/// A table: a title, a head, rows with the same number of cells, and notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sheet {
    /// Title.
    pub title: String,
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Cells. The first of a row is text, the others numbers.
    pub rows: Vec<Vec<String>>,
    /// Notes below it.
    pub notes: Vec<String>,
}

/// A cell of the first column is not cut shorter than this.
const SHORTEST: usize = 16;
/// A column is left out where the first would be cut shorter than this.
const SHORT: usize = 28;
/// What may stand behind the text of a first cell, and is not cut off.
const MARK: &str = " *";

impl Sheet {
    /// For a terminal of this width: the last column is left out if the first would be too narrow. See
    /// [`Sheet::fit_by_leaving_out`].
    pub fn fit_to_terminal(&self, layout: Layout) -> String {
        self.fit_by_leaving_out(layout, self.head.last().map(String::as_str).as_slice())
    }

    /// For a terminal of this width: columns with these heads are left out, one after another, until the first has room; it is
    /// cut, and notes are broken between words. A pipe gets the whole.
    pub fn fit_by_leaving_out(&self, layout: Layout, heads: &[&str]) -> String {
        let Some(width) = layout.width.map(usize::from) else { return self.to_text() };
        let mut sheet = Self { notes: Vec::new(), ..self.clone() };
        let mut left_out = Vec::new();
        for head in heads {
            if sheet.first_column_room(width) < SHORT && sheet.head.len() > 2 {
                sheet.remove_column(head);
                left_out.push(*head);
            }
        }
        let room = sheet.first_column_room(width).max(SHORTEST);
        for first in sheet.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *first = match first.strip_suffix(MARK) {
                Some(text) => cell::cut_to_width(text, room - MARK.len()) + MARK,
                None => cell::cut_to_width(first, room),
            };
        }
        sheet.title = cell::cut_to_width(&sheet.title, width);
        let narrow = format!("left out for want of width: {}; a pipe gets every column", left_out.join(", "));
        let narrow = (!left_out.is_empty()).then_some(narrow);
        let notes: Vec<_> = self.notes.iter().cloned().chain(narrow).collect();
        sheet.to_text() + &format_sentences(&notes, layout)
    }

    fn remove_column(&mut self, head: &str) {
        let Some(at) = self.head.iter().position(|other| other == head) else { return };
        std::iter::once(&mut self.head).chain(&mut self.rows).for_each(|row| drop(row.remove(at)));
    }

    /// The columns of a line of this width that the cells beyond the first leave to it.
    fn first_column_room(&self, width: usize) -> usize {
        let others: usize = self.column_widths().into_iter().skip(1).map(|column| column + 2).sum();
        width.saturating_sub(others)
    }

    fn column_widths(&self) -> Vec<usize> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let widest = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|text| cell::display_width(text)).max()
        };
        (0..self.head.len()).map(|column| widest(column).unwrap_or(0)).collect()
    }

    /// Aligned columns, numbers to the right.
    fn to_text(&self) -> String {
        let all: Vec<_> = std::iter::once(&self.head).chain(&self.rows).cloned().collect();
        let lines = cell::align_columns(&all, |at| (at == 0, 2));
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{}\n\n{}\n{}{notes}", self.title, lines.join("\n"), if notes.is_empty() { "" } else { "\n" })
    }

    /// For a discussion.
    pub fn to_markdown(&self) -> String {
        let table = markdown_table(&self.head, |column| column == 0, self.rows.iter().cloned());
        let notes: String = self.notes.iter().map(|note| format!("\n* {note}")).collect();
        format!("### {}\n\n{table}{notes}\n", self.title)
    }

    /// For a spreadsheet: the first column holds the title of the table.
    ///
    /// # Errors
    /// Never in practice: the text is made in memory.
    pub fn to_csv(&self) -> Result<String> {
        let titled = |row: &Vec<String>| [vec![self.title.clone()], row.clone()].concat();
        csv_text(LF, std::iter::once(&self.head).chain(&self.rows).map(titled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        Sheet {
            title: "Table 9".into(),
            head: row(["size", "µs"]),
            rows: vec![row(["1000B", "7.5"]), row(["20B", "1,000"])],
            notes: vec!["A note.".into()],
        }
    }

    #[test]
    fn numbers_stand_to_the_right() {
        assert_eq!(sheet().to_text(), "Table 9\n\nsize      µs\n1000B    7.5\n20B    1,000\n\nA note.\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_the_first_column_then_leaves_the_last_out() {
        let wordy = "the transfer of a great many bytes through a pipe".to_owned();
        let rows = vec![vec![wordy + " *", "7.5".into(), "group/case/1000".into()]];
        let head = ["what", "µs", "case"].map(str::to_owned).to_vec();
        let sheet = Sheet { head, rows, ..sheet() };
        let within = |width| sheet.fit_to_terminal(Layout { width: Some(width), ..Layout::default() });
        let fits = |width: u16| within(width).lines().all(|line| line.chars().count() <= width.into());
        assert!(fits(60) && within(60).contains("… *") && within(60).contains("group/case/1000"));
        assert!(fits(40) && within(40).contains("7.5") && !within(40).contains("group/case/1000"));
        assert!(within(40).contains("left out for want of width: case;") && !within(60).contains("left out"));
        assert_eq!(sheet.fit_to_terminal(Layout::default()), sheet.to_text());
    }

    #[test]
    fn other_programs_find_the_same_cells() {
        assert!(sheet().to_markdown().contains("| :-- | --: |\n| 1000B | 7.5 |\n"));
        assert_eq!(sheet().to_csv().unwrap(), "Table 9,size,µs\nTable 9,1000B,7.5\nTable 9,20B,\"1,000\"\n");
    }
}
