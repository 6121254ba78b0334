//! The constants of the rules by which a case is judged.

/// The level of a test by the deviation in other records, one-sided.
pub(super) const ALPHA: f64 = 0.01;

/// The fewest replicates a side that are judged by their own agreement: the rule was tried with five.
pub(super) const ENOUGH: usize = 5;
/// The probability with which the smallest detectable change is found.
pub(super) const POWER: f64 = 0.8;

/// The options of a comparison.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub threshold: f64,
    pub margin: f64,
}

impl Rule {
    /// The threshold as a logarithm.
    pub(super) fn log_threshold(self) -> f64 {
        self.threshold.ln_1p()
    }

    /// Half the width of what is called the same, as a logarithm.
    pub(super) fn log_margin(self) -> f64 {
        self.margin.ln_1p()
    }
}
