//! The confidence interval of a share: from successes and trials, or from correlated samples by batch means.

use super::Interval;
use super::student::{bisect, incomplete_beta, mean_interval};

/// The share `successes` / `of` with its exact 95 % interval (Clopper and Pearson 1934): the shares that two
/// binomial tests at 2.5 % each do not reject. Its coverage is at least 95 %.
///
/// If `successes` exceeds `of`, it counts as `of`. Without trials the interval is 0 to 1, with the estimate ½.
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

/// The share at which the incomplete beta function reaches `probability`, by bisection to the last bit.
fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    bisect([0.0, 1.0], |share| incomplete_beta(share, a, b) < probability)
}

/// The fewest batches that a series is cut into; a short series can have almost twice as many. With 16 batches Student's
/// factor is 2.13, near its limit for many batches. Successive batches are nearly independent if a batch is much longer
/// than a state lasts.
const BATCHES: usize = 16;

/// The share of `true` in a series of samples, with a 95 % interval.
///
/// For independent samples the binomial interval is right. If a state outlasts the time between two samples, the samples
/// are correlated and that interval is too narrow. So the series is also cut into batches, whose means spread more the
/// more their samples are correlated (batch means: Conway 1963). The function returns the wider of the two intervals. A
/// series that never changes, or has fewer samples than batches, has only the binomial interval.
pub fn proportion_of_series(samples: &[bool]) -> Interval {
    let share = |of: &[bool]| of.iter().filter(|so| **so).count();
    let alone = proportion_interval(share(samples) as u64, samples.len() as u64);
    let length = samples.len() / BATCHES;
    if length == 0 {
        return alone;
    }
    // Samples after the last whole batch count in the estimate but not in its spread.
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

    /// The binomial probability of at least `successes`, term by term. It uses logarithms, as the first term may be 10⁻³³⁰.
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
    fn five_of_ten_agrees_with_the_table() {
        let half = proportion_interval(5, 10);
        assert!(
            (half.low - 0.187_086_03).abs() < 1e-7 && (half.high - 0.812_913_97).abs() < 1e-7,
            "{half:?}"
        );
    }

    #[test]
    fn each_end_has_a_tail_of_one_fortieth() {
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
    fn without_trials_the_interval_is_zero_to_one() {
        assert_eq!(proportion_interval(0, 0), Interval { estimate: 0.5, low: 0.0, high: 1.0 });
        assert_eq!(proportion_interval(9, 3), proportion_interval(3, 3));
    }

    /// Samples of a state that is on for a third of the time and is drawn anew after each sample with probability 1/`lasts`.
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
    fn independent_samples_are_covered() {
        let covered = covered(1, proportion_of_series);
        assert!((188..=200).contains(&covered), "{covered}");
    }

    #[test]
    fn correlated_samples_are_covered_too() {
        let binomial = |samples: &[bool]| {
            proportion_interval(samples.iter().filter(|so| **so).count() as u64, samples.len() as u64)
        };
        let (blind, seeing) = (covered(8, binomial), covered(8, proportion_of_series));
        // The true deviation is √15 times the binomial one, so the binomial interval holds the truth in four of ten cases.
        assert!(blind < 100, "{blind}");
        assert!((180..=200).contains(&seeing), "{seeing}");
    }

    #[test]
    fn a_constant_series_has_the_exact_interval() {
        for so in [false, true] {
            let all = vec![so; 64];
            assert_eq!(proportion_of_series(&all), proportion_interval(if so { 64 } else { 0 }, 64));
        }
        assert_eq!(proportion_of_series(&[true, false]), proportion_interval(1, 2));
        assert_eq!(proportion_of_series(&[]), proportion_interval(0, 0));
    }
}
