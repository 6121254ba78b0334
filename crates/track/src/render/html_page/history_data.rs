//! A history as the page's script reads it: its points, its series as whole numbers, and its events.

use super::choice_data::{Choice, Grouping};
use crate::record::history_point::HistoryPoint;
use crate::study::change_event::{ChangeEvent, find_change_events};
use crate::study::ratio_series::{Link, NORMAL, RatioSeries, build_ratio_series};
use serde_json::{Value, json};
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

/// The history with its series and events. `choices` are what is found in the points of one machine, or of one kind of software, or of
/// both; `notes` name what belongs to no series.
pub(super) fn history_data(history: &History<'_>) -> Value {
    let points = history.points;
    let (all, notes) = build_ratio_series(points);
    let regular: Vec<usize> = (0..points.len()).filter(|at| points[*at].bridge_to.is_none()).collect();
    let (machines, software) = (Grouping::by_machine(points), Grouping::by_software(points));
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
    // The script takes a point for a bridge if it has the key.
    if let Some(to) = bridge_to {
        data["bridge_to"] = json!(to);
    }
    data
}

/// `ratio` is that to the first reference less 1, `half` half of its 95 % interval, both in parts of 100 000; `cost` is an iteration at the
/// last point; `at` the points in which it is, if it is not in all that are no bridges.
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

/// What changed in these series. What moved is the number of its series, the change as a share, half of its 95 % interval, and the functions
/// that moved most with their difference in instructions; `profile` is what else changed: field, before, after.
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
