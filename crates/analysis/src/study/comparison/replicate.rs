//! The replicate: a boot, or a session of one boot. The processes of a replicate share the state of the machine, so
//! together they give one estimate.

use crate::record::bundle::{Head, Run, Series, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The unit of replication of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replicate {
    /// The two sides ran in different boots, perhaps of different kernels.
    Boot,
    /// All processes ran in one boot.
    Session,
}

impl Replicate {
    /// The replicate for these two sides: sessions if all ran in one known boot, else boots.
    pub fn for_sides(a: &Head, b: &Head) -> Self {
        let mut boots = a.runs.iter().chain(&b.runs).map(|run| run.boot.as_str());
        let first = boots.next().unwrap_or_default();
        if !first.is_empty() && boots.all(|boot| boot == first) { Self::Session } else { Self::Boot }
    }

    /// The name of the unit, in the singular or plural by `count`.
    pub fn name(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Boot, 1) => "boot",
            (Self::Boot, _) => "boots",
            (Self::Session, 1) => "session",
            (Self::Session, _) => "sessions",
        }
    }

    /// The number of replicates that must agree on a floor. Sessions of one boot differ by noise, which only adds time. Boots
    /// need one more, because each boot has one random layout, and two or three fast boots may agree by chance.
    pub(super) fn required_agreement(self) -> usize {
        match self {
            Self::Boot => 4,
            Self::Session => 3,
        }
    }

    /// The key of the replicate of a run. Runs without a recorded boot count as one boot, because they could be of one.
    pub(super) fn key(self, run: &Run) -> (&str, &str) {
        match self {
            Self::Boot => (&run.boot, ""),
            Self::Session => (&run.boot, &run.session),
        }
    }
}

/// The estimate of a case by one replicate, as a logarithm, so that differences are ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The mean of the logarithms of the processes' values.
    pub mean: f64,
    /// Number of processes.
    pub processes: usize,
}

/// The logarithm of each process's value, with the number of its replicate.
pub(super) type Logs = Vec<(usize, f64)>;

/// The replicates of a head, numbered in the order in which they first ran.
pub(super) struct Replicates {
    of_run: Vec<usize>,
    pub count: usize,
}

impl Replicates {
    pub(super) fn new(head: &Head, replicate: Replicate) -> Self {
        let mut known = BTreeMap::new();
        let number = |run| {
            let next = known.len();
            *known.entry(replicate.key(run)).or_insert(next)
        };
        let of_run = head.runs.iter().map(number).collect();
        Self { of_run, count: known.len() }
    }

    /// The logarithms of a series' values. If `core` is set and all frequencies are known, they are at one core frequency.
    pub(super) fn value_logarithms(&self, series: &Series, core: bool) -> Logs {
        let log = |value: &Value| {
            let cycles = value.core_hz.filter(|_| core).map_or(0.0, f64::ln);
            Some((*self.of_run.get(value.run)?, value.median.estimate.ln() + cycles))
        };
        series.values.iter().filter_map(log).collect()
    }

    /// The estimate of each replicate; `None` for a replicate that did not measure the case.
    pub(super) fn estimates(&self, logs: &Logs) -> Vec<Option<Estimate>> {
        let mut sums = vec![(0.0, 0); self.count];
        for (replicate, log) in logs {
            sums[*replicate].0 += log;
            sums[*replicate].1 += 1;
        }
        let estimate = |(sum, processes)| Estimate { mean: sum / processes as f64, processes };
        sums.into_iter().map(|sum| (sum.1 > 0).then(|| estimate(sum))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::comparison::fixture_head::head;

    #[test]
    fn one_known_boot_is_compared_by_sessions_and_other_heads_by_boots() {
        let sides = |a: &[&str], b: &[&str]| {
            let head = |boots: &[&str]| {
                let mut head = head("x", boots.len(), 1);
                head.runs.iter_mut().zip(boots).for_each(|(run, boot)| run.boot = (*boot).into());
                head
            };
            Replicate::for_sides(&head(a), &head(b))
        };
        assert_eq!(sides(&["1", "1"], &["1"]), Replicate::Session);
        assert_eq!(sides(&["1", "2"], &["1"]), Replicate::Boot);
        assert_eq!(sides(&["1"], &["2"]), Replicate::Boot);
        assert_eq!(sides(&[""], &[""]), Replicate::Boot, "two unknown boots may be two");
    }

    #[test]
    fn processes_of_one_boot_are_one_replicate() {
        let mut two = head("x", 2, 3);
        two.series[0].values.pop();
        let replicates = Replicates::new(&two, Replicate::Boot);
        let estimates = replicates.estimates(&replicates.value_logarithms(&two.series[0], false));
        let processes: Vec<_> = estimates.iter().flatten().map(|word| word.processes).collect();
        assert_eq!((replicates.count, processes), (2, vec![3, 2]));
    }

    #[test]
    fn unknown_boots_are_one() {
        let mut unknown = head("x", 4, 1);
        unknown.runs.iter_mut().for_each(|run| run.boot.clear());
        assert_eq!(Replicates::new(&unknown, Replicate::Boot).count, 1);
    }
}
