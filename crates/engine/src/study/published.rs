//! Values that others published for their machines, by case id, for columns of the observation table. The files are
//! compiled in, because a machine that is measured has no copy of the source.

use crate::error::{Error, Result};
use crate::json_line::parse_value;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Headline, Interval, Record};
use crate::render::figure_line::HeadlineFigure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The reports: the name on the command line, and the content of the file.
const FILES: [(&str, &str); 2] = [
    ("csc501", include_str!("../../fixtures/published/csc501.toml")),
    ("cse221", include_str!("../../fixtures/published/cse221.toml")),
];

/// The values of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name on the command line, and heading of its column.
    pub name: String,
    /// The authors and the machine.
    pub source: String,
    /// The frequency of that machine's core, GHz; `None` for a reference machine.
    pub ghz: Option<f64>,
    /// The published values, in the order of the report.
    pub rows: Vec<PublishedValue>,
    /// Published values without a matching case of ours.
    pub without: Vec<Without>,
}

/// One published value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// Id of our case; or `fall/` and the beginning of a curve's ids; or `fit/` and the step of a line.
    pub id: String,
    /// The figure of our case that corresponds to the value: `net` or a derived figure; `None` for the case's cost.
    pub figure: Option<String>,
    /// A number by which our figure is multiplied for the comparison, because the authors counted differently.
    pub times: Option<f64>,
    /// The value, if it is a time, ns.
    pub ns: Option<f64>,
    /// The value, if it is not a time, in `unit`.
    pub value: Option<f64>,
    /// Unit of `value`, such as `GB/s` or `GiB`.
    pub unit: Option<String>,
    /// Its standard deviation, in the unit of the value.
    pub sd: Option<f64>,
    /// A number by which our case's deviation is multiplied if the value is only a part of the case: 0.5 for one of two
    /// switches.
    pub sd_times: Option<f64>,
    /// The hardware's part of the authors' prediction, as printed.
    pub hardware: Option<String>,
    /// The software's part of the authors' prediction, as printed.
    pub software: Option<String>,
    /// The authors' own prediction, ns.
    pub predicted_ns: Option<f64>,
    /// The authors' own prediction, if it is not a single time: `3 to 5 cycles`.
    pub expected: Option<String>,
    /// The cycles that the authors print beside the value.
    pub cycles: Option<f64>,
    /// Whether the value is only an upper limit: the authors give no number for their measurement.
    #[serde(default)]
    pub below: bool,
    /// The operation that the authors timed.
    pub what: String,
    /// Whether that operation differs from the case's.
    #[serde(default)]
    pub differs: bool,
}

/// A row or a figure of a report that has no counterpart among our cases.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// The row or the figure.
    pub row: String,
    /// Why it has no counterpart.
    pub why: String,
    /// The numbers of the report that it covers, besides those in `row` and `why`.
    #[serde(default)]
    pub numbers: Vec<f64>,
}

/// The layout of the files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    source: String,
    ghz: f64,
    value: Vec<PublishedValue>,
    #[serde(default)]
    without: Vec<Without>,
}

impl Published {
    /// The published times by case id, ns, for the table of costs. Times that correspond to a figure other than the cost are left out.
    pub fn values_ns(&self) -> BTreeMap<String, f64> {
        let costs = self.rows.iter().filter(|value| value.figure.is_none());
        costs.filter_map(|value| Some((value.id.clone(), value.ns?))).collect()
    }

    /// The groups of our cases to which these values correspond.
    pub fn group_names(&self) -> BTreeSet<&str> {
        let ids = self.rows.iter().map(|value| value.id.strip_prefix("fall/").unwrap_or(&value.id));
        ids.filter_map(|id| Some(id.split_once('/')?.0)).filter(|group| *group != "fit").collect()
    }

    /// Notes below a table with these values: their source, and those that time another operation. Empty if the record's
    /// unit is not nanoseconds, where the values are not shown.
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
    let Sheet { source, ghz, value: rows, without } = sheet;
    Ok(Published { name: name.into(), source, ghz: Some(ghz), rows, without })
}

/// The figures of a reference machine in the form of published values.
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
        ghz: None,
        rows: reference.figures.into_iter().map(row).collect(),
        without: Vec::new(),
    }
}

/// Parses a file that is compiled in.
pub fn parse_compiled_in<T: DeserializeOwned>(name: &str, text: &str, expected: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let (path, remedy) = (format!("fixtures/published/{name}.toml"), "mend the file and build again");
        Error::invalid_content(path, "compiled in", expected, error.message(), remedy)
    })
}

fn unknown_name_error(name: &str) -> Error {
    let known: Vec<&str> = names().collect();
    Error::Usage(format!("no published values are called `{name}`; there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests;

// What is usual for a kind of machine: the headline figures of reference machines, each from a default run. Their files
// are written by `scripts/reference` and compiled in.

/// The reference machines: the name on the command line, and the content of the file.
const REFERENCES: [(&str, &str); 4] = [
    ("emerald-rapids-guest", include_str!("../../fixtures/reference/emerald-rapids-guest.json")),
    ("zen3-guest", include_str!("../../fixtures/reference/zen3-guest.json")),
    ("zen4-guest", include_str!("../../fixtures/reference/zen4-guest.json")),
    ("zen5-guest", include_str!("../../fixtures/reference/zen5-guest.json")),
];

/// The headline figures of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The kind of machine: `Zen 3 guest`.
    pub kind: String,
    /// Processor, kernel and hypervisor, for people.
    pub machine: String,
    /// When the machine was measured, Unix seconds.
    pub measured: u64,
    /// The figures by case id.
    pub figures: BTreeMap<String, ReferenceFigure>,
}

/// A figure of a reference machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFigure {
    /// The operation in words.
    pub words: String,
    /// Name of the derived figure; `None` for the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// Unit of the figure, such as `ns` or `GB/s`.
    pub unit: String,
    /// The figure of the undisturbed machine. Its interval spans this figure and the typical one.
    pub value: Interval,
}

/// The range of an operation's figures on machines of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct UsualRange {
    /// The kind of machine.
    pub kind: String,
    /// The number of machines.
    pub machines: usize,
    /// The low end: the least figure of all machines, quiet or typical.
    pub low: f64,
    /// The high end: the greatest figure of all machines, quiet or typical.
    pub high: f64,
}

impl Reference {
    /// The headline figures of a run; `None` if the kind of its machine is unknown.
    pub fn from_record(record: &Record, headlines: &[(String, Headline)]) -> Option<Self> {
        let known = &record.fingerprint;
        let figure = |(id, headline): &(String, Headline)| {
            let (_, case) = record.cases().find(|(_, case)| case.id == *id)?;
            let shown = HeadlineFigure::new(headline, case.measured()?, &record.unit)?;
            let estimate = shown.value.estimate;
            let typical = shown.typical.unwrap_or(estimate);
            let value = Interval { estimate, low: estimate.min(typical), high: estimate.max(typical) };
            let (words, figure) = (headline.words.to_owned(), headline.figure.map(str::to_owned));
            let unit = shown.unit().to_owned();
            Some((id.clone(), ReferenceFigure { words, figure, unit, value }))
        };
        let named = |what: &str, part: &Option<String>| part.as_ref().map(|part| format!("{what}{part}"));
        let parts = [
            named("", &known.cpu_model),
            named("Linux ", &known.kernel_release),
            named("hypervisor ", &known.hypervisor),
        ];
        Some(Self {
            kind: known.machine_kind()?,
            machine: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            measured: record.started,
            figures: headlines.iter().filter_map(figure).collect(),
        })
    }
}

/// The usual ranges of the headline figures for machines of this kind, by case id.
pub fn usual_ranges(references: &[Reference], kind: &str) -> BTreeMap<String, UsualRange> {
    let mut ranges: BTreeMap<String, UsualRange> = BTreeMap::new();
    let alike = references.iter().filter(|reference| reference.kind == kind);
    for (id, ReferenceFigure { value, .. }) in alike.flat_map(|reference| &reference.figures) {
        let range = ranges.entry(id.clone()).or_insert_with(|| UsualRange {
            kind: kind.to_owned(),
            machines: 0,
            low: f64::MAX,
            high: f64::MIN,
        });
        range.machines += 1;
        (range.low, range.high) = (range.low.min(value.low), range.high.max(value.high));
    }
    ranges
}

/// The names of the references that are compiled in.
pub fn reference_names() -> impl Iterator<Item = &'static str> {
    REFERENCES.into_iter().map(|(name, _)| name)
}

/// The reference of this name; `None` if there is none. A test reads every file.
pub fn find_reference(name: &str) -> Option<Reference> {
    let (_, text) = REFERENCES.into_iter().find(|(known, _)| *known == name)?;
    parse_value(text.as_bytes()).ok()
}

#[cfg(test)]
mod usual_tests {
    use super::*;

    fn reference(kind: &str, [low, high]: [f64; 2]) -> Reference {
        let value = Interval { estimate: low, low, high };
        let figure = ReferenceFigure { words: "a call".into(), figure: None, unit: "ns".into(), value };
        let figures = [("syscall/getppid".to_owned(), figure)].into();
        Reference { kind: kind.into(), machine: String::new(), measured: 0, figures }
    }

    #[test]
    fn the_range_spans_the_machines_of_one_kind() {
        let all =
            [reference("Zen", [80.0, 84.0]), reference("Zen", [90.0, 95.0]), reference("Arm", [1.0, 2.0])];
        let ranges = usual_ranges(&all, "Zen");
        let range = &ranges["syscall/getppid"];
        assert_eq!((range.machines, range.low, range.high), (2, 80.0, 95.0));
        assert!(usual_ranges(&all, "Zen 5 guest").is_empty());
    }

    #[test]
    fn a_run_on_an_unknown_processor_makes_no_reference() {
        assert_eq!(Reference::from_record(&crate::record::fixture_run::fixture_record(), &[]), None);
    }
}
