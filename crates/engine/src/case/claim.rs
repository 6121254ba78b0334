//! Claims: conditions that hold if an operation really happened.

use crate::clock::Delta;
use std::fmt::{Display, Formatter};

/// A condition that holds if the operation of a case really happened. If a claim is disproved, no number is saved and the run
/// ends with exit code 1.
#[derive(Clone)]
pub enum Claim {
    /// Twice the iterations take twice the time: nothing was optimised away or cached.
    Linear,
    /// The operation costs more than its control: the interval of their difference lies above zero.
    AboveControl,
    /// The function at this address is entered once an iteration, so the call was not inlined. A witness counts the
    /// entries.
    Calls(fn() -> usize),
    /// Every iteration makes exactly these system calls, in any order: name and number. A witness counts them, and sees
    /// that none is refused.
    Enters(Vec<(&'static str, i64)>),
    /// Each system call of this number is answered by this value, which may be a refusal. A witness sees the answers.
    Answers(i64, i64),
    /// No iteration makes a system call. A witness counts them.
    NeverEnters,
    /// Every iteration executes at least this many instructions. A witness counts them.
    Executes(f64),
    /// Every iteration executes more than this many instructions, which the empty loop has (0 if that is not known), and a
    /// later one not far fewer than an early one. A witness counts them; an iteration that is too long for it is judged by its
    /// time.
    KeepsWorking(f64),
    /// Counters of the kernel grew as they must over a sample. The function is given their growth and the number of
    /// iterations, and returns what it saw as a sentence: `Ok` if the claim holds, `Err` if not.
    Counted(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// As [`Claim::Counted`], for a count that may not be exceeded, which other tasks and the kernel can raise: the case is disproved only
    /// if every execution exceeds it.
    AtMost(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// As [`Claim::Counted`], for a mode of operation that arises by chance. In another mode the case is not disproved
    /// but measured again.
    Regime(fn(&Delta, u64) -> std::result::Result<String, String>),
    /// The operation checks this sentence itself in every batch, and returns an error if it does not hold.
    Checked(&'static str),
}

impl Claim {
    /// Whether a witness must judge it, which traces some iterations in a child process.
    pub fn wants_witness(&self) -> bool {
        matches!(
            self,
            Self::Calls(_)
                | Self::Enters(_)
                | Self::Answers(..)
                | Self::NeverEnters
                | Self::Executes(_)
                | Self::KeepsWorking(_)
        )
    }
}

/// The claim as a sentence, as the record's evidence shows it.
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
            Self::Answers(_, answer) => write!(f, "the kernel answers each call by {answer}"),
            Self::NeverEnters => f.write_str("no iteration enters the kernel"),
            Self::Executes(least) => write!(f, "instructions executed an iteration: at least {least}"),
            Self::KeepsWorking(_) => {
                f.write_str("a later iteration does as much as an early one, and more than the empty loop")
            }
            Self::Regime(_) => f.write_str("the kernel's counters show the regime that the id says"),
            Self::Checked(what) => f.write_str(what),
            Self::Counted(_) => f.write_str("the kernel's counters grow with the iterations as they must"),
            Self::AtMost(_) => {
                f.write_str("the kernel's counters grow no more than the iterations may cause")
            }
        }
    }
}
