//! Counters that are files of the kernel: their paths, and the two ways of this crate to read them.

use super::{Answer, Open, boxed_call, call_on_handle, starter_pid};
use crate::counters::{
    ControlGroup, Disk, Fault, Interface, Percent, Pressure, Process, Processors, camp, enumeration, pressure,
};
use crate::error::{Error, Result};
use crate::platform::control_group::root_group_file;
use crate::platform::kernel_files::KernelFiles;
use std::time::Duration;

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

fn first_disk() -> Result<String> {
    let mut disks = enumeration::disks()?;
    disks.extend(enumeration::partitions()?);
    disks
        .into_iter()
        .next()
        .ok_or_else(|| Error::Missing("there is no disk in /sys/block with a device".into()))
}
