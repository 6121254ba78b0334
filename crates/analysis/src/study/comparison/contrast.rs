//! The estimates of a case on both sides, and its value on one.

use super::replicate::{Estimate, Replicate, Replicates};
use crate::record::bundle::{Head, Series};
use crate::statistic::Floor;
use syscost_engine::record::Interval;

/// A case on both sides.
pub(super) struct Contrast {
    /// One entry for each replicate, of the first side and of the second.
    pub estimates: [Vec<Option<Estimate>>; 2],
    /// The floor of all processes of a side, of the first and of the second.
    pub floors: [Option<Floor>; 2],
    /// The key by which the same series is found in other records.
    pub key: Key,
}

/// The key of a series: id, version, clock, peer.
pub(super) type Key = (String, String, String, Option<String>);

pub(super) fn series_key(series: &Series) -> Key {
    (series.id.clone(), series.version.clone(), series.clock.clone(), series.peer.clone())
}

impl Contrast {
    /// The mean over the replicates of the second side less that of the first.
    pub(super) fn mean_difference(&self) -> f64 {
        let sums =
            self.estimates.each_ref().map(|side| side.iter().flatten().map(|one| one.mean).sum::<f64>());
        let [of_a, of_b] = self.replicate_counts();
        sums[1] / of_b as f64 - sums[0] / of_a as f64
    }

    pub(super) fn replicate_counts(&self) -> [usize; 2] {
        self.estimates.each_ref().map(|side| side.iter().flatten().count())
    }
}

/// The value of a case on one side: the floor over its processes, or the interval of a single process.
pub(super) fn case_value(head: &Head, series: &Series) -> Option<Interval> {
    if series.values.iter().any(|value| value.median.estimate <= 0.0) {
        return mean_with_range(series);
    }
    if let [only] = series.values.as_slice() {
        return Some(only.median);
    }
    let logs = Replicates::new(head, Replicate::Session).value_logarithms(series, false);
    let floor = Floor::from_values(&logs, Replicate::Session.required_agreement())?;
    Some(Interval::around(floor.estimate, floor.spread).map(f64::exp))
}

/// The range of the executions' values, around their mean.
pub(super) fn case_range(series: &Series) -> Option<Interval> {
    let ends = series.values.iter().flat_map(|value| [value.median.low, value.median.high]);
    let (low, high) = (ends.clone().reduce(f64::min)?, ends.reduce(f64::max)?);
    Some(Interval { low, high, ..mean_with_range(series)? })
}

/// A count may be zero, which has no logarithm: the mean and range of the processes' values.
fn mean_with_range(series: &Series) -> Option<Interval> {
    let values = series.values.iter().map(|value| value.median.estimate);
    let (low, high) = (values.clone().reduce(f64::min)?, values.clone().reduce(f64::max)?);
    Some(Interval { estimate: values.sum::<f64>() / series.values.len() as f64, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::comparison::fixture_head::head;

    #[test]
    fn a_value_is_a_floor() {
        let mut five = head("x", 5, 1);
        let values = [150.0, 104.0, 100.0, 130.0, 104.0];
        five.series[0].values.iter_mut().zip(values).for_each(|(value, new)| value.median.estimate = new);
        let value = case_value(&five, &five.series[0]).expect("a value");
        assert!((value.estimate - 10_400_f64.sqrt()).abs() < 1e-9, "{value:?}");
        assert!((value.high / value.estimate - 1.3).abs() < 1e-9, "four of five must agree: {value:?}");
    }

    #[test]
    fn one_process_has_its_own_interval() {
        let one = head("x", 1, 1);
        let found = case_value(&one, &one.series[0]).expect("a value");
        assert_eq!(found, Interval { estimate: 100.0, low: 99.0, high: 101.0 });
    }

    #[test]
    fn a_count_of_nothing_is_a_value() {
        let mut counted = head("x", 2, 1);
        counted.series[0].values.iter_mut().for_each(|value| value.median = Interval::default());
        assert_eq!(case_value(&counted, &counted.series[0]), Some(Interval::default()));
    }
}
