//! From bytes to a record, with an error that a person can act on. Pure: the path is only for its sentence.

#[cfg(feature = "cli")]
use crate::record::bundle::{Head, LAYOUT};
use crate::record::{FORMAT, Record};
use crate::{Error, Result};
use serde::de::{Deserialize, Error as _, IgnoredAny};
use std::path::Path;

/// How far before an error its key is looked for. A line may be of any length.
const NEAR_BYTES: usize = 4096;

/// Only the version, so that a newer record is called newer and not damaged.
#[derive(serde::Deserialize)]
struct Version {
    #[serde(alias = "format", alias = "bundle")]
    number: Option<u64>,
}

/// Reads a record of this or an older layout.
pub(in crate::record) fn record(path: &Path, bytes: &[u8]) -> Result<Record> {
    Text { path, bytes, above: 0 }.record()
}

/// The same of a line that stands below so many others.
#[cfg(feature = "cli")]
pub(in crate::record) fn record_below(path: &Path, bytes: &[u8], above: usize) -> Result<Record> {
    Text { path, bytes, above }.record()
}

/// Reads records that follow one another, at least one.
pub(in crate::record) fn records(path: &Path, bytes: &[u8]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let (mut rest, mut above) = (bytes, 0);
    while records.is_empty() || !rest.trim_ascii_start().is_empty() {
        let (text, below) = rest.split_at(first_value(rest));
        records.push(Text { path, bytes: text, above }.record()?);
        above += text.iter().filter(|&&b| b == b'\n').count();
        rest = below;
    }
    Ok(records)
}

/// Reads the head of a bundle of this or an older layout.
#[cfg(feature = "cli")]
pub(in crate::record) fn head(path: &Path, bytes: &[u8]) -> Result<Head> {
    let text = Text { path, bytes, above: 0 };
    let version: Version = text.json("the head of a record of syscost")?;
    text.check_version("bundle", version.number, LAYOUT)?;
    text.json("the head of a record of this layout")
}

/// Where the first of several values ends; the end of all where that cannot be told.
fn first_value(bytes: &[u8]) -> usize {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        _ => bytes.len(),
    }
}

/// A text, and where it stands.
struct Text<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// Lines of the same file above it.
    above: usize,
}

impl Text<'_> {
    fn record(&self) -> Result<Record> {
        let version: Version = self.json("a record of syscost")?;
        self.check_version("format", version.number, FORMAT)?;
        self.json("a record of this layout")
    }

    fn check_version(&self, field: &str, found: Option<u64>, newest: u32) -> Result<()> {
        let (expected, remedy) = match found {
            Some(n) if (1..=u64::from(newest)).contains(&n) => return Ok(()),
            Some(n) if n > 0 => {
                (format!("at most {newest}"), "it was written by a newer syscost: update this one to read it")
            }
            _ => ("the version of a record".into(), "this is not a record of syscost: name another file"),
        };
        Err(Error::Content {
            path: self.path.into(),
            field: field.into(),
            expected,
            found: found.map_or("nothing".into(), |n| n.to_string()),
            remedy: remedy.into(),
        })
    }

    fn json<'a, T: Deserialize<'a>>(&'a self, expected: &str) -> Result<T> {
        // Text first, because a position in bytes that are no text means nothing to an editor.
        let text = std::str::from_utf8(self.bytes).map_err(serde_json::Error::custom);
        text.and_then(serde_json::from_str).map_err(|error| Error::Content {
            path: self.path.into(),
            field: self.place(&error),
            expected: expected.into(),
            found: cause(&error),
            remedy: remedy(&error).into(),
        })
    }

    fn place(&self, error: &serde_json::Error) -> String {
        let position = format!("line {}, column {}", self.above + error.line(), error.column());
        match (error.line(), self.key_before(error)) {
            (0, _) => "the whole file".into(),
            (_, Some(key)) if error.is_data() => format!("`{key}` ({position})"),
            _ => position,
        }
    }

    /// The last key before the error. serde_json tells a position but no field, and a position within one
    /// long line helps nobody.
    fn key_before(&self, error: &serde_json::Error) -> Option<String> {
        let line = self.bytes.split(|&b| b == b'\n').nth(error.line().checked_sub(1)?)?;
        let end = error.column().min(line.len());
        let before = String::from_utf8_lossy(&line[end.saturating_sub(NEAR_BYTES)..end]).into_owned();
        let (head, _) = before.rsplit_once("\":").or_else(|| before.rsplit_once("\" :"))?;
        head.rsplit_once('"').map(|(_, key)| key.to_owned())
    }
}

fn remedy(error: &serde_json::Error) -> &'static str {
    if error.is_data() {
        "this is not a record of syscost, or it was edited: restore it, or name another file"
    } else {
        "the file is damaged: restore it from a copy, or delete it"
    }
}

/// serde_json puts the position at the end of its message; we have it at the front.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture;

    fn message(text: &str) -> String {
        record(Path::new("runs/x.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_newer_layout_is_called_newer() {
        let text = message(r#"{"format": 99, "unheard_of": []}"#);
        assert!(text.contains("written by a newer syscost") && text.contains("found 99"), "{text}");
    }

    #[test]
    fn broken_json_is_placed_by_line_and_column() {
        let text = message("{\n \"format\": 1,\n ?");
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
    fn a_wrong_field_is_named() {
        let text = serde_json::to_string(&fixture::record()).unwrap();
        let text = message(&text.replace(r#""seed":42"#, r#""seed":"lucky""#));
        assert!(text.contains("`seed`") && text.contains("expected u64"), "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let text = record(Path::new("x"), b"{\"format\xff").unwrap_err().to_string();
        assert!(text.contains("utf-8"), "{text}");
    }

    #[test]
    fn records_may_follow_one_another_on_lines_or_not() {
        let plain = serde_json::to_string(&fixture::record()).unwrap();
        let pretty = serde_json::to_string_pretty(&fixture::record()).unwrap();
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
        let whole = serde_json::to_vec(&fixture::record()).unwrap();
        for length in (0..whole.len()).step_by(97) {
            let text = record(Path::new("runs/cut.json"), &whole[..length]).unwrap_err().to_string();
            assert!(text.starts_with("runs/cut.json: "), "{length}: {text}");
        }
    }
}
