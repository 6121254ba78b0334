//! The rule of two processes, by which benchmark harnesses usually compare a run with the previous run. It uses the
//! samples of one process a side and ignores the variance between processes, so it finds changes where there are none.
//! It serves only as a comparison for rules that take many processes into account.

use super::{Random, mean, percentile};

/// The verdict of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The new mean is the smaller.
    Faster,
    /// The new mean is the greater.
    Slower,
    /// No change was found.
    None,
}

/// The p-value below which a difference of the means is significant.
const SIGNIFICANCE: f64 = 0.05;

/// The distance from 0 that the whole interval of a significant relative change must exceed to count as a change.
const NOISE: f64 = 0.01;

/// The percentiles of the resampled relative changes that bound their interval.
const INTERVAL: (f64, f64) = (2.5, 97.5);

/// Compares two samples of times by the rule of two processes, as Criterion 0.8 has it by default: a two-sided
/// p-value of Welch's t from the bootstrap of the pooled sample, and the relative change of the mean,
/// new / old − 1, with its percentile interval from the bootstrap of each sample (Efron and Tibshirani, *An
/// Introduction to the Bootstrap*, 16.2 and 13.3). Criterion takes 100,000 resamples, which cost 0.15 s for 100 + 100
/// values. Returns [`Change::None`] for fewer than two values a side or without resamples.
pub fn change_between(old: &[f64], new: &[f64], resamples: usize, seed: u64) -> Change {
    let mut random = Random::new(seed);
    if old.len().min(new.len()) < 2 || p_value(old, new, resamples, &mut random) >= SIGNIFICANCE {
        return Change::None;
    }
    let changes = relative_changes(old, new, resamples, &mut random);
    let (low, high) = (percentile(&changes, INTERVAL.0), percentile(&changes, INTERVAL.1));
    match () {
        () if high < -NOISE => Change::Faster,
        () if low > NOISE => Change::Slower,
        () => Change::None,
    }
}

/// The two-sided p-value: twice the smaller of the shares of resampled t values below and not below the observed t.
/// 1 if no resampled t is finite.
fn p_value(old: &[f64], new: &[f64], resamples: usize, random: &mut Random) -> f64 {
    let observed = welch_t(new, old);
    let pool = [new, old].concat();
    let mut resample = pool.clone();
    let (mut all, mut below) = (0_usize, 0_usize);
    for _ in 0..resamples {
        draw_resample(&pool, &mut resample, random);
        let (as_new, as_old) = resample.split_at(new.len());
        let t = welch_t(as_new, as_old);
        all += usize::from(t.is_finite());
        below += usize::from(t.is_finite() && t < observed);
    }
    if all == 0 { 1.0 } else { 2.0 * below.min(all - below) as f64 / all as f64 }
}

/// The relative changes of the mean between resamples of both sides. Each of about √resamples resamples of the new
/// side is compared with a row of √resamples of the old side. This saves work, but the changes are not independent.
fn relative_changes(old: &[f64], new: &[f64], resamples: usize, random: &mut Random) -> Vec<f64> {
    let row = resamples.div_ceil((resamples as f64).sqrt().ceil().max(1.0) as usize).max(1);
    let (mut from_old, mut from_new) = (old.to_vec(), new.to_vec());
    let mut changes = Vec::with_capacity(resamples);
    for at in 0..resamples {
        if at % row == 0 {
            draw_resample(new, &mut from_new, random);
        }
        draw_resample(old, &mut from_old, random);
        changes.push(mean(&from_new) / mean(&from_old) - 1.0);
    }
    changes
}

/// Fills `resample` from `sample`, with replacement.
pub(super) fn draw_resample(sample: &[f64], resample: &mut [f64], random: &mut Random) {
    resample.iter_mut().for_each(|value| *value = sample[random.number_below(sample.len())]);
}

/// The difference of the means in units of its standard error (Welch 1947).
fn welch_t(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let squared_error = |values: &[f64], mean: f64| {
        let n = values.len() as f64;
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
    };
    (mean_a - mean_b) / (squared_error(a, mean_a) + squared_error(b, mean_b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of `n` batches around `centre`, ± 2 %.
    fn times(centre: f64, n: usize, random: &mut Random) -> Vec<f64> {
        (0..n)
            .map(|_| centre * (0.98 + 0.04 * random.number_below(1 << 20) as f64 / f64::from(1 << 20)))
            .collect()
    }

    #[test]
    fn t_agrees_with_a_worked_example() {
        // R: t.test(extra ~ group, data = sleep) gives t = −1.8608 (Student's own data).
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        assert!((welch_t(&first, &second) - -1.860_813).abs() < 1e-6);
        // R gives p = 0.0794 by the t distribution; the bootstrap must come within 0.02 of it.
        let p = p_value(&second, &first, 20_000, &mut Random::new(41));
        assert!((p - 0.0794).abs() < 0.02, "{p}");
    }

    #[test]
    fn a_change_beyond_the_noise_is_found_in_its_direction() {
        let mut random = Random::new(42);
        let (old, slow) = (times(100.0, 100, &mut random), times(105.0, 100, &mut random));
        assert_eq!(change_between(&old, &slow, 2000, 1), Change::Slower);
        assert_eq!(change_between(&slow, &old, 2000, 1), Change::Faster);
        assert_eq!(change_between(&old, &old, 2000, 1), Change::None);
    }

    #[test]
    fn a_significant_change_within_the_noise_is_no_change() {
        let mut random = Random::new(43);
        let (old, new) = (times(100.0, 400, &mut random), times(100.6, 400, &mut random));
        assert!(p_value(&old, &new, 2000, &mut random) < 0.05);
        assert_eq!(change_between(&old, &new, 2000, 1), Change::None);
    }

    #[test]
    fn the_interval_has_the_width_of_the_theory() {
        let mut random = Random::new(44);
        let (old, new) = (times(100.0, 100, &mut random), times(100.0, 100, &mut random));
        let changes = relative_changes(&old, &new, 10_000, &mut random);
        assert_eq!(changes.len(), 10_000);
        // The width for the difference of two means, each of 100 values from a uniform distribution 4 % wide.
        let theory = 2.0 * 1.96 * 0.04 / 12.0_f64.sqrt() / 10.0 * 2.0_f64.sqrt();
        let width = percentile(&changes, INTERVAL.1) - percentile(&changes, INTERVAL.0);
        assert!((width / theory - 1.0).abs() < 0.3, "{width} {theory}");
    }

    #[test]
    fn samples_of_one_process_rarely_differ_and_samples_of_two_always_do() {
        let mut random = Random::new(45);
        let mut alarms = [0, 0];
        for round in 0..40 {
            let sample = |offset: f64, random: &mut Random| times(100.0 + offset, 100, random);
            let old = sample(0.0, &mut random);
            let same = sample(0.0, &mut random);
            // Only the process differs here, not the cost, and yet the rule reports a change.
            let other_process = sample(3.0, &mut random);
            for (count, new) in alarms.iter_mut().zip([same, other_process]) {
                *count += usize::from(change_between(&old, &new, 400, round) != Change::None);
            }
        }
        assert!(alarms[0] <= 1 && alarms[1] >= 39, "{alarms:?}");
    }

    #[test]
    fn the_seed_repeats_the_verdict_and_empty_samples_show_no_change() {
        let mut random = Random::new(46);
        let (old, new) = (times(100.0, 30, &mut random), times(101.3, 30, &mut random));
        assert_eq!(change_between(&old, &new, 500, 9), change_between(&old, &new, 500, 9));
        assert_eq!(change_between(&[1.0], &[2.0, 2.0], 500, 9), Change::None);
        assert_eq!(change_between(&old, &[3.0; 30], 0, 9), Change::None);
        assert_eq!(change_between(&[], &[], 500, 9), Change::None);
    }
}
