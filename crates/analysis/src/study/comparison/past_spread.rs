//! Estimates the deviation between replicates of a machine from its other records.

use super::contender::is_canary;
use super::pairing::{Key, series_key};
use super::replicate::Replicate;
use super::rule::ENOUGH;
use crate::record::bundle::{Head, Run, Series};
use crate::statistic::{mean, standard_deviation};
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::environment::{Fingerprint, Weight};

/// The fewest degrees of freedom for a verdict: five records of one kernel give four.
const LEAST_DEGREES: usize = 4;

/// Whether other records are needed, because some head has too few replicates. The caller can then avoid reading a whole
/// store, which takes longer than a comparison.
pub fn needs_history(heads: &[Head]) -> bool {
    let few = |head: &Head, replicate: Replicate| {
        let keys: BTreeSet<_> = head.runs.iter().map(|run| replicate.key(run)).collect();
        keys.len() < ENOUGH
    };
    let Some((first, others)) = heads.split_first() else { return false };
    others.iter().any(|other| {
        let replicate = Replicate::for_sides(first, other);
        few(first, replicate) || few(other, replicate)
    })
}

/// The place where a process ran: index of the fingerprint, boot, session.
type Place<'a> = (usize, &'a str, &'a str);

/// Logarithms of the medians in other records, by case and by place.
#[derive(Default)]
pub(super) struct History<'a> {
    logs: BTreeMap<Key, BTreeMap<Place<'a>, Vec<f64>>>,
}

/// The variance between replicates of one case, and the data behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deviation {
    variance: f64,
    pub degrees: usize,
    /// Number of replicates.
    pub replicates: usize,
    /// Variance between the processes of one replicate; 0 if unknown.
    within: f64,
    /// Mean, over the replicates, of 1 divided by the number of processes.
    share: f64,
}

impl Deviation {
    /// The variance of a replicate with this number of processes. It is larger if the pooled replicates had more processes.
    pub(super) fn variance_for_processes(&self, processes: usize) -> f64 {
        let share = 1.0 / processes.max(1) as f64;
        self.variance + self.within * (share - self.share).max(0.0)
    }

    /// Whether the variance has enough degrees of freedom for a verdict.
    pub(super) fn has_enough_degrees(&self) -> bool {
        self.degrees >= LEAST_DEGREES
    }
}

impl<'a> History<'a> {
    /// The runs in these records of the first head's machine. A run that occurs in several records counts once. Runs of the
    /// heads do not count, because they are the ones to judge.
    pub(super) fn from_records(heads: &[Head], records: &'a [Head]) -> Self {
        let mut history = Self::default();
        let Some(first) = heads.first() else { return history };
        let mut known: BTreeSet<_> = heads.iter().flat_map(|head| head.runs.iter().map(run_key)).collect();
        let mut fingerprints: Vec<&Fingerprint> = Vec::new();
        for record in records.iter().filter(|r| r.unit == first.unit && r.scale == first.scale) {
            let places: Vec<_> = record
                .runs
                .iter()
                .map(|run| {
                    let fingerprint = record.fingerprints.get(run.fingerprint)?;
                    let counts = is_machine_of(first, fingerprint) && known.insert(run_key(run));
                    let number = counts.then(|| fingerprint_number(fingerprint, &mut fingerprints))?;
                    Some((number, run.boot.as_str(), run.session.as_str()))
                })
                .collect();
            record.series.iter().for_each(|series| history.add(series, &places));
        }
        history
    }

    fn add(&mut self, series: &Series, places: &[Option<Place<'a>>]) {
        let all = self.logs.entry(series_key(series)).or_default();
        for value in series.values.iter().filter(|value| value.median.estimate > 0.0) {
            if let Some(Some(place)) = places.get(value.run) {
                all.entry(*place).or_default().push(value.median.estimate.ln());
            }
        }
    }

    /// The deviations between replicates. If `canaries` is set, the canaries are subtracted first.
    pub(super) fn deviations(&self, replicate: Replicate, canaries: bool) -> Deviations<'_> {
        Deviations { history: self, replicate, canary: canaries.then(|| self.canary_means(replicate)) }
    }

    /// Mean logarithm of the canaries by replicate.
    fn canary_means(&self, replicate: Replicate) -> BTreeMap<Place<'a>, f64> {
        let mut sums: BTreeMap<Place<'a>, (f64, usize)> = BTreeMap::new();
        let canaries = self.logs.iter().filter(|(case, _)| is_canary(&case.0));
        for (_, places) in canaries {
            for (place, logs) in join_sessions(places, replicate) {
                let sum = sums.entry(place).or_default();
                *sum = (sum.0 + mean(&logs), sum.1 + 1);
            }
        }
        sums.into_iter().map(|(place, (sum, count))| (place, sum / count as f64)).collect()
    }
}

/// The deviations of one column.
pub(super) struct Deviations<'a> {
    history: &'a History<'a>,
    replicate: Replicate,
    canary: Option<BTreeMap<Place<'a>, f64>>,
}

impl Deviations<'_> {
    /// The deviation between replicates of this case.
    pub(super) fn deviation(&self, case: &Key) -> Option<Deviation> {
        let mut estimates = join_sessions(self.history.logs.get(case)?, self.replicate);
        if let Some(canary) = self.canary.as_ref().filter(|_| !is_canary(&case.0)) {
            estimates.retain(|place, _| canary.contains_key(place));
            estimates
                .iter_mut()
                .for_each(|(place, logs)| logs.iter_mut().for_each(|log| *log -= canary[place]));
        }
        pooled_deviation(&estimates)
    }
}

/// The key of a run. A name begins with a time, which two machines may share.
fn run_key(run: &Run) -> (&str, &str) {
    (&run.name, &run.boot)
}

fn is_machine_of(head: &Head, other: &Fingerprint) -> bool {
    let alike = |own: &Fingerprint| own.differences(other).iter().all(|d| d.weight != Weight::Incomparable);
    head.fingerprints.first().is_some_and(alike)
}

fn fingerprint_number<'a>(fingerprint: &'a Fingerprint, known: &mut Vec<&'a Fingerprint>) -> usize {
    known.iter().position(|other| *other == fingerprint).unwrap_or_else(|| {
        known.push(fingerprint);
        known.len() - 1
    })
}

/// The values by replicate. If the replicate is the boot, the sessions of each boot are joined.
fn join_sessions<'a>(
    places: &BTreeMap<Place<'a>, Vec<f64>>,
    replicate: Replicate,
) -> BTreeMap<Place<'a>, Vec<f64>> {
    let mut all: BTreeMap<Place<'a>, Vec<f64>> = BTreeMap::new();
    for (&(fingerprint, boot, session), logs) in places {
        let session = if replicate == Replicate::Session { session } else { "" };
        all.entry((fingerprint, boot, session)).or_default().extend(logs);
    }
    all
}

/// The variance between replicates of one fingerprint, pooled over fingerprints.
fn pooled_deviation(estimates: &BTreeMap<Place<'_>, Vec<f64>>) -> Option<Deviation> {
    let mut of_fingerprint: BTreeMap<usize, Vec<&Vec<f64>>> = BTreeMap::new();
    estimates.iter().for_each(|(place, logs)| of_fingerprint.entry(place.0).or_default().push(logs));
    of_fingerprint.retain(|_, replicates| replicates.len() > 1);
    let all: Vec<&Vec<f64>> = of_fingerprint.values().flatten().copied().collect();
    let squares = |values: &[f64]| standard_deviation(values).powi(2) * (values.len() - 1) as f64;
    let between = of_fingerprint
        .values()
        .map(|replicates| squares(&replicates.iter().map(|logs| mean(logs)).collect::<Vec<_>>()));
    let degrees = all.len() - of_fingerprint.len();
    let inside: usize = all.iter().map(|logs| logs.len() - 1).sum();
    (degrees > 0).then(|| Deviation {
        variance: between.sum::<f64>() / degrees as f64,
        degrees,
        replicates: all.len(),
        within: all.iter().map(|logs| squares(logs)).sum::<f64>() / inside.max(1) as f64,
        share: all.iter().map(|logs| 1.0 / logs.len() as f64).sum::<f64>() / all.len() as f64,
    })
}
