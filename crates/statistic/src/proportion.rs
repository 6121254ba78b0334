//! The interval of a share: from the number of successes in a number of trials, or of correlated samples by batch means.

use super::Interval;
use super::student::{bisect, incomplete_beta, mean_interval};

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
