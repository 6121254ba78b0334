//! Counters that are files of the kernel: their paths, and the two ways of this crate to read them; and counters of large objects: a
//! process of many threads, and one of many network interfaces.

use super::{
    Answer, CLOCK_AND_PIDFD, Call, Calls, FIELD, Open, PREAD, READ, boxed_call, call_on_handle, reading,
    starter_pid,
};
use crate::counters::{
    ControlGroup, Disk, Fault, Interface, Percent, Pressure, Process, Processors, camp, enumeration, pressure,
};
use crate::kit::contract::*;
use crate::platform::child::Child;
use crate::platform::control_group::root_group_file;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::namespace;
use std::time::{Duration, Instant};

/// A counter that is a file.
pub(super) struct Route {
    /// First part of the case's name.
    pub(super) name: &'static str,
    /// Title of its cases.
    pub(super) words: &'static str,
    /// Path of the file.
    pub(super) path: fn() -> Result<String>,
    /// Reads it through an open handle.
    pub(super) kept: Open,
    /// Opens, reads and closes it; `None` if this crate has no such function.
    pub(super) stateless: Option<Open>,
    /// Predicted cost of the kernel's part of one read, core cycles.
    pub(super) cycles: f64,
}

#[rustfmt::skip]
pub(super) const ROUTES: [Route; 8] = [
    Route { name: "idle", words: "idle time of all CPUs", cycles: 1_500.0,
        path: || Ok("/proc/uptime".into()),
        kept: || call_on_handle(Processors::open()?, |processors| processors.idle().map(|reading| reading.value.as_millis() as u64)),
        stateless: Some(|| boxed_call(|| accept_too_short(camp::percent_processor_time(None, Duration::ZERO)))) },
    Route { name: "spent", words: "what a CPU was busy with", cycles: 9_000.0,
        path: || Ok("/proc/stat".into()),
        kept: || call_on_handle(Processors::open()?, |processors| processors.time_spent(Some(0)).map(|reading| reading.value.user)),
        stateless: Some(|| boxed_call(|| accept_too_short(camp::percent_processor_time(Some(0), Duration::ZERO)))) },
    Route { name: "page-faults", words: "page faults of a process", cycles: 4_500.0,
        path: || Ok(format!("/proc/{}/stat", starter_pid())),
        kept: || call_on_handle(Process::open(starter_pid())?, |process| process.page_faults().map(|reading| reading.value)),
        stateless: Some(|| call_on_handle(starter_pid(), |pid| camp::num_page_faults(*pid).map(|reading| reading.value))) },
    Route { name: "resident", words: "resident set of a process", cycles: 1_200.0,
        path: || Ok(format!("/proc/{}/statm", starter_pid())),
        kept: || call_on_handle(Process::open(starter_pid())?, |process| process.resident().map(|reading| reading.value)),
        stateless: Some(|| call_on_handle(starter_pid(), |pid| camp::working_set_kb(*pid).map(|reading| reading.value))) },
    Route { name: "net-bytes", words: "bytes sent by an interface", cycles: 1_300.0,
        path: || Ok("/sys/class/net/lo/statistics/tx_bytes".into()),
        kept: || call_on_handle(Interface::open("lo")?, |interface| interface.bytes_sent().map(|reading| reading.value)),
        stateless: Some(|| boxed_call(|| camp::net_bytes_sent("lo").map(|reading| reading.value))) },
    Route { name: "disk-reads", words: "reads of a disk", cycles: 2_700.0,
        path: || Ok(format!("/sys/class/block/{}/stat", first_disk()?)),
        kept: || call_on_handle(Disk::open(&first_disk()?)?, |disk| disk.reads().map(|reading| reading.value)),
        stateless: Some(|| call_on_handle(first_disk()?, |disk| camp::num_reads_disk(disk).map(|reading| reading.value))) },
    Route { name: "pressure", words: "time that tasks waited for a CPU", cycles: 3_000.0,
        path: || Ok("/proc/pressure/cpu".into()),
        kept: || call_on_handle(Pressure::open(pressure::Resource::Cpu)?, |of| of.stalled_time().map(|reading| reading.value.as_micros() as u64 | 1)),
        stateless: Some(|| boxed_call(|| pressure::read_pressure(pressure::Resource::Cpu).map(|_| 1))) },
    Route { name: "group-time", words: "CPU time of a control group", cycles: 1_200.0,
        path: root_cpu_time_file,
        kept: || call_on_handle(ControlGroup::open("/")?, |group| group.cpu_time().map(|reading| reading.value.as_micros() as u64)),
        stateless: None },
];

/// File with the CPU time of the root control group: one number in version 1, one of several in version 2.
fn root_cpu_time_file() -> Result<String> {
    let files = KernelFiles::live();
    let found = root_group_file(&files, Some("cpuacct"), "cpuacct.usage");
    let found = found.or_else(|| root_group_file(&files, None, "cpu.stat"));
    found.ok_or_else(|| Error::Missing("no control groups are mounted below /sys/fs/cgroup".into()))
}

/// Accepts the answer [`Fault::TooShort`]: a rate over an interval of zero has no value, but both readings were
/// made.
fn accept_too_short(rate: Answer<Percent>) -> Answer<u64> {
    match rate {
        Err(Fault::TooShort { .. }) => Ok(1),
        Err(other) => Err(other),
        Ok(percent) => Ok(percent.value as u64),
    }
}

/// The name of the first disk, or of the first partition if there is no disk.
fn first_disk() -> Result<String> {
    let mut disks = enumeration::disks()?;
    disks.extend(enumeration::partitions()?);
    disks
        .into_iter()
        .next()
        .ok_or_else(|| Error::Missing("there is no disk in /sys/block with a device".into()))
}

/// Threads of a server of the year 2000, and of some today.
const THREADS: u64 = 400;
/// Interfaces of a host with as many containers. They are made in pairs.
const INTERFACES: usize = 200;
/// How long the threads may take to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a thread's stack: they only sleep.
const STACK: usize = 32 << 10;

/// Cases that read a process of many threads, or one of many interfaces.
#[rustfmt::skip]
pub(super) fn populous_cases() -> Vec<Case> {
    const SUMMED: &str = "the kernel adds up over the threads";
    vec![
        many_threads_case("page-faults", "page faults", PREAD, (4_500.0 + THREADS as f64 * 40.0, 100.0, SUMMED), |process| process.page_faults().map(|reading| reading.value)),
        many_threads_case("cpu-time", "CPU time", CLOCK_AND_PIDFD, (600.0 + THREADS as f64 * 20.0, 400.0, SUMMED), |process| process.cpu_time().map(|reading| reading.value.as_nanos() as u64 | 1)),
        many_threads_case("threads", "threads", &[], (500.0, 100.0, FIELD), |process| process.threads().map(|reading| reading.value)),
        many_threads_case("resident", "resident set", PREAD, (1_200.0, 100.0, READ), |process| process.resident().map(|reading| reading.value)).need(TAKES_SECONDS),
        reading("net-bytes/200-interfaces", "bytes sent by one of 200 interfaces", PREAD, (1_300.0, 100.0, READ), many_interfaces_call),
    ]
}

/// The case of one counter of a process with [`THREADS`] threads.
fn many_threads_case(
    name: &str,
    words: &str,
    calls: Calls,
    cycles: (f64, f64, &'static str),
    read: fn(&Process) -> Answer<u64>,
) -> Case {
    let open = move || {
        let (child, process) = start_many_threads()?;
        boxed_call(move || {
            let _alive = &child;
            read(&process)
        })
    };
    let title = format!("{words} of a process of {THREADS} threads");
    reading(format!("{name}/{THREADS}-threads"), &title, calls, cycles, open)
}

/// A child with [`THREADS`] sleeping threads.
fn start_many_threads() -> Result<(Child, Process)> {
    let child = Child::start(|| {
        let sleep = || loop {
            std::thread::park();
        };
        let more = (1..THREADS).map(|_| std::thread::Builder::new().stack_size(STACK).spawn(sleep));
        // A thread that is refused shows in the parent's count below.
        let _threads: Vec<_> = more.collect();
        sleep()
    })?;
    let (process, begun) = (Process::open(child.pid().as_raw())?, Instant::now());
    while process.threads()?.value < THREADS {
        if begun.elapsed() > PATIENCE {
            return Err(Error::Missing(format!(
                "a child did not start {THREADS} threads within {PATIENCE:?}: see `ulimit -u` and pids.max of its group"
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((child, process))
}

/// A reading of one of many interfaces, through a handle that was opened in their namespace.
fn many_interfaces_call() -> Result<Call> {
    let make = || {
        namespace::make_veth_pairs(INTERFACES / 2)?;
        Ok(Interface::open(&namespace::near_end_name(INTERFACES / 4))?)
    };
    let (interface, namespace) = namespace::run_in_new_namespace(make)?;
    boxed_call(move || {
        let _alive = &namespace;
        interface.bytes_sent().map(|reading| reading.value)
    })
}
