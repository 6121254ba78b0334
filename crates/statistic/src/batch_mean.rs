//! The interval of a share in a series of correlated samples, by batch means.

use super::student::mean_interval;
use super::{Interval, proportion_interval};

/// Batches that a series is cut into, at least, and not quite twice as many where it is short: with 16 Student's factor
/// is 2.13, near what it is with any number. A batch hardly knows of the one before if a state lasts for far fewer
/// samples than it has.
const BATCHES: usize = 16;

/// The share of `true` in a series of samples, with a 95 % interval.
///
/// Samples that stand for themselves have the interval of the binomial law. Those of a state that outlasts the time
/// from one to the next do not: two of them say little more than one. So the series is cut into batches, whose means
/// spread as wide as their samples depend on each other (batch means: Conway 1963), and the wider of both intervals is
/// the answer. A series that never changes, or is shorter than a batch each, has the first only.
pub fn proportion_of_series(samples: &[bool]) -> Interval {
    let share = |of: &[bool]| of.iter().filter(|so| **so).count();
    let alone = proportion_interval(share(samples) as u64, samples.len() as u64);
    let length = samples.len() / BATCHES;
    if length == 0 {
        return alone;
    }
    // What is left over by whole batches counts in the estimate, and not in its spread.
    let means = samples.chunks_exact(length).map(|batch| share(batch) as f64 / length as f64);
    let Some(batches) = mean_interval(&means.collect::<Vec<_>>()) else { return alone };
    let half = 0.5 * (batches.high - batches.low);
    Interval {
        estimate: alone.estimate,
        low: alone.low.min(alone.estimate - half).max(0.0),
        high: alone.high.max(alone.estimate + half).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// A state that is on for a third of the time, and is drawn anew after a sample with the chance 1/`lasts`.
    fn series(random: &mut Random, lasts: usize, samples: usize) -> Vec<bool> {
        let draw = |random: &mut Random| random.number_below(3) == 0;
        let mut state = draw(random);
        let mut next = || {
            if random.number_below(lasts) == 0 {
                state = draw(random);
            }
            state
        };
        (0..samples).map(|_| next()).collect()
    }

    /// The number of intervals, of 200 series, that contain the truth.
    fn covered(lasts: usize, interval: impl Fn(&[bool]) -> Interval) -> usize {
        let mut random = Random::new(11);
        let holds = |interval: Interval| interval.low <= 1.0 / 3.0 && 1.0 / 3.0 <= interval.high;
        (0..200).filter(|_| holds(interval(&series(&mut random, lasts, 4096)))).count()
    }

    #[test]
    fn samples_that_stand_for_themselves_are_covered() {
        let covered = covered(1, proportion_of_series);
        assert!((188..=200).contains(&covered), "{covered}");
    }

    #[test]
    fn samples_that_are_alike_are_covered_too() {
        let binomial = |samples: &[bool]| {
            proportion_interval(samples.iter().filter(|so| **so).count() as u64, samples.len() as u64)
        };
        let (blind, seeing) = (covered(8, binomial), covered(8, proportion_of_series));
        // The deviation is √15 times the binomial one: its interval holds the truth in four of ten.
        assert!(blind < 100, "{blind}");
        assert!((180..=200).contains(&seeing), "{seeing}");
    }

    #[test]
    fn what_never_changes_has_the_exact_interval() {
        for so in [false, true] {
            let all = vec![so; 64];
            assert_eq!(proportion_of_series(&all), proportion_interval(if so { 64 } else { 0 }, 64));
        }
        assert_eq!(proportion_of_series(&[true, false]), proportion_interval(1, 2));
        assert_eq!(proportion_of_series(&[]), proportion_interval(0, 0));
    }
}
