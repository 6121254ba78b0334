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
mod listing;
mod memory_use;
mod worker;

pub use finding::{Finding, Verdict};

use crate::{Fault, Percent, Reading, camp};
use std::path::Path;
use std::time::Duration;
use syscost_platform::error::Result;

/// The parameters of an experiment.
pub struct Setting<'a> {
    /// The number of windows of 100 ms for each load of C1 and C2.
    pub samples: u32,
    /// The time from the beginning of one window to that of the next; the paper's is 0.5 s. With zero there is no pause
    /// between windows.
    pub interval: Duration,
    /// A directory of the caller, for the files that experiments read and write.
    pub scratch: &'a Path,
    /// The functions under test.
    pub functions: Functions,
    /// Called between two steps; `false` ends the experiment early.
    pub tick: &'a dyn Fn() -> bool,
}

/// One experiment of the paper.
#[derive(Debug)]
pub struct Experiment {
    /// `C1` to `C8`.
    pub name: &'static str,
    /// The counted quantity.
    pub title: &'static str,
    /// The figure or table of the paper that contains the published values.
    pub paper: &'static str,
    run: Run,
}

/// All experiments, in the order of their names.
pub const EXPERIMENTS: [Experiment; 8] = [
    experiment("C1", "CPU time of idle, half and full load", "Figure 5a", cpu_share::run_one_load),
    experiment("C2", "CPU time of two loads of 30 %", "Figure 5b, 5c", cpu_share::run_two_loads),
    experiment("C3", "976 KB of memory, twice", "Table 1", memory_use::run),
    experiment("C4", "10 000 datagrams of 32 bytes", "Table 2", datagram::run),
    experiment("C5", "one thread more", "Table 3", memory_use::run_thread_count),
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

    /// Runs the experiment. An error becomes one inconclusive finding: a counter may have given no value where it should
    /// have.
    pub fn run_experiment(&self, setting: &Setting) -> Vec<Finding> {
        (self.run)(setting).unwrap_or_else(|error| vec![Finding::broken_off(error.to_string())])
    }
}

// The functions that experiments test: the library's own, or, in tests, wrong ones. Wrong functions show that the experiments
// detect an error.

type Answer<T> = std::result::Result<T, Fault>;
type Share = fn(i32, Duration) -> Answer<Percent>;
type OfProcess = fn(i32) -> Answer<Reading<u64>>;
type OfDevice = fn(&str) -> Answer<Reading<u64>>;

/// The measuring functions of CAMP's Figure 3, by which an experiment reads.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    percent_processor_time: fn(Option<usize>, Duration) -> Answer<Percent>,
    free_physical_memory: fn() -> Answer<Reading<u64>>,
    bytes_sent: OfDevice,
    packets_sent: OfDevice,
    bytes_received: OfDevice,
    packets_received: OfDevice,
    reads_disk: OfDevice,
    writes_disk: OfDevice,
    reads_partition: OfDevice,
    writes_partition: OfDevice,
    page_faults: OfProcess,
    cpu_time_total: Share,
    cpu_time_user: Share,
    cpu_time_kernel: Share,
    working_set_kb: OfProcess,
    vm_size_kb: OfProcess,
    thread_count: OfProcess,
    cpu_count: fn() -> Answer<usize>,
    cpu_count_allowed: fn() -> Answer<usize>,
}

impl Functions {
    /// The library's own functions.
    pub const OURS: Self = Self {
        percent_processor_time: camp::percent_processor_time,
        free_physical_memory: camp::free_physical_memory,
        bytes_sent: camp::net_bytes_sent,
        packets_sent: camp::net_packets_sent,
        bytes_received: camp::net_bytes_received,
        packets_received: camp::net_packets_received,
        reads_disk: camp::num_reads_disk,
        writes_disk: camp::num_writes_disk,
        reads_partition: camp::num_reads_partition,
        writes_partition: camp::num_writes_partition,
        page_faults: camp::num_page_faults,
        cpu_time_total: camp::cpu_time_total,
        cpu_time_user: camp::cpu_time_user,
        cpu_time_kernel: camp::cpu_time_kernel,
        working_set_kb: camp::working_set_kb,
        vm_size_kb: camp::vm_size_kb,
        thread_count: camp::thread_count,
        cpu_count: camp::cpu_count,
        cpu_count_allowed: camp::cpu_count_allowed,
    };
}

#[cfg(test)]
mod tests;
