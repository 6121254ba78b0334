//! The functions of `bracket_steps` on a processor without single steps: nothing is counted, and it is said why.

use super::ptrace::NO_STEPS;
use crate::error::{Error, Result};

/// Nothing: no process is watched.
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
    Err(Error::Missing(NO_STEPS.into()))
}
