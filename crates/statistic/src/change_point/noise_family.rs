//! The common noise of the series of one machine, a prior for the noise of each.

use super::base::{EFFICIENCY, deviation_of_neighbours};
use super::{Value, median_error};
use crate::median;

/// Fewest series from which it can be estimated how their deviations differ.
const FEWEST_SERIES: usize = 4;
/// Fewest values of a series from which its deviation can be estimated.
const FEWEST_VALUES: usize = 5;
/// Most degrees of freedom that a deviation learnt from other series counts for.
const MOST_DEGREES: f64 = 60.0;
/// A value is a stray if it is more than this number of deviations from the median of itself and its four neighbours.
const STRAY: f64 = 5.0;
/// The family's rate of strays weighs as much as this number of values of a series.
const BELIEF: f64 = 100.0;

/// The prior noise of a series, before its own values are tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of a value with the usual error.
    pub deviation: f64,
    /// Degrees of freedom of the deviation; 0 if it is unknown.
    pub degrees: f64,
    /// Share of the values that are lone outliers.
    pub strays: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self { deviation: 0.0, degrees: 0.0, strays: 1e-3 }
    }
}

impl Noise {
    /// The fewest values that can be a change at this level: by chance, that number of outliers in a row is rarer than it.
    pub(super) fn shortest_change(&self, level: f64) -> usize {
        (2..8).find(|&values| self.strays.powi(values) <= level).unwrap_or(8) as usize
    }
}

/// The noise of many series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// Standard deviation of the values, as a multiple of their own errors.
    factor: f64,
    degrees: f64,
    strays: f64,
}

impl Family {
    /// Estimates the common noise of series. Steps in them hardly matter, because it uses differences of neighbours.
    pub fn learn<'a>(series: impl IntoIterator<Item = &'a [Value]>) -> Self {
        let (mut found, mut strays, mut count) = (Vec::new(), 0.5, 1.0);
        for values in series.into_iter().filter(|values| values.len() >= FEWEST_VALUES) {
            let deviation = deviation_of_neighbours(&extract_values(values));
            strays += count_strays(values, deviation);
            count += values.len() as f64;
            let unit = median_error(values);
            if deviation > 0.0 && unit > 0.0 {
                found.push((deviation / unit, EFFICIENCY * (values.len() - 1) as f64));
            }
        }
        let (factor, degrees) = fit_prior(&found);
        Self { factor, degrees, strays: strays / count }
    }

    /// The prior noise of one series.
    pub fn noise_of_series(&self, values: &[Value]) -> Noise {
        let unit = median_error(values);
        let own = if values.len() >= FEWEST_VALUES {
            count_strays(values, deviation_of_neighbours(&extract_values(values)))
        } else {
            0.0
        };
        let strays = (own + BELIEF * self.strays) / (values.len() as f64 + BELIEF);
        let degrees = if unit > 0.0 { self.degrees } else { 0.0 };
        Noise { deviation: self.factor * unit, degrees, strays }
    }
}

fn extract_values(values: &[Value]) -> Vec<f64> {
    values.iter().map(|value| value.value).collect()
}

/// The number of lone outliers. The first and last two values do not count: the last two may be a step.
fn count_strays(values: &[Value], deviation: f64) -> f64 {
    let is_stray = |five: &&[Value]| {
        let around = extract_values(five);
        (around[2] - median(&around)).abs() > STRAY * deviation
    };
    if deviation > 0.0 { values.windows(5).filter(is_stray).count() as f64 } else { 0.0 }
}

/// The common factor and its degrees of freedom, from pairs of a deviation and its degrees of freedom, by moments of the
/// logarithms (Smyth 2004, section 6.2).
fn fit_prior(found: &[(f64, f64)]) -> (f64, f64) {
    if found.len() < FEWEST_SERIES {
        return (0.0, 0.0);
    }
    let centred = |&(deviation, degrees): &(f64, f64)| {
        2.0 * deviation.ln() - digamma(degrees / 2.0) + (degrees / 2.0).ln()
    };
    let logs: Vec<f64> = found.iter().map(centred).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let expected = found.iter().map(|(_, degrees)| trigamma(degrees / 2.0)).sum::<f64>() / count;
    let degrees = 2.0 * inverse_trigamma(spread - expected).min(MOST_DEGREES / 2.0);
    let variance = (mean + digamma(degrees / 2.0) - (degrees / 2.0).ln()).exp();
    (variance.sqrt(), degrees)
}

/// The digamma function: Abramowitz and Stegun 6.3.18, after steps of 6.3.5 up to where that series holds.
fn digamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 6.0 {
        below -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    below + x.ln() - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y / 252.0))
}

/// The trigamma function: Abramowitz and Stegun 6.4.12, after steps of 6.4.6.
fn trigamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 6.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    below + 1.0 / x + 0.5 * y + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y / 42.0))
}

/// Inverts [`trigamma`] by bisection; at most [`MOST_DEGREES`], also for a value of zero or less.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-3, MOST_DEGREES);
    if value <= trigamma(high) {
        return high;
    }
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    high
}
