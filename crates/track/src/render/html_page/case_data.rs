//! The data of a case for the page's script, with the shape of its samples: a histogram small enough for a row of a table.

use serde::Serialize;
use serde_json::{Value, json};
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::{Bar, CaseRecord, Distribution, GroupRun, Interval, Measured};
use syscost_engine::study::basis::{best_cost, ratio_to_prediction};
use syscost_engine::study::disturbance::disturbance_summary;

/// The data of a case of this group, in this unit. `outcomes` has every outcome that applies, since an unsettled case also counts as
/// measured; `outcome` is the last of them. A case without a number has the reason as `sentence`.
pub(super) fn case_data(case: &CaseRecord, group: &GroupRun, unit: &str) -> Value {
    let is_open = case.measured().is_some_and(|measured| !measured.is_settled());
    let is_unwitnessed = case.measured().is_some_and(Measured::is_unwitnessed);
    let words =
        [(true, case.outcome.status_word()), (is_open, "not settled"), (is_unwitnessed, "unwitnessed")];
    let outcomes: Vec<_> = words.into_iter().filter_map(|(is_so, word)| is_so.then_some(word)).collect();
    let mut data = match case.measured() {
        Some(measured) => figure_data(measured, group, unit),
        None => json!({ "sentence": case.outcome.reason() }),
    };
    (data["id"], data["title"]) = (json!(case.id), json!(case.title));
    (data["outcome"], data["outcomes"]) = (json!(outcomes.last()), json!(outcomes));
    data
}

/// The data of a measured case. `figure` is the main figure with the interval in which the next run's will lie: the quiet figure, or
/// else the median of one execution. `expected` has the hardware's and the software's part, ns. An execution has the time of its end
/// (seconds after the beginning of the run), its lower quartile, its median, and the core's frequency in GHz.
fn figure_data(m: &Measured, group: &GroupRun, unit: &str) -> Value {
    let ends = |Interval { estimate, low, high }: Interval| [estimate, low, high];
    let executions = m.executions.iter().map(|e| (e.at, e.low, e.median, e.core_hz.map(|hz| hz / 1e9)));
    let mut data = json!({
        "figure": ends(m.figure()), "quiet": m.quiet.is_some(), "typical": ends(m.median), "ticks": m.ticks,
        "faster": m.quiet.and_then(|quiet| quiet.faster), "earlier": m.quiet.map_or(0, |quiet| quiet.earlier),
        "net": best_cost(m).map(|(_, figure)| figure.estimate), "ratio": ratio_to_prediction(m),
        "expected": m.predicted.as_ref().map(|p| [p.hardware, p.software]), "instructions": m.instructions,
        "samples": m.counted.len(), "disturbed": m.contamination.count_disturbed(),
        "executions": executions.collect::<Vec<_>>(), "shape": case_shape(m, group.clock.hz, unit),
        "derived": m.derived, "evidence": m.evidence, "unasked": m.unasked, "left_out": m.left_out,
    });
    let percentiles = m.distribution.as_ref().map(|d| &d.percentiles).filter(|all| !all.is_empty());
    let rare = [
        ("why", json!(m.predicted.as_ref().map(|p| &p.why))),
        ("percentiles", json!(percentiles)),
        ("meanwhile", json!(m.meanwhile.as_ref().map(disturbance_summary))),
        ("matrix", json!(m.matrix)),
    ];
    for (name, value) in rare.into_iter().filter(|(_, value)| !value.is_null()) {
        data[name] = value;
    }
    data
}

/// The number of bars of a shape.
const BARS: usize = 40;
/// The least width of a shape as a share of its median, so that the noise of a quiet case looks small.
const LEAST_SPAN: f64 = 0.04;
/// The share of the values that is drawn. Higher values are only counted, since one far outlier would squeeze all the other
/// bars.
const DRAWN: f64 = 0.98;
/// A sample above this multiple of the median was disturbed and is not drawn. For single operations there is no such limit, since
/// their tail matters.
const MOST: f64 = 2.5;
/// If the high end exceeds the low end by more than this factor, the bars have equal ratios instead of equal widths.
const WIDE: f64 = 4.0;

/// A histogram between two values, in the record's unit.
#[derive(Debug, PartialEq, Serialize)]
struct Shape {
    low: f64,
    high: f64,
    /// Whether the bars have equal ratios instead of equal widths.
    logarithmic: bool,
    bars: Vec<u64>,
    /// The number of values above `high`, and the greatest of all values.
    beyond: u64,
    greatest: f64,
}

/// The shape of single operations if they were timed one by one, else of the samples; `None` if there are no samples.
fn case_shape(measured: &Measured, hz: f64, unit: &str) -> Option<Shape> {
    let (bars, most) = match measured.distribution.as_ref() {
        Some(Distribution { histogram, .. }) if !histogram.is_empty() => (histogram.clone(), f64::INFINITY),
        _ => (sample_bars(measured, hz, unit).collect(), MOST),
    };
    shape_of_bars(bars.into_iter().filter(|bar| bar.low.is_finite() && bar.low > 0.0).collect(), most)
}

/// One bar for each sample, at its cost per iteration in the record's unit.
fn sample_bars(measured: &Measured, hz: f64, unit: &str) -> impl Iterator<Item = Bar> {
    let per_count = if unit == NANOSECONDS && hz > 0.0 { 1e9 / hz } else { 1.0 };
    let both = measured.counted.iter().zip(&measured.iterations);
    both.map(move |(&counted, &iterations)| Bar {
        low: counted as f64 * per_count / iterations as f64,
        count: 1,
    })
}

/// The histogram of these values; `None` without values. `most` is the highest value that is drawn, as a multiple of the median.
fn shape_of_bars(mut values: Vec<Bar>, most: f64) -> Option<Shape> {
    values.sort_by(|a, b| a.low.total_cmp(&b.low));
    let greatest = values.last()?.low;
    let median = value_at_share(&values, 0.5);
    let spare = LEAST_SPAN / 2.0 * median;
    let (low, high) = (values[0].low, value_at_share(&values, DRAWN).min(most * median));
    let middle = (low + high) / 2.0;
    let (low, high) = (low.min(middle - spare), high.max(middle + spare));
    let logarithmic = high > WIDE * low && low > 0.0;
    let place = |value: f64| {
        if logarithmic { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
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

/// The quantile at this share of all counts. The bars must be sorted.
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
    fn there_is_no_shape_without_values() {
        assert_eq!(shape_of_bars(Vec::new(), MOST), None);
        let none = Measured { counted: vec![0, 0], iterations: vec![0, 1], ..Measured::default() };
        assert_eq!(case_shape(&none, 1e9, "ns"), None);
    }
}
