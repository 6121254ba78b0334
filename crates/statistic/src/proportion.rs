//! The interval of a share, from the number of successes in a number of trials.

use super::Interval;
use super::beta::incomplete_beta;
use super::normal::bisect;

/// The share `successes` / `of` with its exact 95 % interval (Clopper and Pearson 1934): the shares that two
/// binomial tests at 2.5 % each do not reject. It covers with at least 95 %.
///
/// More successes than trials count as that many trials. No trials: anything from 0 to 1, and ½ stands for it.
pub fn proportion_interval(successes: u64, of: u64) -> Interval {
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
    bisect([0.0, 1.0], |share| incomplete_beta(share, a, b) < probability)
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
            let none = proportion_interval(0, of);
            let exact = -(0.025_f64.ln() / of as f64).exp_m1();
            assert!((none.high / exact - 1.0).abs() < 1e-9 && none.low == 0.0, "{of}: {none:?} {exact}");
        }
        assert!((proportion_interval(0, 185).high - 0.019_742_4).abs() < 1e-6);
    }

    #[test]
    fn half_of_ten_agrees_with_the_table() {
        let half = proportion_interval(5, 10);
        assert!(
            (half.low - 0.187_086_03).abs() < 1e-7 && (half.high - 0.812_913_97).abs() < 1e-7,
            "{half:?}"
        );
    }

    #[test]
    fn each_end_is_rejected_at_a_fortieth() {
        for (successes, of) in [(1, 2), (1, 30), (29, 30), (7, 50), (100, 185), (236, 240), (37, 900)] {
            let Interval { estimate, low, high } = proportion_interval(successes, of);
            assert!((at_least(successes, of, low) - 0.025).abs() < 1e-10, "{successes}/{of}: {low}");
            assert!((at_least(successes + 1, of, high) - 0.975).abs() < 1e-10, "{successes}/{of}: {high}");
            assert!(low < estimate && estimate < high);
        }
    }

    #[test]
    fn successes_and_failures_mirror() {
        for (successes, of) in [(0, 9), (3, 17), (40, 41)] {
            let (share, rest) = (proportion_interval(successes, of), proportion_interval(of - successes, of));
            assert!((share.low - (1.0 - rest.high)).abs() < 1e-14, "{share:?} {rest:?}");
        }
    }

    #[test]
    fn many_trials_come_close_to_the_normal_law() {
        let share = proportion_interval(5_000_000, 10_000_000);
        let half = 1.959_964 * (0.25_f64 / 1e7).sqrt();
        assert!((share.high - 0.5 - half).abs() < 1e-3 * half, "{share:?}");
        assert!((0.5 - share.low - half).abs() < 1e-3 * half, "{share:?}");
    }

    #[test]
    fn no_trials_say_nothing() {
        assert_eq!(proportion_interval(0, 0), Interval { estimate: 0.5, low: 0.0, high: 1.0 });
        assert_eq!(proportion_interval(9, 3), proportion_interval(3, 3));
    }
}
