//! The system's counters as a library: what a machine, a process, a disk or a network interface has done.
//!
//! There are two ways to read a counter. The functions of [`camp`] are stateless: each call opens, reads and closes a
//! file. The handles ([`Process`], [`Interface`], [`Disk`], [`Processors`], …) keep their files open: they are several
//! times faster, allocate nothing in a call, and each documents how many descriptors it holds. A handle never changes
//! its object: after a process has ended its handle answers [`Fault::Gone`], also when the number is given to another
//! process.
//!
//! ```no_run
//! use std::time::Duration;
//! use syscost::counters::{Percent, Process};
//!
//! # fn main() -> Result<(), syscost::counters::Fault> {
//! let process = Process::open(1)?;
//! let before = process.cpu_time()?;
//! std::thread::sleep(Duration::from_secs(1));
//! let share = Percent::busy(&before, &process.cpu_time()?)?;
//! println!("{:.2} % of a CPU, between {:.2} and {:.2}", share.value, share.low, share.high);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Reading`] carries its value, the moment, the resolution of the counter and the route by which it was read. A
//! share or rate between two readings carries the bounds that the resolution allows; two readings that are too close
//! for a result give [`Fault::TooShort`] and not 0.0. What a kernel does not offer is [`Fault::Unsupported`].
//!
//! Beyond CAMP: how each CPU spent its time, with interrupts and stolen time ([`Processors::each`], [`shares`]),
//! control groups of both versions ([`ControlGroup`]), pressure ([`Pressure`]), handles of many processes within a
//! limit of descriptors ([`Processes`]), and figures computed from several readings ([`aggregate`]).
//!
//! | function of [`camp`] | handle | route | resolution |
//! |---|---|---|---|
//! | `percent_processor_time` | [`Processors`] | `/proc/uptime`, `/proc/stat` | 10 ms |
//! | `free_physical_memory` | [`physical_memory::free`] | sysinfo(2) | a page |
//! | | [`physical_memory::truly_free`], [`physical_memory::available`] | sysinfo(2) and `/proc/zoneinfo`, `/proc/meminfo` | a page |
//! | `net_…` | [`Interface`] | `/sys/class/net/IF/statistics` | 1 |
//! | `num_reads_…`, `num_writes_…` | [`Disk`] | `/sys/class/block/NAME/stat` | 1 |
//! | `num_page_faults` | [`Process::page_faults`] | `/proc/PID/stat` | 1 |
//! | `cpu_time_total` | [`Process::cpu_time`] | clock_gettime(2) of the process's clock | 1 ns |
//! | `cpu_time_user`, `cpu_time_kernel` | [`Process::user_time`], [`Process::kernel_time`] | `/proc/PID/stat` | 10 ms |
//! | `working_set_kb`, `vm_size_kb` | [`Process::resident`], [`Process::virtual_memory`] | `/proc/PID/statm` | a page |
//! | `thread_count` | [`Process::threads`] | links of `/proc/PID/task` | 1 |
//! | | [`Pressure`] | `/proc/pressure` | 1 µs |
//! | | [`ControlGroup`] | files of the group | 1 ns, 1 µs |
//! | `enum_…`, `cpu_count…`, `process_identifier…` | [`enumeration`] | `/sys`, `/proc`, pidfd_open(2) | |
//!
//! [`Probe`] reads nine of them at once, for a monitor with a fixed rate ([`pace`]); [`snapshot`] reads everything that
//! the machine reports about itself.
//!
//! Source: CAMP: A Common API for Measuring Performance (Gabel and Haungs, LISA 2007); proc(5), sysfs(5).

pub mod aggregate;
pub mod camp;
pub mod cgroup;
mod cpu_usage;
mod disk;
pub mod enumeration;
mod fault;
mod kernel_file;
mod network;
pub mod pace;
pub mod physical_memory;
pub mod pressure;
mod probe_block;
#[cfg(feature = "cli")]
pub(super) mod probe_cost;
mod process_handle;
mod processes;
mod rate;
mod reading;
pub mod snapshot;
mod text;
#[cfg(feature = "cli")]
pub(super) mod validation;

use crate::platform::proc::USER_HZ;
use std::time::Duration;

/// The unit of the times in `/proc/PID/stat`, `/proc/stat` and `/proc/uptime`.
const TICK: Duration = Duration::from_nanos((1e9 / USER_HZ) as u64);

/// Ticks as a duration. Idle ticks of 64 CPUs need more than 32 bits after a week.
const fn of_ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks.saturating_mul(TICK.as_nanos() as u64))
}

pub use cgroup::ControlGroup;
pub use cpu_usage::{Processors, Shares, Spent, busy, shares};
pub use disk::{Disk, Traffic};
pub use fault::Fault;
pub use network::{Interface, Link};
pub use physical_memory::Memory;
pub use pressure::Pressure;
pub use probe_block::{Block, Probe};
pub use process_handle::{Process, Stat};
pub use processes::Processes;
pub use rate::Rate;
pub use reading::{Method, Percent, Reading};

#[cfg(test)]
mod isolated_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn allocations<T>(call: impl FnOnce() -> T) -> u64 {
        allocation_counter::measure(|| {
            black_box(call());
        })
        .count_total
    }

    #[test]
    fn a_handle_allocates_nothing_in_a_call() {
        let pid = std::process::id() as i32;
        let process = Process::open(pid).expect("ourselves");
        let interface = Interface::open("lo").expect("every namespace has it");
        let mut processors = Processors::open().expect("/proc");
        assert_eq!(allocations(|| process.cpu_time().is_ok()), 0);
        assert_eq!(allocations(|| process.page_faults().is_ok()), 0);
        assert_eq!(allocations(|| process.resident().is_ok()), 0);
        assert_eq!(allocations(|| process.threads().is_ok()), 0);
        assert_eq!(allocations(|| interface.bytes_sent().is_ok()), 0);
        assert_eq!(allocations(|| processors.idle().is_ok()), 0);
        assert_eq!(allocations(|| processors.spent(Some(0)).is_ok()), 0);
        assert_eq!(allocations(|| physical_memory::free().is_ok()), 0);
        let memory = physical_memory::Memory::open().expect("/proc");
        assert_eq!(allocations(|| memory.truly_free().is_ok()), 0);
        assert_eq!(allocations(|| memory.available().is_ok()), 0);
        let mut each = Vec::new();
        processors.each(&mut each).expect("read");
        assert_eq!(allocations(|| processors.each(&mut each).is_ok()), 0);
        let Ok(pressure) = Pressure::open(pressure::Resource::Cpu) else {
            return println!("skipped: this kernel keeps no account of pressure");
        };
        assert_eq!(allocations(|| pressure.read().is_ok()), 0);
    }

    #[test]
    fn neither_does_a_call_without_a_handle() {
        let pid = std::process::id() as i32;
        assert_eq!(allocations(|| camp::cpu_time_total(pid, Duration::ZERO).is_ok()), 0);
        assert_eq!(allocations(|| camp::num_page_faults(pid).is_ok()), 0);
        assert_eq!(allocations(|| camp::working_set_kb(pid).is_ok()), 0);
        assert_eq!(allocations(|| camp::thread_count(pid).is_ok()), 0);
        assert_eq!(allocations(|| camp::net_bytes_sent("lo").is_ok()), 0);
        assert_eq!(allocations(|| camp::cpu_count().is_ok()), 0);
        assert_eq!(allocations(|| physical_memory::truly_free().is_ok()), 0);
        assert_eq!(allocations(|| camp::percent_processor_time(None, Duration::from_millis(20)).is_ok()), 0);
        assert_eq!(
            allocations(|| camp::percent_processor_time(Some(0), Duration::from_millis(20)).is_ok()),
            0
        );
    }

    #[test]
    fn the_counting_of_allocations_counts() {
        assert!(allocations(|| vec![0u8; 17]) > 0);
    }
}
