//! The CPU time that an operation displaced, by four estimators, with its error terms.

use super::Interval;
use serde::{Deserialize, Serialize};

/// An operation's cost in CPU time as four estimators see it; nanoseconds an operation. A column is missing where
/// what was computed could not be a cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Displaced {
    /// Number of undisturbed runs, and of all runs.
    pub kept: (usize, usize),
    /// Whether the machine was quiet: else the paper's column is missing.
    pub quiet: bool,
    /// The median share of a run that other tasks had the CPU.
    pub others: f64,
    /// Operations a run.
    pub operations: u64,
    /// Multiplications of each operation, by which a sender computes; 0 for other cases and in records before they were kept.
    #[serde(default)]
    pub computed: u64,
    /// Wall time of an operation.
    pub wall: f64,
    /// By the paper's formula.
    pub paper: Option<Interval>,
    /// From the gaps that the fluid saw.
    pub gap: Option<Interval>,
    /// Without the time that other tasks had.
    pub daemon_free: Option<Interval>,
    /// By the process clock.
    pub charged: Option<Interval>,
    /// By `getrusage`.
    pub rusage: Option<Interval>,
    /// The share of the cost that accounting missed; negative is an over-charge.
    pub missed: Option<Interval>,
    /// The cost over accounting, less 1.
    pub difference: Option<Interval>,
    /// Standard deviation of the gap estimate over the runs.
    pub deviation: f64,
    /// Time of daemons during the operation beyond that during the calibration.
    pub error_daemons: f64,
    /// Beginning and ending a run, which was taken off.
    pub error_start: f64,
    /// Half-width from counting whole turns of the fluid.
    pub error_resolution: f64,
    /// The fluid's turns in one window of the calibration and in the run, L(1) and L(2); 0 in records before they were kept.
    #[serde(default)]
    pub turns: [f64; 2],
    /// Extra time of the fluid after each interruption, caused by its own caches.
    pub error_cache: f64,
    /// Reasons to doubt a column, or why it is missing.
    pub flags: Vec<String>,
    /// Throughput of a CPU that never idles, where that was measured as well.
    #[serde(default)]
    pub throughput: Option<Throughput>,
}

/// Iterations a second of a CPU that several share and that never idles, as measured and as predicted from each
/// estimate of the cost of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// As measured.
    pub real: Interval,
    /// Predicted from the gap estimate.
    pub displaced: Interval,
    /// Its relative error, run by run: 0.02 is 2 % more than real.
    pub displaced_off: Interval,
    /// Predicted from accounting.
    pub charged: Interval,
    /// Its relative error.
    pub charged_off: Interval,
}
