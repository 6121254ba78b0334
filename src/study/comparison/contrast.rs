//! The estimates of a case on both sides, and its value on one.

use super::replicate::{Estimate, Replicate, Replicates};
use crate::record::Interval;
use crate::record::bundle::{Head, Series};
use crate::statistic::{standard_deviation, student_quantile_above};

/// A case on both sides, one entry for each replicate.
pub(super) struct Contrast {
    pub a: Vec<Option<Estimate>>,
    pub b: Vec<Option<Estimate>>,
    /// The key by which the same series is found in other records.
    pub key: Key,
}

/// The key of a series: id, version, clock, peer.
pub(super) type Key = (String, String, String, Option<String>);

pub(super) fn key(series: &Series) -> Key {
    (series.id.clone(), series.version.clone(), series.clock.clone(), series.peer.clone())
}

impl Contrast {
    /// The mean of each replicate: of the first side, and of the second.
    pub(super) fn means(&self) -> (Vec<f64>, Vec<f64>) {
        let means = |estimates: &[Option<Estimate>]| {
            estimates.iter().flatten().map(|estimate| estimate.mean).collect()
        };
        (means(&self.a), means(&self.b))
    }

    /// One entry for each replicate of both sides, NaN where the case was not measured.
    pub(super) fn row(&self) -> Vec<f64> {
        self.a
            .iter()
            .chain(&self.b)
            .map(|estimate| estimate.map_or(f64::NAN, |estimate| estimate.mean))
            .collect()
    }

    pub(super) fn replicates(&self) -> [usize; 2] {
        [&self.a, &self.b].map(|estimates| estimates.iter().flatten().count())
    }
}

/// The geometric mean of a case with its 95 % interval, over boots if there are several, else over sessions, else over
/// processes.
pub(super) fn value(head: &Head, series: &Series) -> Option<Interval> {
    if series.values.iter().any(|value| value.median.estimate <= 0.0) {
        return zero(series);
    }
    let estimates = |replicate| -> Vec<f64> {
        let estimates = Replicates::of(head, replicate).estimates(series);
        estimates.into_iter().flatten().map(|estimate| estimate.mean).collect()
    };
    let processes = || series.values.iter().map(|value| value.median.estimate.ln()).collect();
    let levels = [estimates(Replicate::Boot), estimates(Replicate::Session), processes()];
    let several = levels.into_iter().find(|logs| logs.len() > 1);
    match several {
        Some(logs) => Some(geometric(&logs)),
        None => series.values.first().map(|value| value.median),
    }
}

fn geometric(logs: &[f64]) -> Interval {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let half = student_quantile_above(0.025, logs.len() - 1) * standard_deviation(logs) / n.sqrt();
    Interval::around(mean, half).map(f64::exp)
}

/// A count may be zero, which has no logarithm: the mean and range of the processes' values.
fn zero(series: &Series) -> Option<Interval> {
    let values = series.values.iter().map(|value| value.median.estimate);
    let (low, high) = (values.clone().reduce(f64::min)?, values.clone().reduce(f64::max)?);
    Some(Interval { estimate: values.sum::<f64>() / series.values.len() as f64, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::comparison::fixture_head::{disturb, head};

    #[test]
    fn a_value_is_a_geometric_mean() {
        let mut two = head("x", 2, 1);
        two.series[0].values[0].median.estimate = 50.0;
        two.series[0].values[1].median.estimate = 200.0;
        let value = value(&two, &two.series[0]).expect("a value");
        assert!((value.estimate - 100.0).abs() < 1e-9);
        assert!(value.low < 50.0 && value.high > 200.0, "two boots say little: {value:?}");
    }

    #[test]
    fn one_process_has_its_own_interval() {
        let one = head("x", 1, 1);
        let found = value(&one, &one.series[0]).expect("a value");
        assert_eq!(found, Interval { estimate: 100.0, low: 99.0, high: 101.0 });
    }

    #[test]
    fn the_interval_is_that_of_the_boots_and_not_of_their_processes() {
        let mut disturbed = head("x", 5, 20);
        disturb(&mut disturbed, 0.05, 0.001, 3);
        let value = value(&disturbed, &disturbed.series[0]).expect("a value");
        assert!(value.high / value.low > 1.03, "{value:?}");
    }

    #[test]
    fn a_count_of_nothing_is_a_value() {
        let mut counted = head("x", 2, 1);
        counted.series[0].values.iter_mut().for_each(|value| value.median = Interval::default());
        assert_eq!(value(&counted, &counted.series[0]), Some(Interval::default()));
    }
}
