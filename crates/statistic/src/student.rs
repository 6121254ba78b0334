//! Student's t distribution, for a mean whose deviation is estimated.

use super::beta::incomplete_beta;
use super::{Interval, mean, standard_deviation};

/// The fewest values for an interval.
pub const FEWEST: usize = 3;

/// The probability of a value above `t` (Abramowitz and Stegun 26.7.1). One half if there is no degree of freedom
/// or `t` is not a number, because nothing is known then.
pub fn student_upper_tail(t: f64, degrees: usize) -> f64 {
    if degrees == 0 || t.is_nan() {
        return 0.5;
    }
    let n = degrees as f64;
    let tail = 0.5 * incomplete_beta(n / (n + t * t), 0.5 * n, 0.5);
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// The value that is exceeded with probability `chance`, which is between 0 and one half. Infinite without a degree of
/// freedom.
pub fn student_upper_quantile(chance: f64, degrees: usize) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while student_upper_tail(high, degrees) > chance && high < 1e12 {
        high *= 2.0;
    }
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        if student_upper_tail(middle, degrees) > chance { low = middle } else { high = middle }
    }
    high
}

/// A 95 % interval for the mean. `None` below [`FEWEST`] values.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < FEWEST || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let half = student_upper_quantile(0.025, values.len() - 1) * standard_deviation(values) / n.sqrt();
    Some(Interval::around(mean(values), half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        // NIST/SEMATECH handbook, table 1.3.6.7.2.
        let table = [(0.025, 1, 12.706), (0.025, 2, 4.303), (0.025, 9, 2.262), (0.01, 4, 3.747)];
        let more = [(0.01, 5, 3.365), (0.001, 10, 4.144), (0.025, 30, 2.042), (0.005, 100, 2.626)];
        for (chance, degrees, t) in table.into_iter().chain(more) {
            let found = student_upper_quantile(chance, degrees);
            assert!((found - t).abs() < 0.001, "{chance} {degrees}: {found}");
        }
        assert!((student_upper_quantile(0.025, 1_000_000) - 1.960).abs() < 0.001);
    }

    #[test]
    fn both_sides_make_one() {
        for degrees in [1, 2, 3, 4, 7, 50] {
            for t in [0.0, 0.3, 2.0, 9.0] {
                let both = student_upper_tail(t, degrees) + student_upper_tail(-t, degrees);
                assert!((both - 1.0).abs() < 1e-12, "{degrees} {t}");
            }
        }
    }

    #[test]
    fn without_a_degree_of_freedom_nothing_is_known() {
        assert_eq!(student_upper_tail(9.0, 0), 0.5);
        assert_eq!([3, 4].map(|degrees| student_upper_tail(f64::INFINITY, degrees)), [0.0; 2]);
        assert_eq!(student_upper_quantile(0.01, 0), f64::INFINITY);
    }

    #[test]
    fn the_interval_is_students() {
        // The third row of table 4 of the displacement paper: 20 replications, deviation 7.41: t(0.025, 19) = 2.093
        // gives 3.47, and it says 4.58.
        let values: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 918.0 } else { 919.0 }).collect();
        let interval = mean_interval(&values).expect("an interval");
        let half = 2.093 * standard_deviation(&values) / 20f64.sqrt();
        assert!((interval.high - interval.estimate - half).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn a_mean_takes_three_numbers() {
        assert_eq!(mean_interval(&[1.0, 2.0]), None);
        assert_eq!(mean_interval(&[1.0, f64::NAN, 2.0]), None);
    }
}
