//! A user's own predictions, which replace those of the cases in the observation table.

use crate::error::{Error, Result};
use crate::record::{Outcome, Predicted, Record, store};
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// Predictions by case id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides(pub BTreeMap<String, Override>);

/// One prediction. A part that is not given stays as the case predicted it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Override {
    /// The part that the hardware charges, ns.
    pub hardware_ns: Option<f64>,
    /// The part that the software adds, ns.
    pub software_ns: Option<f64>,
    /// The reason for these numbers.
    pub why: Option<String>,
}

impl Override {
    fn apply_to(&self, predicted: &mut Predicted) {
        predicted.hardware = self.hardware_ns.unwrap_or(predicted.hardware);
        predicted.software = self.software_ns.unwrap_or(predicted.software);
        predicted.why = self.why.clone().unwrap_or_else(|| std::mem::take(&mut predicted.why));
    }
}

/// Puts the predictions into the record. Returns the ids that no case has: they are probably misspelt.
pub fn apply_overrides(overrides: &Overrides, record: &mut Record) -> Vec<String> {
    for case in record.groups.iter_mut().flat_map(|g| &mut g.cases) {
        if let (Some(given), Outcome::Measured(measured)) = (overrides.0.get(&case.id), &mut case.outcome) {
            given.apply_to(measured.predicted.get_or_insert_default());
        }
    }
    let known = |id: &&String| !record.cases().any(|(_, case)| case.id == **id);
    overrides.0.keys().filter(known).cloned().collect()
}

// Reads predictions from a TOML file; errors name the line or the key.

const REMEDY: &str = "write [\"group/variant/parameter\"] and under it hardware_ns, software_ns or why";

impl Overrides {
    /// Reads a file of the form
    ///
    /// ```toml
    /// ["call/u64/3"]
    /// hardware_ns = 1.2
    /// software_ns = 0.4
    /// why = "two moves and a call"
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has an unknown key or an invalid value.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = store::read(path)?;
        Self::parse(path, &String::from_utf8_lossy(&bytes))
    }

    /// As [`Overrides::read`], but from text; the path is used in errors only.
    ///
    /// # Errors
    /// As [`Overrides::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let table: Table = text.parse().map_err(|error| syntax_error(path, text, &error))?;
        let mut overrides = BTreeMap::new();
        for (id, value) in table {
            let given = parse_override(path, &id, &value)?;
            overrides.insert(id, given);
        }
        Ok(Self(overrides))
    }
}

fn parse_override(path: &Path, id: &str, value: &Value) -> Result<Override> {
    let mut given = Override::default();
    let table = value.as_table().ok_or_else(|| content_error(path, format!("`{id}`"), "a table", value))?;
    for (key, value) in table {
        let number = || nanoseconds(value).ok_or(("a number of nanoseconds, 0 or more", value));
        let text = || value.as_str().ok_or(("a sentence in quotes", value));
        let taken = match key.as_str() {
            "hardware_ns" => number().map(|ns| given.hardware_ns = Some(ns)),
            "software_ns" => number().map(|ns| given.software_ns = Some(ns)),
            "why" => text().map(|why| given.why = Some(why.to_owned())),
            _ => Err(("one of the keys hardware_ns, software_ns, why", value)),
        };
        taken.map_err(|(expected, found)| {
            content_error(path, format!("`{id}`, key `{key}`"), expected, found)
        })?;
    }
    Ok(given)
}

/// The value as a duration, ns; `None` unless it is finite and not negative.
fn nanoseconds(value: &Value) -> Option<f64> {
    let ns = value.as_float().or_else(|| value.as_integer().map(|i| i as f64))?;
    (ns.is_finite() && ns >= 0.0).then_some(ns)
}

fn content_error(path: &Path, field: String, expected: &str, found: &Value) -> Error {
    Error::invalid_content(path, field, expected, format!("{} {found}", found.type_str()), REMEDY)
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let offset = error.span().map_or(text.len(), |span| span.start);
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let (field, found) = (format!("line {line}, column {column}"), error.message().replace('\n', ", "));
    let remedy = format!("{REMEDY}; an id stands in quotes, because it contains `/`");
    Error::invalid_content(path, field, "TOML", found, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn overrides(id: &str, given: Override) -> Overrides {
        Overrides(BTreeMap::from([(id.to_owned(), given)]))
    }

    fn predicted(record: &Record, id: &str) -> Predicted {
        let (_, case) = record.cases().find(|(_, case)| case.id == id).unwrap();
        case.measured().unwrap().predicted.clone().unwrap()
    }

    #[test]
    fn a_part_that_is_not_given_keeps_the_cases_prediction() {
        let mut record = fixture_run::fixture_record();
        let before = predicted(&record, "call/u64/3");
        let given = Override { hardware_ns: Some(9.5), ..Override::default() };
        assert!(apply_overrides(&overrides("call/u64/3", given), &mut record).is_empty());
        assert_eq!(predicted(&record, "call/u64/3"), Predicted { hardware: 9.5, ..before });
    }

    #[test]
    fn a_case_without_a_prediction_gets_one() {
        let mut record = fixture_run::fixture_record();
        let given = Override { software_ns: Some(3.0), why: Some("a guess".into()), ..Override::default() };
        apply_overrides(&overrides("known_work/chain-1000", given), &mut record);
        let wanted = Predicted { hardware: 0.0, software: 3.0, why: "a guess".into(), whole: false };
        assert_eq!(predicted(&record, "known_work/chain-1000"), wanted);
    }

    #[test]
    fn an_unknown_id_is_returned_and_that_of_a_skipped_case_is_not() {
        let mut record = fixture_run::fixture_record();
        assert_eq!(
            apply_overrides(&overrides("call/u65/3", Override::default()), &mut record),
            ["call/u65/3"]
        );
        assert!(
            apply_overrides(&overrides("clock_read/cntvct", Override::default()), &mut record).is_empty()
        );
    }

    fn parse(text: &str) -> Result<Overrides> {
        Overrides::parse(Path::new("expected.toml"), text)
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_example_is_read() {
        let text = "[\"call/u64/3\"]\nhardware_ns = 1.2\nsoftware_ns = 4\nwhy = \"two moves and a call\"\n";
        let given = Override {
            hardware_ns: Some(1.2),
            software_ns: Some(4.0),
            why: Some("two moves and a call".into()),
        };
        assert_eq!(parse(text).unwrap().0, BTreeMap::from([("call/u64/3".into(), given)]));
        assert_eq!(parse("").unwrap(), Overrides::default());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones() {
        let text = message("[\"call/u64/3\"]\nhardwear_ns = 1.2");
        assert!(text.contains("expected.toml: `call/u64/3`, key `hardwear_ns`"), "{text}");
        assert!(text.contains("hardware_ns, software_ns, why"), "{text}");
        assert!(message("[call.u64]\nwhy = \"dots\"").contains("key `u64`"));
    }

    #[test]
    fn a_value_that_cannot_be_a_duration_is_refused() {
        for number in ["-1.0", "inf", "nan", "\"3\"", "true", "-2"] {
            let text = message(&format!("[\"a/b\"]\nhardware_ns = {number}"));
            assert!(text.contains("key `hardware_ns`: expected a number of nanoseconds"), "{text}");
        }
        assert!(message("[\"a/b\"]\nwhy = 3").contains("expected a sentence in quotes, found integer 3"));
        assert!(message("\"a/b\" = 3").contains("`a/b`: expected a table"));
    }

    #[test]
    fn a_syntax_error_is_reported_by_line_and_column() {
        let text = message("# comment\n[call/u64/3]\nwhy = \"\"");
        assert!(text.contains("expected.toml: line 2, column 6: expected TOML"), "{text}");
        assert!(text.contains("in quotes"), "{text}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let text = Overrides::read(Path::new("nowhere/expected.toml")).unwrap_err().to_string();
        assert!(text.starts_with("nowhere/expected.toml: opening failed"), "{text}");
    }
}
