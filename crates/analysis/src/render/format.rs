//! A record as Markdown for a discussion, CSV for a spreadsheet, JSON for a program: all columns, and all decimals in
//! CSV and JSON.

pub mod record_csv;
pub mod record_markdown;

pub use record_csv::csv;
pub use record_markdown::markdown;

use crate::error::{Error, Result};
use serde::Serialize;
use syscost_engine::record::{Interval, Record};

/// The end of a line by RFC 4180.
pub const CRLF: csv::Terminator = csv::Terminator::CRLF;
/// The end of a line in Unix.
pub const LF: csv::Terminator = csv::Terminator::Any(b'\n');

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

/// Estimate, lower and upper end, as three columns have them.
pub fn interval_columns(interval: Option<Interval>) -> [Option<f64>; 3] {
    interval.map_or([None; 3], |i| [Some(i.estimate), Some(i.low), Some(i.high)])
}

/// The cell of a number, with all its decimals; empty for none.
pub fn number_cell(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The record itself, indented. It can be read back as it is.
///
/// # Errors
/// It holds a number that JSON cannot hold.
pub fn record_json(record: &Record) -> Result<String> {
    indented_json(&record.run, record)
}

/// A value as indented JSON; `of` names it in an error.
pub fn indented_json(of: &str, value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|e| Error::file(of, "writing as JSON", e.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    #[test]
    fn cells_are_quoted_where_they_must_be_and_nowhere_else() {
        let cells =
            ["a,b", "say \"x\"", "two\nlines", "\r", "c", "", " ", "'", "µs; [1 2]", "#", "\t", "-1.5", "=1"];
        let text = "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\"\r\",c,, ,',µs; [1 2],#,\t,-1.5,=1";
        for (end, line_end) in [(CRLF, "\r\n"), (LF, "\n")] {
            let line = std::iter::once(cells.map(str::to_owned).to_vec());
            assert_eq!(csv_text(end, line).unwrap(), format!("{text}{line_end}"));
        }
    }

    #[test]
    fn json_is_the_record() {
        let text = record_json(&fixture_run::fixture_record()).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back.tally(), fixture_run::fixture_record().tally());
        assert!(text.ends_with("}\n"));
    }
}
