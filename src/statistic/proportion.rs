//! How large a share may be, given how often something happened.

use super::Interval;

/// The share `successes` / `of` with its exact 95 % interval (Clopper and Pearson 1934): the shares that two
/// binomial tests at 2.5 % each do not reject. It covers with at least 95 %.
///
/// More successes than trials count as that many trials. No trials: anything from 0 to 1, and ½ stands for it.
pub fn proportion(successes: u64, of: u64) -> Interval {
    if of == 0 {
        return Interval { estimate: 0.5, low: 0.0, high: 1.0 };
    }
    let successes = successes.min(of);
    let (hits, misses) = (successes as f64, (of - successes) as f64);
    Interval {
        estimate: hits / of as f64,
        low: if successes == 0 { 0.0 } else { beta_quantile(0.025, hits, misses + 1.0) },
        high: if successes == of { 1.0 } else { beta_quantile(0.975, hits + 1.0, misses) },
    }
}

/// The share at which the incomplete beta function reaches `probability`: by bisection, until no number lies
/// between the two ends.
fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if incomplete_beta(middle, a, b) < probability { low = middle } else { high = middle }
    }
}

/// The regularised incomplete beta function Iₓ(a, b), for x within 0 and 1: on the side of its mean where the
/// continued fraction converges fast (Abramowitz and Stegun 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front.exp() / a * fraction(x, a, b),
        false => 1.0 - front.exp() / b * fraction(1.0 - x, b, a),
    }
}

/// The continued fraction itself, by Lentz's method. It takes some √max(a, b) steps.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
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

/// The logarithm of the gamma function for x > 0: Stirling's series (Abramowitz and Stegun 6.1.41), which is
/// good to the last digits from 10 on, and below it the recurrence.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    const COEFFICIENTS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum / (x * x) + c) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The binomial tail of at least `successes`, term by term; in logarithms, since the first may be 10⁻³³⁰.
    fn at_least(successes: u64, of: u64, share: f64) -> f64 {
        let mut ln_term = of as f64 * (-share).ln_1p();
        let mut below = 0.0;
        for k in 0..successes {
            below += ln_term.exp();
            ln_term += ((of - k) as f64 / (k + 1) as f64 * share / (1.0 - share)).ln();
        }
        1.0 - below
    }

    #[test]
    fn never_in_so_many_times_is_the_rule_of_three_made_exact() {
        for of in [1, 10, 185, 1000, 1_000_000] {
            let none = proportion(0, of);
            let exact = -(0.025_f64.ln() / of as f64).exp_m1();
            assert!((none.high / exact - 1.0).abs() < 1e-9 && none.low == 0.0, "{of}: {none:?} {exact}");
        }
        assert!((proportion(0, 185).high - 0.019_742_4).abs() < 1e-6);
    }

    #[test]
    fn half_of_ten_agrees_with_the_table() {
        let half = proportion(5, 10);
        assert!(
            (half.low - 0.187_086_03).abs() < 1e-7 && (half.high - 0.812_913_97).abs() < 1e-7,
            "{half:?}"
        );
    }

    #[test]
    fn each_end_is_rejected_at_a_fortieth() {
        for (successes, of) in [(1, 2), (1, 30), (29, 30), (7, 50), (100, 185), (236, 240), (37, 900)] {
            let Interval { estimate, low, high } = proportion(successes, of);
            assert!((at_least(successes, of, low) - 0.025).abs() < 1e-10, "{successes}/{of}: {low}");
            assert!((at_least(successes + 1, of, high) - 0.975).abs() < 1e-10, "{successes}/{of}: {high}");
            assert!(low < estimate && estimate < high);
        }
    }

    #[test]
    fn successes_and_failures_mirror() {
        for (successes, of) in [(0, 9), (3, 17), (40, 41)] {
            let (share, rest) = (proportion(successes, of), proportion(of - successes, of));
            assert!((share.low - (1.0 - rest.high)).abs() < 1e-14, "{share:?} {rest:?}");
        }
    }

    #[test]
    fn many_trials_come_close_to_the_normal_law() {
        let share = proportion(5_000_000, 10_000_000);
        let half = 1.959_964 * (0.25_f64 / 1e7).sqrt();
        assert!((share.high - 0.5 - half).abs() < 1e-3 * half, "{share:?}");
        assert!((0.5 - share.low - half).abs() < 1e-3 * half, "{share:?}");
    }

    #[test]
    fn no_trials_say_nothing() {
        assert_eq!(proportion(0, 0), Interval { estimate: 0.5, low: 0.0, high: 1.0 });
        assert_eq!(proportion(9, 3), proportion(3, 3));
    }

    #[test]
    fn gamma_agrees_with_factorials() {
        let mut ln_factorial = 0.0;
        for n in 1..40 {
            ln_factorial += f64::from(n).ln();
            assert!(
                (ln_gamma(f64::from(n) + 1.0) - ln_factorial).abs() < 1e-13 * ln_factorial.max(1.0),
                "{n}"
            );
        }
    }
}
