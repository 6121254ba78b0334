//! Fits a straight line to points, with intervals for its slope and intercept, and finds the law by which values grow.

use super::{Interval, student_upper_quantile};

/// A fitted line y = intercept + slope·x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Increase of y when x increases by 1, with its 95 % interval.
    pub slope: Interval,
    /// Value at x = 0, with its 95 % interval. A negative value is kept as it is.
    pub intercept: Interval,
    /// Largest distance of a point from the line, as a share of the range of y.
    pub worst_residual: f64,
}

/// Ordinary least squares with Student's t intervals (Montgomery, *Introduction to Linear Regression
/// Analysis*, 2.3). `None` with fewer than three points or when every x is the same.
pub fn fit_line(points: &[(f64, f64)]) -> Option<Line> {
    fit_weighted(points, |_| 1.0)
}

/// As [`fit_line`], but with distances relative to the values, so that points that lie decades apart count alike. `None`
/// also if a value is not positive.
pub(crate) fn fit_line_by_shares(points: &[(f64, f64)]) -> Option<Line> {
    fit_weighted(points, |y| y.powi(-2)).filter(|_| points.iter().all(|&(_, y)| y > 0.0))
}

/// Least squares with a weight for each value.
fn fit_weighted(points: &[(f64, f64)], weight: impl Fn(f64) -> f64) -> Option<Line> {
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| weight(y) * of(x, y)).sum::<f64>();
    let weights = sum(&|_, _| 1.0);
    let mean_x = sum(&|x, _| x) / weights;
    let mean_y = sum(&|_, y| y) / weights;
    let sum_xx = sum(&|x, _| (x - mean_x).powi(2));
    let sum_xy = sum(&|x, y| (x - mean_x) * (y - mean_y));
    // The sum is not a number if a parameter has no logarithm.
    if points.len() < 3 || !sum_xx.is_finite() || sum_xx <= 0.0 {
        return None;
    }
    let slope = sum_xy / sum_xx;
    let intercept = mean_y - slope * mean_x;
    let residual = |&(x, y): &(f64, f64)| y - intercept - slope * x;
    let variance = sum(&|x, y| residual(&(x, y)).powi(2)) / (points.len() as f64 - 2.0);
    let t = student_upper_quantile(0.025, points.len() - 2);
    let (low, high) =
        points.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.1), high.max(p.1)));
    let range = (high - low).max(f64::MIN_POSITIVE);
    Some(Line {
        slope: Interval::around(slope, t * (variance / sum_xx).sqrt()),
        intercept: Interval::around(
            intercept,
            t * (variance * (1.0 / weights + mean_x.powi(2) / sum_xx)).sqrt(),
        ),
        worst_residual: points.iter().map(|p| residual(p).abs()).fold(0.0, f64::max) / range,
    })
}

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

/// A fitted law of growth: y = intercept + slope · law(n).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The law.
    pub law: Law,
    /// The line through the values against law(n).
    pub line: Line,
    /// Largest distance of a value from the line, as a share of the value.
    pub worst: f64,
}

/// Fewest points at which another law than the line is considered: any law with two parameters passes near three points.
const FEWEST: usize = 4;
/// Another law is taken if its largest error is less than this share of the line's largest error.
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

    #[test]
    fn an_exact_line_is_found_exactly() {
        let points: Vec<_> = (1..6).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
        let line = fit_line(&points).expect("five points");
        assert!((line.slope.estimate - 2.0).abs() < 1e-12);
        assert!((line.intercept.estimate - 3.0).abs() < 1e-12);
        assert!(line.worst_residual < 1e-12);
    }

    #[test]
    fn the_interval_agrees_with_a_worked_example() {
        // A small data set in the style of the NIST/SEMATECH handbook, from R: lm(c(2,4,5,4,5) ~ c(1,2,3,4,5)).
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let line = fit_line(&points).expect("five points");
        assert!((line.slope.estimate - 0.6).abs() < 1e-12);
        assert!((line.slope.low - -0.3).abs() < 0.001, "{:?}", line.slope);
        assert!((line.slope.high - 1.5).abs() < 0.001, "{:?}", line.slope);
    }

    #[test]
    fn too_few_points_give_no_line() {
        assert!(fit_line(&[(1.0, 1.0), (2.0, 2.0)]).is_none());
        assert!(fit_line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_none());
    }

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
    fn parameters_without_logarithm_and_values_of_zero_do_not_panic() {
        assert_eq!(
            fit_growth(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]).map(|f| f.law),
            Some(Law::Linear)
        );
        assert_eq!(fit_growth(&[(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)]), None);
        assert_eq!(fit_growth(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
