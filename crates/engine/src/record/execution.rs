//! The executions of a case: each is what one fresh process measured of it. A run makes several of each case, spread over
//! its whole time, because a process is measured in one mood of the machine and the next process in another.

use super::Interval;
use serde::{Deserialize, Serialize};

/// What one fresh process measured of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// When it ended, seconds after its run began.
    pub at: f64,
    /// Number of its samples. In [`Measured::counted`](super::Measured::counted) they follow those of the execution before.
    pub samples: usize,
    /// Lower quartile of its samples, one iteration, in the record's unit, each converted to `core_hz` from the frequency
    /// around it ([`Measured::core_mhz`](super::Measured::core_mhz)).
    pub low: f64,
    /// Median of its samples, likewise.
    pub median: f64,
    /// The core's mean frequency around its samples, Hz, inferred from chains of additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
}

/// The cost without interference, found from several executions. A neighbour on the same processor slows the
/// core, too, so times are converted to the frequency that it has when it is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// The figure, in the record's unit, and the interval in which the next run's figure lies, 19 times in 20.
    pub figure: Interval,
    /// The core's frequency for which the figure holds, Hz; `None` of a case that waits for memory, and where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
    /// Whether the lowest executions agree.
    pub settled: bool,
    /// Whether the figure lies where the run before on this machine had said, in an interval that is no wider than its own
    /// figure; `None` where no run before had it.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "foretold")]
    pub in_last_interval: Option<bool>,
    /// The figure of a faster mode that too few executions met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster: Option<f64>,
    /// Number of earlier runs of this machine whose figures the interval covers.
    #[serde(default)]
    pub earlier: usize,
}

impl Quiet {
    /// Whether the figure was seen twice: by executions that agree, or by the run before, whose interval it lies in.
    pub fn is_settled(&self) -> bool {
        self.settled || self.in_last_interval == Some(true)
    }

    /// The factor that converts this figure to the frequency of another; 1 where one of them has none.
    pub fn frequency_factor_to(&self, other: &Self) -> f64 {
        self.core_hz.zip(other.core_hz).map_or(1.0, |(own, wanted)| own / wanted)
    }
}
