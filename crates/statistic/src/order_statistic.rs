//! Order statistics: estimates and intervals that assume nothing about the distribution of a sample.

use super::Interval;

/// A sorted copy of the values. NaN sorts last.
fn sorted_copy(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The `p`-th percentile (0 to 100) by linear interpolation between closest ranks, R's type 7
/// (Hyndman and Fan 1996), which Criterion uses, too. 0 for an empty sample.
pub fn percentile(values: &[f64], p: f64) -> f64 {
    percentile_of_sorted(&sorted_copy(values), p)
}

fn percentile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = p.clamp(0.0, 100.0) / 100.0 * last as f64;
    let (below, fraction) = (rank.floor() as usize, rank.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * fraction
}

/// The median: the middle value, or the mean of the two middle values. 0 for an empty sample.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// The median with a distribution-free 95 % interval between two order statistics.
///
/// The number of values below the true median is binomial(n, ½) for any distribution. The ranks of the interval's
/// ends are quantiles of that binomial (Conover, *Practical Nonparametric Statistics*, 3.2). The interval is
/// conservative. With fewer than six values no such interval exists, and the whole range is given.
pub fn median_interval(values: &[f64]) -> Interval {
    let sorted = sorted_copy(values);
    if sorted.is_empty() {
        return Interval::default();
    }
    let rank = rank_below_median(sorted.len(), 0.025);
    Interval {
        estimate: percentile_of_sorted(&sorted, 50.0),
        low: sorted[rank],
        high: sorted[sorted.len() - 1 - rank],
    }
}

/// The largest zero-based rank whose lower tail under binomial(n, ½) is at most `tail`.
fn rank_below_median(n: usize, tail: f64) -> usize {
    // The terms are computed as logarithms, because the first term, 2⁻ⁿ, underflows for n > 1000.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut cumulative = 0.0;
    for k in 0..n / 2 {
        cumulative += log_term.exp();
        if cumulative > tail {
            return k.saturating_sub(1);
        }
        log_term += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    (n / 2).saturating_sub(1)
}

/// The `rank`-th smallest value, counted from 1. A rank beyond the ends counts as the nearest end; 0 without values.
/// Selection reorders the values. It is faster than sorting, which matters for the n² means of n differences.
pub(super) fn nth_smallest(values: &mut [f64], rank: usize) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    *values.select_nth_unstable_by(rank.saturating_sub(1).min(last), f64::total_cmp).1
}

/// The median of `values` with an interval from their `rank`-th smallest to their `rank`-th largest. Rank 0 stands for
/// no rank and gives the whole range.
pub(super) fn median_between_ranks(mut values: Vec<f64>, rank: usize) -> Interval {
    let count = values.len();
    let rank = rank.clamp(1, count.div_ceil(2).max(1));
    let mut nth = |rank| nth_smallest(&mut values, rank);
    Interval {
        estimate: 0.5 * (nth(count.div_ceil(2)) + nth(count / 2 + 1)),
        low: nth(rank),
        high: nth((count + 1).saturating_sub(rank)),
    }
}

/// The largest number of first terms of a distribution whose sum is at most `tail`.
pub(super) fn count_terms_within(law: &[f64], tail: f64) -> usize {
    let cumulative = law.iter().scan(0.0, |sum, term| {
        *sum += term;
        Some(*sum)
    });
    cumulative.take_while(|sum| *sum <= tail).count()
}

/// The arithmetic mean. 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of a sample, with the denominator n − 1. 0 for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_with_the_published_table() {
        // Conover, table A3: for n = 10 the 95 % interval runs from the 2nd to the 9th value,
        // for n = 20 from the 6th to the 15th, for n = 50 from the 18th to the 33rd.
        for (n, rank) in [(6, 0), (10, 1), (20, 5), (50, 17), (100, 39)] {
            assert_eq!(rank_below_median(n, 0.025), rank, "n = {n}");
        }
    }

    #[test]
    fn a_large_sample_does_not_underflow() {
        let rank = rank_below_median(10_000, 0.025);
        assert!((4895..4905).contains(&rank), "5000 − 1.96·√10000/2 = 4902, got {rank}");
    }

    #[test]
    fn the_median_lies_in_its_interval() {
        let values: Vec<f64> = (0..31).map(|i| f64::from(i * 7 % 31)).collect();
        let interval = median_interval(&values);
        assert_eq!(interval.estimate, 15.0);
        assert!(interval.low < 15.0 && interval.high > 15.0);
    }

    #[test]
    fn percentiles_match_r_type_7() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        assert_eq!(percentile(&values, 40.0), 29.0);
        assert_eq!(percentile(&values, 0.0), 15.0);
        assert_eq!(percentile(&values, 100.0), 50.0);
    }

    #[test]
    fn an_empty_sample_gives_zero() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(standard_deviation(&[1.0]), 0.0);
        assert_eq!(median_interval(&[]), Interval::default());
    }

    #[test]
    fn an_interval_between_ranks_counts_from_both_ends() {
        let interval = |rank| median_between_ranks(vec![5.0, 1.0, 4.0, 2.0, 9.0, 3.0], rank);
        assert_eq!(interval(2), Interval { estimate: 3.5, low: 2.0, high: 5.0 });
        assert_eq!((interval(0), interval(0).low), (interval(1), 1.0));
        assert_eq!(interval(99), interval(3), "no rank passes the middle");
        assert_eq!(median_between_ranks(vec![7.0], 1), Interval { estimate: 7.0, low: 7.0, high: 7.0 });
    }

    #[test]
    fn terms_are_counted_while_their_sum_is_within_the_tail() {
        let law = [0.125, 0.375, 0.375, 0.125];
        assert_eq!(
            [0.1, 0.125, 0.4999, 0.5, 1.0].map(|tail| count_terms_within(&law, tail)),
            [0, 1, 1, 2, 4]
        );
    }
}
