//! The rule of two processes, by which benchmark harnesses usually compare a run with the one before. It uses the
//! samples of one process a side, ignores the variance between processes, and so finds changes where there are none. It
//! is here for comparison with a rule that does not.

use super::{Random, mean, percentile};

/// The answer of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The new mean is the smaller.
    Faster,
    /// The new mean is the greater.
    Slower,
    /// No change was found.
    None,
}

/// A difference of the means counts below this p-value …
const SIGNIFICANCE: f64 = 0.05;

/// … and if the whole interval of the relative change is further from 0 than this.
const NOISE: f64 = 0.01;

/// The percentiles between which the interval of the relative change lies.
const INTERVAL: (f64, f64) = (2.5, 97.5);

/// Compares two samples of times by the rule of two processes, as Criterion 0.8 has it by default: a two-sided
/// p-value of Welch's t from the bootstrap of the pooled sample, and the relative change of the mean,
/// new / old − 1, with its percentile interval from the bootstrap of each sample (Efron and Tibshirani, *An
/// Introduction to the Bootstrap*, 16.2 and 13.3). Criterion takes 100,000 resamples, which of 100 + 100 values
/// cost 0.15 s. Fewer than two values a side, or no resamples, show no change.
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

/// Twice the share of resampled t values on the side of the observed one that has fewer; 1 if none of them
/// is finite.
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

/// The relative change of the mean in resamples of both sides. One of the new side meets a row of the old side,
/// √resamples of each: that is how the rule saves work, and why the resamples are not independent.
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
        // There p = 0.0794 by the t law; the bootstrap comes near.
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
    fn a_sure_change_within_the_noise_is_none() {
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
        // Deviation of a uniform law 4 % wide, of the mean of a hundred, of the difference of two such.
        let theory = 2.0 * 1.96 * 0.04 / 12.0_f64.sqrt() / 10.0 * 2.0_f64.sqrt();
        let width = percentile(&changes, INTERVAL.1) - percentile(&changes, INTERVAL.0);
        assert!((width / theory - 1.0).abs() < 0.3, "{width} {theory}");
    }

    #[test]
    fn samples_of_one_law_rarely_differ_and_processes_that_differ_always_do() {
        let mut random = Random::new(45);
        let mut alarms = [0, 0];
        for round in 0..40 {
            let sample = |offset: f64, random: &mut Random| times(100.0 + offset, 100, random);
            let old = sample(0.0, &mut random);
            let same = sample(0.0, &mut random);
            // Nothing has changed here either but the process, and that is enough.
            let other_process = sample(3.0, &mut random);
            for (count, new) in alarms.iter_mut().zip([same, other_process]) {
                *count += usize::from(change_between(&old, &new, 400, round) != Change::None);
            }
        }
        assert!(alarms[0] <= 1 && alarms[1] >= 39, "{alarms:?}");
    }

    #[test]
    fn the_seed_repeats_it_and_nothing_shows_no_change() {
        let mut random = Random::new(46);
        let (old, new) = (times(100.0, 30, &mut random), times(101.3, 30, &mut random));
        assert_eq!(change_between(&old, &new, 500, 9), change_between(&old, &new, 500, 9));
        assert_eq!(change_between(&[1.0], &[2.0, 2.0], 500, 9), Change::None);
        assert_eq!(change_between(&old, &[3.0; 30], 0, 9), Change::None);
        assert_eq!(change_between(&[], &[], 500, 9), Change::None);
    }
}
