//! The fall of a curve: up to some size a cache serves, beyond it does not, and the rate falls once.

use super::{Interval, median, median_interval};

/// The least ratio of the median before a fall to the median after it.
const LEAST: f64 = 1.5;
/// The fewest points on each side: a single one may be an outlier.
const FEWEST: usize = 2;
/// At most this share of the points may be on the wrong side of the middle.
const STRAYED: f64 = 0.2;

/// Where a curve falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// The last point before it.
    pub last: usize,
    /// The median before.
    pub before: Interval,
    /// The median after.
    pub after: Interval,
}

/// The one place where a curve falls most, if it falls at all. The values are those of its points from the
/// smallest size to the largest, above zero.
///
/// Two constants are fitted to the logarithms, by the sum of absolute distances, so that a bad point moves little;
/// with one change point every place can be tried.
pub fn locate_fall(values: &[f64]) -> Option<Fall> {
    let logs: Vec<f64> = values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect();
    let places = FEWEST..(values.len() + 1).saturating_sub(FEWEST);
    let cost = |at: &usize| absolute_deviation_sum(&logs[..*at]) + absolute_deviation_sum(&logs[*at..]);
    let at = places.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let (before, after) = (median(&logs[..at]), median(&logs[at..]));
    let middle = 0.5 * (before + after);
    let strayed = logs[..at].iter().filter(|log| **log < middle).count()
        + logs[at..].iter().filter(|log| **log > middle).count();
    let falls = before - after >= LEAST.ln() && strayed as f64 <= STRAYED * logs.len() as f64;
    falls.then(|| Fall {
        last: at - 1,
        before: median_interval(&values[..at]),
        after: median_interval(&values[at..]),
    })
}

fn absolute_deviation_sum(logs: &[f64]) -> f64 {
    let middle = median(logs);
    logs.iter().map(|log| (log - middle).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn noisy(values: &[f64], seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        values.iter().map(|v| v * (0.9 + 0.2 * random.number_below(1001) as f64 / 1000.0)).collect()
    }

    #[test]
    fn a_fall_is_found_where_it_is() {
        for seed in 0..50 {
            for at in 2..9 {
                let values: Vec<f64> = (0..11).map(|i| if i < at { 8.0 } else { 2.0 }).collect();
                let found = locate_fall(&noisy(&values, seed)).expect("it falls");
                assert_eq!(found.last, at - 1, "seed {seed}");
                assert!(found.before.estimate > 7.0 && found.after.estimate < 2.3, "{found:?}");
            }
        }
    }

    #[test]
    fn of_several_falls_the_deepest_is_told() {
        let values = [12.0, 12.0, 12.0, 8.0, 8.0, 8.0, 8.0, 0.5, 0.5, 0.5];
        assert_eq!(locate_fall(&values).expect("it falls").last, 6);
    }

    #[test]
    fn a_gradual_fall_is_in_its_middle_and_a_bad_point_moves_nothing() {
        let values = [10.0, 10.0, 2.1, 10.0, 10.0, 8.0, 4.0, 2.5, 2.0, 2.0, 2.0, 2.0];
        assert_eq!(locate_fall(&values).expect("it falls").last, 5);
    }

    #[test]
    fn what_stays_rises_or_is_noise_does_not_fall() {
        for seed in 0..50 {
            assert_eq!(locate_fall(&noisy(&[5.0; 12], seed)), None);
            assert_eq!(locate_fall(&noisy(&[1.0, 1.0, 1.0, 4.0, 4.0, 4.0], seed)), None);
        }
        let wild: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 1.0 } else { 9.0 }).collect();
        assert_eq!(locate_fall(&wild), None);
    }

    #[test]
    fn too_few_points_have_no_fall() {
        for values in [&[][..], &[9.0], &[9.0, 1.0], &[9.0, 9.0, 1.0]] {
            assert_eq!(locate_fall(values), None);
        }
        assert!(locate_fall(&[9.0, 9.0, 1.0, 1.0]).is_some());
    }
}
