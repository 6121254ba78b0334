//! The machines and the software of a history, by which its reader can choose points. What changed is found again in the
//! points of each choice: a step that is a change of machines is none on either of them.

use crate::record::history_point::HistoryPoint;
use crate::study::ratio_series::RatioSeries;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::environment::Fingerprint;

/// What tells machines apart, the most telling first.
const MACHINE: [&str; 11] = [
    "cpu_model",
    "product",
    "cpu_count",
    "architecture",
    "hypervisor",
    "cpu_vendor",
    "cpu_family",
    "cpu_model_number",
    "cpu_stepping",
    "numa_nodes",
    "caches",
];
/// What tells the software of one machine apart.
const SOFTWARE: [&str; 10] = [
    "kernel_release",
    "kernel_command_line",
    "kernel_version",
    "mitigations",
    "microcode",
    "governor",
    "turbo",
    "smt",
    "huge_pages",
    "clock_source",
];
/// Points of fewer nights are no series of their own.
const FEWEST: usize = 5;
/// The most characters of a name.
const LONGEST: usize = 80;

/// The points by one kind of fields: a name for each group, and each point's group.
#[derive(Debug, PartialEq)]
pub(super) struct Grouping {
    pub(super) names: Vec<String>,
    pub(super) of: Vec<usize>,
}

impl Grouping {
    pub(super) fn by_machine(points: &[HistoryPoint]) -> Self {
        Self::group_by(&MACHINE, points)
    }

    pub(super) fn by_software(points: &[HistoryPoint]) -> Self {
        Self::group_by(&SOFTWARE, points)
    }

    fn group_by(fields: &[&str], points: &[HistoryPoint]) -> Self {
        let texts: Vec<Vec<String>> =
            points.iter().map(|point| field_texts(fields, &point.fingerprint)).collect();
        let differs = |at: &usize| texts.iter().any(|text| text[*at] != texts[0][*at]);
        let telling: Vec<usize> = (0..fields.len()).filter(differs).collect();
        let mut groups: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        let mut names = Vec::new();
        let of = texts.iter().map(|text| {
            let values: Vec<&str> = telling.iter().map(|at| text[*at].as_str()).collect();
            *groups.entry(values).or_insert_with_key(|values| {
                let told: Vec<_> = telling.iter().map(|at| fields[*at]).zip(values.iter().copied()).collect();
                names.push(unique_name(&names, group_name(&told)));
                names.len() - 1
            })
        });
        let of = of.collect();
        Self { names, of }
    }
}

/// The values of these fields, as text.
fn field_texts(fields: &[&str], fingerprint: &Fingerprint) -> Vec<String> {
    let whole = serde_json::to_value(fingerprint).unwrap_or_default();
    let text = |field: &&str| match whole.get(*field) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => "unknown".into(),
        Some(other) => other.to_string(),
    };
    fields.iter().map(text).collect()
}

/// The most telling value, and the others with their fields.
fn group_name(values: &[(&str, &str)]) -> String {
    let parts = values.iter().enumerate().map(|(at, (field, value))| match at {
        0 => (*value).to_owned(),
        _ => format!("{} {value}", field.replace('_', " ")),
    });
    let whole = parts.collect::<Vec<_>>().join(", ");
    match whole.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// The name, with a number where another begins alike and was cut.
fn unique_name(names: &[String], name: String) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut each = std::iter::once(name.clone()).chain(numbered);
    each.find(|one| !names.contains(one)).unwrap_or(name)
}

/// A machine, or software, or both, with the points that are of it. `None` is every one.
pub(super) struct Choice {
    pub(super) machine: Option<usize>,
    pub(super) software: Option<usize>,
    points: BTreeSet<usize>,
}

impl Choice {
    /// Every choice that leaves points out and has enough of them.
    pub(super) fn all_choices(machines: &Grouping, software: &Grouping) -> Vec<Self> {
        let some = |grouping: &Grouping| -> Vec<Option<usize>> {
            let groups = if grouping.names.len() > 1 { grouping.names.len() } else { 0 };
            std::iter::once(None).chain((0..groups).map(Some)).collect()
        };
        let is_of = |of: usize, wanted: Option<usize>| wanted.is_none_or(|wanted| wanted == of);
        let choice = |machine, wanted| {
            let points = machines.of.iter().zip(&software.of).enumerate();
            let points = points.filter(|(_, (m, s))| is_of(**m, machine) && is_of(**s, wanted));
            Self { machine, software: wanted, points: points.map(|(at, _)| at).collect() }
        };
        let pairs = some(machines).into_iter().flat_map(|m| some(software).into_iter().map(move |s| (m, s)));
        let chosen = pairs.filter(|(m, s)| m.is_some() || s.is_some()).map(|(m, s)| choice(m, s));
        chosen.filter(|choice| choice.points.len() >= FEWEST).collect()
    }

    /// The parts of these series that lie in its points. A series that has none there stays, empty: events name series by
    /// their number.
    pub(super) fn restrict_series(&self, series: &[RatioSeries]) -> Vec<RatioSeries> {
        let part = |one: &RatioSeries| RatioSeries {
            links: one.links.iter().filter(|link| self.points.contains(&link.point)).copied().collect(),
            ..one.clone()
        };
        series.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cpu: &str, kernel: &str) -> HistoryPoint {
        let fingerprint = Fingerprint {
            cpu_model: Some(cpu.into()),
            kernel_release: Some(kernel.into()),
            cpu_count: Some(2),
            ..Fingerprint::default()
        };
        HistoryPoint { fingerprint, ..HistoryPoint::default() }
    }

    fn points() -> Vec<HistoryPoint> {
        let kernels = ["6.1"; 6].into_iter().chain(["6.12"; 6]);
        kernels
            .enumerate()
            .map(|(at, kernel)| point(if at % 2 == 0 { "Zen" } else { "Xeon" }, kernel))
            .collect()
    }

    #[test]
    fn what_differs_names_the_machines_and_their_software() {
        let points = points();
        let machines = Grouping::by_machine(&points);
        assert_eq!(machines.names, ["Zen", "Xeon"]);
        assert_eq!(machines.of[..4], [0, 1, 0, 1]);
        assert_eq!(Grouping::by_software(&points).names, ["6.1", "6.12"]);
        assert_eq!(Grouping::by_machine(&points[..1]).names, [""], "one machine has no name");
        assert!(Grouping::by_machine(&[]).of.is_empty());
    }

    #[test]
    fn a_choice_has_enough_points_and_leaves_some_out() {
        let points = points();
        let all = Choice::all_choices(&Grouping::by_machine(&points), &Grouping::by_software(&points));
        let said: Vec<_> = all.iter().map(|choice| (choice.machine, choice.software)).collect();
        // A machine with one kernel has three points.
        assert_eq!(said, [(None, Some(0)), (None, Some(1)), (Some(0), None), (Some(1), None)]);
        assert_eq!(all[2].points.iter().copied().collect::<Vec<_>>(), [0, 2, 4, 6, 8, 10]);
    }

    #[test]
    fn a_second_field_is_named_a_long_name_is_cut_and_no_two_are_alike() {
        let names = ["a".to_owned(), "a (2)".to_owned()];
        assert_eq!([unique_name(&names, "b".into()), unique_name(&names, "a".into())], ["b", "a (3)"]);
        assert_eq!(group_name(&[("cpu_model", "Zen"), ("cpu_count", "4")]), "Zen, cpu count 4");
        assert_eq!(group_name(&[("cpu_model", &"é".repeat(200))]).chars().count(), LONGEST + 1);
    }
}
