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
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sum_xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let sum_xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    if points.len() < 3 || sum_xx <= 0.0 {
        return None;
    }
    let slope = sum_xy / sum_xx;
    let intercept = mean_y - slope * mean_x;
    let residual = |&(x, y): &(f64, f64)| y - intercept - slope * x;
    let variance = points.iter().map(|p| residual(p).powi(2)).sum::<f64>() / (n - 2.0);
    let t = student_upper_quantile(0.025, points.len() - 2);
    let range = range_of_y(points);
    Some(Line {
        slope: Interval::around(slope, t * (variance / sum_xx).sqrt()),
        intercept: Interval::around(intercept, t * (variance * (1.0 / n + mean_x.powi(2) / sum_xx)).sqrt()),
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
