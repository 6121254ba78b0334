//! Checks at the end of an experiment that a value known beforehand lies in the measured interval.
//!
//! An experiment that cannot fail shows nothing. [`Known::check_truth`] fails if the known value lies outside of the
//! interval. [`Known::with_moved_truth`] shifts the value by more than the width of the interval, so that the check must
//! fail.
//!
//! ```
//! use syscost_technique::{Interval, known::Known};
//!
//! let found = Interval { estimate: 0.47, low: 0.44, high: 0.50 };
//! assert!(Known::with_actual_truth().check_truth("the load is on", 0.48, found).is_ok());
//! assert!(Known::with_moved_truth().check_truth("the load is on", 0.48, found).is_err());
//! ```

use super::Interval;
use syscost_platform::error::{Error, Result};

/// A check of known values, which are either left as they are or shifted on purpose.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    is_moved: bool,
}

impl Known {
    /// A check against the values as they are.
    pub const fn with_actual_truth() -> Self {
        Self { is_moved: false }
    }

    /// A check against shifted values. Each value is moved up by more than the width of the interval, or by 1 if the width is
    /// 0, so that an interval that holds the value does not hold the shifted one.
    pub const fn with_moved_truth() -> Self {
        Self { is_moved: true }
    }

    /// Shifts the values if one of the arguments is `--moved`; otherwise leaves them.
    pub fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Self {
        Self { is_moved: arguments.any(|argument| argument == "--moved") }
    }

    /// Checks that `truth` lies in the interval `found`, and returns a sentence that says so.
    ///
    /// # Errors
    /// [`Error::Disproved`] if it lies outside or is not a number.
    pub fn check_truth(self, what: &str, truth: f64, found: Interval) -> Result<String> {
        let truth = truth + if self.is_moved { shift_out_of(found) } else { 0.0 };
        let Interval { estimate, low, high } = found;
        let sentence = if low < high {
            format!("{what}: {truth:.6} in truth, {estimate:.6} found, in [{low:.6}, {high:.6}]")
        } else {
            format!("{what}: {truth} in truth, {estimate} found, exactly")
        };
        if (low..=high).contains(&truth) {
            return Ok(format!("known: {sentence}"));
        }
        Err(Error::Disproved(format!("{sentence}: the truth lies outside")))
    }
}

/// A distance that is greater than the width of an interval.
fn shift_out_of(Interval { low, high, .. }: Interval) -> f64 {
    let width = high - low;
    if width > 0.0 { 1.01 * width } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_the_interval_passes_and_a_moved_one_fails() {
        for found in [Interval::exactly(7.0), Interval::around(7.0, 1e-6), Interval::around(7.2, 0.2)] {
            for truth in [found.low, found.high] {
                assert!(
                    Known::with_actual_truth().check_truth("it", truth, found).is_ok(),
                    "{truth} of {found:?}"
                );
                assert!(
                    Known::with_moved_truth().check_truth("it", truth, found).is_err(),
                    "{truth} of {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_value_that_is_not_a_number_fails() {
        assert!(Known::with_actual_truth().check_truth("it", f64::NAN, Interval::around(0.0, 1.0)).is_err());
        assert!(Known::with_actual_truth().check_truth("it", 0.0, Interval::around(f64::NAN, 1.0)).is_err());
    }
}
