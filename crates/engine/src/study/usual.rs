//! What is usual for a machine of this kind: the headline figures of reference machines, each from a default run. Their files
//! are written by `scripts/reference` and compiled in.

use crate::json_line::parse_value;
use crate::record::{Headline, Interval, Record};
use crate::render::headline_figure::HeadlineFigure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name on the command line, and the file.
const FILES: [(&str, &str); 2] = [
    ("emerald-rapids-guest", include_str!("../../fixtures/reference/emerald-rapids-guest.json")),
    ("zen3-guest", include_str!("../../fixtures/reference/zen3-guest.json")),
];

/// The headline figures of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The kind of machine: `Zen 3 guest`.
    pub kind: String,
    /// Processor, kernel and hypervisor, for people.
    pub machine: String,
    /// When it was measured, Unix seconds.
    pub measured: u64,
    /// By case id.
    pub figures: BTreeMap<String, ReferenceFigure>,
}

/// A figure of a reference machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFigure {
    /// The operation in words.
    pub words: String,
    /// The derived figure that it is; the cost otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// `ns`, `GB/s`.
    pub unit: String,
    /// The figure of the undisturbed machine; its ends are this figure and the typical one.
    pub value: Interval,
}

/// What machines of one kind have shown of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct UsualRange {
    /// The kind.
    pub kind: String,
    /// The number of machines.
    pub machines: usize,
    /// The least quiet figure and the greatest typical one.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

impl Reference {
    /// The headline figures of a run; `None` if the kind of its machine is not known.
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
    FILES.into_iter().map(|(name, _)| name)
}

/// The reference of this name; `None` if there is none. A test reads every file.
pub fn find_reference(name: &str) -> Option<Reference> {
    let (_, text) = FILES.into_iter().find(|(known, _)| *known == name)?;
    parse_value(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
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
