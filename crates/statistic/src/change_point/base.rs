//! The stretch of values since the last change, and the test whether its newest values still belong to it.

use super::{ChangePoint, Noise, Value};
use crate::{median, student_upper_quantile};

/// The fewest values before the first change of a series.
const FEWEST: usize = 3;
/// The fewest values between two changes, so that a change may last only two nights. They are fewer than at first,
/// because the deviation is already known.
const FEWEST_LATER: usize = 2;
/// Values are clipped to ± this number of deviations about the centre.
const WIDEST: f64 = 4.0;
/// A group of at most [`FEW`] new values is clipped less: to ± this multiple of the limit of t, in deviations. So two values
/// can show a large step even if a poorly known deviation makes the limit large, or if their errors make their weight small.
const WIDEST_NEW: f64 = 4.0;
/// Larger limits of t are replaced by this one when values are clipped: the deviation is then practically unknown.
const MOST_LIMIT: f64 = 30.0;
/// Largest group of new values that must also show the change without the one that differs most.
const FEW: usize = 8;
/// Share of the step that more than half of at most [`FEW`] new values must reach.
const SHARE: f64 = 0.6;
/// The level at which at most [`FEW`] new values must differ even without the one that differs most.
const LEVEL_WITHOUT_ONE: f64 = 0.01;
/// Fewest neighbouring values that show whether the noise grew.
const NEAR_BY: usize = 12;
/// Differences of neighbours are clipped to this number of deviations, because one of them may be a step.
const WIDEST_DIFFERENCE: f64 = 6.0;
/// Degrees of freedom per difference of neighbours.
pub(super) const EFFICIENCY: f64 = 2.0 / 3.0;
/// Smallest deviation that is assumed: without it, after equal values any other value would be a change.
const LEAST: f64 = 1e-6;

pub(super) struct Base {
    start: usize,
    noise: Noise,
    level: f64,
    /// Number of values when the deviation was last estimated.
    learnt: usize,
    centre: f64,
    deviation: f64,
    degrees: f64,
    limit: f64,
    limit_without_one: f64,
    /// The values since the start, each with its weight.
    values: Vec<(f64, f64)>,
    /// Before each index the sum of the weights and the sum of the weighted clipped values.
    sums: Vec<(f64, f64)>,
    /// Before each index the sum of the squared clipped differences of neighbours.
    squares: Vec<f64>,
}

impl Base {
    pub(super) fn new(start: usize, noise: &Noise, level: f64) -> Self {
        Self {
            start,
            noise: *noise,
            level,
            learnt: 0,
            centre: 0.0,
            deviation: 0.0,
            degrees: 0.0,
            limit: f64::INFINITY,
            limit_without_one: f64::INFINITY,
            values: Vec::new(),
            sums: vec![(0.0, 0.0)],
            squares: vec![0.0],
        }
    }

    pub(super) fn degrees_of_freedom(&self) -> f64 {
        self.degrees
    }

    /// Adds the last of these values to the base.
    pub(super) fn add_last_value(&mut self, values: &[Value], weights: &[f64]) {
        let (Some(value), Some(&weight)) = (values.last(), weights.last()) else { return };
        self.values.push((value.value, weight));
        if self.values.len() >= self.learnt + 1 + self.learnt / 10 {
            self.relearn_deviation();
        } else {
            self.add(value.value, weight);
        }
    }

    /// Estimates centre and deviation again from all but the newest values, which may already follow a change.
    fn relearn_deviation(&mut self) {
        self.learnt = self.values.len();
        let known = self.values.len().saturating_sub(self.noise.shortest_change(self.level)).max(1);
        let known = &self.values[..known];
        let spread = Spread::from_values(known);
        let own = EFFICIENCY * (known.len() - 1) as f64;
        self.centre = spread.centre;
        self.degrees = own + self.noise.degrees;
        let sum = own * spread.variance + self.noise.degrees * self.noise.deviation.powi(2);
        self.deviation = (sum / self.degrees.max(1.0)).sqrt().max(LEAST);
        let limit = |level: f64| student_upper_quantile(level / 2.0, self.degrees as usize);
        (self.limit, self.limit_without_one) = (limit(self.level), limit(LEVEL_WITHOUT_ONE));
        self.sums.truncate(1);
        self.squares.truncate(1);
        for at in 0..self.values.len() {
            let (value, weight) = self.values[at];
            self.add(value, weight);
        }
    }

    fn add(&mut self, value: f64, weight: f64) {
        let reach = WIDEST * self.deviation;
        let value = value.clamp(self.centre - reach, self.centre + reach);
        let at = self.squares.len() - 1;
        let before = if at > 0 { self.values[at - 1].0 } else { self.values[at].0 };
        let difference = (self.values[at].0 - before).abs().min(WIDEST_DIFFERENCE * self.deviation);
        self.squares.push(self.squares[at] + difference.powi(2));
        let (weights, sum) = self.sums[self.sums.len() - 1];
        self.sums.push((weights + weight, sum + weight * value));
    }

    /// The change point, if the newest values do not belong to the base any more; else `None`.
    pub(super) fn find_change(&self) -> Option<ChangePoint> {
        let most = self.values.len().checked_sub(self.fewest_before_change())?;
        let looks = window_sizes().take_while(|&new| new <= most);
        let looks = looks.filter(|&new| new >= self.noise.shortest_change(self.level));
        let seen =
            looks.filter_map(|new| self.t_of_newest(new).filter(|&t| t > self.limit).map(|t| (new, t)));
        let (new, _) = seen.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let at = self.best_split(new);
        let (before, after) = (self.weight_and_mean(0, at), self.weight_and_mean(at, self.values.len()));
        let error = self.local_deviation(new) * (1.0 / before.0 + 1.0 / after.0).sqrt();
        let found = self.start + self.values.len() - 1;
        Some(ChangePoint { at: self.start + at, found, step: after.1 - before.1, error })
    }

    fn fewest_before_change(&self) -> usize {
        if self.start > 0 { FEWEST_LATER } else { FEWEST }
    }

    /// Student's t of the newest `new` values against the others; `None` if one of a few values alone causes it.
    fn t_of_newest(&self, new: usize) -> Option<f64> {
        let at = self.values.len() - new;
        let before = self.weight_and_mean(0, at);
        let wider = self.local_deviation(new) / self.deviation;
        if new > FEW {
            return Some(self.t_statistic(before, self.weight_and_mean(at, self.values.len())).abs() / wider);
        }
        let after = self.clipped_values_from(at, before.1);
        let t = self.t_statistic(before, weighted_mean(&after)) / wider;
        let far = |at: &usize| after[*at].0 * t.signum();
        let farthest = (0..new).max_by(|a, b| far(a).total_cmp(&far(b)))?;
        let mut others = after.clone();
        others.remove(farthest);
        let step = weighted_mean(&after).1 - before.1;
        let beyond = after.iter().filter(|value| (value.0 - before.1) * step.signum() >= SHARE * step.abs());
        let is_of_most = 2 * beyond.count() > new;
        let is_without_one =
            self.t_statistic(before, weighted_mean(&others)) * t.signum() / wider > self.limit_without_one;
        (is_of_most && is_without_one).then_some(t.abs())
    }

    fn t_statistic(&self, before: (f64, f64), after: (f64, f64)) -> f64 {
        (after.1 - before.1) / (self.deviation * (1.0 / before.0 + 1.0 / after.0).sqrt())
    }

    /// The deviation near the newest values, at least that of the base: where the noise grew, a few distant values
    /// are no step. The differences of neighbours, except the one at the step, give the deviation if they are larger
    /// than chance allows.
    pub(super) fn local_deviation(&self, new: usize) -> f64 {
        let (end, split) = (self.values.len(), self.values.len() - new);
        let first = end.saturating_sub((2 * new).max(NEAR_BY)).max(1);
        let of_step = self.squares[split + 1] - self.squares[split];
        let count = (end - first).saturating_sub(1);
        let variance = (self.squares[end] - self.squares[first] - of_step) / (2.0 * count.max(1) as f64);
        let base = self.deviation.powi(2);
        if variance > variance_ratio_limit(EFFICIENCY * count as f64) * base {
            variance.sqrt()
        } else {
            self.deviation
        }
    }

    /// The values from index `at` on, clipped about `before`, each with its weight.
    fn clipped_values_from(&self, at: usize, before: f64) -> Vec<(f64, f64)> {
        let reach = WIDEST_NEW * self.limit.min(MOST_LIMIT) * self.deviation;
        let clipped = |&(value, weight): &(f64, f64)| (value.clamp(before - reach, before + reach), weight);
        self.values[at..].iter().map(clipped).collect()
    }

    /// The weight of a range of values and the mean of its clipped values.
    fn weight_and_mean(&self, from: usize, to: usize) -> (f64, f64) {
        let ((weights, sum), (weights_before, sum_before)) = (self.sums[to], self.sums[from]);
        let weight = weights - weights_before;
        (weight, (sum - sum_before) / weight)
    }

    /// The index of the split with the largest t, near the one that was found. At most [`FEW`] new values are clipped less
    /// here, too.
    fn best_split(&self, new: usize) -> usize {
        let end = self.values.len();
        let first = end.saturating_sub(4 * new + FEW).max(self.fewest_before_change());
        let head = self.weight_and_mean(0, first);
        let near = self.clipped_values_from(first, head.1);
        let split = |at: usize| match new > FEW {
            true => (self.weight_and_mean(0, at), self.weight_and_mean(at, end)),
            false => {
                let (before, after) = near.split_at(at - first);
                (weighted_mean(&[&[(head.1, head.0)], before].concat()), weighted_mean(after))
            }
        };
        let t = |at: usize| {
            let (before, after) = split(at);
            self.t_statistic(before, after).abs()
        };
        let best = (first..=end - 2).max_by(|&a, &b| t(a).total_cmp(&t(b)));
        best.unwrap_or(end - new)
    }
}

/// The share of the true variance that one variance in ten exceeds, with this number of degrees of freedom (Wilson and Hilferty 1931,
/// Proceedings of the National Academy of Sciences 17).
fn variance_ratio_limit(degrees: f64) -> f64 {
    const ONE_IN_TEN: f64 = 1.282;
    let part = 2.0 / (9.0 * degrees.max(1.0));
    (1.0 - part + ONE_IN_TEN * part.sqrt()).powi(3)
}

/// The sum of the weights and the weighted mean.
fn weighted_mean(values: &[(f64, f64)]) -> (f64, f64) {
    let weight: f64 = values.iter().map(|value| value.1).sum();
    (weight, values.iter().map(|(value, weight)| value * weight).sum::<f64>() / weight)
}

/// The numbers of newest values that are tested: 2, 3, 4, 6, 8, 12, 16, …
fn window_sizes() -> impl Iterator<Item = usize> {
    (1..48).flat_map(|power| [1usize << power, 3usize << (power - 1)])
}

/// Centre and variance of values with outliers clipped.
struct Spread {
    centre: f64,
    variance: f64,
}

impl Spread {
    fn from_values(values: &[(f64, f64)]) -> Self {
        let plain: Vec<f64> = values.iter().map(|value| value.0).collect();
        let centre = median(&plain);
        let away: Vec<f64> = plain.iter().map(|value| (value - centre).abs()).collect();
        // The median deviation of a few values is imprecise, so the fewer they are, the less they are clipped.
        let reach = WIDEST * median(&away) / 0.6745 * (1.0 + 3.0 / plain.len() as f64);
        let clipped = |value: f64| value.clamp(centre - reach, centre + reach);
        let total: f64 = values.iter().map(|value| value.1).sum();
        let mean = values.iter().map(|&(value, weight)| weight * clipped(value)).sum::<f64>() / total;
        let squares: f64 =
            values.iter().map(|&(value, weight)| weight * (clipped(value) - mean).powi(2)).sum();
        let about_the_mean = squares / (plain.len() - 1).max(1) as f64;
        // A step that was not found yet increases the variance about the mean, but hardly that from neighbours.
        Self { centre, variance: about_the_mean.min(deviation_of_neighbours(&plain).powi(2)) }
    }
}

/// The deviation from differences of neighbours (Rice 1984, Annals of Statistics 12), of which a step changes only one.
/// They are clipped to two of their own deviations; that removes 8 % of a normal variance, which `KEPT` corrects.
pub(super) fn deviation_of_neighbours(values: &[f64]) -> f64 {
    const KEPT: f64 = 0.920_5;
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let widest = 2.0 * median(&steps) / 0.6745;
    let squares: f64 = steps.iter().map(|step| step.min(widest).powi(2)).sum();
    (squares / (KEPT * 2.0 * steps.len().max(1) as f64)).sqrt()
}
