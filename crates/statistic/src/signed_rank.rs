//! Wilcoxon's signed-rank test and the estimate of a shift that follows from it (Wilcoxon 1945; Hodges and Lehmann 1963;
//! Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, chapter 3). Two one-sided tests together can show
//! equivalence, which is more than a test that finds no difference.

use super::Interval;
use super::order_statistic::median_between_ranks;
use super::student::{normal_quantile, normal_upper_tail};

/// Up to this number of differences the distribution of the statistic is enumerated exactly (2 ms for 200). Beyond it
/// the normal distribution differs from the exact one by less than 0.0005.
const EXACT: usize = 200;

/// The alternative hypothesis of a one-sided test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// The values lie above the assumed shift.
    Greater,
    /// The values lie below the assumed shift.
    Less,
}

/// The one-sided p-value of "the differences are symmetric around `shift`" against "around something greater"
/// or "less".
///
/// Differences equal to `shift` are dropped (Wilcoxon's rule, not Pratt's). Equal distances share their mean rank, and
/// the distribution of the statistic is computed from these mean ranks, so the p-value is exact with ties, too. Equal
/// means equal as floating-point numbers. Above 200 differences it uses the normal distribution with corrections for
/// ties and continuity. Returns 1 if no difference is left, or if a difference is NaN.
pub fn signed_rank_p(differences: &[f64], shift: f64, alternative: Alternative) -> f64 {
    let sign = if alternative == Alternative::Greater { 1.0 } else { -1.0 };
    let mut distances: Vec<f64> =
        differences.iter().map(|d| sign * (d - shift)).filter(|d| *d != 0.0).collect();
    if distances.is_empty() || distances.iter().any(|d| d.is_nan()) {
        return 1.0;
    }
    distances.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&distances);
    let positive = ranks.iter().zip(&distances).filter(|(_, d)| **d > 0.0);
    let sum = positive.map(|(rank, _)| rank).sum();
    if ranks.len() > EXACT {
        normal_tail(&ranks, sum)
    } else {
        rank_sum_distribution(&ranks)[sum..].iter().sum::<f64>().min(1.0)
    }
}

/// Twice the rank of each distance, so that the mean rank of equal ones is a whole number.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for equal in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        // The ranks first + 1 to first + count: twice their mean is the sum of the two ends.
        let first = ranks.len();
        ranks.resize(first + equal.len(), 2 * first + equal.len() + 1);
    }
    ranks
}

/// The probability of each sum of ranks if each rank is in the sum with probability ½, independently of the others.
fn rank_sum_distribution(ranks: &[usize]) -> Vec<f64> {
    let mut law = vec![0.0; ranks.iter().sum::<usize>() + 1];
    law[0] = 1.0;
    let mut reached = 0;
    for &rank in ranks {
        reached += rank;
        // In falling order, so that each sum is read before the same rank has been added to it.
        for sum in (0..=reached).rev() {
            let without = law[sum];
            let with = if sum < rank { 0.0 } else { law[sum - rank] };
            law[sum] = 0.5 * (without + with);
        }
    }
    law
}

/// The probability of a sum of doubled ranks of at least `sum`, by the normal distribution. The variance is a quarter of
/// the sum of the squared ranks, which already contains the correction for ties.
fn normal_tail(doubled: &[usize], sum: usize) -> f64 {
    let ranks = doubled.iter().map(|&rank| rank as f64 / 2.0);
    let (mean, variance) =
        ranks.fold((0.0, 0.0), |(mean, variance), r| (mean + r / 2.0, variance + r * r / 4.0));
    normal_upper_tail((sum as f64 / 2.0 - mean - 0.5) / variance.sqrt())
}

/// The pseudomedian of the differences: the median of the means of all pairs, each difference also paired with
/// itself. Its interval, from the k-th smallest to the k-th largest of those means, inverts the exact signed-rank test.
///
/// The coverage is at least `confidence` for any symmetric distribution of the differences, and higher with ties. If
/// the sample is too small for the confidence (fewer than 6 differences for 95 %, fewer than 9 for 99.4 %), the
/// interval is the whole range, whose coverage is only 1 − 2^(1−n). Time and memory grow with the square of the
/// sample. NaN counts as greater than every number. For an empty sample estimate and ends are 0.
pub fn hodges_lehmann(differences: &[f64], confidence: f64) -> Interval {
    let rank = critical_rank(differences.len(), (1.0 - confidence) / 2.0);
    median_between_ranks(walsh_averages(differences), rank)
}

/// The means of all pairs of differences, each with itself too: n(n+1)/2 of them.
pub(super) fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let pairs =
        differences.iter().enumerate().flat_map(|(i, a)| differences[i..].iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| 0.5 * (a + b)).collect()
}

/// The largest k such that a sum of ranks of at most k − 1 has a probability of at most `tail`. The k-th smallest
/// Walsh average is then a lower bound that fails with at most that probability. 0 if there is no such bound.
pub(super) fn critical_rank(n: usize, tail: f64) -> usize {
    if n > EXACT {
        return normal_critical_rank(n as f64, tail);
    }
    let ranks: Vec<usize> = (1..=n).collect();
    super::order_statistic::count_terms_within(&rank_sum_distribution(&ranks), tail)
}

fn normal_critical_rank(n: f64, tail: f64) -> usize {
    let (mean, variance) = (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
    (mean + normal_quantile(tail) * variance.sqrt() + 0.5).floor().max(0.0) as usize
}

/// The p-value of "the differences are centred at `margin` or further from 0" against "nearer to 0": the larger
/// one of two one-sided exact signed-rank tests (Schuirmann 1987; Wellek, *Testing Statistical Hypotheses of
/// Equivalence and Noninferiority*, 5.4). Testing twice needs no correction, because both tests must reject.
/// 1 if no difference is left to test.
pub fn equivalence_p(differences: &[f64], margin: f64) -> f64 {
    let above = signed_rank_p(differences, -margin, Alternative::Greater);
    let below = signed_rank_p(differences, margin, Alternative::Less);
    above.max(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Random, hodges_lehmann};
    use Alternative::{Greater, Less};

    /// The p-value from all 2ⁿ assignments of signs. Each rank is counted by comparing one distance with all others.
    fn by_enumeration(differences: &[f64], shift: f64, alternative: Alternative) -> f64 {
        let sign = if alternative == Greater { 1.0 } else { -1.0 };
        let d: Vec<f64> = differences.iter().map(|d| sign * (d - shift)).filter(|d| *d != 0.0).collect();
        let beats = |a: f64, b: f64| match a.abs().total_cmp(&b.abs()) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 1.0,
        };
        let rank = |a: f64| 0.5 + d.iter().map(|&b| beats(a, b)).sum::<f64>();
        let observed: f64 = d.iter().filter(|d| **d > 0.0).map(|&d| rank(d)).sum();
        let sum = |signs: u32| -> f64 {
            d.iter().enumerate().filter(|(i, _)| signs >> i & 1 == 1).map(|(_, &d)| rank(d)).sum()
        };
        let all = 1_u32 << d.len();
        (0..all).filter(|&signs| sum(signs) >= observed).count() as f64 / f64::from(all)
    }

    /// Small whole numbers, so that ties and zeros abound, or fractions, so that there are none.
    fn sample(random: &mut Random, n: usize, ties: bool) -> Vec<f64> {
        let draw = |random: &mut Random| match ties {
            true => random.number_below(9) as f64 - 4.0,
            false => random.number_below(1 << 40) as f64 / (1_u64 << 38) as f64 - 2.0,
        };
        (0..n).map(|_| draw(random)).collect()
    }

    #[test]
    fn p_agrees_with_the_enumeration_of_all_signs() {
        let mut random = Random::new(1);
        for round in 0..200 {
            let n = 1 + random.number_below(10);
            let d = sample(&mut random, n, round % 2 == 0);
            for shift in [0.0, 1.0, -0.5] {
                for alternative in [Greater, Less] {
                    let (p, counted) =
                        (signed_rank_p(&d, shift, alternative), by_enumeration(&d, shift, alternative));
                    assert!((p - counted).abs() < 1e-14, "{d:?} {shift} {alternative:?}: {p} {counted}");
                }
            }
        }
    }

    #[test]
    fn the_published_critical_values_are_critical() {
        // Wilcoxon and Wilcox 1964, one-sided, the largest sum whose probability is at most the level.
        for (n, level, sum) in [
            (5, 0.05, 0),
            (8, 0.05, 5),
            (8, 0.025, 3),
            (8, 0.005, 0),
            (10, 0.05, 10),
            (10, 0.025, 8),
            (10, 0.01, 5),
            (20, 0.05, 60),
            (20, 0.025, 52),
            (20, 0.005, 37),
            (50, 0.025, 434),
        ] {
            assert_eq!(critical_rank(n, level), sum + 1, "n = {n}, {level}");
        }
    }

    #[test]
    fn a_sum_of_ranks_has_its_published_probability() {
        // Hollander, Wolfe and Chicken, example 3.1: the change of the depression scale of nine patients by a
        // tranquilizer. T⁺ = 5, p = 0.0195.
        let d = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];
        assert!((signed_rank_p(&d, 0.0, Less) - 10.0 / 512.0).abs() < 1e-15);
        // Example 3.3 estimates from the same data −0.46, with the 96 % interval −0.786 to −0.010.
        let shift = hodges_lehmann(&d, 0.96);
        assert!((shift.estimate - -0.46).abs() < 1e-12, "{shift:?}");
        assert!((shift.low - -0.786).abs() < 1e-12 && (shift.high - -0.010).abs() < 1e-12, "{shift:?}");
    }

    #[test]
    fn mirroring_the_sample_mirrors_the_answer() {
        let mut random = Random::new(2);
        for round in 0..50 {
            let n = 6 + random.number_below(30);
            let d = sample(&mut random, n, round % 2 == 0);
            let mirrored: Vec<f64> = d.iter().map(|d| -d).collect();
            assert_eq!(signed_rank_p(&d, 0.5, Greater), signed_rank_p(&mirrored, -0.5, Less));
            let (shift, back) = (hodges_lehmann(&d, 0.95), hodges_lehmann(&mirrored, 0.95));
            assert_eq!((shift.low, shift.high), (-back.high, -back.low));
        }
    }

    #[test]
    fn moving_the_sample_moves_the_answer() {
        let mut random = Random::new(3);
        for round in 0..50 {
            let d = sample(&mut random, 25, round % 2 == 0);
            let moved: Vec<f64> = d.iter().map(|d| d + 8.0).collect();
            assert_eq!(signed_rank_p(&d, 0.25, Greater), signed_rank_p(&moved, 8.25, Greater));
            let (before, after) = (hodges_lehmann(&d, 0.95), hodges_lehmann(&moved, 0.95));
            assert!((after.estimate - before.estimate - 8.0).abs() < 1e-12);
            assert!(before.low <= before.estimate && before.estimate <= before.high, "{before:?}");
        }
    }

    #[test]
    fn the_interval_holds_the_shifts_that_the_test_does_not_reject() {
        let mut random = Random::new(4);
        for n in [6, 9, 20, 40] {
            let d = sample(&mut random, n, false);
            let Interval { low, high, .. } = hodges_lehmann(&d, 0.95);
            let (inside, outside) = (low + 1e-9, low - 1e-9);
            assert!(signed_rank_p(&d, inside, Greater) > 0.025, "{n}");
            assert!(signed_rank_p(&d, outside, Greater) <= 0.025, "{n}");
            assert!(signed_rank_p(&d, high - 1e-9, Less) > 0.025, "{n}");
            assert!(signed_rank_p(&d, high + 1e-9, Less) <= 0.025, "{n}");
        }
    }

    #[test]
    fn exact_and_normal_distributions_agree_at_the_limit() {
        let mut random = Random::new(5);
        for ties in [false, true] {
            let mut d = sample(&mut random, 200, ties);
            d.retain(|d| *d != 0.0);
            d.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let ranks = doubled_ranks(&d);
            let sum = ranks.iter().zip(&d).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
            let (approximate, exact) = (normal_tail(&ranks, sum), signed_rank_p(&d, 0.0, Greater));
            assert!((approximate - exact).abs() < 5e-4, "{ties}: {approximate} {exact}");
        }
        // At the middle of the distribution the two would differ without the correction for continuity.
        let ranks: Vec<usize> = (1..=200).map(|rank| 2 * rank).collect();
        let exact: f64 = rank_sum_distribution(&ranks)[20_100..].iter().sum();
        assert!((normal_tail(&ranks, 20_100) - exact).abs() < 1e-5, "{exact}");
        for tail in [0.025, 0.1, 0.3] {
            let (approximate, exact) = (normal_critical_rank(200.0, tail), critical_rank(200, tail));
            assert!(approximate.abs_diff(exact) <= 2, "{tail}: {approximate} {exact}");
        }
    }

    #[test]
    fn samples_without_information_are_never_significant() {
        assert_eq!(signed_rank_p(&[], 0.0, Greater), 1.0);
        assert_eq!(signed_rank_p(&[1.0, 1.0], 1.0, Less), 1.0);
        assert_eq!(signed_rank_p(&[f64::NAN, -1.0], 0.0, Less), 1.0);
        assert_eq!(hodges_lehmann(&[], 0.95), Interval::default());
    }

    #[test]
    fn too_small_a_sample_gets_its_whole_range() {
        let shift = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 9.0], 0.95);
        assert_eq!((shift.low, shift.high), (1.0, 9.0));
        assert_eq!((critical_rank(5, 0.025), critical_rank(6, 0.025)), (0, 1));
        assert_eq!((critical_rank(8, 0.003), critical_rank(9, 0.003)), (0, 1));
    }

    fn around(centre: f64, spread: f64, n: usize, random: &mut Random) -> Vec<f64> {
        (0..n)
            .map(|_| centre + spread * (random.number_below(1 << 30) as f64 / (1 << 29) as f64 - 1.0))
            .collect()
    }

    #[test]
    fn within_the_margin_it_is_as_sure_as_the_sample_is_large() {
        let d = [0.001, -0.002, 0.003, -0.001, 0.0, 0.002, -0.003, 0.001];
        assert_eq!(equivalence_p(&d, 0.02), 0.5_f64.powi(8));
    }

    #[test]
    fn the_larger_one_sided_p_decides_equivalence() {
        let d = [0.018, 0.019, 0.017, 0.021, 0.022, 0.016, 0.0195];
        assert_eq!(equivalence_p(&d, 0.02), signed_rank_p(&d, 0.02, Alternative::Less));
        let mirrored = d.map(|d| -d);
        assert_eq!(equivalence_p(&mirrored, 0.02), equivalence_p(&d, 0.02));
        assert!(equivalence_p(&d, 0.02) > 0.1);
    }

    #[test]
    fn equivalence_holds_if_the_interval_of_twice_the_level_lies_within_the_margin() {
        let mut random = Random::new(11);
        let mut held = 0;
        for _ in 0..200 {
            let centre = 0.03 * (random.number_below(1000) as f64 / 1000.0);
            let d = around(centre, 0.015, 16, &mut random);
            let Interval { low, high, .. } = hodges_lehmann(&d, 0.98);
            let is_held = equivalence_p(&d, 0.02) <= 0.01;
            assert_eq!(is_held, -0.02 < low && high < 0.02, "{low} {high}");
            held += usize::from(is_held);
        }
        assert!((20..180).contains(&held), "{held} of 200: both answers must occur");
    }

    #[test]
    fn empty_samples_are_not_equivalent() {
        assert_eq!(equivalence_p(&[], 0.02), 1.0);
        assert_eq!(equivalence_p(&[f64::NAN; 20], 0.02), 1.0);
    }
}
