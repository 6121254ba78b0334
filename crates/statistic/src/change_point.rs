//! Change points of a series that grows by a value a night. The search is sequential: a step is reported soon after it
//! happened, and a reported change stays the same when the series grows.
//!
//! **The rule.** The values since the last change are the *base*. Each night Student's t of two means compares the last 2, 3,
//! 4, 6, 8, 12, … values of the base with the earlier ones. They are a change if t exceeds the quantile of the level. Two
//! conditions apply to up to eight values, so that one outlier, however large, is no change. The values without the one
//! farthest off must show the change at a weaker level, and more than half must exceed 0.6 of the step. The split with the
//! largest t is the place of the change.
//!
//! **The deviation** is that of the base, whose values are first clipped to four deviations about the median. Other series
//! of the same machine ([`Family`]) moderate it, because five nights estimate a deviation poorly. If the differences of
//! neighbours near the end give a variance that chance exceeds in less than one case in ten, their deviation is taken: noise
//! that grows is no step. A value counts for less if its own error is larger than usual. The fewest values of a change
//! follow from the rate of lone outliers: 2, where they are rare.
//!
//! The time for a series of n values is O(n log n): sums of the values are kept, and the deviation is estimated again
//! whenever the base has grown by a tenth.
//!
//! Source: the generalized likelihood ratio over windows, Lai 1995 (JRSS B 57) and Siegmund and Venkatraman 1995 (Annals of
//! Statistics 23); the moderated deviation, Smyth 2004 (Statistical Applications in Genetics 3); the location of a split as
//! in binary segmentation and E-divisive means, Matteson and James 2014 (JASA 109), whose energy statistic with exponent 2
//! is this t up to a factor.

mod base;
mod noise_family;
#[cfg(test)]
mod tests;

pub use noise_family::{Family, Noise};

use base::Base;

/// The fewest values of a stretch whose median uses all of them. A shorter stretch uses only the values up to the one that
/// revealed its beginning.
const LONG: usize = 8;

/// A value with its own standard error, 0 where that is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The value, usually a log ratio.
    pub value: f64,
    /// Its standard error, estimated from its own measurement.
    pub error: f64,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Index of the last value of the series when the change was found.
    pub found: usize,
    /// Mean after the change less mean before it.
    pub step: f64,
    /// Standard error of the step.
    pub error: f64,
}

/// The level (probability of a false alarm) of one test of one series, if `series` series are tested every night. With 40
/// series it is 3 in 100 000. Each night makes a few nearly independent tests of each series, so ten months of 30 nights
/// give about one false alarm.
pub fn error_level(series: usize) -> f64 {
    (1.2e-3 / series.max(1) as f64).min(1e-4)
}

/// The change points, in order, of a series with this noise.
pub fn change_points(values: &[Value], noise: &Noise, level: f64) -> Vec<ChangePoint> {
    let weights = value_weights(values);
    let mut found = Vec::new();
    let mut base = Base::new(0, noise, level);
    for end in 1..=values.len() {
        base.add_last_value(&values[..end], &weights[..end]);
        let Some(change) = base.find_change() else { continue };
        found.push(change);
        let new = end - change.at;
        let known = Noise {
            deviation: base.local_deviation(new),
            degrees: base.degrees_of_freedom().min(30.0),
            ..*noise
        };
        base = Base::new(change.at, &known, level);
        for end in change.at + 1..=end {
            base.add_last_value(&values[..end], &weights[..end]);
        }
    }
    with_median_steps(values, found)
}

/// The weight of each value: 1, or less if its own error is above the median error.
fn value_weights(values: &[Value]) -> Vec<f64> {
    let usual = median_error(values);
    let weight = |value: &Value| {
        if usual > 0.0 && value.error > usual { (usual / value.error).powi(2) } else { 1.0 }
    };
    values.iter().map(weight).collect()
}

/// The median of the values' own errors; 0 if most have none.
fn median_error(values: &[Value]) -> f64 {
    super::median(&values.iter().map(|value| value.error).collect::<Vec<_>>())
}

/// Sets each step to the difference between the medians of the stretches before and after it. A stretch shorter
/// than [`LONG`] may hide the next step, so only its values up to the one that revealed the step count.
fn with_median_steps(values: &[Value], found: Vec<ChangePoint>) -> Vec<ChangePoint> {
    let starts: Vec<_> = std::iter::once(0).chain(found.iter().map(|change| change.at)).collect();
    let middle = |index: usize| {
        let end = starts.get(index + 1).copied().unwrap_or(values.len());
        let looked = index.checked_sub(1).map(|change| found[change].found + 1);
        let end = if end - starts[index] < LONG { looked.unwrap_or(end).min(end) } else { end };
        super::median(&values[starts[index]..end].iter().map(|value| value.value).collect::<Vec<_>>())
    };
    let middles: Vec<_> = (0..starts.len()).map(middle).collect();
    let with_step = |(index, change): (usize, ChangePoint)| ChangePoint {
        step: middles[index + 1] - middles[index],
        ..change
    };
    found.into_iter().enumerate().map(with_step).collect()
}
