//! Many tests at once: limits the expected share of false rejections among all rejections (Benjamini and Hochberg 1995).

/// For each p-value whether its hypothesis is rejected: whether its adjusted p-value is at most `q`. The expected share
/// of false rejections among all rejections is then at most `q`, for independent tests and for tests that tend to err
/// together (positive dependence: Benjamini and Yekutieli 2001).
pub fn benjamini_hochberg(p: &[f64], q: f64) -> Vec<bool> {
    adjusted_p_values(p).into_iter().map(|adjusted| adjusted <= q).collect()
}

/// The adjusted p-values, in the order given: for each hypothesis the smallest q at which it is rejected. NaN counts
/// as 1.
pub fn adjusted_p_values(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<(f64, usize)> = p.iter().enumerate().map(|(at, p)| (p.min(1.0), at)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    // From the largest down: if a p-value is rejected, all smaller ones are rejected, too.
    for (&(p, at), rank) in order.iter().zip((1..=order.len()).rev()) {
        least = least.min(p * (order.len() as f64 / rank as f64));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Benjamini and Hochberg's own example, section 3: fifteen end points of a trial on thrombolysis.
    const EXAMPLE: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
        0.6528, 0.7590, 1.0,
    ];

    /// As in the paper: reject the k smallest, k the largest with p₍ₖ₎ ≤ k·q/m.
    fn by_definition(p: &[f64], q: f64) -> Vec<bool> {
        let mut sorted = p.to_vec();
        sorted.sort_by(f64::total_cmp);
        let passes = |k: &usize| sorted[k - 1] * (p.len() as f64 / *k as f64) <= q;
        let last = (1..=p.len()).rfind(passes);
        p.iter().map(|p| last.is_some_and(|k| *p <= sorted[k - 1])).collect()
    }

    #[test]
    fn the_paper_s_example_rejects_four() {
        let rejected = benjamini_hochberg(&EXAMPLE, 0.05);
        assert_eq!(rejected.iter().position(|rejected| !rejected), Some(4));
        assert_eq!(rejected.iter().filter(|rejected| **rejected).count(), 4);
        // Bonferroni at 0.05/15 = 0.0033 rejects three, as the paper says.
        assert_eq!(EXAMPLE.iter().filter(|p| **p <= 0.05 / 15.0).count(), 3);
    }

    #[test]
    fn rejections_follow_the_definition_in_any_order() {
        let mut random = Random::new(31);
        for _ in 0..300 {
            let mut p: Vec<f64> = (0..1 + random.number_below(30))
                .map(|_| (random.number_below(1000) as f64 / 1000.0).powi(3))
                .collect();
            let mut rejected = benjamini_hochberg(&p, 0.05);
            assert_eq!(rejected, by_definition(&p, 0.05), "{p:?}");
            p.reverse();
            rejected.reverse();
            assert_eq!(benjamini_hochberg(&p, 0.05), rejected);
        }
    }

    #[test]
    fn a_smaller_p_is_adjusted_to_no_more_and_never_below_itself() {
        let mut random = Random::new(32);
        for _ in 0..100 {
            let mut p: Vec<f64> = (0..20).map(|_| random.number_below(50) as f64 / 50.0).collect();
            p.sort_by(f64::total_cmp);
            let adjusted = adjusted_p_values(&p);
            assert!(adjusted.is_sorted() && adjusted.iter().zip(&p).all(|(a, p)| p <= a && *a <= 1.0));
        }
    }

    #[test]
    fn a_smaller_q_rejects_no_more() {
        let counts: Vec<usize> = [0.2, 0.05, 0.01, 0.001, 0.0]
            .map(|q| benjamini_hochberg(&EXAMPLE, q).into_iter().filter(|rejected| *rejected).count())
            .into();
        assert_eq!(counts, [9, 4, 3, 0, 0]);
    }

    #[test]
    fn one_p_value_stays_unadjusted_and_no_p_values_give_none() {
        assert_eq!(adjusted_p_values(&[0.03]), [0.03]);
        assert_eq!(adjusted_p_values(&[]), [0.0; 0]);
        assert_eq!(adjusted_p_values(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }
}
