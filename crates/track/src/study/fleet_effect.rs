//! What a kernel costs on many machines: on each of them first, kernel against kernel, and then over all of them.
//!
//! # On a machine
//!
//! The effect is a difference of logarithms: the mean of the jobs under the other kernel less that under the first, at one
//! frequency of the core where it is known. How far the jobs of one machine and kernel lie apart is pooled over the machines
//! of its [class](Class), and gives the effect's interval. A machine's own speed drops out.
//!
//! # Over machines
//!
//! Each machine has an effect of its own. The mean over all, its interval and the spread between machines are those of
//! [random effects](syscost_statistic::random_effects). *Slower* is said of a case if the whole interval lies beyond 1 % and the
//! one-sided p, corrected over the cases (Benjamini and Hochberg, q = 0.01), allows it; *same* if the interval lies within ± 2 %.
//!
//! # Machines that stand out
//!
//! A machine stands out if it lies further from the median machine than one of all machines and cases would by chance once in
//! a hundred fleets, by the median absolute deviation, which one machine in ten cannot widen; if that is more than 1 %; and if
//! the lowest of its jobs say so, too, since what disturbs a job only lengthens it. The mean is that of the others.

mod effect_verdict;
mod gathering;
#[cfg(test)]
mod tests;

pub use gathering::{Class, Gathering, Machine};

use serde::Serialize;
use syscost_engine::record::{Interval, Verdict};

/// Effects up to this share are no finding.
pub const THRESHOLD: f64 = 0.01;
/// An effect within this share is called the same.
pub const MARGIN: f64 = 0.02;
/// The fewest machines among which one can stand out.
pub const FEWEST_TO_STAND_OUT: usize = 5;

/// The answer of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct FleetAnswer {
    /// The experiment.
    pub experiment: String,
    /// The kernels; the others are compared with the first.
    pub kernels: Vec<String>,
    /// The machines, in the order of the hosts; one that changed in the middle is several.
    pub machines: Vec<Machine>,
    /// Machines that are alike, in order of the hosts.
    pub classes: Vec<Class>,
    /// What a reader must know about the whole.
    pub warnings: Vec<String>,
    /// For each kernel but the first, its cases in order of the ids.
    pub columns: Vec<Column>,
}

/// One kernel against the first.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// The kernel.
    pub kernel: String,
    /// The cases.
    pub cases: Vec<CaseEffect>,
}

/// One case under one kernel against the first.
#[derive(Clone, Debug, Serialize)]
pub struct CaseEffect {
    /// `group/variant/parameter`.
    pub id: String,
    /// The verdict on the mean.
    pub verdict: Verdict,
    /// Why there is no stronger one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The mean ratio of those that do not stand out, with its 95 % interval; of one machine its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// The standard deviation of the true effects between machines, a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// Machines that count in the mean.
    pub machines: usize,
    /// How many of all machines are slower, faster, the same, and undecided by themselves.
    pub alone: Alone,
    /// Machines that stand out, the furthest first.
    pub standing_out: Vec<MachineEffect>,
    /// The mean of each class of which there are several: its index and its ratio.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<(usize, Interval)>,
    /// The machines of the host that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<MachineEffect>,
}

/// One case on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MachineEffect {
    /// Which of the answer's machines.
    pub machine: usize,
    /// Its ratio, with its 95 % interval where several jobs tell it.
    pub ratio: f64,
    /// That interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Machines by their own verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// Their whole interval lies above the threshold.
    pub slower: usize,
    /// Their whole interval lies below it.
    pub faster: usize,
    /// Their whole interval lies within the margin.
    pub same: usize,
    /// None of these.
    pub undecided: usize,
}

impl MachineEffect {
    /// The verdict of this machine by itself.
    pub fn verdict(&self) -> Verdict {
        self.interval.map_or(Verdict::Inconclusive, verdict_of_interval)
    }
}

/// The verdict on a ratio that lies between these two.
fn verdict_of_interval([low, high]: [f64; 2]) -> Verdict {
    match () {
        () if low > 1.0 + THRESHOLD => Verdict::Slower,
        () if high < 1.0 / (1.0 + THRESHOLD) => Verdict::Faster,
        () if low > 1.0 / (1.0 + MARGIN) && high < 1.0 + MARGIN => Verdict::Same,
        () => Verdict::Inconclusive,
    }
}
