//! The kernel's counters around a sample: read before and after, and subtracted.

use super::USER_HZ;
use crate::error::Result;
use crate::platform::control_group::throttling_file;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::proc::{self, Account, Source};
use crate::platform::time::OtherThreadsTime;
use crate::platform::{cpu, process};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// The counters of the measuring thread. Their files stay open, so that a reading allocates nothing and opens nothing.
pub struct Counters {
    cpu: usize,
    schedstat: Option<File>,
    stat: Option<File>,
    cgroup: Option<File>,
    account: Option<Account>,
    buffer: Vec<u8>,
}

/// All counters at one moment. `None` where the kernel does not have one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Page faults served without a device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Switches away because the thread waited.
    pub voluntary_switches: u64,
    /// Switches away because another task was due.
    pub involuntary_switches: u64,
    /// CPU time in user space, µs.
    pub user_us: u64,
    /// CPU time in the kernel, µs.
    pub system_us: u64,
    /// Time that the thread was ready and another task ran, ns.
    pub waited_ns: Option<u64>,
    /// Time that the hypervisor took from the measuring CPU, in clock ticks ([`super::USER_HZ`]).
    pub stolen_ticks: Option<u64>,
    /// How often the quota of a control group stopped this process.
    pub throttled: Option<u64>,
    /// Processes and threads created on this machine since it was started.
    pub created: Option<u64>,
    /// CPU time of the other threads of this process.
    pub other_threads: OtherThreadsTime,
    /// CPU time of all threads of this process and of the children that it has waited for, µs.
    pub process_us: u64,
    /// Bytes read from devices for all threads of this process and the children that it has waited for.
    pub device_read: Option<u64>,
    /// Bytes written to devices by the same processes, or to pages that are yet to be written.
    pub device_written: Option<u64>,
    /// The CPU that the reading was taken on.
    pub cpu: usize,
}

/// The difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delta {
    /// Earlier counters subtracted from later ones; `cpu` and `other_threads` are the later ones.
    pub counted: Reading,
    /// Lower bound of the CPU time that the other threads of this process had, ns.
    pub other_threads_ns: u64,
    /// Whether the thread is on another CPU than before.
    pub migrated: bool,
    /// The partners' report for the same interval, if the case has partners.
    pub partners: Option<super::PartnerReport>,
}

impl Counters {
    /// Opens the files that exist, for a thread that measures on `cpu`.
    pub fn open(cpu: usize) -> Self {
        let open = |path: &str| File::open(path).ok();
        Self {
            cpu,
            schedstat: open("/proc/thread-self/schedstat").filter(is_schedstat_counting),
            stat: open("/proc/stat"),
            cgroup: throttling_file(&KernelFiles::live()).and_then(|path| File::open(path).ok()),
            account: Account::open(Source::Device).ok(),
            buffer: vec![0; 64 << 10],
        }
    }

    /// Reads all counters. It takes some 30 µs, so it must stay outside of what is timed.
    ///
    /// # Errors
    /// The kernel refuses `getrusage`.
    pub fn read(&mut self) -> Result<Reading> {
        let usage = process::thread_usage()?;
        let cpu = self.cpu;
        let buffer = &mut self.buffer;
        let (stolen_ticks, created) = read_text(&self.stat, buffer)
            .map_or((None, None), |t| (proc::stolen_ticks(t, cpu), proc::created_tasks(t)));
        let moved = self.account.as_mut().and_then(|account| account.read().ok());
        Ok(Reading {
            minor_faults: usage.minor_page_faults() as u64,
            major_faults: usage.major_page_faults() as u64,
            voluntary_switches: usage.voluntary_context_switches() as u64,
            involuntary_switches: usage.involuntary_context_switches() as u64,
            user_us: process::micros(usage.user_time()),
            system_us: process::micros(usage.system_time()),
            waited_ns: read_text(&self.schedstat, buffer)
                .and_then(proc::parse_schedstat)
                .map(|s| s.waited_ns),
            stolen_ticks,
            throttled: read_text(&self.cgroup, buffer).and_then(proc::throttled_periods),
            created,
            other_threads: OtherThreadsTime::now(),
            process_us: process::process_usage()?.iter().map(process::cpu_time_us).sum(),
            device_read: moved.map(|moved| moved.read),
            device_written: moved.map(|moved| moved.written),
            cpu: cpu::current_cpu(),
        })
    }
}

/// Whether the kernel counts in `schedstat`. This thread has run, so a file of zeros means that it does not.
fn is_schedstat_counting(file: &File) -> bool {
    let mut buffer = [0; 128];
    let length = file.read_at(&mut buffer, 0).unwrap_or(0);
    let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
    proc::parse_schedstat(text).is_some_and(|times| times.ran_ns > 0)
}

/// The present text of an open file; `None` if it cannot be read.
pub(super) fn read_text<'a>(file: &Option<File>, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = file.as_ref()?.read_at(buffer, 0).ok()?;
    // A long /proc/stat may be cut off. It is ASCII, so that no character is cut.
    std::str::from_utf8(&buffer[..length]).ok()
}

impl Reading {
    /// The name of a counter that is lower in the later reading. Claims are judged by these counters, and a counter that
    /// decreased proves nothing.
    pub(crate) fn find_decreased_counter(&self, later: &Self) -> Option<&'static str> {
        let counters = [
            ("minor faults", self.minor_faults, later.minor_faults),
            ("major faults", self.major_faults, later.major_faults),
            ("voluntary switches", self.voluntary_switches, later.voluntary_switches),
            ("involuntary switches", self.involuntary_switches, later.involuntary_switches),
        ];
        counters.into_iter().find(|(_, before, after)| after < before).map(|(name, ..)| name)
    }
}

impl Delta {
    /// The difference of two readings. A counter that decreased has no difference: `None` where it is optional, else 0.
    pub fn between(before: &Reading, after: &Reading) -> Self {
        // A counter that decreased says nothing; stolen time decreases on some hosts.
        let grown = |a: Option<u64>, b: Option<u64>| b?.checked_sub(a?);
        let counted = Reading {
            minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
            major_faults: after.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
            user_us: after.user_us.saturating_sub(before.user_us),
            system_us: after.system_us.saturating_sub(before.system_us),
            waited_ns: grown(before.waited_ns, after.waited_ns),
            stolen_ticks: grown(before.stolen_ticks, after.stolen_ticks),
            throttled: grown(before.throttled, after.throttled),
            created: grown(before.created, after.created),
            other_threads: after.other_threads,
            process_us: after.process_us.saturating_sub(before.process_us),
            device_read: grown(before.device_read, after.device_read),
            device_written: grown(before.device_written, after.device_written),
            cpu: after.cpu,
        };
        let other_threads_ns = after.other_threads.least_ns_since(before.other_threads);
        Self { counted, other_threads_ns, migrated: before.cpu != after.cpu, partners: None }
    }
}

// CPU time used on the CPUs where no task of a case runs. It takes no CPU from the case, but it uses the last cache,
// the memory and the frequency budget that all of them share.

/// The CPUs on which no task of a case runs.
pub struct OtherCpus {
    stat: Option<File>,
    /// CPUs of the case.
    own: Vec<usize>,
    buffer: Vec<u8>,
    begun: Option<(Instant, u64)>,
}

impl OtherCpus {
    /// Opens `/proc/stat` for a case that runs on these CPUs.
    pub fn open(own: Vec<usize>) -> Self {
        Self { stat: File::open("/proc/stat").ok(), own, buffer: vec![0; 64 << 10], begun: None }
    }

    /// Starts the interval over which [`OtherCpus::mean_busy_cpus`] averages.
    pub fn begin_interval(&mut self) {
        self.begun = self.read_busy_ticks().map(|ticks| (Instant::now(), ticks));
    }

    /// Mean number of these CPUs that were busy since [`OtherCpus::begin_interval`]; `None` where the kernel does not count it.
    /// The kernel counts in ticks of 10 ms, so that much less than a second gives a rough number.
    pub fn mean_busy_cpus(&mut self) -> Option<f64> {
        let (then, before) = self.begun?;
        let ticks = self.read_busy_ticks()?.saturating_sub(before);
        Some(ticks as f64 / USER_HZ / then.elapsed().as_secs_f64().max(1.0 / USER_HZ))
    }

    fn read_busy_ticks(&mut self) -> Option<u64> {
        read_text(&self.stat, &mut self.buffer).and_then(|text| proc::busy_ticks(text, &self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    #[test]
    fn touching_fresh_memory_is_counted_as_faults() {
        let mut counters = Counters::open(0);
        let before = counters.read().expect("a reading");
        let mut memory = memmap2::MmapMut::map_anon(64 * 4096).expect("mapped");
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        let delta = Delta::between(&before, &counters.read().expect("a reading"));
        assert!(delta.counted.minor_faults > 0);
    }

    #[test]
    fn a_counter_that_decreases_has_no_difference_and_causes_no_panic() {
        let before = Reading { waited_ns: Some(10), stolen_ticks: Some(5), ..Default::default() };
        let after = Reading { waited_ns: Some(7), stolen_ticks: None, ..Default::default() };
        let delta = Delta::between(&before, &after);
        assert_eq!((delta.counted.waited_ns, delta.counted.stolen_ticks), (None, None));
        let faults = |minor_faults| Reading { minor_faults, ..Default::default() };
        assert_eq!(faults(3).find_decreased_counter(&faults(2)), Some("minor faults"));
        assert_eq!(faults(3).find_decreased_counter(&faults(3)), None);
        assert_eq!(Delta::between(&faults(3), &faults(2)).counted.minor_faults, 0);
    }

    #[test]
    fn a_busy_cpu_is_counted_unless_it_is_the_case_s_own() {
        let here = cpu::current_cpu();
        let (mut others, mut own) = (OtherCpus::open(Vec::new()), OtherCpus::open((0..4096).collect()));
        assert_eq!(others.mean_busy_cpus(), None, "it was not begun");
        others.begin_interval();
        own.begin_interval();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 300 {
            std::hint::black_box(here);
        }
        let (Some(all), none) = (others.mean_busy_cpus(), own.mean_busy_cpus()) else {
            return crate::platform::testing::print_skipped("this kernel has no /proc/stat");
        };
        assert!(all > 0.1, "{all} CPUs were busy while this thread spun");
        assert_eq!(none, Some(0.0));
    }
}
