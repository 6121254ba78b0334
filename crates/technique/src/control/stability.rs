//! Stability of the loop of a damped index, a proportional policy, and a linear plant: response = base +
//! slope·parameter.
//!
//! After block k the loop is PI' = λ·PI + (1−λ)(base + slope·u'), u' = u − gain·(PI − T): a matrix with the determinant
//! λ and the trace 1 + λ − c, where c = (1−λ)·slope·gain. Its two eigenvalues determine the behaviour:
//!
//! | c | |
//! |---|---|
//! | ≤ (1−√λ)² | both are real and positive: the goal is reached without overshoot |
//! | larger | the index overshoots; complex eigenvalues have the absolute value √λ for any gain |
//! | ≥ 2(1+λ) | one eigenvalue is −1 or less: the loop never settles |
//!
//! Damping allows a higher gain, and makes the loop oscillate longer: a high gain without oscillation is impossible.

/// The absolute value of the larger eigenvalue.
fn spectral_radius(trace: f64, determinant: f64) -> f64 {
    let under = 0.25 * trace * trace - determinant;
    if under < 0.0 { determinant.sqrt() } else { 0.5 * trace.abs() + under.sqrt() }
}

/// c as defined in the module's documentation.
fn loop_gain(damping: f64, slope: f64, gain: f64) -> f64 {
    (1.0 - damping) * slope * gain
}

/// The factor by which an error shrinks from one block to the next in the long run; the loop settles if it is below 1.
pub fn error_decay_factor(damping: f64, slope: f64, gain: f64) -> f64 {
    spectral_radius(1.0 + damping - loop_gain(damping, slope, gain), damping)
}

/// The lowest gain at which the loop never settles.
pub fn highest_stable_gain(damping: f64, slope: f64) -> f64 {
    2.0 * (1.0 + damping) / ((1.0 - damping) * slope)
}

/// The highest gain without overshoot, which also settles fastest among the gains without overshoot.
pub fn highest_gain_without_overshoot(damping: f64, slope: f64) -> f64 {
    let root = damping.sqrt();
    (1.0 - root) / ((1.0 + root) * slope)
}

/// The standard deviation of the index in the loop, if response times have the standard deviation `deviation`. It
/// exceeds [`index_jitter`](crate::index::index_jitter) of the index alone, and grows without bound towards the highest
/// stable gain.
pub fn loop_jitter(deviation: f64, block: u32, damping: f64, slope: f64, gain: f64) -> f64 {
    let beyond = 2.0 * (1.0 + damping) - loop_gain(damping, slope, gain);
    deviation * (2.0 * (1.0 - damping) / (f64::from(block) * beyond)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Plant, Proportional, Transient};
    use crate::index;
    use syscost_statistic::standard_deviation;

    const DAMPINGS: [f64; 4] = [0.0, 0.3, 0.6, 0.9];
    const SLOPE: f64 = 2.0;

    fn run(damping: f64, gain: f64, blocks: usize) -> Vec<f64> {
        let mut plant = Plant::new(5.0, SLOPE, 0.0, 1);
        plant.simulate_control(1, damping, 105.0, Proportional { gain }, 1e9, 100.0, blocks)
    }

    #[test]
    fn below_the_highest_stable_gain_it_settles_and_above_it_never_does() {
        for damping in DAMPINGS {
            let limit = highest_stable_gain(damping, SLOPE);
            assert!((error_decay_factor(damping, SLOPE, limit) - 1.0).abs() < 1e-9);
            let last = |gain| {
                run(damping, gain, 600)[580..].iter().map(|index| (index - 105.0).abs()).fold(0.0, f64::max)
            };
            assert!(last(0.9 * limit) < 1e-3, "λ {damping}: {}", last(0.9 * limit));
            assert!(last(1.05 * limit) > 1.0, "λ {damping}: {}", last(1.05 * limit));
        }
    }

    #[test]
    fn up_to_the_highest_gain_without_overshoot_it_does_not_overshoot() {
        for damping in DAMPINGS {
            let calm = highest_gain_without_overshoot(damping, SLOPE);
            let overshoot = |gain| Transient::from_series(&run(damping, gain, 600), 105.0, 1.0).overshoot;
            assert!(overshoot(0.999 * calm) < 1e-9, "λ {damping}: {}", overshoot(calm));
            assert!(overshoot(1.3 * calm) > 1e-4, "λ {damping}: {}", overshoot(1.3 * calm));
        }
    }

    #[test]
    fn an_error_shrinks_by_the_spectral_radius_each_block() {
        let errors: Vec<f64> = run(0.3, 0.1, 60).iter().map(|index| (index - 105.0).abs()).collect();
        let shrunk = (errors[50] / errors[20]).powf(1.0 / 30.0);
        assert!((shrunk - error_decay_factor(0.3, SLOPE, 0.1)).abs() < 1e-3, "{shrunk}");
    }

    #[test]
    fn the_jitter_in_the_loop_is_the_closed_form() {
        for (block, damping, share) in [(1, 0.0, 0.2), (4, 0.5, 0.1), (16, 0.8, 0.02), (1, 0.6, 0.8)] {
            let gain = share * highest_stable_gain(damping, SLOPE);
            let mut plant = Plant::new(5.0, SLOPE, 3.0, 9);
            let policy = Proportional { gain };
            let series = plant.simulate_control(block, damping, 2005.0, policy, 1e9, 1000.0, 41_000);
            let found = standard_deviation(&series[1_000..]);
            let expected = loop_jitter(3.0, block, damping, SLOPE, gain);
            assert!((found / expected - 1.0).abs() < 0.05, "n {block}, λ {damping}: {found} {expected}");
        }
    }

    #[test]
    fn without_feedback_it_is_the_jitter_of_the_index_alone() {
        let (alone, looped) = (index::index_jitter(3.0, 8, 0.5), loop_jitter(3.0, 8, 0.5, SLOPE, 0.0));
        assert!((alone - looped).abs() < 1e-12);
    }
}
