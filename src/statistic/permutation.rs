//! Two independent samples: do they differ, and by how much? (Fisher 1935; Mann and Whitney 1947; Hollander,
//! Wolfe and Chicken, *Nonparametric Statistical Methods*, chapter 4.)

use super::order_statistic::{between_ranks, count_within};
use super::{Alternative, Interval, Random, normal};

/// Up to this number of splits of the pooled sample all are enumerated (about a millisecond).
const EXACT_SPLITS: usize = 200_000;

/// The number of random splits otherwise: a p of 0.01 then has a standard error of 0.0007.
const RANDOM_SPLITS: usize = 20_000;

/// Up to this many pairs of values the law of the Mann–Whitney statistic is counted out.
const EXACT_PAIRS: usize = 2500;

/// The one-sided p-value of "`a` and `b` come from one law" against "`b` has the greater mean" or "the lesser":
/// the share of all splits of the pooled sample in which the difference of the means b − a is at least as
/// extreme as in the given one.
///
/// Exact while there are at most 200,000 splits (10 and 10 values: 184,756); otherwise 20,000 splits drawn by
/// `seed`, with the given one counted among them (Phipson and Smyth 2010), so that it is never 0. Two splits
/// count as equal within n·ε·Σ|v|, the most by which the sum of n values can be rounded: sums that are equal
/// in exact arithmetic must not differ by their order. 1 if a sample is empty or a value is no number.
pub fn permutation_p(a: &[f64], b: &[f64], alternative: Alternative, seed: u64) -> f64 {
    let mut pool = [a, b].concat();
    if a.is_empty() || b.is_empty() || pool.iter().any(|value| value.is_nan()) {
        return 1.0;
    }
    // The sum of one side determines the difference of the means. The smaller side is less to add up, and is put
    // first; the sign makes extreme mean large.
    let b_is_smaller = b.len() < a.len();
    if b_is_smaller {
        pool.rotate_left(a.len());
    }
    if (alternative == Alternative::Greater) != b_is_smaller {
        pool.iter_mut().for_each(|value| *value = -*value);
    }
    let size = a.len().min(b.len());
    let rounding = pool.len() as f64 * f64::EPSILON * pool.iter().map(|value| value.abs()).sum::<f64>();
    let least = pool[..size].iter().sum::<f64>() - rounding;
    match splits(pool.len(), size) {
        Some(all) => count_splits(&pool, size, 0.0, least) as f64 / all as f64,
        None => random_share(&mut pool, size, least, &mut Random::new(seed)),
    }
}

/// In how many ways `size` of `n` can be chosen, unless these are too many to look at.
fn splits(n: usize, size: usize) -> Option<usize> {
    (0..size).try_fold(1, |ways, k| Some(ways * (n - k) / (k + 1)).filter(|&ways| ways <= EXACT_SPLITS))
}

/// How many choices of `size` values add up, with `sum`, to at least `least`. Its depth is the size, which is
/// 10 at most where the number of splits is bounded.
fn count_splits(values: &[f64], size: usize, sum: f64, least: f64) -> usize {
    if size == 0 {
        return usize::from(sum >= least);
    }
    let firsts = 0..=values.len() - size;
    firsts.map(|first| count_splits(&values[first + 1..], size - 1, sum + values[first], least)).sum()
}

fn random_share(pool: &mut [f64], size: usize, least: f64, random: &mut Random) -> f64 {
    let mut count = 1;
    for _ in 0..RANDOM_SPLITS {
        // The first steps of a shuffle: any order of the pool is as good a start as any other.
        for i in 0..size {
            pool.swap(i, i + random.below(pool.len() - i));
        }
        count += usize::from(pool[..size].iter().sum::<f64>() >= least);
    }
    count as f64 / (RANDOM_SPLITS + 1) as f64
}

/// The shift from `a` to `b`: the median of all differences b − a (Hodges and Lehmann 1963), with the interval
/// that inverts the exact Mann–Whitney test: between the k-th smallest and the k-th largest of them.
///
/// The interval covers with at least `confidence` if the two laws differ by a shift only; ties make it more
/// careful. Samples too small for the confidence (for 95 %: fewer than 4 and 4, or 3 and 5, or 2 and 8) get the
/// whole range. Above 2500 pairs of values the normal law gives k. 0 throughout if a sample is empty.
pub fn shift(a: &[f64], b: &[f64], confidence: f64) -> Interval {
    let rank = rank_within(a.len(), b.len(), (1.0 - confidence) / 2.0);
    between_ranks(b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect(), rank)
}

/// The largest k such that a Mann–Whitney statistic of at most k − 1 has a probability of at most `tail`.
fn rank_within(a: usize, b: usize, tail: f64) -> usize {
    if a * b > EXACT_PAIRS {
        return normal_rank(a as f64, b as f64, tail);
    }
    count_within(&mann_whitney_law(a, b), tail)
}

fn normal_rank(a: f64, b: f64, tail: f64) -> usize {
    let (mean, variance) = (a * b / 2.0, a * b * (a + b + 1.0) / 12.0);
    (mean + normal::quantile(tail) * variance.sqrt() + 0.5).floor().max(0.0) as usize
}

/// The probability of each number of pairs in which b is the greater, if all orders are equally likely. The
/// greatest of all values is one of a's, which adds nothing, or one of b's, which adds all of a.
fn mann_whitney_law(a: usize, b: usize) -> Vec<f64> {
    // One row a number of b's values, for as many of a's as have been dealt with.
    let mut rows: Vec<Vec<f64>> = (0..=b).map(|_| vec![1.0]).collect();
    for i in 1..=a {
        for j in 1..=b {
            let of_a = i as f64 / (i + j) as f64;
            let term = |row: &[f64], at: usize| row.get(at).copied().unwrap_or(0.0);
            rows[j] = (0..=i * j)
                .map(|u| {
                    let greatest_is_b = if u < i { 0.0 } else { term(&rows[j - 1], u - i) };
                    of_a * term(&rows[j], u) + (1.0 - of_a) * greatest_is_b
                })
                .collect();
        }
    }
    rows.swap_remove(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Alternative::{Greater, Less};

    /// By all subsets of the pool of the right size, as differences of means of whole numbers.
    fn by_enumeration(a: &[f64], b: &[f64], alternative: Alternative) -> f64 {
        let pool = [a, b].concat();
        let sign = if alternative == Greater { 1.0 } else { -1.0 };
        let total: f64 = pool.iter().sum();
        let extremity = |of_b: f64| sign * (of_b * pool.len() as f64 - total * b.len() as f64);
        let observed = extremity(b.iter().sum());
        let subsets = (0_u32..1 << pool.len()).filter(|set| set.count_ones() as usize == b.len());
        let sum = |set: u32| {
            pool.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, v)| v).sum::<f64>()
        };
        let (extreme, all) = subsets.fold((0, 0), |(extreme, all), set| {
            (extreme + usize::from(extremity(sum(set)) >= observed), all + 1)
        });
        extreme as f64 / f64::from(all)
    }

    fn sample(random: &mut Random, n: usize, below: usize) -> Vec<f64> {
        (0..n).map(|_| random.below(below) as f64).collect()
    }

    #[test]
    fn p_is_that_of_all_splits() {
        let mut random = Random::new(21);
        for round in 0..120 {
            let (n, m) = (1 + random.below(6), 1 + random.below(6));
            let below = if round % 2 == 0 { 6 } else { 1 << 40 };
            let (a, b) = (sample(&mut random, n, below), sample(&mut random, m, below));
            for alternative in [Greater, Less] {
                let (p, counted) =
                    (permutation_p(&a, &b, alternative, 0), by_enumeration(&a, &b, alternative));
                assert_eq!(p, counted, "{a:?} {b:?} {alternative:?}");
            }
        }
    }

    #[test]
    fn equal_sums_are_equal_in_any_unit() {
        // 0.1 + 0.2 is not 0.3 in floating point; in tenths everything is whole.
        let mut random = Random::new(22);
        for _ in 0..100 {
            let (a, b) = (sample(&mut random, 5, 7), sample(&mut random, 4, 7));
            let tenths = |values: &[f64]| values.iter().map(|v| v / 10.0 + 1e3).collect::<Vec<_>>();
            let (p, in_tenths) =
                (permutation_p(&a, &b, Greater, 0), permutation_p(&tenths(&a), &tenths(&b), Greater, 0));
            assert_eq!(p, in_tenths, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_extreme_split_is_one_of_all() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!(permutation_p(&a, &b, Greater, 0), 1.0 / 252.0);
        assert_eq!(permutation_p(&a, &b, Less, 0), 1.0);
        assert_eq!(permutation_p(&b, &a, Less, 0), 1.0 / 252.0);
        assert_eq!(permutation_p(&a, &b[..3], Greater, 0), 1.0 / 56.0);
        assert_eq!(permutation_p(&a[..3], &b, Greater, 0), 1.0 / 56.0);
    }

    #[test]
    fn one_value_against_very_many_does_not_overflow() {
        let many: Vec<f64> = (0..150_000).map(f64::from).collect();
        let p = permutation_p(&many, &[1e6], Greater, 0);
        assert_eq!(p, 1.0 / 150_001.0);
    }

    #[test]
    fn drawn_splits_agree_with_all_of_them() {
        let mut random = Random::new(23);
        for _ in 0..5 {
            let (a, b) = (sample(&mut random, 8, 100), sample(&mut random, 9, 120));
            let exact = permutation_p(&a, &b, Greater, 0);
            let mut pool = [&a[..], &b].concat();
            let least = -a.iter().sum::<f64>() - 1e-9;
            pool.iter_mut().for_each(|v| *v = -*v);
            let drawn = random_share(&mut pool, a.len(), least, &mut random);
            let error = (exact * (1.0 - exact) / RANDOM_SPLITS as f64).sqrt();
            assert!((drawn - exact).abs() < 5.0 * error + 1e-4, "{drawn} {exact}");
        }
    }

    #[test]
    fn too_many_splits_are_drawn_and_the_seed_repeats_them() {
        let mut random = Random::new(24);
        let (a, b) = (sample(&mut random, 20, 1000), sample(&mut random, 20, 1100));
        assert_eq!((splits(20, 10), splits(40, 20), splits(21, 10)), (Some(184_756), None, None));
        assert_eq!(permutation_p(&a, &b, Greater, 7), permutation_p(&a, &b, Greater, 7));
        let apart: Vec<f64> = a.iter().map(|v| v + 1e4).collect();
        assert_eq!(permutation_p(&a, &apart, Greater, 7), 1.0 / 20_001.0);
    }

    #[test]
    fn nothing_is_never_significant() {
        assert_eq!(permutation_p(&[], &[1.0], Greater, 0), 1.0);
        assert_eq!(permutation_p(&[f64::NAN], &[1.0], Greater, 0), 1.0);
        assert_eq!(shift(&[], &[1.0], 0.95), Interval::default());
    }

    #[test]
    fn the_published_critical_values_are_critical() {
        // Mann–Whitney tables, one-sided: the largest U whose probability is at most the level.
        for (a, b, level, u) in [
            (4, 4, 0.025, 0),
            (3, 5, 0.025, 0),
            (5, 5, 0.025, 2),
            (5, 5, 0.05, 4),
            (8, 8, 0.025, 13),
            (10, 10, 0.025, 23),
            (10, 10, 0.005, 16),
            (7, 12, 0.025, 18),
            (20, 20, 0.025, 127),
        ] {
            assert_eq!(rank_within(a, b, level), u + 1, "{a} {b} {level}");
            assert_eq!(rank_within(b, a, level), u + 1, "{b} {a} {level}");
        }
        assert_eq!((rank_within(3, 4, 0.025), rank_within(2, 7, 0.025), rank_within(2, 8, 0.025)), (0, 0, 1));
    }

    #[test]
    fn counting_and_the_normal_law_meet() {
        for tail in [0.025, 0.1, 0.3] {
            let (approximate, exact) = (normal_rank(50.0, 50.0, tail), rank_within(50, 50, tail));
            assert!(approximate.abs_diff(exact) <= 1, "{tail}: {approximate} {exact}");
        }
    }

    #[test]
    fn the_shift_agrees_with_a_published_example() {
        // Hollander, Wolfe and Chicken, example 4.1: water permeability of membranes at term (a) and at 12 to 26
        // weeks (b). There: estimate −0.305, and from −0.76 to 0.15 with 95 %.
        let a = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let b = [1.15, 0.88, 0.90, 0.74, 1.21];
        let shift = shift(&a, &b, 0.95);
        assert!((shift.estimate - -0.305).abs() < 1e-12, "{shift:?}");
        assert!((shift.low - -0.76).abs() < 1e-12 && (shift.high - 0.15).abs() < 1e-12, "{shift:?}");
    }

    #[test]
    fn moving_one_sample_moves_the_shift() {
        let mut random = Random::new(25);
        for _ in 0..30 {
            let (a, b) = (sample(&mut random, 9, 1000), sample(&mut random, 7, 1000));
            let moved: Vec<f64> = b.iter().map(|b| b + 64.0).collect();
            let (before, after) = (shift(&a, &b, 0.95), shift(&a, &moved, 0.95));
            assert_eq!((after.low, after.high), (before.low + 64.0, before.high + 64.0));
            assert!(before.low <= before.estimate && before.estimate <= before.high);
            assert_eq!(shift(&b, &a, 0.95).estimate, -before.estimate);
        }
    }
}
