//! A quantity that is measured with and without something, alternately in one run.
//!
//! A load of other tasks slows both sides alike. The ratio of two neighbouring turns therefore says more than either time. A
//! controller whose output has no effect, or a probe that costs nothing, has the ratio 1.
//!
//! ```
//! use syscost_technique::by_turns::ByTurns;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let response = ByTurns::measure(3, |controlled| Ok(if controlled { 4.0 } else { 9.0 }))?;
//! response.check_ratio("response time", ..=0.75)?;
//! assert!(response.check_ratio("response time", 0.9..=1.1).is_err());
//! # Ok(())
//! # }
//! ```
//!
//! Source: Kraemer, slides 48 to 50 and 73.

use std::fmt::Debug;
use std::ops::RangeBounds;
use syscost_platform::error::{Error, Result};
use syscost_statistic::median;

/// One quantity in several pairs of turns, in the caller's unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByTurns {
    /// The value of each pair's turn without, in the caller's unit.
    pub without: Vec<f64>,
    /// The value of each pair's turn with, in the caller's unit.
    pub with: Vec<f64>,
}

impl ByTurns {
    /// Calls `measure` twice for each of `pairs`: with `true` and with `false`. The order alternates from pair to pair, so
    /// that a growing load adds to both sides.
    ///
    /// # Errors
    /// Those of `measure`.
    pub fn measure(pairs: usize, measure: impl FnMut(bool) -> Result<f64>) -> Result<Self> {
        let [without, with] = alternate(pairs, measure)?;
        Ok(Self { without, with })
    }

    /// The median, over all pairs, of the value with divided by the value without.
    pub fn ratio(&self) -> f64 {
        let ratios: Vec<f64> =
            self.with.iter().zip(&self.without).map(|(with, without)| with / without).collect();
        median(&ratios)
    }

    /// Checks that the ratio is within `expected`, and returns a sentence that says so. `..=0.75` expects the quantity to
    /// fall by a quarter or more.
    ///
    /// # Errors
    /// [`Error::Disproved`] if the ratio is outside of `expected` or is not a number.
    pub fn check_ratio(&self, what: &str, expected: impl RangeBounds<f64> + Debug) -> Result<String> {
        let (without, with, ratio) = (median(&self.without), median(&self.with), self.ratio());
        let pairs = self.with.len();
        let sentence = format!(
            "{what}: {without:.4} without, {with:.4} with, ratio {ratio:.2} of {pairs} pairs, expected {expected:?}"
        );
        let is_expected = expected.contains(&ratio);
        if is_expected { Ok(format!("by turns: {sentence}")) } else { Err(Error::Disproved(sentence)) }
    }
}

/// Runs `run` once without (`false`) and once with (`true`) for each pair, and returns the results without and those with.
/// The order alternates.
pub(crate) fn alternate<T>(pairs: usize, mut run: impl FnMut(bool) -> Result<T>) -> Result<[Vec<T>; 2]> {
    let mut turns = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        for with in [pair % 2 == 1, pair % 2 == 0] {
            turns[usize::from(with)].push(run(with)?);
        }
    }
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_sides_alternates() {
        let mut order = Vec::new();
        let turns = ByTurns::measure(2, |with| {
            order.push(with);
            Ok(order.len() as f64)
        });
        assert_eq!(order, [false, true, true, false]);
        assert_eq!(turns.expect("no error"), ByTurns { without: vec![1.0, 4.0], with: vec![2.0, 3.0] });
    }

    #[test]
    fn a_load_that_varies_does_not_change_the_ratio() {
        let turns = ByTurns { without: vec![9.0, 90.0, 18.0], with: vec![4.5, 45.0, 9.0] };
        assert_eq!(turns.ratio(), 0.5);
        assert!(turns.check_ratio("response", ..=0.75).is_ok_and(|said| said.contains("ratio 0.50")));
    }

    #[test]
    fn a_ratio_of_one_and_a_ratio_that_is_not_a_number_are_disproved() {
        let same = ByTurns { without: vec![9.0; 3], with: vec![9.0; 3] };
        let error = same.check_ratio("response", ..=0.75).expect_err("no effect").to_string();
        assert!(error.contains("ratio 1.00"), "{error}");
        assert!(ByTurns { without: vec![0.0], with: vec![0.0] }.check_ratio("nothing", ..=0.75).is_err());
        assert!(ByTurns::measure(1, |_| Err(Error::Usage("broken".into()))).is_err());
    }
}
