//! Figures beside the cost of an operation: computed from it, found by the operation, or one for each pair of CPUs.

use super::SetUp;

/// One figure for each pair of CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The CPUs, in ascending order.
    pub cpus: Vec<usize>,
    /// Each pair, as indices into `cpus`, and the figure of every batch, ns.
    pub figures: Vec<((usize, usize), Vec<f64>)>,
}

/// A figure computed from the cost of a case, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// Its name: `switch`, `efficiency`.
    pub name: &'static str,
    /// How it is computed.
    pub rule: Rule,
}

/// How a figure is computed from the cost of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// This multiple of the net cost, ns: 0.5 for one of the two switches of a round trip.
    OfNet(f64),
    /// This multiple of the cost, ns.
    OfCost(f64),
    /// The control's cost divided by the cost, no unit: 1 if working at the same time as others costs nothing.
    ControlOverCost,
    /// Iterations a second.
    Rate,
    /// Elements a second of an iteration that processes this many.
    Elements(u64),
    /// Bandwidth of an iteration that moves this many bytes, GB/s (10⁹ bytes).
    Bandwidth(u64),
    /// As [`Rule::Bandwidth`], summed over all CPUs, each of which moves this many bytes.
    BandwidthOfAll(u64),
    /// Bytes per core cycle of an iteration that moves this many.
    BytesPerCycle(u64),
    /// Bandwidth as a share of what the hardware could move.
    Share {
        /// Bytes that an iteration moves.
        bytes: u64,
        /// Whether every CPU moves that many.
        on_all: bool,
        /// Bytes a second that the hardware could move.
        of: f64,
    },
    /// Time of a sample divided by the events that the subject counted in it ([`Report::events`](super::Report)), such
    /// as page faults, of which one may serve many iterations. Left out if there was no event.
    PerEvent,
}

/// A figure that an operation found besides its time, such as what other tasks did meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its name: `fairness`.
    pub name: &'static str,
    /// `/s`, `MiB`, or empty for a ratio.
    pub unit: &'static str,
    /// The value of each observation.
    pub values: Vec<f64>,
}

impl Found {
    /// A figure with these values.
    pub fn new(name: &'static str, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, values }
    }
}

/// How often the displacement of a case is measured. The scale decides what is `None`.
#[derive(Default)]
pub struct Repetition {
    /// Iterations of one run.
    pub iterations: Option<u64>,
    /// Undisturbed runs.
    pub runs: Option<usize>,
    /// A further subject: the same operation by several tasks that leave the measuring CPU no idle moment. Its `run`
    /// does the iterations by all of them together, and its report's `events` says how many these were exactly.
    pub saturated: Option<SetUp>,
}
