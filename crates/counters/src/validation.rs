//! Experiments with known answers, against which the counters are checked: those by which CAMP was validated (LISA
//! 2007, Figure 5, Tables 1 to 3, and its informal ones).
//!
//! Each experiment starts a process that uses a known amount of one resource and compares that amount with what the
//! counters report. The comparison is a [`Finding`]: published, expected and found values, a tolerance, a verdict.

mod cpu_load;
mod cpu_mode;
mod cpu_share;
mod datagram;
mod disk_operations;
mod finding;
mod functions;
mod listing;
mod memory_use;
mod thread_count;
mod worker;

pub use finding::{Finding, Verdict};
pub use functions::{Functions, LIES, Lie};

use std::path::Path;
use std::time::Duration;
use syscost_platform::error::Result;

/// What an experiment is run with.
pub struct Setting<'a> {
    /// Windows of 100 ms for each load of C1 and C2.
    pub samples: u32,
    /// From the beginning of one window to that of the next; the paper's is 0.5 s. With zero there is no pause between
    /// windows.
    pub interval: Duration,
    /// A directory of the caller's for the files that experiments read and write.
    pub scratch: &'a Path,
    /// What is put on trial.
    pub functions: Functions,
    /// Called between two steps; `false` ends the experiment early.
    pub tick: &'a dyn Fn() -> bool,
}

/// One experiment of the paper.
#[derive(Debug)]
pub struct Experiment {
    /// `C1` to `C8`.
    pub name: &'static str,
    /// What is counted.
    pub title: &'static str,
    /// The figure or table of the paper that has its values.
    pub paper: &'static str,
    run: Run,
}

/// All experiments, in the order of their names.
pub const EXPERIMENTS: [Experiment; 8] = [
    experiment("C1", "CPU time of idle, half and full load", "Figure 5a", cpu_share::run_one_load),
    experiment("C2", "CPU time of two loads of 30 %", "Figure 5b, 5c", cpu_share::run_two_loads),
    experiment("C3", "976 KB of memory, twice", "Table 1", memory_use::run),
    experiment("C4", "10 000 datagrams of 32 bytes", "Table 2", datagram::run),
    experiment("C5", "one thread more", "Table 3", thread_count::run),
    experiment("C6", "reads and writes of a disk", "informal", disk_operations::run),
    experiment("C7", "page faults", "informal", memory_use::run_page_faults),
    experiment("C8", "lists against the kernel's own", "informal", listing::run),
];

type Run = fn(&Setting) -> Result<Vec<Finding>>;

const fn experiment(name: &'static str, title: &'static str, paper: &'static str, run: Run) -> Experiment {
    Experiment { name, title, paper, run }
}

impl Experiment {
    /// The experiment of this name, in upper or lower case.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.name.eq_ignore_ascii_case(name))
    }

    /// Runs it. An error becomes one inconclusive finding: a counter may have given no value where it should have.
    pub fn run_experiment(&self, setting: &Setting) -> Vec<Finding> {
        (self.run)(setting).unwrap_or_else(|error| vec![Finding::broken_off(error.to_string())])
    }
}
