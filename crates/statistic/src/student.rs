//! Student's t distribution, for a mean whose deviation is estimated; the incomplete beta function, of which the
//! binomial law and Student's t are special cases; and the standard normal distribution, for samples that are too
//! large for exact counting.

use super::{Interval, mean, standard_deviation};
use std::f64::consts::SQRT_2;

/// The fewest values for which [`mean_interval`] gives an interval.
pub const FEWEST: usize = 3;

/// The probability of a value above `t` in Student's t distribution (Abramowitz and Stegun 26.7.1). One half if
/// `degrees` is 0 or `t` is not a number, because nothing is known then.
pub fn student_upper_tail(t: f64, degrees: usize) -> f64 {
    if degrees == 0 || t.is_nan() {
        return 0.5;
    }
    let n = degrees as f64;
    let tail = 0.5 * incomplete_beta(n / (n + t * t), 0.5 * n, 0.5);
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// The value of t that is exceeded with probability `chance`, which is between 0 and one half. Infinite if `degrees` is 0.
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

/// A 95 % interval for the mean. `None` for fewer than [`FEWEST`] values or if a value is not finite.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < FEWEST || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let half = student_upper_quantile(0.025, values.len() - 1) * standard_deviation(values) / n.sqrt();
    Some(Interval::around(mean(values), half))
}

/// The regularised incomplete beta function Iₓ(a, b) for x between 0 and 1. It is computed on the side of its mean where
/// the continued fraction converges fast (Abramowitz and Stegun 26.5.8).
pub(super) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p() + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front.exp() / a * continued_fraction(x, a, b),
        false => 1.0 - front.exp() / b * continued_fraction(1.0 - x, b, a),
    }
}

/// The continued fraction of [`incomplete_beta`], by Lentz's method. It takes about √max(a, b) steps; libraries that stop
/// after a fixed number of steps are wrong from some 10⁴ trials on.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    let steps = 100 + 10 * a.max(b).sqrt() as u64;
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in (1..=steps).map(|m| m as f64) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            value *= c * d;
        }
        if (value / before - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

/// The probability of a standard normal value above `z`, as precise as `erfc`.
pub(super) fn normal_upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The value below which a standard normal variable falls with `probability`, by bisection to the last bit.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    bisect([-40.0, 40.0], |z| normal_upper_tail(-z) < probability)
}

/// The number between `low` and `high` at which `is_below` turns from true to false, to the last bit.
pub(super) fn bisect([mut low, mut high]: [f64; 2], is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if is_below(middle) { low = middle } else { high = middle }
    }
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
    fn both_tails_sum_to_one() {
        for degrees in [1, 2, 3, 4, 7, 50] {
            for t in [0.0, 0.3, 2.0, 9.0] {
                let both = student_upper_tail(t, degrees) + student_upper_tail(-t, degrees);
                assert!((both - 1.0).abs() < 1e-12, "{degrees} {t}");
            }
        }
    }

    #[test]
    fn without_degrees_of_freedom_the_tail_is_a_half() {
        assert_eq!(student_upper_tail(9.0, 0), 0.5);
        assert_eq!([3, 4].map(|degrees| student_upper_tail(f64::INFINITY, degrees)), [0.0; 2]);
        assert_eq!(student_upper_quantile(0.01, 0), f64::INFINITY);
    }

    #[test]
    fn the_interval_is_students() {
        // The third row of table 4 of the displacement paper has 20 replications and deviation 7.41. With
        // t(0.025, 19) = 2.093 its half-width is 3.47, but the paper prints 4.58.
        let values: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 918.0 } else { 919.0 }).collect();
        let interval = mean_interval(&values).expect("an interval");
        let half = 2.093 * standard_deviation(&values) / 20f64.sqrt();
        assert!((interval.high - interval.estimate - half).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn an_interval_of_a_mean_needs_three_finite_values() {
        assert_eq!(mean_interval(&[1.0, 2.0]), None);
        assert_eq!(mean_interval(&[1.0, f64::NAN, 2.0]), None);
    }

    #[test]
    fn an_integer_first_parameter_agrees_with_the_closed_form() {
        for (x, a) in [(0.1_f64, 1.0), (0.5, 3.0), (0.99, 40.0)] {
            assert!((incomplete_beta(x, a, 1.0) / x.powf(a) - 1.0).abs() < 1e-13, "{x} {a}");
        }
    }

    #[test]
    fn equal_parameters_give_one_half_at_one_half() {
        for a in [0.5, 7.0, 5e3, 5e6] {
            // lnΓ of 10⁷ has eight digits before the decimal point, so the difference loses eight digits of precision.
            assert!((incomplete_beta(0.5, a, a) - 0.5).abs() < 1e-6, "{a}");
        }
    }

    #[test]
    fn tails_agree_with_the_table() {
        // Abramowitz and Stegun, table 26.1 and 26.2.
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (5.0, 2.866_515_718_791_939e-7),
        ] {
            assert!((normal_upper_tail(z) / tail - 1.0).abs() < 1e-12, "{z}: {}", normal_upper_tail(z));
            assert!((normal_upper_tail(-z) - (1.0 - tail)).abs() < 1e-14, "−{z}");
        }
    }

    #[test]
    fn a_quantile_inverts_a_tail() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        for z in [-4.0, -1.5, 0.0, 0.3, 2.75] {
            assert!((normal_quantile(normal_upper_tail(-z)) - z).abs() < 1e-11, "{z}");
        }
    }
}
