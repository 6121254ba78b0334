//! Seek distances of a moving head: a measure of type B that sampling cannot take.
//!
//! The distance of a seek is where the head goes less where it was. Who is told of each position gets each distance.
//! Who looks now and then at the variable that holds the position gets others: too slow, and seeks are joined or lost;
//! too fast, and between two seeks there are zeroes that no seek made.
//!
//! Source: Kraemer, slides 53 and 54.

/// The distances between one position and the next.
pub fn distances(positions: &[u64]) -> Vec<u64> {
    positions.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect()
}

/// The positions that somebody sees who looks every `period` units of time, where each is held for `held` units. The
/// first look is at the beginning. A period of 0 counts as 1.
pub fn looks(positions: &[u64], held: usize, period: usize) -> Vec<u64> {
    (0..positions.len() * held).step_by(period.max(1)).map(|at| positions[at / held]).collect()
}

/// How far two distributions of distances are apart: the largest difference between their shares up to a distance
/// (Kolmogorov and Smirnov). 0 for the same, 1 for those that have nothing in common; 1 where one of them is empty.
pub fn apart(a: &[u64], b: &[u64]) -> f64 {
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

    /// Slide 54.
    const POSITIONS: [u64; 6] = [10, 40, 20, 60, 30, 50];

    #[test]
    fn traced_every_distance_is_right() {
        assert_eq!(distances(&POSITIONS), [30, 20, 40, 30, 20]);
        assert_eq!(distances(&POSITIONS[..1]), [0; 0]);
    }

    #[test]
    fn sampled_too_slowly_seeks_are_lost() {
        let seen = looks(&POSITIONS, 1, 2);
        assert_eq!((&seen[..], &distances(&seen)[..]), (&[10, 20, 30][..], &[10, 10][..]));
    }

    #[test]
    fn sampled_too_fast_there_are_seeks_of_no_distance() {
        let seen = looks(&POSITIONS, 3, 1);
        assert_eq!(seen[..8], [10, 10, 10, 40, 40, 40, 20, 20]);
        assert_eq!(distances(&seen)[..7], [0, 0, 30, 0, 0, 20, 0]);
    }

    #[test]
    fn in_step_with_the_seeks_sampling_is_tracing() {
        assert_eq!(looks(&POSITIONS, 3, 3), POSITIONS);
    }

    #[test]
    fn distributions_are_as_far_apart_as_their_shares() {
        assert_eq!(apart(&[30, 20, 40], &[20, 30, 40]), 0.0);
        assert_eq!(apart(&[1, 2], &[5, 6]), 1.0);
        assert_eq!(apart(&[0, 0, 0, 30], &[30]), 0.75);
        assert_eq!(apart(&[], &[30]), 1.0);
    }
}
