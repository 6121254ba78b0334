//! Values that others published for their machines, by case id, for columns of the observation table. The files are
//! compiled in, because a machine that is measured has no copy of the source.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::quantity::NANOSECONDS;
use serde::Deserialize;
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
    /// Values that no case measures yet, by name.
    pub later: BTreeMap<String, PublishedValue>,
}

/// One published value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    #[serde(alias = "name")]
    id: String,
    /// The value, ns.
    pub ns: f64,
    /// Its standard deviation, ns.
    pub sd: Option<f64>,
    /// The authors' own prediction, ns.
    pub predicted_ns: Option<f64>,
    /// What they timed.
    pub what: String,
    /// Whether that is another operation than that of the case.
    #[serde(default)]
    pub differs: bool,
}

/// The layout of the files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    source: String,
    value: Vec<PublishedValue>,
    #[serde(default)]
    later: Vec<PublishedValue>,
}

impl Published {
    /// Only the values, as the table takes them.
    pub fn ns(&self) -> BTreeMap<String, f64> {
        self.values.iter().map(|(id, value)| (id.clone(), value.ns)).collect()
    }

    /// Notes below a table with these values: their source, and which of them time another operation. None if the
    /// record has another unit, where the values are not shown.
    pub fn below(&self, record: &Record) -> Vec<String> {
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
    asked.into_iter().map(named).collect()
}

fn named(name: &str) -> Result<Published> {
    let (_, text) = FILES.into_iter().find(|(known, _)| *known == name).ok_or_else(|| unknown(name))?;
    let sheet: Sheet = toml::from_str(text).map_err(|error| Error::Content {
        path: format!("fixtures/published/{name}.toml").into(),
        field: "compiled in".into(),
        expected: "published values".into(),
        found: error.message().into(),
        remedy: "mend the file and build again".into(),
    })?;
    let by_id = |values: Vec<PublishedValue>| values.into_iter().map(|v| (v.id.clone(), v)).collect();
    Ok(Published {
        name: name.into(),
        source: sheet.source,
        values: by_id(sheet.value),
        later: by_id(sheet.later),
    })
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = names().collect();
    Error::Usage(format!("no published values are called `{name}`; there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_value_is_a_duration_of_one_case() {
        for (name, text) in FILES {
            let sheet: Sheet = toml::from_str(text).unwrap();
            let all: Vec<&PublishedValue> = sheet.value.iter().chain(&sheet.later).collect();
            let distinct: std::collections::BTreeSet<&str> = all.iter().map(|v| v.id.as_str()).collect();
            assert_eq!(all.len(), distinct.len(), "{name}: an id occurs twice");
            for value in all {
                for number in [Some(value.ns), value.sd, value.predicted_ns].into_iter().flatten() {
                    assert!(number.is_finite() && number > 0.0, "{name}: {value:?}");
                }
                assert!(!value.what.is_empty(), "{name}: {value:?}");
            }
        }
    }

    #[test]
    fn both_machines_are_found_in_the_order_asked() {
        let found = find("cse221, csc501").unwrap();
        assert_eq!([&found[0].name, &found[1].name], ["cse221", "csc501"]);
        assert_eq!(found[0].ns()["syscall/getpid"], 3.44);
        assert_eq!(found[1].values["empty_loop/memory"].predicted_ns, Some(1.6));
    }

    #[test]
    fn whose_the_values_are_is_told_and_which_are_of_another_operation() {
        let mut record = crate::record::fixture_run::record();
        let [csc501] = &find("csc501").unwrap()[..] else { panic!("one was asked for") };
        let said = csc501.below(&record);
        assert!(said[0].starts_with("csc501: ") && said[0].contains("ThinkPad"), "{said:?}");
        assert!(said[1..].iter().any(|line| line.starts_with("csc501 syscall/getpid: ")), "{said:?}");
        assert!(said.iter().all(|line| !line.contains("call/u32")), "{said:?}");
        record.unit = "page-faults".into();
        assert!(csc501.below(&record).is_empty());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = find("csc501,vax").unwrap_err().to_string();
        assert!(message.contains("`vax`") && message.contains("csc501, cse221"), "{message}");
    }
}
