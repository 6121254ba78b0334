//! Values that others published for their machines, by case id, for columns of the observation table. The files are
//! compiled in, because a machine that is measured has no copy of the source.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::quantity::NANOSECONDS;
use crate::study::usual::{Reference, ReferenceFigure, find_reference, reference_names};
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
    /// In the order of the report.
    pub rows: Vec<PublishedValue>,
    /// Published values without a matching case of ours.
    pub without: Vec<Without>,
}

/// One published value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// Id of our case, `fall/` and the beginning of a curve's ids, or `fit/` and the step of a line.
    pub id: String,
    /// The figure of our case that is the same operation: `net`, or a derived one; without it, its cost.
    pub figure: Option<String>,
    /// A number by which ours is multiplied, because they counted otherwise.
    pub times: Option<f64>,
    /// The value, if it is a time, ns.
    pub ns: Option<f64>,
    /// The value, if it is none, in its unit.
    pub value: Option<f64>,
    /// `GB/s`, `GiB`.
    pub unit: Option<String>,
    /// Its standard deviation, in the unit of the value.
    pub sd: Option<f64>,
    /// A number by which the deviation of our case is multiplied to be that of a figure that is a part of it: 0.5 for one of two
    /// switches.
    pub sd_times: Option<f64>,
    /// The part of their prediction that is the hardware's, as they print it.
    pub hardware: Option<String>,
    /// The part of their prediction that is the software's, as they print it.
    pub software: Option<String>,
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
    /// The numbers of the report that it covers, besides those in its words.
    #[serde(default)]
    pub numbers: Vec<f64>,
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
    /// The published times by case id, ns, as the table of costs takes them: without those that stand beside another figure.
    pub fn values_ns(&self) -> BTreeMap<String, f64> {
        let costs = self.rows.iter().filter(|value| value.figure.is_none());
        costs.filter_map(|value| Some((value.id.clone(), value.ns?))).collect()
    }

    /// Notes below a table with these values: their source, and which of them time another operation. None if the
    /// record has another unit, where the values are not shown.
    pub fn notes(&self, record: &Record) -> Vec<String> {
        if record.unit != NANOSECONDS {
            return Vec::new();
        }
        let differs = |id: &String| self.rows.iter().find(|value| value.differs && value.id == *id);
        let differing = record.cases().filter_map(|(_, case)| Some((&case.id, &differs(&case.id)?.what)));
        let footnotes = differing.map(|(id, what)| format!("{} {id}: {what}", self.name));
        std::iter::once(format!("{}: {}", self.name, self.source)).chain(footnotes).collect()
    }
}

/// The known names: reports, then reference machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.into_iter().map(|(name, _)| name).chain(reference_names())
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
    let Some((_, text)) = FILES.into_iter().find(|(known, _)| *known == name) else {
        let reference = find_reference(name).ok_or_else(|| unknown_name_error(name))?;
        return Ok(reference_values(name, reference));
    };
    let sheet: Sheet = parse_compiled_in(name, text, "published values")?;
    Ok(Published { name: name.into(), source: sheet.source, rows: sheet.value, without: sheet.without })
}

/// The figures of a reference machine as published ones.
fn reference_values(name: &str, reference: Reference) -> Published {
    let row = |(id, shown): (String, ReferenceFigure)| {
        let (is_time, value) = (shown.unit == NANOSECONDS, shown.value.estimate);
        PublishedValue {
            id,
            figure: shown.figure,
            ns: is_time.then_some(value),
            value: (!is_time).then_some(value),
            unit: (!is_time).then_some(shown.unit),
            what: shown.words,
            ..PublishedValue::default()
        }
    };
    Published {
        name: name.into(),
        source: format!("a {}: {}", reference.kind, reference.machine),
        rows: reference.figures.into_iter().map(row).collect(),
        without: Vec::new(),
    }
}

/// What a file that is compiled in holds.
pub fn parse_compiled_in<T: DeserializeOwned>(name: &str, text: &str, expected: &str) -> Result<T> {
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
mod tests;
