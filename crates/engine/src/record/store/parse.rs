//! Parses bytes to a record; an error says which field is wrong and what to do. Does no I/O: the path is used
//! in errors only.

use crate::error::{Error, Result};
use crate::json_line::parse_value;
use crate::platform::inert;
use crate::record::{FORMAT, Record, soundness};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use std::path::Path;

/// The longest cause in a message, in characters. Longer ones are cut, because they may quote a string of any length.
const LONGEST_CAUSE: usize = 200;

/// The version of a file. It is parsed first, so that a record of a newer syscost is not reported as damaged.
#[derive(serde::Deserialize)]
struct Version {
    #[serde(alias = "format", alias = "bundle", alias = "paired")]
    number: Option<u64>,
}

/// Reads a record of this layout.
///
/// # Errors
/// The text is no record, is damaged, or has a newer layout.
pub fn record(path: &Path, bytes: &[u8]) -> Result<Record> {
    Text { path, bytes, above: 0 }.parse_record()
}

/// As [`record`], for a text with `above` lines before it in its file.
///
/// # Errors
/// As [`record`].
pub fn record_at_line(path: &Path, bytes: &[u8], above: usize) -> Result<Record> {
    Text { path, bytes, above }.parse_record()
}

/// Reads one or more records that follow one another.
///
/// # Errors
/// As [`record`], for the first record that fails.
pub fn records(path: &Path, bytes: &[u8]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let (mut rest, mut above) = (bytes, 0);
    while records.is_empty() || !rest.trim_ascii_start().is_empty() {
        let (text, below) = rest.split_at(first_value_length(rest));
        records.push(Text { path, bytes: text, above }.parse_record()?);
        above += text.iter().filter(|&&b| b == b'\n').count();
        rest = below;
    }
    Ok(records)
}

/// Reads a file of syscost whose version must be `newest` in this field; `kind` describes the file in errors.
///
/// # Errors
/// As [`record`].
pub fn versioned<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    (field, newest): (&str, u32),
    kind: &str,
) -> Result<T> {
    let text = Text { path, bytes, above: 0 };
    text.check_version(field, kind, newest)?;
    text.parse_json(kind)
}

/// Reads a file of another program; `expected` describes its content in errors.
///
/// # Errors
/// The text is no JSON, or has other content.
pub fn foreign_json<T: DeserializeOwned>(path: &Path, bytes: &[u8], expected: &str) -> Result<T> {
    Text { path, bytes, above: 0 }.parse_json(expected)
}

/// The length of the first of several JSON values, bytes; the length of all bytes if the value is malformed.
fn first_value_length(bytes: &[u8]) -> usize {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        _ => bytes.len(),
    }
}

/// A text and its place in a file.
struct Text<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// Lines of the same file above it.
    above: usize,
}

impl Text<'_> {
    fn parse_record(&self) -> Result<Record> {
        self.check_version("format", "a record of syscost", FORMAT)?;
        self.check_seal()?;
        let record: Record = self.parse_json("a record of this layout")?;
        soundness::check_record(self.path, &record)?;
        Ok(record)
    }

    fn check_seal(&self) -> Result<()> {
        let remedy = "the file is damaged or was edited: restore it from a copy, or delete it";
        let wrong = || {
            Error::invalid_content(
                self.path,
                "seal",
                "the checksum of what the file holds",
                "another",
                remedy,
            )
        };
        if is_seal_valid(self.bytes) { Ok(()) } else { Err(wrong()) }
    }

    fn check_version(&self, field: &str, kind: &str, newest: u32) -> Result<()> {
        let found = self.parse_json::<Version>(kind)?.number;
        let (expected, remedy) = match found {
            Some(n) if n == u64::from(newest) => return Ok(()),
            Some(n) if n > u64::from(newest) => {
                (newest.to_string(), "it was written by a newer syscost: update this one to read it")
            }
            Some(n) if n > 0 => {
                (newest.to_string(), "it was written before the first release of syscost: measure again")
            }
            _ => ("the version of a record".into(), "this is not a record of syscost: name another file"),
        };
        let found = found.map_or("nothing".into(), |n| n.to_string());
        Err(Error::invalid_content(self.path, field, expected, found, remedy))
    }

    fn parse_json<T: DeserializeOwned>(&self, expected: &str) -> Result<T> {
        // UTF-8 is checked first, because in other bytes a line and column would mean nothing to an editor.
        let text = std::str::from_utf8(self.bytes);
        let text = text.map_err(|e| (serde_json::Error::custom(e), String::new()));
        text.and_then(|text| parse_value(inert::neutralize_json(text).as_bytes())).map_err(
            |(error, field)| {
                let place = self.error_place(&error, &field);
                Error::invalid_content(self.path, place, expected, error_cause(&error), error_remedy(&error))
            },
        )
    }

    fn error_place(&self, error: &serde_json::Error, field: &str) -> String {
        let position = format!("line {}, column {}", self.above + error.line(), error.column());
        match error.line() {
            0 => "the whole file".into(),
            _ if error.is_data() && !["", "."].contains(&field) => {
                format!("`{}` ({position})", inert::neutralize_line(field, LONGEST_CAUSE))
            }
            _ => position,
        }
    }
}

fn error_remedy(error: &serde_json::Error) -> &'static str {
    if error.is_data() {
        "this is not a record of syscost, or it was edited: restore it, or name another file"
    } else {
        "the file is damaged: restore it from a copy, or delete it"
    }
}

/// The message without the position that serde_json adds at its end.
fn error_cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    inert::neutralize_line(text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]), LONGEST_CAUSE)
}

// The seal of a stored run: a CRC-32 over the whole text, so that one flipped bit is found. It is a field of the JSON, which
// older versions ignore: `{"sealed":true,…,"seal":"01234567"}`. The mark at the beginning says that a seal ends the text, so
// that a text with a damaged seal is not taken for one without a seal.

/// How a sealed text begins.
const MARK: &[u8] = b"{\"sealed\":true,";
/// The text before the checksum at the end.
const KEY: &[u8] = b",\"seal\":\"";
/// Number of bytes from the key to the end of the text.
const TAIL: usize = KEY.len() + 8 + 2;

/// The JSON object with its seal added; any other text unchanged.
pub fn add_seal(json: &[u8]) -> Vec<u8> {
    let Some(inner) = json.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) else {
        return json.to_vec();
    };
    let mut text = [MARK, inner].concat();
    let tail = seal_tail(&text);
    text.extend(tail);
    text
}

/// Whether the text matches its seal, or has no seal.
pub fn is_seal_valid(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let (before, end) = text.split_at(text.len().saturating_sub(TAIL));
    if !text.starts_with(MARK) && !end.starts_with(KEY) {
        return true;
    }
    end == seal_tail(before)
}

fn seal_tail(before: &[u8]) -> Vec<u8> {
    [KEY, format!("{:08x}", crc32fast::hash(before)).as_bytes(), b"\"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn message(text: &str) -> String {
        record(Path::new("runs/x.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_newer_layout_is_called_newer() {
        let text = message(r#"{"format": 99, "unheard_of": []}"#);
        assert!(text.contains("written by a newer syscost") && text.contains("found 99"), "{text}");
    }

    #[test]
    fn broken_json_is_reported_by_line_and_column() {
        let text = message("{\n \"format\": 3,\n ?");
        assert!(text.starts_with("runs/x.json: line 3, column 2: expected"), "{text}");
        assert!(text.contains("damaged"), "{text}");
    }

    #[test]
    fn another_file_is_not_a_record() {
        for other in ["[]", "{}", "3", r#"{"format": "png"}"#, r#"{"format": 0}"#, ""] {
            let text = message(other);
            assert!(text.starts_with("runs/x.json: "), "{other}: {text}");
            assert!(text.contains("record of syscost"), "{other}: {text}");
        }
    }

    #[test]
    fn a_wrong_field_is_named_with_its_path() {
        let whole = serde_json::to_string(&fixture_run::fixture_record()).unwrap();
        let text = message(&whole.replace(r#""seed":42"#, r#""seed":"lucky""#));
        assert!(text.contains("`seed` (line 1, column ") && text.contains("expected u64"), "{text}");
        let text = message(&whole.replacen(r#""title":"known_work chain 1000""#, r#""title":7"#, 1));
        assert!(text.contains("`groups[1].cases[0].title` (line 1"), "{text}");
    }

    #[test]
    fn a_layout_from_before_the_first_release_is_refused() {
        let text = message(r#"{"format": 2}"#);
        assert!(text.contains("found 2") && text.contains("measure again"), "{text}");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        let text = record(Path::new("x"), b"{\"format\xff").unwrap_err().to_string();
        assert!(text.contains("utf-8"), "{text}");
    }

    #[test]
    fn records_may_follow_one_another_on_lines_or_not() {
        let plain = serde_json::to_string(&fixture_run::fixture_record()).unwrap();
        let pretty = serde_json::to_string_pretty(&fixture_run::fixture_record()).unwrap();
        let read = |text: &str| records(Path::new("x.json"), text.as_bytes());
        assert_eq!(read(&plain).unwrap().len(), 1);
        assert_eq!(read(&format!("{plain}\n{pretty}\n\n{plain}\n")).unwrap().len(), 3);
        let text = read(&format!("{plain}\n{plain}\n{{\"format\": ?")).unwrap_err().to_string();
        assert!(text.starts_with("x.json: line 3, column 12: "), "{text}");
        for none in ["", "\n", " "] {
            assert!(read(none).unwrap_err().to_string().starts_with("x.json: "));
        }
    }

    #[test]
    fn a_record_cut_anywhere_is_an_error_that_names_the_file() {
        let whole = serde_json::to_vec(&fixture_run::fixture_record()).unwrap();
        for length in (0..whole.len()).step_by(97) {
            let text = record(Path::new("runs/cut.json"), &whole[..length]).unwrap_err().to_string();
            assert!(text.starts_with("runs/cut.json: "), "{length}: {text}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_text_breaks_the_json_or_the_seal() {
        let text = add_seal(br#"{"format":3,"run":"a"}"#);
        assert!(is_seal_valid(&text) && serde_json::from_slice::<serde_json::Value>(&text).is_ok());
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let is_json = serde_json::from_slice::<serde_json::Value>(&damaged).is_ok();
            assert!(!is_json || !is_seal_valid(&damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_text_without_a_seal_is_valid() {
        for text in ["{}", "", "{\"format\":3}", "[]", "x"] {
            assert!(is_seal_valid(text.as_bytes()), "{text}");
        }
        assert!(is_seal_valid(&[add_seal(b"{\"a\":1}"), b"\n".to_vec()].concat()), "a line");
        assert_eq!(add_seal(b"[]"), b"[]");
    }
}
