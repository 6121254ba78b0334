//! A straight line through points, with intervals for its two numbers.

use super::{Interval, student_upper_quantile};

/// A fitted line y = intercept + slope·x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Cost of one step of x, with its 95 % interval.
    pub slope: Interval,
    /// Value at x = 0, with its 95 % interval. May be negative: it is published as it is.
    pub intercept: Interval,
    /// Largest distance of a point from the line, as a share of the range of y.
    pub worst_residual: f64,
}

/// Ordinary least squares with Student's t intervals (Montgomery, *Introduction to Linear Regression
/// Analysis*, 2.3). `None` with fewer than three points or when every x is the same.
pub fn fit_line(points: &[(f64, f64)]) -> Option<Line> {
    fit_weighted(points, |_| 1.0)
}

/// As [`fit_line`], with distances as shares of the values: points that lie decades apart count alike. `None` also if a
/// value is not positive.
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
    // Not a number where a parameter has no logarithm.
    if points.len() < 3 || !sum_xx.is_finite() || sum_xx <= 0.0 {
        return None;
    }
    let slope = sum_xy / sum_xx;
    let intercept = mean_y - slope * mean_x;
    let residual = |&(x, y): &(f64, f64)| y - intercept - slope * x;
    let variance = sum(&|x, y| residual(&(x, y)).powi(2)) / (points.len() as f64 - 2.0);
    let t = student_upper_quantile(0.025, points.len() - 2);
    let range = range_of_y(points);
    Some(Line {
        slope: Interval::around(slope, t * (variance / sum_xx).sqrt()),
        intercept: Interval::around(
            intercept,
            t * (variance * (1.0 / weights + mean_x.powi(2) / sum_xx)).sqrt(),
        ),
        worst_residual: points.iter().map(|p| residual(p).abs()).fold(0.0, f64::max) / range,
    })
}

fn range_of_y(points: &[(f64, f64)]) -> f64 {
    let (low, high) =
        points.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.1), high.max(p.1)));
    (high - low).max(f64::MIN_POSITIVE)
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
        // NIST/SEMATECH handbook's Norris-like toy set, redone in R: lm(c(2,4,5,4,5) ~ c(1,2,3,4,5)).
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
}
