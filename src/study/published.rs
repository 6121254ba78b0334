//! Values that others published for their machines, by case id, for columns of the observation table. The files are
//! compiled in, because a machine that is measured has no copy of the source.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::quantity::NANOSECONDS;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The name on the command line, and the file.
const FILES: [(&str, &str); 2] = [
    ("csc501", include_str!("../../fixtures/published/csc501.toml")),
    ("cse221", include_str!("../../fixtures/published/cse221.toml")),
];

/// The values of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name on the command line and head of its column.
    pub name: String,
    /// The authors and the machine.
    pub source: String,
    /// By case id.
    pub values: BTreeMap<String, PublishedValue>,
    /// All of them, in the order of the report.
    pub rows: Vec<PublishedValue>,
    /// Published values without a matching case of ours.
    pub without: Vec<Without>,
}

/// One published value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// Id of our case, `level/L2` for a level of our chase, or `fall/` and the beginning of a curve's ids.
    pub id: String,
    /// The value, if it is a time, ns.
    pub ns: Option<f64>,
    /// The value, if it is none, in its unit.
    pub value: Option<f64>,
    /// `GB/s`, `GiB`.
    pub unit: Option<String>,
    /// Its standard deviation, ns.
    pub sd: Option<f64>,
    /// The authors' own prediction, ns.
    pub predicted_ns: Option<f64>,
    /// The authors' own prediction where it is no single time: `3 to 5 cycles`.
    pub expected: Option<String>,
    /// What they timed.
    pub what: String,
    /// Whether that is another operation than that of the case.
    #[serde(default)]
    pub differs: bool,
}

/// A row or a figure of a report that has no number beside one of ours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// What it is.
    pub row: String,
    /// Why.
    pub why: String,
}

/// The layout of the files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    source: String,
    value: Vec<PublishedValue>,
    #[serde(default)]
    without: Vec<Without>,
}

impl Published {
    /// The published times by case id, ns, as the table takes them.
    pub fn values_ns(&self) -> BTreeMap<String, f64> {
        self.values.iter().filter_map(|(id, value)| Some((id.clone(), value.ns?))).collect()
    }

    /// Notes below a table with these values: their source, and which of them time another operation. None if the
    /// record has another unit, where the values are not shown.
    pub fn notes(&self, record: &Record) -> Vec<String> {
        if record.unit != NANOSECONDS {
            return Vec::new();
        }
        let value = |id: &String| self.values.get(id).filter(|value| value.differs);
        let differing = record.cases().filter_map(|(_, case)| Some((&case.id, &value(&case.id)?.what)));
        let footnotes = differing.map(|(id, what)| format!("{} {id}: {what}", self.name));
        std::iter::once(format!("{}: {}", self.name, self.source)).chain(footnotes).collect()
    }
}

/// The known names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.into_iter().map(|(name, _)| name)
}

/// The machines of a list such as `csc501,cse221`, each once.
///
/// # Errors
/// A name is unknown.
pub fn find(names: &str) -> Result<Vec<Published>> {
    let mut asked: Vec<&str> = Vec::new();
    for name in names.split(',').map(str::trim) {
        if !asked.contains(&name) {
            asked.push(name);
        }
    }
    asked.into_iter().map(load_published).collect()
}

fn load_published(name: &str) -> Result<Published> {
    let (_, text) =
        FILES.into_iter().find(|(known, _)| *known == name).ok_or_else(|| unknown_name_error(name))?;
    let sheet: Sheet = parse_compiled_in(name, text, "published values")?;
    let values = sheet.value.iter().map(|value| (value.id.clone(), value.clone())).collect();
    let Sheet { source, value: rows, without } = sheet;
    Ok(Published { name: name.into(), source, values, rows, without })
}

/// What a file that is compiled in holds.
pub(super) fn parse_compiled_in<T: DeserializeOwned>(name: &str, text: &str, expected: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| Error::Content {
        path: format!("fixtures/published/{name}.toml").into(),
        field: "compiled in".into(),
        expected: expected.into(),
        found: error.message().into(),
        remedy: "mend the file and build again".into(),
    })
}

fn unknown_name_error(name: &str) -> Error {
    let known: Vec<&str> = names().collect();
    Error::Usage(format!("no published values are called `{name}`; there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in the tables, the text and the legends of figures, counted in the reports; a value with its standard deviation
    /// is one, and so is a figure without numbers.
    const COUNTED: [(&str, usize); 2] = [("csc501", 28), ("cse221", 54)];

    #[test]
    fn every_number_of_the_reports_stands_beside_ours_or_is_named_with_the_reason() {
        let cases: std::collections::BTreeSet<&str> =
            include_str!("../../fixtures/ids.txt").lines().collect();
        for (name, count) in COUNTED {
            let published = load_published(name).unwrap();
            assert_eq!(published.rows.len() + published.without.len(), count, "{name}");
            assert_eq!(published.rows.len(), published.values.len(), "{name}: an id occurs twice");
            assert!(published.without.iter().all(|row| !row.row.is_empty() && row.why.len() > 10), "{name}");
            for PublishedValue { id, .. } in &published.rows {
                let prefix = id.strip_prefix("fall/");
                let drawn = |prefix: &str| cases.iter().any(|case| case.starts_with(prefix));
                let known =
                    cases.contains(id.as_str()) || id.starts_with("level/") || prefix.is_some_and(drawn);
                assert!(known, "{name}: {id} is no case");
            }
        }
    }

    #[test]
    fn every_published_value_is_a_number_above_nothing_in_one_unit() {
        for (name, _) in FILES {
            for value in &load_published(name).unwrap().rows {
                let numbers = [value.ns, value.value, value.sd, value.predicted_ns];
                assert!(numbers.into_iter().flatten().all(|n| n.is_finite() && n > 0.0), "{name}: {value:?}");
                assert_eq!(value.ns.is_some(), value.value.is_none(), "{name}: {value:?}");
                assert_eq!(value.value.is_some(), value.unit.is_some(), "{name}: {value:?}");
                assert!(!value.what.is_empty(), "{name}: {value:?}");
            }
        }
    }

    #[test]
    fn both_machines_are_found_in_the_order_asked() {
        let found = find("cse221, csc501").unwrap();
        assert_eq!([&found[0].name, &found[1].name], ["cse221", "csc501"]);
        assert_eq!(found[0].values_ns()["syscall/getpid"], 3.44);
        assert_eq!(found[1].values["empty_loop/memory"].predicted_ns, Some(1.6));
    }

    #[test]
    fn whose_the_values_are_is_told_and_which_are_of_another_operation() {
        let mut record = crate::record::fixture_run::fixture_record();
        let [csc501] = &find("csc501").unwrap()[..] else { panic!("one was asked for") };
        let said = csc501.notes(&record);
        assert!(said[0].starts_with("csc501: ") && said[0].contains("ThinkPad"), "{said:?}");
        assert!(said[1..].iter().any(|line| line.starts_with("csc501 syscall/getpid/cold: ")), "{said:?}");
        assert!(said.iter().all(|line| !line.contains("call/u32")), "{said:?}");
        record.unit = "page-faults".into();
        assert!(csc501.notes(&record).is_empty());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = find("csc501,vax").unwrap_err().to_string();
        assert!(message.contains("`vax`") && message.contains("csc501, cse221"), "{message}");
    }
}
