//! Compares one baseline with the first, case by case.

use super::pairing::{Contrast, Index, pair_series, series_key};
use super::past_spread::History;
use super::replicate::{Logs, Replicate, Replicates};
use super::rule::{self, ENOUGH, Rule};
use super::{Baseline, Change, LEAST_THRESHOLD, Relation, is_exact};
use crate::record::bundle::{Head, Series};
use crate::statistic::{Floor, mean, median};
use std::collections::BTreeSet;
use syscost_engine::environment::{Difference, Weight};
use syscost_engine::record::quantity::{NANOSECONDS, format_change};
use syscost_engine::record::verdict::Verdict;

/// The two sides of a column.
struct Sides<'a> {
    a: &'a Index<'a>,
    b: &'a Index<'a>,
    replicate: Replicate,
    of_a: Replicates,
    of_b: Replicates,
    canary: Option<Canary>,
}

impl<'a> Sides<'a> {
    fn new(a: &'a Index<'a>, b: &'a Index<'a>) -> Self {
        let replicate = Replicate::for_sides(a.head, b.head);
        let of_a = Replicates::new(a.head, replicate);
        let of_b = Replicates::new(b.head, replicate);
        let canary = match replicate {
            Replicate::Boot => Canary::from_sides(a, b, &of_a, &of_b),
            Replicate::Session => None,
        };
        Self { a, b, replicate, of_a, of_b, canary }
    }

    fn contrast(&self, id: &str) -> Result<Contrast, String> {
        let (x, y) = pair_series(id, self.a, self.b)?;
        let timed = self.a.head.unit == NANOSECONDS;
        let core = timed && is_frequency_known([x, y]) && !is_canary(id);
        let mut logs = [self.of_a.value_logarithms(x, core), self.of_b.value_logarithms(y, core)];
        // Known frequencies correct each value, so the canaries are not needed.
        if let Some(canary) = self.canary.as_ref().filter(|_| !core) {
            canary.subtract_from(id, &mut logs);
        }
        Ok(Contrast {
            estimates: [self.of_a.estimates(&logs[0]), self.of_b.estimates(&logs[1])],
            floors: logs.map(|logs| Floor::from_values(&logs, self.replicate.required_agreement())),
            key: series_key(x),
        })
    }

    fn relation(&self) -> Relation {
        let canary = self.canary.as_ref().map(Canary::ratio_between_sides);
        let cycle = cycle_time_ratio(self.a.head, self.b.head);
        Relation {
            replicate: self.replicate,
            replicates: [self.of_a.count, self.of_b.count],
            canary,
            cycle,
            differences: differences(self.a.head, self.b.head),
            warnings: warnings(self.a.head, self.b.head, self.replicate, [cycle, canary]),
            incomparable: incomparable_reason(self.a.head, self.b.head),
        }
    }
}

/// The relation of a baseline to the first, and its change in each case.
pub(super) fn compare(
    a: &Index<'_>,
    b: &Index<'_>,
    ids: &[&str],
    history: &History<'_>,
    rule: Rule,
) -> (Relation, Vec<Change>) {
    let sides = Sides::new(a, b);
    let relation = sides.relation();
    if let Some(obstacle) = &relation.incomparable {
        let changes = ids.iter().map(|_| incomparable_change(obstacle.clone())).collect();
        return (relation, changes);
    }
    if is_exact(a.head) {
        let changes = ids.iter().map(|id| rule::compare_exactly(a, b, id, rule));
        return (relation, changes.map(|change| change.unwrap_or_else(incomparable_change)).collect());
    }
    let contrasts: Vec<_> = ids.iter().map(|id| sides.contrast(id)).collect();
    let few: Vec<_> =
        contrasts.iter().flatten().filter(|contrast| replicated_floors(contrast).is_none()).collect();
    let deviations = history.deviations(sides.replicate, sides.canary.is_some());
    let mut few = rule::judge_rows(&few, sides.replicate, &deviations, rule).into_iter();
    let judged = |contrast: &Result<Contrast, String>| match contrast {
        Err(reason) => Some(incomparable_change(reason.clone())),
        Ok(contrast) => match replicated_floors(contrast) {
            Some(floors) => Some(rule::judge(contrast, floors, rule)),
            None => few.next(),
        },
    };
    (relation, contrasts.iter().map(judged).map(Option::unwrap_or_default).collect())
}

/// The floors of a case with enough replicates a side.
fn replicated_floors(contrast: &Contrast) -> Option<[Floor; 2]> {
    let enough = contrast.replicate_counts().iter().all(|count| *count >= ENOUGH);
    let [a, b] = contrast.floors;
    Some([a?, b?]).filter(|_| enough)
}

fn incomparable_change(reason: String) -> Change {
    Change { verdict: Verdict::Incomparable, reason: Some(reason), ..Change::default() }
}

// Canaries measure work that no kernel can change. If a canary differs between two boots, the core had another frequency or
// other load, and all other values differ by the same factor.

/// Dependent additions and multiplications in registers.
const IDS: [&str; 2] = ["known_work/add", "known_work/multiply"];

/// The mean logarithm of the canaries in each replicate, for each of both sides.
struct Canary([Vec<f64>; 2]);

impl Canary {
    /// The canaries that every replicate of both sides has measured; `None` if there are none, or if the unit is not
    /// time.
    fn from_sides(a: &Index<'_>, b: &Index<'_>, of_a: &Replicates, of_b: &Replicates) -> Option<Self> {
        if a.head.unit != NANOSECONDS {
            return None;
        }
        let pairs = IDS.iter().filter_map(|id| pair_series(id, a, b).ok());
        let complete =
            pairs.filter_map(|(x, y)| Some((replicate_means(of_a, x)?, replicate_means(of_b, y)?)));
        let (of_a, of_b): (Vec<_>, Vec<_>) = complete.unzip();
        (!of_a.is_empty()).then(|| Self([average_over_canaries(&of_a), average_over_canaries(&of_b)]))
    }

    /// Subtracts the canaries from the logarithms of a case. A canary itself stays unchanged, to show what was subtracted.
    fn subtract_from(&self, id: &str, sides: &mut [Logs; 2]) {
        if is_canary(id) {
            return;
        }
        for (logs, canary) in sides.iter_mut().zip(&self.0) {
            logs.iter_mut().for_each(|(replicate, log)| *log -= canary[*replicate]);
        }
    }

    /// The ratio of the second side's canaries to the first side's.
    fn ratio_between_sides(&self) -> f64 {
        let [a, b] = self.0.each_ref().map(|logs| mean(logs));
        (b - a).exp()
    }
}

pub(super) fn is_canary(id: &str) -> bool {
    IDS.contains(&id)
}

fn replicate_means(replicates: &Replicates, series: &crate::record::bundle::Series) -> Option<Vec<f64>> {
    let estimates = replicates.estimates(&replicates.value_logarithms(series, false));
    estimates.into_iter().map(|estimate| Some(estimate?.mean)).collect()
}

/// The mean over the canaries, for each replicate.
fn average_over_canaries(of_each: &[Vec<f64>]) -> Vec<f64> {
    let replicates = of_each.first().map_or(0, Vec::len);
    let mean = |at: usize| of_each.iter().map(|logs| logs[at]).sum::<f64>() / of_each.len() as f64;
    (0..replicates).map(mean).collect()
}

// The core's frequency, inferred beside each value from a chain of additions. Times at different frequencies are compared as
// numbers of cycles.

/// Whether every value of these series has a frequency.
fn is_frequency_known(series: [&Series; 2]) -> bool {
    series.iter().all(|series| series.values.iter().all(|value| value.core_hz.is_some()))
}

/// The ratio of the cycle time of the second side to that of the first; `None` if the unit is not time, or a side has no
/// frequency.
fn cycle_time_ratio(a: &Head, b: &Head) -> Option<f64> {
    let timed = [a, b].iter().all(|head| head.unit == NANOSECONDS);
    Some(median_frequency(a)? / median_frequency(b)?).filter(|_| timed)
}

fn median_frequency(head: &Head) -> Option<f64> {
    let values = head.series.iter().flat_map(|series| &series.values);
    let known: Vec<f64> = values.filter_map(|value| value.core_hz).collect();
    (!known.is_empty()).then(|| median(&known))
}

// The names of the sides of a comparison, and the differences between their machines.

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

/// The fields in which a machine of the first head differs from one of the other, each once, the weightiest first.
pub(super) fn differences(first: &Head, other: &Head) -> Vec<Difference> {
    let pairs = first.fingerprints.iter().flat_map(|ours| other.fingerprints.iter().map(move |o| (ours, o)));
    let mut all: Vec<Difference> = pairs.flat_map(|(ours, theirs)| ours.differences(theirs)).collect();
    all.sort_by_key(|difference| std::cmp::Reverse(difference.weight));
    let mut known = BTreeSet::new();
    all.retain(|difference| known.insert(difference.field));
    all
}

/// The reason why no case of the two heads can be compared; `None` if cases can be.
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

/// Warnings about this pair of heads. `speeds` are the ratios of the cycle times and of the canaries, second to first.
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
