//! One side of a comparison by pairs of processes (`syscost-analysis`): a measuring process that waits for its turns.
//!
//! A side proves what it times like any measuring process: in the first pair of a case the witness is called and
//! proportionality is checked, and the case's counters are judged in every turn. A claim that fails on a side ends the
//! case without a result.
//!
//! This file is the protocol between the driver and the two sides: one JSON value per line, requests on the side's standard
//! input, responses on its standard output. Any program that passes these two streams on can wrap a side: `taskset`,
//! `setarch`, a sandbox, a container.
//!
//! A side may be an older build than the driver, so names on the wire do not change within a [`VERSION`].

pub mod side;

use crate::case::Scale;
use crate::clock::ClockScale;
use crate::record::EventRate;
use crate::trial::{CaseEnd, SampledStacks, Turn};
use serde::{Deserialize, Serialize};

/// Version of the protocol, sent in a side's first response.
pub const VERSION: u32 = 1;

/// The longest request, bytes: a hundred times the length of a [`Request::Prepare`].
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Set by the driver in the environment of a side.
pub const VARIABLE: &str = "SYSCOST_SIDE";

/// Whether a driver started this process as a side. A side has no arguments, unlike a wrapper that is the same binary,
/// such as `syscost burden`.
pub fn is_side_process() -> bool {
    std::env::var_os(VARIABLE).is_some() && std::env::args_os().len() <= 1
}

/// A request of the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// List the cases; the only request to this process.
    Cases,
    /// Set a case up; the first request where a case is measured.
    Prepare(Prepare),
    /// Run one turn.
    Turn {
        /// Iterations of each batch.
        iterations: u64,
        /// Batches of the turn.
        batches: usize,
    },
    /// Send the stacks that were sampled in the turns.
    Samples,
    /// Sent to the first process of a guest: start the side's process, and let it use this connection until it has ended.
    Start {
        /// Bytes of padding in the environment of the side's process.
        padding: usize,
    },
    /// End. A process whose input is a pipe ends when that is closed; a serial line of a guest is never closed.
    End,
}

/// Batches of a turn. Also the largest ratio of a batch's wall time to its wanted timed length, where most of a batch is
/// untimed.
pub const BATCHES: f64 = 8.0;

/// Settings by which a side sets a case up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// Id of the case.
    pub case: String,
    /// The CPU to measure on.
    pub cpu: usize,
    /// Scale of the clock as the driver calibrated it, the same for both sides.
    pub clock: ClockScale,
    /// How long a batch should take, ns.
    pub batch_ns: f64,
    /// Whether to prove the case (witness and sweep) and to size its batches, as in its first pair.
    pub prove: bool,
    /// Scale of the case's parameters: smoke, default or full.
    pub scale: Scale,
    /// Dependent additions per iteration, as a slowdown of known size. 0 except in the self-test.
    pub spin: f64,
    /// Whether to count the instructions of an iteration, and to run no turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instructions: bool,
    /// Whether to sample the stacks of the operation in its turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
}

/// A response of a side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The first response.
    Hello {
        /// The side's [`VERSION`].
        version: u32,
        /// Compiler and flags of its build.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<String>,
    },
    /// The ids of all cases, in table order.
    Cases(Vec<String>),
    /// The case is set up.
    Ready(Ready),
    /// The turn was run.
    Turn(Turn),
    /// The stacks that were sampled in the turns.
    Samples(SampledStacks),
    /// The case ended without a number: skipped, failed or disturbed.
    Ended(CaseEnd),
    /// The process of the side has ended. A guest sends this about the processes that it starts.
    Gone {
        /// How it ended.
        how: String,
    },
}

/// A case that is set up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The version of its group. Builds before the first release call it `body`.
    #[serde(alias = "body")]
    pub version: String,
    /// The CPU that the side stays on.
    pub cpu: usize,
    /// Wall time of one iteration, ns, including what is not timed; 0 where no batch was sized.
    pub iteration_ns: f64,
    /// Iterations of a batch whose timed part is long enough; 0 if no batch was sized, or from an older side, which sends only
    /// [`Self::iteration_ns`].
    #[serde(default)]
    pub iterations: u64,
    /// One sentence per claim that held.
    pub evidence: Vec<String>,
    /// Notes for the record.
    pub notes: Vec<String>,
    /// Counts per iteration: allocations, in the first pair if the side's allocator counts them; instructions, if they were
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EventRate>,
}
