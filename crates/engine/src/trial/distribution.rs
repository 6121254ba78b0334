//! Distribution of operations that were timed one by one: percentiles and a histogram.

use crate::record::{Bar, Distribution};
use crate::statistic::percentile;
use hdrhistogram::Histogram;

/// Significant decimal digits of a bar's position.
const DIGITS: u8 = 3;
/// Resolution of the bars: tenths of a nanosecond, because a call of 5 ns has a distribution too.
const UNITS_A_NS: f64 = 10.0;

/// The distribution of these durations, ns; `None` if there are none.
pub(super) fn summarize(values: &[f64]) -> Option<Distribution> {
    let percentiles =
        Distribution::percentiles_of_count(values.len()).map(|p| (p, percentile(values, p))).collect();
    let histogram = histogram_bars(values);
    (!values.is_empty()).then_some(Distribution { count: values.len(), percentiles, histogram })
}

/// Share of the values that are equal to the one before.
pub(super) fn repeated_share(values: &[f64]) -> f64 {
    let equal = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    equal as f64 / values.len().max(2) as f64
}

/// The bars that are not empty; no bars if the histogram refuses a value.
fn histogram_bars(values: &[f64]) -> Vec<Bar> {
    let Ok(mut histogram) = Histogram::<u64>::new(DIGITS) else { return Vec::new() };
    for value in values {
        if histogram.record((value * UNITS_A_NS).round() as u64).is_err() {
            return Vec::new();
        }
    }
    let bar = |unit: hdrhistogram::iterators::IterationValue<u64>| Bar {
        low: histogram.lowest_equivalent(unit.value_iterated_to()) as f64 / UNITS_A_NS,
        count: unit.count_at_value(),
    };
    histogram.iter_recorded().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_the_bars() {
        let values: Vec<f64> = (1..=5000).map(|i| f64::from(i) * 1.7).chain([1e9]).collect();
        let distribution = summarize(&values).expect("values");
        let counted: u64 = distribution.histogram.iter().map(|bar| bar.count).sum();
        assert_eq!(counted, 5001);
        assert!(distribution.histogram.is_sorted_by(|a, b| a.low < b.low));
        let last = distribution.histogram.last().expect("a bar");
        assert!(last.count == 1 && last.low <= 1e9 && last.low > 0.98e9, "{last:?}");
        assert!(distribution.histogram.len() < 4000, "{}", distribution.histogram.len());
        assert_eq!(distribution.percentiles.last(), Some(&(100.0, 1e9)));
        assert_eq!(
            (distribution.value_at(99.9).is_some(), distribution.value_at(99.99)),
            (true, None),
            "of 5001"
        );
        assert_eq!(summarize(&[]), None);
    }
}
