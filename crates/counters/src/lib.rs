//! The system's counters as a library: what a machine, a process, a disk or a network interface has done.
//!
//! There are two ways to read a counter. The functions of [`camp`] are stateless: each call opens, reads and closes a
//! file. The handles ([`Process`], [`Interface`], [`Disk`], [`Processors`], …) keep their files open: they are several
//! times faster, allocate nothing in a call, and each documents how many descriptors it holds. A handle never changes its
//! object: after a process has ended, every reading of its handle is [`Fault::Gone`], even if another process gets the same
//! number.
//!
//! ```no_run
//! use std::time::Duration;
//! use syscost_counters::{Percent, Process};
//!
//! # fn main() -> Result<(), syscost_counters::Fault> {
//! let process = Process::open(1)?;
//! let before = process.cpu_time()?;
//! std::thread::sleep(Duration::from_secs(1));
//! let share = Percent::busy(&before, &process.cpu_time()?)?;
//! println!("{:.2} % of a CPU, between {:.2} and {:.2}", share.value, share.low, share.high);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Reading`] has a value, the time of reading, the resolution of the counter and the route by which it was read. A share
//! or rate between two readings has the bounds that the resolution allows. Two readings that are too close for a result give
//! [`Fault::TooShort`], not 0.0. A counter that the kernel does not offer is [`Fault::Unsupported`].
//!
//! Beyond CAMP: the division of each CPU's time, with interrupts and stolen time ([`Processors::time_spent_each`],
//! [`time_shares`]),
//! control groups of both versions ([`ControlGroup`]), pressure ([`Pressure`]), handles of many processes within a
//! limit of descriptors ([`Processes`]), and figures computed from several readings ([`aggregate`]).
//!
//! Every function of CAMP's Figure 3 has its counterpart in [`camp`]. An experiment of `syscost validate` tests each
//! function, and fails if the function returns 1 % more than it should:
//!
//! | Figure 3 | function of [`camp`] | handle | route | resolution | validated by |
//! |---|---|---|---|---|---|
//! | `GetPercentProcessorTime` | [`percent_processor_time`](camp::percent_processor_time) | [`Processors`] | `/proc/uptime`, `/proc/stat` | 10 ms | C1, C2 |
//! | `GetFreePhysicalMemory` | [`free_physical_memory`](camp::free_physical_memory) | [`physical_memory::free`] | sysinfo(2) | a page | C3 |
//! | `GetNetBytesSent` | [`net_bytes_sent`](camp::net_bytes_sent) | [`Interface::bytes_sent`] | `/sys/class/net/IF/statistics` | 1 | C4 |
//! | `GetNetPacketsSent` | [`net_packets_sent`](camp::net_packets_sent) | [`Interface::packets_sent`] | the same | 1 | C4 |
//! | `GetNetBytesRecvd` | [`net_bytes_received`](camp::net_bytes_received) | [`Interface::bytes_received`] | the same | 1 | C4 |
//! | `GetNetPacketsRecvd` | [`net_packets_received`](camp::net_packets_received) | [`Interface::packets_received`] | the same | 1 | C4 |
//! | `GetNumReads_Disk` | [`num_reads_disk`](camp::num_reads_disk) | [`Disk::reads`] | `/sys/class/block/NAME/stat` | 1 | C6 |
//! | `GetNumWrites_Disk` | [`num_writes_disk`](camp::num_writes_disk) | [`Disk::writes`] | the same | 1 | C6 |
//! | `GetNumReads_Partition` | [`num_reads_partition`](camp::num_reads_partition) | [`Disk::reads`] | the same | 1 | C6 |
//! | `GetNumWrites_Partition` | [`num_writes_partition`](camp::num_writes_partition) | [`Disk::writes`] | the same | 1 | C6 |
//! | `GetNumPageFaults` | [`num_page_faults`](camp::num_page_faults) | [`Process::page_faults`] | `/proc/PID/stat` | 1 | C7 |
//! | `GetCPUTime_Total` | [`cpu_time_total`](camp::cpu_time_total) | [`Process::cpu_time`] | clock_gettime(2) of the process's clock | 1 ns | C1, C2 |
//! | `GetCPUTime_User` | [`cpu_time_user`](camp::cpu_time_user) | [`Process::user_time`] | `/proc/PID/stat` | 10 ms | C1, C2 |
//! | `GetCPUTime_Kernel` | [`cpu_time_kernel`](camp::cpu_time_kernel) | [`Process::kernel_time`] | `/proc/PID/stat` | 10 ms | C1, C2 |
//! | `GetWorkingSetKb` | [`working_set_kb`](camp::working_set_kb) | [`Process::resident`] | `/proc/PID/statm` | a page | C3 |
//! | `GetVMSizeKb` | [`vm_size_kb`](camp::vm_size_kb) | [`Process::virtual_memory`] | `/proc/PID/statm` | a page | C3 |
//! | `GetThreadCount` | [`thread_count`](camp::thread_count) | [`Process::threads`] | links of `/proc/PID/task` | 1 | C5 |
//! | `EnumDiskPartitions` | [`enum_disk_partitions`](camp::enum_disk_partitions) | [`enumeration::partitions`] | `/sys/class/block` | | C8 |
//! | `EnumPhysicalDisks` | [`enum_physical_disks`](camp::enum_physical_disks) | [`enumeration::disks`] | `/sys/class/block` | | C8 |
//! | `EnumNetworkInterfaces` | [`enum_network_interfaces`](camp::enum_network_interfaces) | [`enumeration::interfaces`] | `/sys/class/net` | | C8 |
//! | `GetCPUCount` | [`cpu_count`](camp::cpu_count) | | `/sys/devices/system/cpu/online` | 1 | C8 |
//! | `GetProcessIdentifier` | [`process_identifier`](camp::process_identifier) | [`Process::open`] | pidfd_open(2) | | C8 |
//! | `GetProcessIdentifiers` | [`process_identifiers`](camp::process_identifiers) | [`enumeration::processes_by_name`] | `/proc` | | C8 |
//!
//! CAMP's derived function of Figure 1, `BulkByteTransferRate`, is [`aggregate::transfer_rate`]. The paper left rate
//! calculators and aggregate traffic to later work: here they are [`Rate`], [`aggregate::operation_rate`] and
//! [`aggregate::busiest_interface`]. The sum over all processes of an Apache is [`aggregate::process_tree`]. A process
//! identifier is a [`Process`] or a number ([`ProcessIdentifier`]); the functions take what an enumeration returns. The
//! second parameter of the CPU-time functions, the interval, is CAMP's 100 ms in [`camp::INTERVAL`].
//!
//! Other functions: [`camp::cpu_count_allowed`], the CPUs that this process may use; [`physical_memory::truly_free`] and
//! [`physical_memory::available`] (`/proc/zoneinfo`, `/proc/meminfo`); [`Pressure`] (`/proc/pressure`, 1 µs); and
//! [`ControlGroup`] (files of the group, 1 ns or 1 µs).
//!
//! [`Probe`] reads nine counters at once, for a monitor with a fixed rate ([`pace`]); [`snapshot`] reads everything that the
//! machine reports about itself.
//!
//! # Linux only
//!
//! CAMP had one interface with one meaning over three systems: Windows (PDH), Solaris (kstat) and Linux (proc). A test of a
//! distributed system on machines of several kinds could read all of them by the same program, without knowledge of their
//! kernels. This crate offers the interface on Linux alone, so it does not serve such a test. It reads what the common
//! denominator of three systems had to leave out: control groups, pressure, stolen time, and a handle that stays with one
//! process. On other systems the crate does not compile.
//!
//! Source: CAMP: A Common API for Measuring Performance (Gabel and Haungs, LISA 2007); proc(5), sysfs(5).

#![deny(unsafe_code)]

pub mod aggregate;
pub mod camp;
pub mod cgroup;
mod cpu_usage;
mod disk;
pub mod enumeration;
mod kernel_file;
mod network;
pub mod pace;
pub mod physical_memory;
pub mod pressure;
mod probe_block;
pub mod probe_cost;
mod process_handle;
mod processes;
mod reading;
pub mod snapshot;
mod text;
pub mod validation;

use std::time::Duration;
use syscost_platform::proc::USER_HZ;

/// The unit of the times in `/proc/PID/stat`, `/proc/stat` and `/proc/uptime`.
const TICK: Duration = Duration::from_nanos((1e9 / USER_HZ) as u64);

/// Ticks as a duration. Idle ticks of 64 CPUs need more than 32 bits after a week.
const fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_nanos(ticks.saturating_mul(TICK.as_nanos() as u64))
}

pub use cgroup::ControlGroup;
pub use cpu_usage::{Processors, Shares, Spent, busy_share, time_shares};
pub use disk::{Disk, Traffic};
pub use network::{Interface, Link};
pub use physical_memory::Memory;
pub use pressure::Pressure;
pub use probe_block::{Block, Probe};
pub use process_handle::{Process, ProcessIdentifier, Stat};
pub use processes::Processes;
pub use reading::{Fault, Method, Percent, Rate, Reading};

#[cfg(test)]
mod tests;
