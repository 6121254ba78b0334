//! The functions of `bracket_steps` on a processor without a known mark: they count nothing and return an error that says why.

use crate::error::{Error, Result};

/// Does nothing: no process is traced.
#[inline(always)]
pub fn execute_mark() {}

/// What a body executed between its marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCount {
    /// Number of brackets: of pairs of marks.
    pub brackets: u64,
    /// Instructions in them.
    pub instructions: u64,
    /// Steps.
    pub steps: u64,
}

/// Counts nothing.
///
/// # Errors
/// Always [`Error::Missing`].
pub fn count_steps(_: impl FnOnce(), _: u64) -> Result<Option<StepCount>> {
    let sentence =
        "the instructions between the two readings of a clock are counted on x86-64 and AArch64 only";
    Err(Error::Missing(sentence.into()))
}
