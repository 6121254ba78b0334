//! What must be true if the operation really happened.

use crate::clock::Delta;
use std::fmt::{Display, Formatter};

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
    /// The same of a regime that an operation settles into by chance: where it is another one, what was measured is
    /// something else, and the case is tried again.
    Regime(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// The operation itself looks at this in every batch, and answers an error where it does not hold.
    Checked(&'static str),
}

impl Claim {
    /// Whether the witness, who watches a few iterations from outside, must be called.
    pub fn wants_witness(&self) -> bool {
        matches!(self, Self::Calls(_) | Self::Enters(_) | Self::NeverEnters | Self::Executes(_))
    }
}

/// The claim in words, before it was judged; with what was counted it stands in the record's evidence.
impl Display for Claim {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Linear => f.write_str("twice the iterations take twice the time"),
            Self::AboveControl => f.write_str("it costs more than the same loop without the operation"),
            Self::Calls(_) => f.write_str("the function is entered once an iteration: it was not inlined"),
            Self::Enters(calls) => {
                let names: Vec<_> = calls.iter().map(|(name, _)| *name).collect();
                write!(f, "every iteration enters the kernel by exactly: {}", names.join(", "))
            }
            Self::NeverEnters => f.write_str("no iteration enters the kernel"),
            Self::Executes(least) => write!(f, "instructions executed an iteration: at least {least}"),
            Self::Regime(_) => f.write_str("the kernel's counters show the regime that the id says"),
            Self::Checked(what) => f.write_str(what),
            Self::Counted(_) => f.write_str("the kernel's counters grow with the iterations as they must"),
        }
    }
}
