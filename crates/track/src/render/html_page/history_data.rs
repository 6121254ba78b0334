//! The data of a history for the page's script: its points, its series as whole numbers, and its events.

use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, find_change_events};
use crate::study::ratio_series::{Link, NORMAL, RatioSeries, build_ratio_series};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::quantity::NANOSECONDS;

/// Ratios are written as whole numbers in steps of 0.00001, which saves space: a page has tens of thousands of them.
const STEPS: f64 = 1e5;

/// A history and its name.
pub struct History<'a> {
    /// Its name on the page.
    pub name: &'a str,
    /// Its points, in the order in which they were added.
    pub points: &'a [HistoryPoint],
}

/// The data of a history with its series and events. Each of `choices` has the events in the points of one machine, of one kind of
/// software, or of both. `notes` name cases that belong to no series.
pub(super) fn history_data(history: &History<'_>) -> Value {
    let points = history.points;
    let (all, notes) = build_ratio_series(points);
    let regular: Vec<usize> = (0..points.len()).filter(|at| points[*at].bridge_to.is_none()).collect();
    let (machines, software) = (Grouping::group_by(&MACHINE, points), Grouping::group_by(&SOFTWARE, points));
    let choice = |choice: Choice| {
        let events = event_data(points, &choice.restrict_series(&all));
        json!({ "machine": choice.machine, "software": choice.software, "events": events })
    };
    let choices: Vec<_> = Choice::all_choices(&machines, &software).into_iter().map(choice).collect();
    let nights = points.iter().zip(machines.of.iter().zip(&software.of));
    let nights: Vec<_> =
        nights.map(|(point, (machine, software))| point_data(point, *machine, *software)).collect();
    let is_counted = points.first().is_some_and(|point| point.clock == ClockKind::Icount);
    json!({
        "name": history.name, "unit": if is_counted { "instr" } else { NANOSECONDS }, "points": nights,
        "machines": machines.names, "software": software.names, "choices": choices,
        "series": all.iter().map(|one| series_data(one, &regular)).collect::<Vec<_>>(),
        "events": event_data(points, &all), "notes": notes,
    })
}

fn point_data(point: &HistoryPoint, machine: usize, software: usize) -> Value {
    let HistoryPoint { started, label, reference, bridge_to, .. } = point;
    let mut data = json!({
        "started": started, "label": label, "reference": reference, "machine": machine, "software": software,
    });
    // The script treats a point as a bridge if it has this key.
    if let Some(to) = bridge_to {
        data["bridge_to"] = json!(to);
    }
    data
}

/// The data of a series. `ratio` is the ratio to the first reference less 1, and `half` is half of its 95 % interval, both in parts
/// of 100 000. `cost` is that of an iteration at the last point. `at` has the indexes of its points, unless it is in exactly the
/// points that are no bridges.
fn series_data(one: &RatioSeries, regular: &[usize]) -> Value {
    let at: Vec<usize> = one.links.iter().map(|link| link.point).collect();
    let whole = |share: f64| (STEPS * share).round() as i64;
    let ratio = |link: &Link| whole(link.value.value.exp() - 1.0);
    let half = |link: &Link| whole(link.value.value.exp() * (NORMAL * link.value.error.hypot(link.bridged)));
    let mut data = json!({
        "id": one.id, "ratio": one.links.iter().map(ratio).collect::<Vec<_>>(),
        "half": one.links.iter().map(half).collect::<Vec<_>>(), "cost": one.links.last().map_or(0.0, |link| link.cost_ns),
    });
    if one.canary {
        data["canary"] = json!(true);
    }
    if at != regular {
        data["at"] = json!(at);
    }
    data
}

/// The events of these series. Each of `moved` has the index of a series, its change as a share, half of the change's 95 % interval,
/// and the functions that changed most with their difference in instructions. Each of `profile` is another change: field, before, after.
fn event_data(points: &[HistoryPoint], all: &[RatioSeries]) -> Vec<Value> {
    let places: BTreeMap<&str, usize> = all.iter().enumerate().map(|(at, one)| (&*one.id, at)).collect();
    let event = |event: ChangeEvent| {
        let moved = event.moved.iter().filter_map(|moved| {
            let series = places.get(&*moved.id)?;
            Some(json!((series, moved.change, NORMAL * moved.error, &moved.functions)))
        });
        let profile = event.profile.iter().map(|d| (d.field, &d.theirs, &d.ours));
        json!({
            "at": event.at, "before": event.before, "found": event.found, "moved": moved.collect::<Vec<_>>(),
            "profile": profile.collect::<Vec<_>>(),
        })
    };
    find_change_events(points, all).into_iter().map(event).collect()
}

// The machines and the software of a history, by which the reader of the page can select points. Changes are searched again in the
// points of each selection: a step between two machines is no change on either of them.

/// The fields of a fingerprint that distinguish machines, the most important first.
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
/// The fields of a fingerprint that distinguish the software of one machine.
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
/// The fewest points of a choice.
const FEWEST: usize = 5;
/// The most characters of a group's name.
const LONGEST: usize = 80;

/// The points grouped by some fields: the name of each group, and the group of each point.
#[derive(Debug, PartialEq)]
struct Grouping {
    names: Vec<String>,
    of: Vec<usize>,
}

impl Grouping {
    /// Groups the points by the values of these fields.
    fn group_by(fields: &[&str], points: &[HistoryPoint]) -> Self {
        let texts: Vec<Vec<String>> =
            points.iter().map(|point| field_texts(fields, &point.fingerprint)).collect();
        let differs = |at: &usize| texts.iter().any(|text| text[*at] != texts[0][*at]);
        let differing: Vec<usize> = (0..fields.len()).filter(differs).collect();
        let mut groups: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        let mut names = Vec::new();
        let of = texts.iter().map(|text| {
            let values: Vec<&str> = differing.iter().map(|at| text[*at].as_str()).collect();
            *groups.entry(values).or_insert_with_key(|values| {
                let pairs: Vec<_> =
                    differing.iter().map(|at| fields[*at]).zip(values.iter().copied()).collect();
                names.push(unique_name(&names, group_name(&pairs)));
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

/// The first value, and the others with the names of their fields, cut to [`LONGEST`] characters.
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

/// The name, with a number behind it if the name is in use: two long names can be equal once they are cut.
fn unique_name(names: &[String], name: String) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut each = std::iter::once(name.clone()).chain(numbered);
    each.find(|one| !names.contains(one)).unwrap_or(name)
}

/// A machine, a kind of software or both, with the points of it. `None` stands for every machine or software.
struct Choice {
    machine: Option<usize>,
    software: Option<usize>,
    points: BTreeSet<usize>,
}

impl Choice {
    /// Every choice that leaves points out and has at least [`FEWEST`] of them.
    fn all_choices(machines: &Grouping, software: &Grouping) -> Vec<Self> {
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

    /// The parts of these series in the points of the choice. A series without such points stays, but empty, since events refer to
    /// series by their index.
    fn restrict_series(&self, series: &[RatioSeries]) -> Vec<RatioSeries> {
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
    fn groups_are_named_by_the_fields_that_differ() {
        let points = points();
        let machines = Grouping::group_by(&MACHINE, &points);
        assert_eq!(machines.names, ["Zen", "Xeon"]);
        assert_eq!(machines.of[..4], [0, 1, 0, 1]);
        assert_eq!(Grouping::group_by(&SOFTWARE, &points).names, ["6.1", "6.12"]);
        assert_eq!(Grouping::group_by(&MACHINE, &points[..1]).names, [""], "one machine has no name");
        assert!(Grouping::group_by(&MACHINE, &[]).of.is_empty());
    }

    #[test]
    fn a_choice_has_enough_points_and_leaves_some_out() {
        let points = points();
        let all = Choice::all_choices(
            &Grouping::group_by(&MACHINE, &points),
            &Grouping::group_by(&SOFTWARE, &points),
        );
        let said: Vec<_> = all.iter().map(|choice| (choice.machine, choice.software)).collect();
        // A machine with one kernel has three points.
        assert_eq!(said, [(None, Some(0)), (None, Some(1)), (Some(0), None), (Some(1), None)]);
        assert_eq!(all[2].points.iter().copied().collect::<Vec<_>>(), [0, 2, 4, 6, 8, 10]);
    }

    #[test]
    fn names_have_further_fields_are_cut_and_are_unique() {
        let names = ["a".to_owned(), "a (2)".to_owned()];
        assert_eq!([unique_name(&names, "b".into()), unique_name(&names, "a".into())], ["b", "a (3)"]);
        assert_eq!(group_name(&[("cpu_model", "Zen"), ("cpu_count", "4")]), "Zen, cpu count 4");
        assert_eq!(group_name(&[("cpu_model", &"é".repeat(200))]).chars().count(), LONGEST + 1);
    }
}
