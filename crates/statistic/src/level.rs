//! Levels of a rising curve: stretches of constant value. Points between the stretches belong to no level.
//!
//! A curve of latency against size is constant while the data fit into a cache and rises, sometimes over a
//! factor of two in size, where they no longer do. So the fit may leave points out: each
//! stretch of constant value has a price, and so has each point outside. Dynamic programming finds the cheapest fit
//! exactly: optimal partitioning (Jackson et al. 2005), with gaps, and with a bounded loss
//! (Fearnhead and Rigaill 2019), so that one outlier has little effect.
//!
//! The module also locates the single fall of a rate over size, at the size beyond which a cache no longer holds the data.

use super::{Interval, median, median_interval};

/// Points a quarter of an octave apart are on one level if their values differ by less than this share, even if their
/// intervals do not overlap. Caches are hashed, page colours are random, and the value of a level that is partly used
/// drifts by some percent. Points farther apart may drift farther, as a random walk does.
const TOLERANCE: f64 = 0.08;
/// The spacing, in octaves, to which [`TOLERANCE`] applies.
const SPACING: f64 = 0.25;
/// Largest spacing, in octaves, at which levels are searched: the end of a cache could lie between wider-spaced points.
pub const WIDEST: f64 = 1.0;
/// The largest loss of a point on its level, in squares of the tolerance. An outlier costs no more than this.
const OUTLIER: f64 = 9.0;
/// The price of a point outside all levels: that of a point two tolerances away from its level.
const LOOSE: f64 = 4.0;
/// The prices of a level for closely and for widely spaced sizes. Each is about the price of the level's fewest points if
/// they were outside a level. With a lower price, parts of ramps would become levels.
const LEVEL: [f64; 2] = [12.0, 6.0];
/// The least ratio of the value of a level to that of the level before.
const STEP: f64 = 1.15;

/// A stretch of constant value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Its first point.
    pub first: usize,
    /// Its last point.
    pub last: usize,
    /// The median of its points, with an interval that contains the median of their lower ends and of their upper ends.
    pub value: Interval,
}

/// The levels of a rising curve, in order. The points run from the smallest size to the largest: `octaves` are the base-2
/// logarithms of the sizes, `values` their positive values, each with its own interval.
pub fn find_levels(octaves: &[f64], values: &[Interval]) -> Vec<Level> {
    let apart = median_spacing(octaves);
    if values.len() != octaves.len() || apart > 1.01 * WIDEST {
        return Vec::new();
    }
    let tolerance = TOLERANCE * (apart / SPACING).max(1.0).sqrt();
    let points: Vec<Point> = values.iter().map(|value| Point::from_interval(value, tolerance)).collect();
    // Two equal values of close sizes can be chance, so a level needs three points there.
    let stretches = match apart > 0.6 * WIDEST {
        true => candidate_stretches(&points, 2, LEVEL[1]),
        false => candidate_stretches(&points, 3, LEVEL[0]),
    };
    let chosen = cheapest_fit(&stretches, points.len());
    chosen.into_iter().map(|at| level_of_stretch(&stretches[at], values)).collect()
}

/// The median distance between neighbouring sizes, in octaves.
pub fn median_spacing(octaves: &[f64]) -> f64 {
    median(&octaves.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>())
}

/// The index of the last point between two levels that is nearer to the lower level. Noise may put the values between
/// out of order, so the function counts the values below the middle.
pub fn step_midpoint(values: &[Interval], below: &Level, above: &Level) -> usize {
    let middle = 0.5 * (below.value.estimate + above.value.estimate);
    let between = &values[below.last + 1..above.first];
    below.last + between.iter().filter(|value| value.estimate < middle).count()
}

/// The logarithm of a value, and the tolerance of that logarithm.
struct Point {
    log: f64,
    tolerance: f64,
}

impl Point {
    fn from_interval(value: &Interval, tolerance: f64) -> Self {
        let least = f64::MIN_POSITIVE;
        let half = 0.25 * (value.high.max(least).ln() - value.low.max(least).ln());
        Self { log: value.estimate.max(least).ln(), tolerance: tolerance.hypot(half) }
    }

    fn loss(&self, level: f64) -> f64 {
        ((self.log - level) / self.tolerance).powi(2).min(OUTLIER)
    }
}

/// Points that may be a level: those from index `first` to `end` − 1.
struct Stretch {
    first: usize,
    end: usize,
    log: f64,
    cost: f64,
}

fn candidate_stretches(points: &[Point], shortest: usize, price: f64) -> Vec<Stretch> {
    let last = points.len();
    let ranges = (0..last).flat_map(|first| (first + shortest..=last).map(move |end| (first, end)));
    ranges.map(|(first, end)| fit_stretch(points, first, end, price)).collect()
}

fn fit_stretch(points: &[Point], first: usize, end: usize, price: f64) -> Stretch {
    let logs: Vec<f64> = points[first..end].iter().map(|point| point.log).collect();
    let log = median(&logs);
    let cost = price + points[first..end].iter().map(|point| point.loss(log)).sum::<f64>();
    Stretch { first, end, log, cost }
}

/// The indices of the stretches in the cheapest fit by stretches and loose points, each stretch higher than the previous.
fn cheapest_fit(stretches: &[Stretch], points: usize) -> Vec<usize> {
    // Stretches are sorted by their beginning, so every possible predecessor has been judged.
    let mut judged: Vec<(f64, Option<usize>)> = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        let mut best = (loose_points_cost(0, stretch.first), None);
        for (at, before) in stretches[..judged.len()].iter().enumerate() {
            if before.end <= stretch.first && before.log + STEP.ln() <= stretch.log {
                let cost = judged[at].0 + loose_points_cost(before.end, stretch.first);
                if cost < best.0 {
                    best = (cost, Some(at));
                }
            }
        }
        judged.push((best.0 + stretch.cost, best.1));
    }
    let total = |at: &usize| judged[*at].0 + loose_points_cost(stretches[*at].end, points);
    let last = (0..stretches.len()).min_by(|a, b| total(a).total_cmp(&total(b)));
    let last = last.filter(|at| total(at) < loose_points_cost(0, points));
    let mut chosen: Vec<usize> = std::iter::successors(last, |at| judged[*at].1).collect();
    chosen.reverse();
    chosen
}

fn loose_points_cost(from: usize, to: usize) -> f64 {
    LOOSE * (to - from) as f64
}

fn level_of_stretch(stretch: &Stretch, values: &[Interval]) -> Level {
    let members = &values[stretch.first..stretch.end];
    let ends = |end: fn(&Interval) -> f64| members.iter().map(end).collect::<Vec<f64>>();
    let value = median_interval(&ends(|value| value.estimate));
    let low = value.low.min(median(&ends(|value| value.low)));
    let high = value.high.max(median(&ends(|value| value.high)));
    Level { first: stretch.first, last: stretch.end - 1, value: Interval { low, high, ..value } }
}

/// The least ratio of the median before a fall to the median after it.
const LEAST: f64 = 1.5;
/// The fewest points on each side: a single one may be an outlier.
const FEWEST: usize = 2;
/// The largest share of the points that may be on the wrong side of the middle.
const STRAYED: f64 = 0.2;

/// Where a curve falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// The index of the last point before the fall.
    pub last: usize,
    /// The median before the fall.
    pub before: Interval,
    /// The median after the fall.
    pub after: Interval,
}

/// The deepest fall of a curve; `None` if it does not fall. The positive values are ordered from the smallest size to
/// the largest.
///
/// Two constants are fitted to the logarithms by the least sum of absolute distances, so that an outlier has little
/// effect. Every place of the single change point is tried.
pub fn locate_fall(values: &[f64]) -> Option<Fall> {
    let logs: Vec<f64> = values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect();
    let places = FEWEST..(values.len() + 1).saturating_sub(FEWEST);
    let cost = |at: &usize| absolute_deviation_sum(&logs[..*at]) + absolute_deviation_sum(&logs[*at..]);
    let at = places.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let (before, after) = (median(&logs[..at]), median(&logs[at..]));
    let middle = 0.5 * (before + after);
    let strayed = logs[..at].iter().filter(|log| **log < middle).count()
        + logs[at..].iter().filter(|log| **log > middle).count();
    let falls = before - after >= LEAST.ln() && strayed as f64 <= STRAYED * logs.len() as f64;
    falls.then(|| Fall {
        last: at - 1,
        before: median_interval(&values[..at]),
        after: median_interval(&values[at..]),
    })
}

fn absolute_deviation_sum(logs: &[f64]) -> f64 {
    let middle = median(logs);
    logs.iter().map(|log| (log - middle).abs()).sum()
}

#[cfg(test)]
mod tests;
