//! What must be true if the operation really happened.

use crate::instrument::Delta;

/// A claim of a case. It is judged by the trial; where it does not hold, the case ends with a sentence and
/// no number is saved.
#[derive(Clone)]
pub enum Claim {
    /// Twice the iterations take twice the time: nothing was optimised away, nothing was remembered.
    Linear,
    /// The operation costs more than its control, by the interval of their difference.
    AboveControl,
    /// The function at this address is entered once an iteration: the call was not inlined.
    Calls(fn() -> usize),
    /// Every iteration enters the kernel by exactly these calls: a name for the sentence, and the number.
    Enters(Vec<(&'static str, i64)>),
    /// No iteration enters the kernel.
    NeverEnters,
    /// At least so many instructions are executed an iteration.
    Executes(f64),
    /// Counters grew as they must over one sample of so many iterations; the sentence says what was seen.
    Counted(fn(&Delta, u64) -> std::result::Result<String, String>),
}

impl Claim {
    /// Whether the witness, who watches a few iterations from outside, must be called.
    pub fn wants_witness(&self) -> bool {
        matches!(self, Self::Calls(_) | Self::Enters(_) | Self::NeverEnters | Self::Executes(_))
    }
}
