//! The core's frequency, which was inferred beside each value from a chain of additions. Times at two frequencies are
//! compared as numbers of cycles.

use crate::record::bundle::{Head, Series};
use crate::statistic::median;
use syscost_engine::record::quantity::NANOSECONDS;

/// Whether every value of these series has a frequency.
pub(super) fn is_known(series: [&Series; 2]) -> bool {
    series.iter().all(|series| series.values.iter().all(|value| value.core_hz.is_some()))
}

/// The time of a cycle on the second side over that on the first; `None` if no time was measured, or a side has no
/// frequency.
pub(super) fn cycle_time_ratio(a: &Head, b: &Head) -> Option<f64> {
    let timed = [a, b].iter().all(|head| head.unit == NANOSECONDS);
    Some(median_frequency(a)? / median_frequency(b)?).filter(|_| timed)
}

fn median_frequency(head: &Head) -> Option<f64> {
    let values = head.series.iter().flat_map(|series| &series.values);
    let known: Vec<f64> = values.filter_map(|value| value.core_hz).collect();
    (!known.is_empty()).then(|| median(&known))
}
