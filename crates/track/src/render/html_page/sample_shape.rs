//! The shape of a case's samples: a histogram small enough for a row of a table.

use serde::Serialize;
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::{Bar, Distribution, Measured};

/// Bars of a shape.
const BARS: usize = 40;
/// A shape spans this share of its median at least, so that the noise of a quiet case looks small.
const LEAST_SPAN: f64 = 0.04;
/// Share of the values that is drawn. Higher ones are only counted, since one far sample would squeeze all the
/// others.
const DRAWN: f64 = 0.98;
/// A sample beyond this multiple of the median was disturbed; of single operations the tail is what matters.
const MOST: f64 = 2.5;
/// A factor between the ends from which the bars have equal ratios and no longer equal widths.
const WIDE: f64 = 4.0;

/// Bars between two values, in the record's unit.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Shape {
    low: f64,
    high: f64,
    /// Whether each bar is as many times higher than the one before.
    logarithmic: bool,
    bars: Vec<u64>,
    /// Number of values above `high`, and the greatest of them.
    beyond: u64,
    greatest: f64,
}

/// The shape of single operations where they were timed one by one, else of the samples. `None` of a case without samples.
pub(super) fn case_shape(measured: &Measured, hz: f64, unit: &str) -> Option<Shape> {
    let (bars, most) = match measured.distribution.as_ref() {
        Some(Distribution { histogram, .. }) if !histogram.is_empty() => (histogram.clone(), f64::INFINITY),
        _ => (sample_bars(measured, hz, unit).collect(), MOST),
    };
    shape_of_bars(bars.into_iter().filter(|bar| bar.low.is_finite() && bar.low > 0.0).collect(), most)
}

fn sample_bars(measured: &Measured, hz: f64, unit: &str) -> impl Iterator<Item = Bar> {
    let per_count = if unit == NANOSECONDS && hz > 0.0 { 1e9 / hz } else { 1.0 };
    let both = measured.counted.iter().zip(&measured.iterations);
    both.map(move |(&counted, &iterations)| Bar {
        low: counted as f64 * per_count / iterations as f64,
        count: 1,
    })
}

/// `most` is the furthest that is drawn, as a multiple of the median.
fn shape_of_bars(mut values: Vec<Bar>, most: f64) -> Option<Shape> {
    values.sort_by(|a, b| a.low.total_cmp(&b.low));
    let greatest = values.last()?.low;
    let median = value_at_share(&values, 0.5);
    let spare = LEAST_SPAN / 2.0 * median;
    let (low, high) = (values[0].low, value_at_share(&values, DRAWN).min(most * median));
    let middle = (low + high) / 2.0;
    let (low, high) = (low.min(middle - spare), high.max(middle + spare));
    let logarithmic = high > WIDE * low && low > 0.0;
    let place = |value: f64| match logarithmic {
        true => (value / low).ln() / (high / low).ln(),
        false => (value - low) / (high - low),
    };
    let (mut bars, mut beyond) = (vec![0; BARS], 0);
    for bar in &values {
        match place(bar.low) {
            share if share > 1.0 => beyond += bar.count,
            share => bars[((share * BARS as f64) as usize).min(BARS - 1)] += bar.count,
        }
    }
    Some(Shape { low, high, logarithmic, bars, beyond, greatest })
}

/// The value at this share of all counts; the bars are in order.
fn value_at_share(bars: &[Bar], share: f64) -> f64 {
    let wanted = share * bars.iter().map(|bar| bar.count).sum::<u64>() as f64;
    let mut seen = 0;
    let found = bars.iter().find(|bar| {
        seen += bar.count;
        seen as f64 >= wanted
    });
    found.or(bars.last()).map_or(0.0, |bar| bar.low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[f64]) -> Vec<Bar> {
        values.iter().map(|&low| Bar { low, count: 1 }).collect()
    }

    #[test]
    fn every_value_is_in_a_bar_or_beyond() {
        let values: Vec<f64> = (0..100).map(|i| 100.0 + f64::from(i % 7)).chain([9e9]).collect();
        let shape = shape_of_bars(bars(&values), f64::INFINITY).expect("values");
        assert_eq!(shape.bars.iter().sum::<u64>() + shape.beyond, 101);
        assert_eq!((shape.beyond, shape.greatest, shape.logarithmic), (1, 9e9, false));
    }

    #[test]
    fn equal_values_stand_in_the_middle_of_a_span() {
        let shape = shape_of_bars(bars(&[50.0; 9]), MOST).expect("values");
        assert!(shape.low < 50.0 && shape.high > 50.0 && shape.bars.contains(&9), "{shape:?}");
    }

    #[test]
    fn a_wide_shape_has_equal_ratios() {
        let values: Vec<f64> = (0..200).map(|i| 1.05f64.powi(i)).collect();
        assert!(shape_of_bars(bars(&values), f64::INFINITY).is_some_and(|shape| shape.logarithmic));
    }

    #[test]
    fn of_nothing_there_is_no_shape() {
        assert_eq!(shape_of_bars(Vec::new(), MOST), None);
        let none = Measured { counted: vec![0, 0], iterations: vec![0, 1], ..Measured::default() };
        assert_eq!(case_shape(&none, 1e9, "ns"), None);
    }
}
