//! A table as text for a terminal, as Markdown, as CSV.

use crate::error::Result;
use crate::render::format::{LF, csv_text};
use serde::Serialize;

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

impl Sheet {
    /// For a terminal: aligned columns, numbers to the right.
    pub fn text(&self) -> String {
        let all: Vec<_> = std::iter::once(&self.head).chain(&self.rows).collect();
        let widest = |column: usize| {
            all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.head.len()).map(widest).collect();
        let cell = |(at, text): (usize, &String)| {
            let room = widths.get(at).map_or(0, |width| width.saturating_sub(text.chars().count()));
            match at {
                0 => format!("{text}{}", " ".repeat(room)),
                _ => format!("  {}{text}", " ".repeat(room)),
            }
        };
        let line =
            |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned();
        let lines: Vec<_> = all.into_iter().map(line).collect();
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{}\n\n{}\n{}{notes}", self.title, lines.join("\n"), if notes.is_empty() { "" } else { "\n" })
    }

    /// For a discussion.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<_> =
            (0..self.head.len()).map(|at| if at == 0 { "---" } else { "---:" }.to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let notes: String = self.notes.iter().map(|note| format!("\n* {note}")).collect();
        format!("### {}\n\n{}{}{rows}{notes}\n", self.title, line(&self.head), line(&rule))
    }

    /// For a spreadsheet: the first column holds the title of the table.
    ///
    /// # Errors
    /// Never in practice: the text is made in memory.
    pub fn csv(&self) -> Result<String> {
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
        assert_eq!(sheet().text(), "Table 9\n\nsize      µs\n1000B    7.5\n20B    1,000\n\nA note.\n");
    }

    #[test]
    fn other_programs_find_the_same_cells() {
        assert!(sheet().markdown().contains("| --- | ---: |\n| 1000B | 7.5 |\n"));
        assert_eq!(sheet().csv().unwrap(), "Table 9,size,µs\nTable 9,1000B,7.5\nTable 9,20B,\"1,000\"\n");
    }
}
