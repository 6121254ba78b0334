//! Writes tables as text for a terminal, as Markdown and as CSV, and values as JSON.

use crate::error::{Error, Result};
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
    /// The rows of cells. The first cell of a row is text, the others are numbers.
    pub rows: Vec<Vec<String>>,
    /// Notes below the table.
    pub notes: Vec<String>,
}

/// The least width, in terminal columns, to which a cell of the first column is cut.
const SHORTEST: usize = 16;
/// The width of the first column, in terminal columns, below which another column is left out.
const SHORT: usize = 28;
/// The mark that may follow the text of a first cell. It is not cut off.
const MARK: &str = " *";

impl Sheet {
    /// The table as text for a terminal of this width. The last column is left out if the first would be too narrow. See
    /// [`Sheet::fit_by_leaving_out`].
    pub fn fit_to_terminal(&self, layout: Layout) -> String {
        self.fit_by_leaving_out(layout, self.head.last().map(String::as_str).as_slice())
    }

    /// The table as text for a terminal of this width. Columns with these heads are left out, one after another, until the first
    /// column has room. Then the first column is cut, and notes are wrapped. A pipe gets the whole table.
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

    /// The width that the other columns leave to the first, in a line of this width.
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

    /// The table as text with aligned columns, numbers to the right.
    fn to_text(&self) -> String {
        let all: Vec<_> = std::iter::once(&self.head).chain(&self.rows).cloned().collect();
        let lines = cell::align_columns(&all, |at| (at == 0, 2));
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{}\n\n{}\n{}{notes}", self.title, lines.join("\n"), if notes.is_empty() { "" } else { "\n" })
    }

    /// The table as Markdown, for a discussion.
    pub fn to_markdown(&self) -> String {
        let table = markdown_table(&self.head, |column| column == 0, self.rows.iter().cloned());
        let notes: String = self.notes.iter().map(|note| format!("\n* {note}")).collect();
        format!("### {}\n\n{table}{notes}\n", self.title)
    }

    /// The table as CSV, for a spreadsheet. The first column has the title of the table.
    ///
    /// # Errors
    /// Never in practice: the text is made in memory.
    pub fn to_csv(&self) -> Result<String> {
        let titled = |row: &Vec<String>| [vec![self.title.clone()], row.clone()].concat();
        csv_text(LF, std::iter::once(&self.head).chain(&self.rows).map(titled))
    }
}

/// The end of a line by RFC 4180.
pub const CRLF: csv::Terminator = csv::Terminator::CRLF;
/// The end of a line in Unix.
pub const LF: csv::Terminator = csv::Terminator::Any(b'\n');

/// A column of CSV: its head, and the function that gives its cell in a row.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// CSV with the heads of these columns, and one line for each row.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn csv_table<T>(
    end: csv::Terminator,
    columns: &[Column<T>],
    rows: impl Iterator<Item = T>,
) -> Result<String> {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let lines = rows.map(|row| columns.iter().map(|(_, cell)| cell(&row)).collect());
    csv_text(end, std::iter::once(heads).chain(lines))
}

/// Lines of cells as CSV; a cell is quoted only where it must be.
///
/// # Errors
/// Two lines have different numbers of cells.
pub fn csv_text(end: csv::Terminator, lines: impl Iterator<Item = Vec<String>>) -> Result<String> {
    let failed = |cause| Error::file("the table", "writing as CSV", cause);
    let mut writer = csv::WriterBuilder::new().terminator(end).from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|e| failed(e.into()))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a number with all its decimals; empty for `None`.
pub fn number_cell(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A value as indented JSON; `of` names it in an error.
pub fn indented_json(of: &str, value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|e| Error::file(of, "writing as JSON", e.into()))
}

/// A Markdown table of these heads and rows. `is_text` tells the columns of text, which are aligned left; numbers are aligned
/// right. A bar in a cell is escaped, and a line break becomes a blank.
pub fn markdown_table(
    heads: impl IntoIterator<Item = impl Into<String>>,
    is_text: impl Fn(usize) -> bool,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let heads: Vec<String> = heads.into_iter().map(Into::into).collect();
    let rule = (0..heads.len()).map(|column| if is_text(column) { ":--" } else { "--:" });
    let mut text = table_line(heads.iter()) + &table_line(rule);
    text.extend(rows.into_iter().map(|row| table_line(row.iter())));
    text
}

fn table_line(cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let cells: Vec<String> = cells.map(|cell| cell.as_ref().replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
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
    fn numbers_are_aligned_right() {
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

    #[test]
    fn only_cells_that_need_quotes_are_quoted() {
        let cells =
            ["a,b", "say \"x\"", "two\nlines", "\r", "c", "", " ", "'", "µs; [1 2]", "#", "\t", "-1.5", "=1"];
        let text = "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\"\r\",c,, ,',µs; [1 2],#,\t,-1.5,=1";
        for (end, line_end) in [(CRLF, "\r\n"), (LF, "\n")] {
            let line = std::iter::once(cells.map(str::to_owned).to_vec());
            assert_eq!(csv_text(end, line).unwrap(), format!("{text}{line_end}"));
        }
    }

    #[test]
    fn a_cell_breaks_no_row_and_numbers_end_at_the_right() {
        let row = vec!["a|b\nc".to_owned(), "1".to_owned()];
        let text = markdown_table(["case", "ns"], |column| column == 0, [row]);
        assert_eq!(text, "| case | ns |\n| :-- | --: |\n| a\\|b c | 1 |\n");
    }
}
