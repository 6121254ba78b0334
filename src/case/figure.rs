//! Figures beside the cost: those that follow from it, and those of every two CPUs.

use super::SetUp;

/// Figures of every two CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The CPUs, in order.
    pub cpus: Vec<usize>,
    /// Two of them, by their place in that order, and what each batch found of them, ns.
    pub figures: Vec<((usize, usize), Vec<f64>)>,
}

/// A figure that follows from those of a case, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// What it is: `switch`, `efficiency`.
    pub name: &'static str,
    /// How it follows.
    pub rule: Rule,
}

/// How a figure follows from those of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// So many times the cost beyond the control: a round trip's is that of two switches, and one is half of it.
    OfNet(f64),
    /// So many times the cost.
    OfCost(f64),
    /// The control's cost over the case's own: 1 where company costs nothing.
    ControlOverCost,
    /// How many of them there are in a second.
    Rate,
    /// So many bytes in the time of one: gigabytes (10⁹ bytes) a second.
    Bandwidth(u64),
    /// The same of a case in which every CPU moves so many.
    BandwidthOfAll(u64),
    /// So many bytes in the time of one, by the core cycle.
    BytesPerCycle(u64),
    /// What share of this many bytes a second they are: so many in the time of one, on each CPU.
    Share {
        /// Bytes in the time of one.
        bytes: u64,
        /// Whether every CPU moves so many.
        on_all: bool,
        /// Bytes a second that could be moved.
        of: f64,
    },
    /// The time of a sample over the events that the subject counted in it: page faults, of which one may serve
    /// many iterations. Left out where there was none.
    PerEvent,
}

/// A figure that an operation found beside its time: what others did meanwhile, what the kernel held.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What it is: `fairness`.
    pub name: &'static str,
    /// `/s`, `MiB`, or nothing for a ratio.
    pub unit: &'static str,
    /// What was found each time that it was looked at.
    pub values: Vec<f64>,
}

impl Found {
    /// A figure of these values.
    pub fn new(name: &'static str, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, values }
    }
}

/// How a displaced case is run. The scale decides what is `None`.
#[derive(Default)]
pub struct Repetition {
    /// Iterations of a run.
    pub iterations: Option<u64>,
    /// Unspoilt runs.
    pub runs: Option<usize>,
    /// A further subject: the same operation by several tasks that leave the measuring CPU no idle moment. Its `run`
    /// does the iterations by all of them together, and its report's `events` says how many these were exactly.
    pub saturated: Option<SetUp>,
}
