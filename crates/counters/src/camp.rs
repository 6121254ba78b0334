//! The functions of CAMP's Figure 3 (Gabel and Haungs, LISA 2007). They are stateless: each call opens, reads and
//! closes a file. For repeated readings the handles ([`Process`], [`Interface`](super::Interface), …) are several times
//! faster.
//!
//! The functions take what the enumerations return: the name of a disk, partition or interface by reference, a [`Process`] or
//! its number ([`ProcessIdentifier`]), or a CPU of [`enumeration::online_cpus`].
//!
//! A function that returns a share sleeps for the given interval; CAMP's default was [`INTERVAL`]. Each function has the name
//! of its original as a documentation alias.

use super::cpu_usage;
use super::process_handle::{self, Process};
use super::{Fault, Method, Percent, ProcessIdentifier, Reading};
use super::{disk, enumeration, kernel_file, network, physical_memory};
use std::time::Duration;
use syscost_platform::process::page_size;

/// The default interval of CAMP's rates.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// The share of `interval` for which all CPUs (`None`), or the CPU with this number, were busy, percent.
///
/// # Errors
/// [`Fault::TooShort`] for an interval of at most one tick (10 ms); [`Fault::Gone`] for a CPU that is not online.
#[doc(alias = "GetPercentProcessorTime")]
pub fn percent_processor_time(cpu: impl Into<Option<usize>>, interval: Duration) -> Result<Percent, Fault> {
    match cpu.into() {
        None => {
            let uptime = kernel_file::open(format_args!("/proc/uptime"))?;
            let before = cpu_usage::idle_reading(&uptime)?;
            std::thread::sleep(interval);
            Percent::busy_from_idle(&before, &cpu_usage::idle_reading(&uptime)?, cpu_usage::online_count()?)
        }
        Some(cpu) => cpu_usage::busy_percent(cpu, interval),
    }
}

/// Free physical memory, bytes. The documentation of [`physical_memory::free`] lists what the number leaves out.
///
/// # Errors
/// The errors of [`physical_memory::free`].
#[doc(alias = "GetFreePhysicalMemory")]
pub fn free_physical_memory() -> Result<Reading<u64>, Fault> {
    physical_memory::free()
}

/// Bytes sent by an interface since it was created.
///
/// # Errors
/// [`Fault::Gone`] where there is no such interface.
#[doc(alias = "GetNetBytesSent")]
pub fn net_bytes_sent(interface: &str) -> Result<Reading<u64>, Fault> {
    network::read_counter_once(interface, network::Counter::BytesSent)
}

/// Packets sent by an interface since it was created.
///
/// # Errors
/// [`Fault::Gone`] where there is no such interface.
#[doc(alias = "GetNetPacketsSent")]
pub fn net_packets_sent(interface: &str) -> Result<Reading<u64>, Fault> {
    network::read_counter_once(interface, network::Counter::PacketsSent)
}

/// Bytes received by an interface since it was created.
///
/// # Errors
/// [`Fault::Gone`] where there is no such interface.
#[doc(alias = "GetNetBytesRecvd")]
pub fn net_bytes_received(interface: &str) -> Result<Reading<u64>, Fault> {
    network::read_counter_once(interface, network::Counter::BytesReceived)
}

/// Packets received by an interface since it was created.
///
/// # Errors
/// [`Fault::Gone`] where there is no such interface.
#[doc(alias = "GetNetPacketsRecvd")]
pub fn net_packets_received(interface: &str) -> Result<Reading<u64>, Fault> {
    network::read_counter_once(interface, network::Counter::PacketsReceived)
}

/// The number of reads that a disk has completed.
///
/// # Errors
/// [`Fault::Gone`] where there is no such disk.
#[doc(alias = "GetNumReads_Disk")]
pub fn num_reads_disk(disk: &str) -> Result<Reading<u64>, Fault> {
    Ok(disk::read_traffic(disk)?.map_field(|traffic| traffic.reads))
}

/// The number of writes that a disk has completed.
///
/// # Errors
/// [`Fault::Gone`] where there is no such disk.
#[doc(alias = "GetNumWrites_Disk")]
pub fn num_writes_disk(disk: &str) -> Result<Reading<u64>, Fault> {
    Ok(disk::read_traffic(disk)?.map_field(|traffic| traffic.writes))
}

/// The number of reads that a partition has completed.
///
/// # Errors
/// [`Fault::Gone`] where there is no such partition.
#[doc(alias = "GetNumReads_Partition")]
pub fn num_reads_partition(partition: &str) -> Result<Reading<u64>, Fault> {
    num_reads_disk(partition)
}

/// The number of writes that a partition has completed.
///
/// # Errors
/// [`Fault::Gone`] where there is no such partition.
#[doc(alias = "GetNumWrites_Partition")]
pub fn num_writes_partition(partition: &str) -> Result<Reading<u64>, Fault> {
    num_writes_disk(partition)
}

/// The number of page faults of a process, minor and major.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process, [`Fault::Denied`] where `/proc` hides it.
#[doc(alias = "GetNumPageFaults")]
pub fn num_page_faults(process: impl ProcessIdentifier) -> Result<Reading<u64>, Fault> {
    let faults =
        process_handle::parse_process_file(process.pid(), "stat", process_handle::parse_page_faults)?;
    process.confirm(Reading::now(faults, 1, Method::ProcessStat))
}

/// CPU time of a process as a share of `interval`, percent: 200 % if two of its threads ran for the whole interval.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process.
#[doc(alias = "GetCPUTime_Total")]
pub fn cpu_time_total(process: impl ProcessIdentifier, interval: Duration) -> Result<Percent, Fault> {
    let before = process_handle::cpu_time(process.pid())?;
    std::thread::sleep(interval);
    let after = process.confirm(process_handle::cpu_time(process.pid())?)?;
    Percent::busy(&before, &after)
}

/// CPU time of a process in user space as a share of `interval`, percent.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process; [`Fault::TooShort`] for an interval of at most one tick (10 ms).
#[doc(alias = "GetCPUTime_User")]
pub fn cpu_time_user(process: impl ProcessIdentifier, interval: Duration) -> Result<Percent, Fault> {
    share_of_part(process, interval, Process::user_time)
}

/// CPU time of a process in the kernel as a share of `interval`, percent.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process; [`Fault::TooShort`] for an interval of at most one tick (10 ms).
#[doc(alias = "GetCPUTime_Kernel")]
pub fn cpu_time_kernel(process: impl ProcessIdentifier, interval: Duration) -> Result<Percent, Fault> {
    share_of_part(process, interval, Process::kernel_time)
}

type Part = fn(&Process) -> Result<Reading<Duration>, Fault>;

fn share_of_part(process: impl ProcessIdentifier, interval: Duration, part: Part) -> Result<Percent, Fault> {
    let opened = Process::open(process.pid())?;
    let before = part(&opened)?;
    std::thread::sleep(interval);
    let after = process.confirm(part(&opened)?)?;
    Percent::busy(&before, &after)
}

/// Resident set of a process, KiB. CAMP used the Windows term, working set.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process.
#[doc(alias = "GetWorkingSetKb")]
pub fn working_set_kb(process: impl ProcessIdentifier) -> Result<Reading<u64>, Fault> {
    read_statm(process, process_handle::RESIDENT)
}

/// Address space of a process, KiB.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process.
#[doc(alias = "GetVMSizeKb")]
pub fn vm_size_kb(process: impl ProcessIdentifier) -> Result<Reading<u64>, Fault> {
    read_statm(process, process_handle::VIRTUAL)
}

/// The number of threads of a process.
///
/// # Errors
/// [`Fault::Gone`] where there is no such process.
#[doc(alias = "GetThreadCount")]
pub fn thread_count(process: impl ProcessIdentifier) -> Result<Reading<u64>, Fault> {
    process.confirm(process_handle::read_thread_count(process.pid())?)
}

/// Names of the partitions.
///
/// # Errors
/// The errors of [`enumeration::partitions`].
#[doc(alias = "EnumDiskPartitions")]
pub fn enum_disk_partitions() -> Result<Vec<String>, Fault> {
    enumeration::partitions()
}

/// Names of the disks.
///
/// # Errors
/// The errors of [`enumeration::disks`].
#[doc(alias = "EnumPhysicalDisks")]
pub fn enum_physical_disks() -> Result<Vec<String>, Fault> {
    enumeration::disks()
}

/// Names of the network interfaces.
///
/// # Errors
/// The errors of [`enumeration::interfaces`].
#[doc(alias = "EnumNetworkInterfaces")]
pub fn enum_network_interfaces() -> Result<Vec<String>, Fault> {
    enumeration::interfaces()
}

/// The number of CPUs that are online. Their ids may have gaps: [`enumeration::online_cpus`] lists them.
///
/// # Errors
/// [`Fault::Gone`] or [`Fault::Denied`] where `/sys` is not mounted.
#[doc(alias = "GetCPUCount")]
pub fn cpu_count() -> Result<usize, Fault> {
    cpu_usage::online_count()
}

/// The number of CPUs that this process may run on. CAMP did not distinguish them from all CPUs of the system.
///
/// # Errors
/// The errors of [`enumeration::allowed_cpu_count`].
pub fn cpu_count_allowed() -> Result<usize, Fault> {
    enumeration::allowed_cpu_count()
}

/// A handle of the process that has this number now. The handle never refers to a later process with the same number.
///
/// # Errors
/// The errors of [`Process::open`].
#[doc(alias = "GetProcessIdentifier")]
pub fn process_identifier(pid: i32) -> Result<Process, Fault> {
    Process::open(pid)
}

/// Handles of the processes that run an executable of this name.
///
/// # Errors
/// The errors of [`enumeration::processes_by_name`].
#[doc(alias = "GetProcessIdentifiers")]
pub fn process_identifiers(name: &str) -> Result<Vec<Process>, Fault> {
    enumeration::processes_by_name(name)
}

fn read_statm(process: impl ProcessIdentifier, word: usize) -> Result<Reading<u64>, Fault> {
    let kb = page_size() >> 10;
    let number = |text: &[u8]| super::text::nth_number(text, word);
    let pages = process_handle::parse_process_file(process.pid(), "statm", number)?;
    process.confirm(Reading::now(pages * kb, kb, Method::ProcessStatm))
}
