//! Where the time of an operation went in one process, by the functions that were sampled.

use std::collections::BTreeMap;

/// Times of an operation in one process, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessTimes {
    /// The whole operation: the median of its batches.
    pub operation_ns: f64,
    /// Samples in the brackets of the clock.
    pub samples: u64,
    /// By function. They sum up to the operation.
    pub functions: BTreeMap<String, FunctionTime>,
    /// By class (`entry`, `copy`, …). They sum up to the operation, too.
    pub classes: BTreeMap<String, f64>,
}

/// Times of a function in an operation, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionTime {
    /// In the function itself.
    pub own_ns: f64,
    /// In the function and in what it calls.
    pub with_callees_ns: f64,
}

/// What was sampled of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledCase {
    /// Its id.
    pub id: String,
    /// Each an observation: a pair of processes, one a side, or one process.
    pub observations: Vec<Vec<ProcessTimes>>,
    /// `cpu-cycles` or `cpu-clock`.
    pub event: String,
    /// What a reader must know of it, and why observations are missing.
    pub notes: Vec<String>,
    /// Why there is none.
    pub failure: Option<String>,
}
