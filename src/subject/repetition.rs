//! How often a displaced case is run.

/// How often a displaced case is run. What is not said the scale decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repetition {
    /// Iterations of a run.
    pub iterations: Option<u64>,
    /// Unspoilt runs.
    pub runs: Option<usize>,
}
