//! A record for other readers: Markdown for a discussion, CSV for a spreadsheet, JSON for a program.
//! Nothing is left out for want of room, and machines get every decimal.

pub(super) mod record_csv;
pub(super) mod record_markdown;

pub use record_csv::csv;
pub use record_markdown::markdown;

use crate::record::Record;
use crate::{Error, Result};

/// The record itself, indented. It can be read back as it is.
pub fn json(record: &Record) -> Result<String> {
    let text = serde_json::to_string_pretty(record);
    text.map(|text| text + "\n").map_err(|e| Error::file(&record.run, "writing as JSON", e.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn json_is_the_record() {
        let text = json(&fixture_run::record()).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back.tally(), fixture_run::record().tally());
        assert!(text.ends_with("}\n"));
    }
}
