//! A history as the page's script reads it: its points, its series as whole numbers, and its events.

use super::choice_data::{Choice, Grouping};
use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, find_change_events};
use crate::study::ratio_series::{NORMAL, RatioSeries, build_ratio_series};
use serde::Serialize;
use std::collections::BTreeMap;
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::quantity::NANOSECONDS;

/// A ratio of 1.00001 is one more than that of 1: a page holds tens of thousands of them.
const STEPS: f64 = 1e5;

/// A history and its name.
pub struct History<'a> {
    /// How it is called on the page.
    pub name: &'a str,
    /// Its points, in the order in which they were added.
    pub points: &'a [HistoryPoint],
}

#[derive(Serialize)]
pub(super) struct HistoryData<'a> {
    name: &'a str,
    /// What costs are in.
    unit: &'static str,
    points: Vec<PointData<'a>>,
    /// Names of the machines, and of their software, where there are several.
    machines: Vec<String>,
    software: Vec<String>,
    series: Vec<SeriesData>,
    /// The events in all points.
    events: Vec<EventData>,
    /// What is found in the points of one machine, or of one kind of software, or of both.
    choices: Vec<ChoiceData>,
    /// What belongs to no series, in sentences.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct PointData<'a> {
    started: u64,
    label: &'a str,
    reference: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bridge_to: Option<&'a str>,
    machine: usize,
    software: usize,
}

#[derive(Serialize)]
struct ChoiceData {
    machine: Option<usize>,
    software: Option<usize>,
    events: Vec<EventData>,
}

#[derive(Serialize)]
struct SeriesData {
    id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    canary: bool,
    /// The points in which it is, if it is not in all that are no bridges.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Vec<usize>>,
    /// Ratio to the first reference less 1, and half of its 95 % interval, in parts of 100 000.
    ratio: Vec<i64>,
    half: Vec<i64>,
    /// An iteration at its last point.
    cost: f64,
}

/// Index of the series, the change as a share, half of its 95 % interval, and the functions that moved most with their difference in
/// instructions.
#[derive(Serialize)]
struct MovedData(usize, f64, f64, Vec<(String, f64)>);

#[derive(Serialize)]
struct EventData {
    at: usize,
    before: usize,
    found: usize,
    moved: Vec<MovedData>,
    /// What else changed: field, before, after.
    profile: Vec<(&'static str, String, String)>,
}

impl<'a> HistoryData<'a> {
    /// The history with its series and events.
    pub(super) fn new(history: &History<'a>) -> Self {
        let points = history.points;
        let (all, notes) = build_ratio_series(points);
        let regular: Vec<usize> = (0..points.len()).filter(|at| points[*at].bridge_to.is_none()).collect();
        let (machines, software) = (Grouping::by_machine(points), Grouping::by_software(points));
        let choices = Choice::all_choices(&machines, &software).into_iter().map(|choice| ChoiceData {
            machine: choice.machine,
            software: choice.software,
            events: event_data(points, &choice.restrict_series(&all)),
        });
        Self {
            name: history.name,
            unit: if points.first().is_some_and(|point| point.clock == ClockKind::Icount) {
                "instr"
            } else {
                NANOSECONDS
            },
            points: points
                .iter()
                .enumerate()
                .map(|(at, one)| point_data(one, machines.of[at], software.of[at]))
                .collect(),
            choices: choices.collect(),
            machines: machines.names,
            software: software.names,
            series: all.iter().map(|one| SeriesData::new(one, &regular)).collect(),
            events: event_data(points, &all),
            notes,
        }
    }
}

/// What changed in these series, with each case as the number of its series.
fn event_data(points: &[HistoryPoint], all: &[RatioSeries]) -> Vec<EventData> {
    let places: BTreeMap<&str, usize> = all.iter().enumerate().map(|(at, one)| (&*one.id, at)).collect();
    find_change_events(points, all).into_iter().map(|event| EventData::new(event, &places)).collect()
}

fn point_data(point: &HistoryPoint, machine: usize, software: usize) -> PointData<'_> {
    PointData {
        started: point.started,
        label: &point.label,
        reference: &point.reference,
        bridge_to: point.bridge_to.as_deref(),
        machine,
        software,
    }
}

impl SeriesData {
    fn new(one: &RatioSeries, regular: &[usize]) -> Self {
        let at: Vec<usize> = one.links.iter().map(|link| link.point).collect();
        let whole = |share: f64| (STEPS * share).round() as i64;
        let ratios = || one.links.iter().map(|link| link.value.value.exp());
        let halves = one.links.iter().map(|link| NORMAL * link.value.error.hypot(link.bridged));
        Self {
            id: one.id.clone(),
            canary: one.canary,
            ratio: ratios().map(|ratio| whole(ratio - 1.0)).collect(),
            half: ratios().zip(halves).map(|(ratio, half)| whole(ratio * half)).collect(),
            cost: one.links.last().map_or(0.0, |link| link.cost_ns),
            at: (at != regular).then_some(at),
        }
    }
}

impl EventData {
    fn new(event: ChangeEvent, places: &BTreeMap<&str, usize>) -> Self {
        let moved = event.moved.into_iter().filter_map(|moved| {
            let series = places.get(&*moved.id)?;
            Some(MovedData(*series, moved.change, NORMAL * moved.error, moved.functions))
        });
        Self {
            at: event.at,
            before: event.before,
            found: event.found,
            moved: moved.collect(),
            profile: event.profile.iter().map(|d| (d.field, d.theirs.clone(), d.ours.clone())).collect(),
        }
    }
}
