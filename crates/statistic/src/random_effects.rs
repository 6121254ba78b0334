//! The mean of an effect that differs between machines: a random-effects model, as in a meta-analysis.
//!
//! Machine *i* shows `y = μ + u + e`, with `u` of variance τ² between machines and `e` of the variance within the machine.
//! τ² is estimated by Paule and Mandel (*Consensus values and weighting factors*, 1982): with it the weighted squares add
//! up to their expected sum. The interval is that of Hartung and Knapp (2001) with Student's t, never narrower than
//! without their factor (Röver, Knapp and Friede 2015).

use super::{Interval, median, student_upper_quantile};

/// The effect of one machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The effect that the machine shows.
    pub estimate: f64,
    /// The variance of the estimate within the machine; 0 where unknown, so that all spread is between machines.
    pub variance: f64,
}

/// The combined effect of several machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomEffects {
    /// The mean effect with its 95 % interval.
    pub mean: Interval,
    /// The standard error of the mean.
    pub error: f64,
    /// τ, the standard deviation of the true effects between machines.
    pub between: f64,
}

/// The mean effect of these machines; `None` for fewer than two machines, because they show no spread.
pub fn random_effects(effects: &[Effect]) -> Option<RandomEffects> {
    let degrees = effects.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let between = paule_mandel_variance(effects);
    let (mean, weight, squares) = weighted_moments(effects, between);
    let error = (squares / degrees as f64).max(1.0).sqrt() / weight.sqrt();
    // Machines that agree to the last digit have no variance at all, and an infinite weight.
    let error = if error.is_finite() { error } else { 0.0 };
    let half = student_upper_quantile(0.025, degrees) * error;
    Some(RandomEffects { mean: Interval::around(mean, half), error, between: between.sqrt() })
}

/// The weighted mean, the sum of the weights, and the weighted sum of squared distances from the mean.
fn weighted_moments(effects: &[Effect], between: f64) -> (f64, f64, f64) {
    let (mean, weight) = weighted_mean(effects, between);
    let squares =
        effects.iter().map(|effect| effect.weight(between) * (effect.estimate - mean).powi(2)).sum();
    (mean, weight, squares)
}

fn weighted_mean(effects: &[Effect], between: f64) -> (f64, f64) {
    let weight: f64 = effects.iter().map(|effect| effect.weight(between)).sum();
    // Each weight as a share, so that the largest ones stay finite.
    let mean = effects.iter().map(|effect| effect.weight(between) / weight * effect.estimate).sum();
    (mean, weight)
}

impl Effect {
    fn weight(&self, between: f64) -> f64 {
        1.0 / (self.variance + between).max(f64::MIN_POSITIVE)
    }
}

/// The τ² at which the weighted sum of squares equals the degrees of freedom; 0 if the variance within the machines
/// explains the whole sum. The sum falls with τ², ever more slowly, so Newton's method converges from the left (DerSimonian
/// and Kacker 2007). A step that would leave the bracket bisects it instead.
fn paule_mandel_variance(effects: &[Effect]) -> f64 {
    const STEPS: usize = 200;
    let wanted = (effects.len() - 1) as f64;
    let excess = |between: f64| weighted_moments(effects, between).2 - wanted;
    let middle = median(&effects.iter().map(|effect| effect.estimate).collect::<Vec<_>>());
    let furthest = effects.iter().map(|effect| (effect.estimate - middle).abs()).fold(0.0, f64::max);
    if furthest == 0.0 || excess(0.0) <= 0.0 {
        return 0.0;
    }
    // The variance is largest if all values lie as far from the median as the furthest: that bounds it from above.
    let (mut low, mut high) = (0.0, 4.0 * furthest * furthest);
    let mut between = f64::midpoint(low, high);
    for _ in 0..STEPS {
        let (mean, _) = weighted_mean(effects, between);
        let (mut squares, mut slope) = (0.0, 0.0);
        for effect in effects {
            let weight = effect.weight(between);
            let square = weight * (effect.estimate - mean).powi(2);
            squares += square;
            slope += weight * square;
        }
        if squares > wanted {
            low = between
        } else {
            high = between
        }
        let next = between + (squares - wanted) / slope;
        let next = if low < next && next < high { next } else { f64::midpoint(low, high) };
        if (next - between).abs() <= 1e-12 * between {
            break;
        }
        between = next;
    }
    between
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine(values: &[(f64, f64)]) -> RandomEffects {
        let effects: Vec<_> =
            values.iter().map(|&(estimate, variance)| Effect { estimate, variance }).collect();
        random_effects(&effects).expect("two machines or more")
    }

    #[test]
    fn without_variances_within_the_result_is_the_mean_with_students_interval() {
        let found = combine(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (6.0, 0.0)]);
        assert!((found.mean.estimate - 3.0).abs() < 1e-9, "{found:?}");
        let deviation = (14.0_f64 / 3.0).sqrt();
        assert!((found.between - deviation).abs() < 1e-6 && (found.error - deviation / 2.0).abs() < 1e-6);
        assert!((found.mean.high - (3.0 + 3.182_446_3 * deviation / 2.0)).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn spread_that_the_variances_within_explain_is_not_between_machines() {
        let found = combine(&[(1.0, 1.0), (1.5, 1.0), (0.8, 1.0)]);
        assert_eq!(found.between, 0.0);
        assert!((found.error - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12, "no narrower than chance: {found:?}");
    }

    #[test]
    fn a_more_precise_machine_weighs_more_unless_the_spread_between_dominates() {
        let near = combine(&[(0.0, 0.01), (1.0, 1.0), (0.2, 0.01)]);
        assert!(near.mean.estimate < 0.3, "{near:?}");
        let far = combine(&[(0.0, 0.01), (10.0, 1.0), (-9.0, 0.01)]);
        assert!((far.mean.estimate - 1.0 / 3.0).abs() < 0.1, "{far:?}");
    }

    #[test]
    fn machines_that_agree_exactly_have_an_exact_mean() {
        let found = combine(&[(0.5, 0.0), (0.5, 0.0)]);
        assert_eq!((found.mean, found.between), (Interval::exactly(0.5), 0.0));
        assert_eq!(random_effects(&[Effect { estimate: 1.0, variance: 0.0 }]), None);
    }
}
