//! Wrong functions, each of which must fail an experiment.

use super::*;

/// A set of wrong functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lie {
    /// Its name: the function that is off by 1 %, or the value it returns and the value it should return.
    pub(super) name: &'static str,
    /// The experiment that must fail.
    pub(super) fails: &'static str,
    bend: fn(Functions) -> Functions,
}

const fn lie(name: &'static str, fails: &'static str, bend: fn(Functions) -> Functions) -> Lie {
    Lie { name, fails, bend }
}

/// Each function with a result that is 1 % too large (user and kernel time also 1 % too small), or too large by one where its
/// counts are small; then functions that are wrong in other ways.
#[rustfmt::skip]
pub(super) const LIES: [Lie; 25] = [
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

impl Lie {
    /// The lie of this name.
    pub(super) fn by_name(name: &str) -> Option<&'static Self> {
        LIES.iter().find(|lie| lie.name == name)
    }

    /// The library's functions, with those replaced that this lie changes.
    pub(super) fn bent_functions(&self) -> Functions {
        (self.bend)(Functions::OURS)
    }
}

/// The reading with its value multiplied by `percent` / 100.
fn scale_reading(reading: Reading<u64>, percent: u64) -> Reading<u64> {
    Reading { value: reading.value * percent / 100, ..reading }
}

fn one_percent_more(reading: Reading<u64>) -> Reading<u64> {
    scale_reading(reading, 101)
}

/// Page faults without those that waited for a device.
fn count_minor_faults(pid: i32) -> Answer<Reading<u64>> {
    let reading = camp::num_page_faults(pid)?;
    let major = crate::Process::open(pid)?.stat()?.major_faults;
    Ok(Reading { value: reading.value - major, ..reading })
}

/// One more than the reading, for counts of which 1 % is less than one.
fn one_more(reading: Reading<u64>) -> Reading<u64> {
    Reading { value: reading.value + 1, ..reading }
}

fn raise_share(share: Percent) -> Percent {
    Percent { value: share.value * 1.01, ..share }
}

fn lower_share(share: Percent) -> Percent {
    Percent { value: share.value * 0.99, ..share }
}

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

/// The functions of C1 take a load each, and are tested in `cpu_mode.rs`.
#[test]
fn every_function_that_is_off_by_one_percent_fails_its_experiment() {
    for lie in LIES.iter().filter(|lie| lie.fails != "C1") {
        let verdicts = verdicts(lie);
        // Without a loop device, other processes may use the disk too.
        let is_excused = lie.fails == "C6" && !verdicts.contains(&Verdict::Passed);
        assert!(verdicts.contains(&Verdict::Failed) || is_excused, "{}: {verdicts:?}", lie.name);
    }
}

#[test]
fn every_lie_has_a_unique_name() {
    assert!(LIES.iter().all(|lie| Lie::by_name(lie.name).is_some_and(|found| found.fails == lie.fails)));
    assert!(Lie::by_name("nothing").is_none());
}
