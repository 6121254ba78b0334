//! Estimates the undisturbed cost from values to which noise only adds.

use super::Interval;

/// The lowest third of the values (one in three) must agree; the other values are taken for noise.
const ONE_IN: usize = 3;
/// The fewest values that must agree. Three values agree by chance too often: with five values a side, a minimum of three
/// doubled the false alarms.
const FEWEST: usize = 4;

/// The floor of some values: the estimate of the undisturbed value, and how closely the lowest values agree on it.
/// Disturbances only lengthen a measurement (Chen and Revels, *Robust benchmarking in noisy environments*, 2016), so the
/// lowest values estimate the undisturbed cost better than the median. The distance between the lowest values bounds how
/// far below them the distribution may end (Robson and Whitlock, *Estimation of a truncation point*, 1964).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// The mean of the two lowest values: one alone may be a mistake or a rare mode.
    pub estimate: f64,
    /// The distance from the lowest value to the highest of the values that must agree.
    pub spread: f64,
    /// The median (of an even number of values the lower middle one).
    pub middle: f64,
}

impl Floor {
    /// The floor of values, each given with the number of its replicate; `None` without values. The lowest third of the
    /// values must agree, at least four of them. They must come from at least `replicates` replicates, or from all if
    /// there are fewer.
    pub fn from_values(values: &[(usize, f64)], replicates: usize) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        let lowest = sorted.first()?.1;
        let second = sorted.get(1).map_or(lowest, |value| value.1);
        let last = sorted[agreeing_count(&sorted, replicates) - 1].1;
        let middle = sorted[sorted.len().div_ceil(2) - 1].1;
        Some(Self { estimate: f64::midpoint(lowest, second), spread: last - lowest, middle })
    }

    /// Whether at least half of the values lie below the estimate of the other floor. If not, this floor may be a rare mode
    /// that the other side missed by chance.
    pub fn is_mostly_below(self, other: Self) -> bool {
        self.middle < other.estimate
    }

    /// The difference from this floor to another; its half-width is the larger of the two spreads.
    pub fn difference_to(self, other: Self) -> Interval {
        Interval::around(other.estimate - self.estimate, self.spread.max(other.spread))
    }
}

/// The number of lowest values that must agree. The values are given in rising order.
fn agreeing_count(sorted: &[(usize, f64)], wanted: usize) -> usize {
    let of_third = sorted.len().div_ceil(ONE_IN).max(FEWEST).min(sorted.len());
    let replicates = |count: usize| {
        let mut known: Vec<usize> = sorted[..count].iter().map(|value| value.0).collect();
        known.sort_unstable();
        known.dedup();
        known.len()
    };
    (of_third..sorted.len()).find(|&count| replicates(count) >= wanted).unwrap_or(sorted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values with replicate numbers: each replicate has three consecutive values.
    fn threes(values: &[f64]) -> Vec<(usize, f64)> {
        values.iter().enumerate().map(|(at, value)| (at / 3, *value)).collect()
    }

    #[test]
    fn values_above_the_lowest_third_do_not_count() {
        let mut values = [9.0; 15];
        for (at, low) in [(0, 1.0), (4, 1.2), (7, 1.3), (9, 1.4), (12, 1.5)] {
            values[at] = low;
        }
        let floor = Floor::from_values(&threes(&values), 3).expect("values");
        assert!((floor.estimate - 1.1).abs() < 1e-12 && (floor.spread - 0.5).abs() < 1e-12, "{floor:?}");
        values[1] = 90.0;
        assert_eq!(Floor::from_values(&threes(&values), 3), Some(floor));
    }

    #[test]
    fn a_floor_must_be_seen_in_enough_replicates() {
        let mut values = [9.0; 15];
        values[..6].fill(1.0);
        let spread = |values: &[f64], replicates| {
            Floor::from_values(&threes(values), replicates).expect("values").spread
        };
        assert_eq!((spread(&values, 2), spread(&values, 3)), (0.0, 8.0));
        values[14] = 1.0;
        assert_eq!((spread(&values, 3), spread(&values, 4)), (0.0, 8.0));
    }

    #[test]
    fn few_values_must_all_agree() {
        let floor = |values: &[f64]| {
            Floor::from_values(&threes(values), 3).map(|floor| (floor.estimate, floor.spread))
        };
        assert_eq!(floor(&[]), None);
        assert_eq!(floor(&[2.0]), Some((2.0, 0.0)));
        assert_eq!(floor(&[4.0, 2.0, 9.0]), Some((3.0, 7.0)));
    }

    #[test]
    fn a_mode_that_few_values_have_is_not_mostly_below() {
        let mut values = [5.0; 15];
        let slow = Floor::from_values(&threes(&values), 3).expect("values");
        for at in [0, 3, 4, 7, 9, 12, 13] {
            values[at] = 1.0;
        }
        assert!(!Floor::from_values(&threes(&values), 3).expect("values").is_mostly_below(slow));
        values[14] = 1.0;
        assert!(Floor::from_values(&threes(&values), 3).expect("values").is_mostly_below(slow));
    }

    #[test]
    fn a_difference_has_the_larger_of_the_two_spreads() {
        let floor = |estimate, spread| Floor { estimate, spread, middle: estimate };
        let (a, b) = (floor(1.0, 0.1), floor(3.0, 0.5));
        assert_eq!(a.difference_to(b), Interval { estimate: 2.0, low: 1.5, high: 2.5 });
        assert_eq!(b.difference_to(a), Interval { estimate: -2.0, low: -2.5, high: -1.5 });
    }
}
