//! From bytes to a record, with an error that a person can act on. Pure: the path is only for its sentence.

use crate::record::{FORMAT, Record};
use crate::{Error, Result};
use serde::de::{Deserialize, Error as _};
use serde_json::Value;
use std::path::Path;

/// Only the version, so that a newer record is called newer and not damaged.
#[derive(serde::Deserialize)]
struct Version {
    format: Option<Value>,
}

/// Reads a record of this or an older layout.
pub(super) fn record(path: &Path, bytes: &[u8]) -> Result<Record> {
    let version: Version = json(path, bytes, "a record of syscost")?;
    check_version(path, version.format.as_ref())?;
    json(path, bytes, "a record of this layout")
}

fn check_version(path: &Path, format: Option<&Value>) -> Result<()> {
    let number = format.and_then(Value::as_u64);
    let (expected, remedy) = match number {
        Some(n) if (1..=u64::from(FORMAT)).contains(&n) => return Ok(()),
        Some(n) if n > 0 => {
            (format!("at most {FORMAT}"), "it was written by a newer syscost: update this one to read it")
        }
        _ => ("the version of a record".into(), "this is not a record of syscost: name another file"),
    };
    Err(Error::Content {
        path: path.into(),
        field: "format".into(),
        expected,
        found: format.map_or("nothing".into(), Value::to_string),
        remedy: remedy.into(),
    })
}

fn json<'a, T: Deserialize<'a>>(path: &Path, bytes: &'a [u8], expected: &str) -> Result<T> {
    // Text first, because a position in bytes that are no text means nothing to an editor.
    let text = std::str::from_utf8(bytes).map_err(serde_json::Error::custom);
    text.and_then(serde_json::from_str).map_err(|error| Error::Content {
        path: path.into(),
        field: place(bytes, &error),
        expected: expected.into(),
        found: cause(&error),
        remedy: remedy(&error).into(),
    })
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

fn place(bytes: &[u8], error: &serde_json::Error) -> String {
    let position = format!("line {}, column {}", error.line(), error.column());
    match (error.line(), key_before(bytes, error)) {
        (0, _) => "the whole file".into(),
        (_, Some(key)) if error.is_data() => format!("`{key}` ({position})"),
        _ => position,
    }
}

/// The last key before the error. serde_json tells a position but no field, and a position within one
/// long line helps nobody.
fn key_before(bytes: &[u8], error: &serde_json::Error) -> Option<String> {
    let line = bytes.split(|&b| b == b'\n').nth(error.line().checked_sub(1)?)?;
    let before = String::from_utf8_lossy(&line[..error.column().min(line.len())]).into_owned();
    let (head, _) = before.rsplit_once("\":").or_else(|| before.rsplit_once("\" :"))?;
    head.rsplit_once('"').map(|(_, key)| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::specimen;

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
        let text = serde_json::to_string(&specimen::record()).unwrap();
        let text = message(&text.replace(r#""seed":42"#, r#""seed":"lucky""#));
        assert!(text.contains("`seed`") && text.contains("expected u64"), "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let text = record(Path::new("x"), b"{\"format\xff").unwrap_err().to_string();
        assert!(text.contains("utf-8"), "{text}");
    }

    #[test]
    fn a_record_cut_anywhere_is_an_error_that_names_the_file() {
        let whole = serde_json::to_vec(&specimen::record()).unwrap();
        for length in (0..whole.len()).step_by(97) {
            let text = record(Path::new("runs/cut.json"), &whole[..length]).unwrap_err().to_string();
            assert!(text.starts_with("runs/cut.json: "), "{length}: {text}");
        }
    }
}
