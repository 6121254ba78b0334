//! A quantity that is measured with and without something, by turns in one run.
//!
//! A load of other tasks makes both sides slower alike, so that the ratio of two neighbouring turns says more than
//! either time. A controller whose output has no effect, or a probe that costs nothing, has the ratio 1.
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
    /// Its value in the turn of each pair that is without.
    pub without: Vec<f64>,
    /// Its value in the other turn of each pair.
    pub with: Vec<f64>,
}

impl ByTurns {
    /// Calls `measure` twice for each of `pairs`: with `true` and with `false`. The order alternates, so that a load that
    /// grows adds to both sides.
    ///
    /// # Errors
    /// Those of `measure`.
    pub fn measure(pairs: usize, measure: impl FnMut(bool) -> Result<f64>) -> Result<Self> {
        let [without, with] = alternate(pairs, measure)?;
        Ok(Self { without, with })
    }

    /// The median over all pairs of the value with, divided by that without.
    pub fn ratio(&self) -> f64 {
        let ratios: Vec<f64> =
            self.with.iter().zip(&self.without).map(|(with, without)| with / without).collect();
        median(&ratios)
    }

    /// The sentence that the ratio is within `expected`: `..=0.75` if the quantity must fall by a quarter or more.
    ///
    /// # Errors
    /// [`Error::Disproved`] if it is not, or is no number.
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

/// Results of the turns without, and of those with, of which each pair has one. The order alternates.
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
    fn a_load_that_comes_and_goes_leaves_the_ratio() {
        let turns = ByTurns { without: vec![9.0, 90.0, 18.0], with: vec![4.5, 45.0, 9.0] };
        assert_eq!(turns.ratio(), 0.5);
        assert!(turns.check_ratio("response", ..=0.75).is_ok_and(|said| said.contains("ratio 0.50")));
    }

    #[test]
    fn no_effect_and_no_number_are_disproved() {
        let same = ByTurns { without: vec![9.0; 3], with: vec![9.0; 3] };
        let error = same.check_ratio("response", ..=0.75).expect_err("no effect").to_string();
        assert!(error.contains("ratio 1.00"), "{error}");
        assert!(ByTurns { without: vec![0.0], with: vec![0.0] }.check_ratio("nothing", ..=0.75).is_err());
        assert!(ByTurns::measure(1, |_| Err(Error::Usage("broken".into()))).is_err());
    }
}
