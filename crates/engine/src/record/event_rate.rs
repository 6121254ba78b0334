//! Events beside the time: why an operation costs what it does.

use super::Interval;
use serde::{Deserialize, Serialize};

/// The name of the blocks of memory that are allocated. A block that is given another size counts as a new one.
pub const ALLOCATIONS: &str = "allocations";
/// The name of their bytes.
pub const ALLOCATED_BYTES: &str = "allocated-bytes";
/// The name of the most bytes that one iteration alone has allocated and not yet freed.
pub const PEAK_BYTES: &str = "peak-bytes";

/// How often an event happens in an iteration, or why its rate is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRate {
    /// Its name as in `perf list`, or one of those above.
    pub name: String,
    /// Events an iteration: the median over batches of their own, and the range of the executions'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Interval>,
    /// Why it was not counted, or what is missing in the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}
