//! Evidence for no difference, which is more than no evidence for one.

use super::{Alternative, signed_rank_p};

/// The p-value of "the differences are centred at `margin` or further from 0" against "nearer to 0": the larger
/// one of two one-sided exact signed-rank tests (Schuirmann 1987; Wellek, *Testing Statistical Hypotheses of
/// Equivalence and Noninferiority*, 5.4). No correction is due for testing twice, as both must reject.
/// 1 if nothing is left to judge by.
pub fn equivalence_p(differences: &[f64], margin: f64) -> f64 {
    let above = signed_rank_p(differences, -margin, Alternative::Greater);
    let below = signed_rank_p(differences, margin, Alternative::Less);
    above.max(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Random, hodges_lehmann};

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
    fn the_side_that_is_worse_decides() {
        let d = [0.018, 0.019, 0.017, 0.021, 0.022, 0.016, 0.0195];
        assert_eq!(equivalence_p(&d, 0.02), signed_rank_p(&d, 0.02, Alternative::Less));
        let mirrored = d.map(|d| -d);
        assert_eq!(equivalence_p(&mirrored, 0.02), equivalence_p(&d, 0.02));
        assert!(equivalence_p(&d, 0.02) > 0.1);
    }

    #[test]
    fn it_holds_when_the_interval_of_twice_the_level_lies_within_the_margin() {
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
    fn nothing_is_not_equivalent() {
        assert_eq!(equivalence_p(&[], 0.02), 1.0);
        assert_eq!(equivalence_p(&[f64::NAN; 20], 0.02), 1.0);
    }
}
