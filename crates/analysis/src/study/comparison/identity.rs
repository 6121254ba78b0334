//! The names of the sides of a comparison, and the differences between their machines.

use super::replicate::Replicate;
use super::{Baseline, LEAST_THRESHOLD};
use crate::record::bundle::Head;
use std::collections::BTreeSet;
use syscost_engine::environment::{Difference, Weight};
use syscost_engine::record::quantity::{NANOSECONDS, format_change};

/// A name for each head; a name that occurs again gets a number.
pub(super) fn distinct_names(heads: &[Head]) -> Vec<String> {
    let name = |(at, head): (usize, &Head)| {
        let earlier = heads[..at].iter().filter(|other| other.name == head.name).count();
        if earlier == 0 { head.name.clone() } else { format!("{} ({})", head.name, earlier + 1) }
    };
    heads.iter().enumerate().map(name).collect()
}

pub(super) fn baseline(head: &Head, name: String) -> Baseline {
    let boots: BTreeSet<_> = head.runs.iter().map(|run| Replicate::Boot.key(run)).collect();
    let sessions: BTreeSet<_> = head.runs.iter().map(|run| Replicate::Session.key(run)).collect();
    let mut kernels: Vec<String> = Vec::new();
    for release in head.fingerprints.iter().filter_map(|fingerprint| fingerprint.kernel_release.clone()) {
        if !kernels.contains(&release) {
            kernels.push(release);
        }
    }
    Baseline {
        name,
        created: head.created,
        scale: head.scale.clone(),
        unit: head.unit.clone(),
        kernels,
        boots: boots.len(),
        sessions: sessions.len(),
        processes: head.series.iter().map(|series| series.values.len()).max().unwrap_or(0),
        relation: None,
    }
}

/// The fields in which a machine of the first head differs from one of the other: each once, the weightiest first.
pub(super) fn differences(first: &Head, other: &Head) -> Vec<Difference> {
    let pairs = first.fingerprints.iter().flat_map(|ours| other.fingerprints.iter().map(move |o| (ours, o)));
    let mut all: Vec<Difference> = pairs.flat_map(|(ours, theirs)| ours.differences(theirs)).collect();
    all.sort_by_key(|difference| std::cmp::Reverse(difference.weight));
    let mut known = BTreeSet::new();
    all.retain(|difference| known.insert(difference.field));
    all
}

/// Why no case of the two can be compared.
pub(super) fn incomparable_reason(first: &Head, other: &Head) -> Option<String> {
    if first.unit != other.unit {
        return Some(format!(
            "another unit: {} counts {}, {} {}",
            first.name, first.unit, other.name, other.unit
        ));
    }
    let found = differences(first, other).into_iter().find(|d| d.weight == Weight::Incomparable)?;
    Some(format!(
        "another machine or build: {} is {} in {}, {} in {}",
        found.field, found.ours, first.name, found.theirs, other.name
    ))
}

/// Warnings about this pair of heads; `speeds` are the time of a cycle and the canaries, of the second over the first.
pub(super) fn warnings(
    first: &Head,
    other: &Head,
    replicate: Replicate,
    speeds: [Option<f64>; 2],
) -> Vec<String> {
    let mut said = Vec::new();
    let runs: BTreeSet<_> = first.runs.iter().map(|run| &run.name).collect();
    let common = other.runs.iter().filter(|run| runs.contains(&run.name)).count();
    if common > 0 {
        said.push(format!("{common} of its runs are also in {}", first.name));
    }
    if first.scale != other.scale {
        said.push(format!(
            "measured at another scale: {}, and {} at {}",
            other.scale, first.name, first.scale
        ));
    }
    let [cycle, canary] = speeds;
    match cycle.or(canary) {
        Some(ratio) if cycle.is_some() && ratio.ln().abs() > LEAST_THRESHOLD.ln_1p() => said.push(format!(
            "a cycle of its core differs by {}: taken off every change, though what waits for memory does not follow \
             the core",
            format_change(ratio)
        )),
        Some(ratio) if ratio.ln().abs() > LEAST_THRESHOLD.ln_1p() => said.push(format!(
            "its canaries, which no kernel can change, differ by {}: the core's frequency was another; \
             taken off every change",
            format_change(ratio)
        )),
        None if replicate == Replicate::Boot && first.unit == NANOSECONDS => said.push(
            "known_work is not on both sides: a change of the core's frequency is not taken off".to_owned(),
        ),
        _ => {}
    }
    said
}
