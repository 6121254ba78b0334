//! By which law values grow with a parameter.

use crate::regression::{Line, fit_line_by_shares};

/// A law of growth in n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// log₂ n.
    Logarithm,
    /// n.
    Linear,
    /// n·log₂ n.
    Linearithmic,
    /// n².
    Square,
}

/// Values that are fitted by a law: y = intercept + slope · law(n).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The law.
    pub law: Law,
    /// The line through the values against law(n).
    pub line: Line,
    /// Largest distance of a value from the line, as a share of the value.
    pub worst: f64,
}

/// Fewest points at which another law than the line is considered: any curve of two numbers passes near three.
const FEWEST: usize = 4;
/// Another law is taken if its worst point is off by less than this share of the line's.
const CLEARLY: f64 = 0.5;

impl Law {
    const OTHERS: [Self; 3] = [Self::Logarithm, Self::Linearithmic, Self::Square];

    fn value_at(self, n: f64) -> f64 {
        match self {
            Self::Logarithm => n.log2(),
            Self::Linear => n,
            Self::Linearithmic => n * n.log2(),
            Self::Square => n * n,
        }
    }
}

/// The law that fits best. The line is taken unless another law fits clearly better. `None` with fewer than three points, with
/// one parameter only, or if a value is not positive.
pub fn fit_growth(points: &[(f64, f64)]) -> Option<Growth> {
    let linear = fit_law(Law::Linear, points)?;
    if points.len() < FEWEST {
        return Some(linear);
    }
    let others = Law::OTHERS.into_iter().filter_map(|law| fit_law(law, points));
    let best = others.min_by(|a, b| a.worst.total_cmp(&b.worst));
    Some(best.filter(|best| best.worst < CLEARLY * linear.worst).unwrap_or(linear))
}

fn fit_law(law: Law, points: &[(f64, f64)]) -> Option<Growth> {
    let points: Vec<_> = points.iter().map(|&(n, y)| (law.value_at(n), y)).collect();
    let line = fit_line_by_shares(&points)?;
    let share = |&(x, y): &(f64, f64)| (line.intercept.estimate + line.slope.estimate * x - y).abs() / y;
    Some(Growth { law, line, worst: points.iter().map(share).fold(0.0, f64::max) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 5] = [1e1, 1e2, 1e3, 1e4, 1e5];

    /// Points of a law with slope 2 and intercept 5, every second one 1 % above it.
    fn points(law: Law) -> Vec<(f64, f64)> {
        let above = |at: usize| if at % 2 == 1 { 1.01 } else { 1.0 };
        SIZES.iter().enumerate().map(|(at, &n)| (n, above(at) * (5.0 + 2.0 * law.value_at(n)))).collect()
    }

    #[test]
    fn each_law_is_recognised_by_values_that_follow_it() {
        for law in [Law::Linear, Law::Logarithm, Law::Linearithmic, Law::Square] {
            let found = fit_growth(&points(law)).expect("five points");
            assert_eq!(found.law, law);
            assert!((found.line.slope.estimate - 2.0).abs() < 0.03, "{found:?}");
            assert!(found.worst < 0.011, "{found:?}");
        }
    }

    #[test]
    fn small_values_count_as_much_as_large_ones() {
        let found = fit_growth(&points(Law::Linear)).expect("five points");
        assert!((found.line.intercept.estimate - 5.0).abs() < 0.3, "{found:?}");
    }

    #[test]
    fn three_points_lie_on_a_line() {
        assert_eq!(fit_growth(&points(Law::Square)[..3]).map(|found| found.law), Some(Law::Linear));
    }

    #[test]
    fn what_has_no_logarithm_and_no_share_is_no_panic() {
        assert_eq!(
            fit_growth(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]).map(|f| f.law),
            Some(Law::Linear)
        );
        assert_eq!(fit_growth(&[(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)]), None);
        assert_eq!(fit_growth(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
