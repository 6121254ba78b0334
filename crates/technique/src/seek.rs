//! Seek distances of a disk head: a measure of type B that sampling cannot take.
//!
//! A seek distance is the difference between two successive positions. A trace of all positions gives all distances.
//! Samples of the variable that holds the position do not give them. If sampling is too slow, seeks are merged or lost; if it
//! is too fast, some distances are zero without a seek.
//!
//! Source: Kraemer, slides 53 and 54.

/// The distances between successive positions.
pub fn seek_distances(positions: &[u64]) -> Vec<u64> {
    positions.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect()
}

/// Samples of the position, taken every `period` units of time, if each position is held for `held` units. The first sample
/// is at the beginning. A period of 0 counts as 1.
pub fn sampled_positions(positions: &[u64], held: usize, period: usize) -> Vec<u64> {
    (0..positions.len() * held).step_by(period.max(1)).map(|at| positions[at / held]).collect()
}

/// The distance between two distributions: the largest difference of their cumulative shares (Kolmogorov and Smirnov).
/// 0 for equal distributions; 1 for disjoint ones, or if one is empty.
pub fn distribution_distance(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let sorted = |values: &[u64]| {
        let mut values = values.to_vec();
        values.sort_unstable();
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let share = |of: &[u64], up_to: u64| of.partition_point(|d| *d <= up_to) as f64 / of.len() as f64;
    a.iter().chain(&b).map(|&d| (share(&a, d) - share(&b, d)).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions of slide 54.
    const POSITIONS: [u64; 6] = [10, 40, 20, 60, 30, 50];

    #[test]
    fn a_trace_gives_every_distance() {
        assert_eq!(seek_distances(&POSITIONS), [30, 20, 40, 30, 20]);
        assert_eq!(seek_distances(&POSITIONS[..1]), [0; 0]);
    }

    #[test]
    fn slow_sampling_loses_seeks() {
        let seen = sampled_positions(&POSITIONS, 1, 2);
        assert_eq!((&seen[..], &seek_distances(&seen)[..]), (&[10, 20, 30][..], &[10, 10][..]));
    }

    #[test]
    fn fast_sampling_gives_distances_of_zero() {
        let seen = sampled_positions(&POSITIONS, 3, 1);
        assert_eq!(seen[..8], [10, 10, 10, 40, 40, 40, 20, 20]);
        assert_eq!(seek_distances(&seen)[..7], [0, 0, 30, 0, 0, 20, 0]);
    }

    #[test]
    fn sampling_synchronous_with_the_seeks_equals_tracing() {
        assert_eq!(sampled_positions(&POSITIONS, 3, 3), POSITIONS);
    }

    #[test]
    fn the_distance_is_the_largest_difference_of_cumulative_shares() {
        assert_eq!(distribution_distance(&[30, 20, 40], &[20, 30, 40]), 0.0);
        assert_eq!(distribution_distance(&[1, 2], &[5, 6]), 1.0);
        assert_eq!(distribution_distance(&[0, 0, 0, 30], &[30]), 0.75);
        assert_eq!(distribution_distance(&[], &[30]), 1.0);
    }
}
