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

    /// Runs it. An error becomes one inconclusive finding: a counter may have given no value where it should have.
    pub fn run_experiment(&self, setting: &Setting) -> Vec<Finding> {
        (self.run)(setting).unwrap_or_else(|error| vec![Finding::broken_off(error.to_string())])
    }
}

// The functions that experiments test: the library's own, or wrong ones ("lies"), which show that the experiments
// themselves detect an error.

type Answer<T> = std::result::Result<T, Fault>;
type Share = fn(i32, Duration) -> Answer<Percent>;
type OfProcess = fn(i32) -> Answer<Reading<u64>>;
type OfDevice = fn(&str) -> Answer<Reading<u64>>;

/// What an experiment reads by: the measuring functions of CAMP's Figure 3.
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

/// A way in which functions can lie.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    /// What it is called: the function that lies by 1 %, or the value it returns and the value it should return.
    pub name: &'static str,
    /// The experiment that must fail.
    pub fails: &'static str,
    bend: fn(Functions) -> Functions,
}

const fn lie(name: &'static str, fails: &'static str, bend: fn(Functions) -> Functions) -> Lie {
    Lie { name, fails, bend }
}

/// Each function with a result 1 % too large (user and kernel time also 1 % too small), or one too large where it
/// counts few things; then functions that are wrong in other ways.
#[rustfmt::skip]
pub const LIES: [Lie; 25] = [
    lie("percent-processor-time", "C1", |f| Functions {
        percent_processor_time: |cpu, time| camp::percent_processor_time(cpu, time).map(raise_share), ..f }),
    lie("free-physical-memory", "C3", |f| Functions {
        free_physical_memory: || camp::free_physical_memory().map(one_percent_more), ..f }),
    lie("bytes-sent", "C4", |f| Functions {
        bytes_sent: |name| camp::net_bytes_sent(name).map(one_percent_more), ..f }),
    lie("packets-sent", "C4", |f| Functions {
        packets_sent: |name| camp::net_packets_sent(name).map(one_percent_more), ..f }),
    lie("bytes-received", "C4", |f| Functions {
        bytes_received: |name| camp::net_bytes_received(name).map(one_percent_more), ..f }),
    lie("packets-received", "C4", |f| Functions {
        packets_received: |name| camp::net_packets_received(name).map(one_percent_more), ..f }),
    lie("reads-disk", "C6", |f| Functions {
        reads_disk: |name| camp::num_reads_disk(name).map(one_percent_more), ..f }),
    lie("writes-disk", "C6", |f| Functions {
        writes_disk: |name| camp::num_writes_disk(name).map(one_percent_more), ..f }),
    lie("reads-partition", "C6", |f| Functions {
        reads_partition: |name| camp::num_reads_partition(name).map(one_percent_more), ..f }),
    lie("writes-partition", "C6", |f| Functions {
        writes_partition: |name| camp::num_writes_partition(name).map(one_percent_more), ..f }),
    lie("page-faults", "C7", |f| Functions {
        page_faults: |pid| camp::num_page_faults(pid).map(one_percent_more), ..f }),
    lie("page-faults-without-major", "C7", |f| Functions { page_faults: count_minor_faults, ..f }),
    lie("cpu-time-total", "C1", |f| Functions {
        cpu_time_total: |pid, time| camp::cpu_time_total(pid, time).map(raise_share), ..f }),
    lie("cpu-time-user", "C1", |f| Functions {
        cpu_time_user: |pid, time| camp::cpu_time_user(pid, time).map(raise_share), ..f }),
    lie("cpu-time-user-less", "C1", |f| Functions {
        cpu_time_user: |pid, time| camp::cpu_time_user(pid, time).map(lower_share), ..f }),
    lie("cpu-time-kernel", "C1", |f| Functions {
        cpu_time_kernel: |pid, time| camp::cpu_time_kernel(pid, time).map(raise_share), ..f }),
    lie("cpu-time-kernel-less", "C1", |f| Functions {
        cpu_time_kernel: |pid, time| camp::cpu_time_kernel(pid, time).map(lower_share), ..f }),
    lie("working-set", "C3", |f| Functions {
        working_set_kb: |pid| camp::working_set_kb(pid).map(one_percent_more), ..f }),
    lie("vm-size", "C3", |f| Functions {
        vm_size_kb: |pid| camp::vm_size_kb(pid).map(one_percent_more), ..f }),
    lie("thread-count", "C5", |f| Functions {
        thread_count: |pid| camp::thread_count(pid).map(one_more), ..f }),
    lie("cpu-count", "C8", |f| Functions {
        cpu_count: || camp::cpu_count().map(|count| count + 1), ..f }),
    lie("cpu-count-allowed", "C8", |f| Functions {
        cpu_count_allowed: || camp::cpu_count_allowed().map(|count| count + 1), ..f }),
    lie("user-for-kernel", "C1", |f| Functions {
        cpu_time_user: camp::cpu_time_kernel, cpu_time_kernel: camp::cpu_time_user, ..f }),
    lie("packets-doubled", "C4", |f| Functions {
        packets_sent: |name| camp::net_packets_sent(name).map(|read| scale_reading(read, 200)), ..f }),
    lie("other-address-space", "C3", |f| Functions {
        vm_size_kb: |_| camp::vm_size_kb(std::process::id() as i32), ..f }),
];

impl Functions {
    /// The library's own.
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

impl Lie {
    /// The lie of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        LIES.iter().find(|lie| lie.name == name)
    }

    /// The library's functions, except those that this lie replaces.
    pub fn bent_functions(&self) -> Functions {
        (self.bend)(Functions::OURS)
    }
}

/// The reading with its value scaled to this percentage.
fn scale_reading(reading: Reading<u64>, percent: u64) -> Reading<u64> {
    Reading { value: reading.value * percent / 100, ..reading }
}

fn one_percent_more(reading: Reading<u64>) -> Reading<u64> {
    scale_reading(reading, 101)
}

/// Without those that waited for a device.
fn count_minor_faults(pid: i32) -> Answer<Reading<u64>> {
    let reading = camp::num_page_faults(pid)?;
    let major = crate::Process::open(pid)?.stat()?.major_faults;
    Ok(Reading { value: reading.value - major, ..reading })
}

/// For counts of which 1 % is less than one.
fn one_more(reading: Reading<u64>) -> Reading<u64> {
    Reading { value: reading.value + 1, ..reading }
}

fn raise_share(share: Percent) -> Percent {
    Percent { value: share.value * 1.01, ..share }
}

fn lower_share(share: Percent) -> Percent {
    Percent { value: share.value * 0.99, ..share }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(lie: &Lie) -> Vec<Verdict> {
        let place = tempfile::tempdir().expect("made");
        let setting = Setting {
            samples: 10,
            interval: Duration::ZERO,
            scratch: place.path(),
            functions: lie.bent_functions(),
            tick: &|| true,
        };
        let experiment = Experiment::by_name(lie.fails).expect("an experiment");
        experiment.run_experiment(&setting).into_iter().map(|row| row.verdict).collect()
    }

    /// Those of C1 take a load each and are tried in its own file.
    #[test]
    fn every_function_that_lies_by_one_percent_fails_its_experiment() {
        for lie in LIES.iter().filter(|lie| lie.fails != "C1") {
            let verdicts = verdicts(lie);
            // Without a loop device the disk is one that others use, too.
            let is_excused = lie.fails == "C6" && !verdicts.contains(&Verdict::Passed);
            assert!(verdicts.contains(&Verdict::Failed) || is_excused, "{}: {verdicts:?}", lie.name);
        }
    }

    #[test]
    fn a_lie_has_a_name_of_its_own() {
        assert!(LIES.iter().all(|lie| Lie::by_name(lie.name).is_some_and(|found| found.fails == lie.fails)));
        assert!(Lie::by_name("nothing").is_none());
    }
}
