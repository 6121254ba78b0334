//! Experiments with known answers, against which the counters are checked: those by which CAMP was validated (LISA
//! 2007, Figure 5, Tables 1 to 3, and its informal ones).
//!
//! Each experiment starts a process that uses a known amount of one resource and compares that amount with what the
//! counters report. The comparison is a [`Finding`]: published, expected and found values, a tolerance, a verdict.

mod cpu_load;
mod cpu_share;
mod datagram;
mod disk_operations;
mod finding;
mod listing;
mod memory_use;
mod page_faults;
mod thread_count;
mod worker;

pub use finding::{Finding, Verdict};

use crate::error::Result;
use std::path::Path;

/// What an experiment is run with.
pub struct Setting<'a> {
    /// Windows of 100 ms for each load of C1 and C2.
    pub samples: u32,
    /// A directory of the caller's for the files that experiments read and write.
    pub scratch: &'a Path,
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
    run: fn(&Setting) -> Result<Vec<Finding>>,
}

/// All experiments, in the order of their names.
pub const EXPERIMENTS: [Experiment; 8] = [
    Experiment {
        name: "C1",
        title: "CPU time of idle, half and full load",
        paper: "Figure 5a",
        run: cpu_share::of_one_load,
    },
    Experiment {
        name: "C2",
        title: "CPU time of two loads of 30 %",
        paper: "Figure 5b, 5c",
        run: cpu_share::of_two_loads,
    },
    Experiment { name: "C3", title: "976 KB of memory, twice", paper: "Table 1", run: memory_use::run },
    Experiment { name: "C4", title: "10 000 datagrams of 32 bytes", paper: "Table 2", run: datagram::run },
    Experiment { name: "C5", title: "one thread more", paper: "Table 3", run: thread_count::run },
    Experiment {
        name: "C6",
        title: "reads and writes of a disk",
        paper: "informal",
        run: disk_operations::run,
    },
    Experiment { name: "C7", title: "page faults", paper: "informal", run: page_faults::run },
    Experiment { name: "C8", title: "lists against the kernel's own", paper: "informal", run: listing::run },
];

impl Experiment {
    /// The experiment of this name, in upper or lower case.
    pub fn named(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.name.eq_ignore_ascii_case(name))
    }

    /// Runs it. An error becomes one inconclusive finding: a counter may have given no value where it should have.
    pub fn findings(&self, setting: &Setting) -> Vec<Finding> {
        (self.run)(setting).unwrap_or_else(|error| vec![Finding::broken_off(error.to_string())])
    }
}
