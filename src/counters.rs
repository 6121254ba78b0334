//! The system's counters, as a library: what a machine, a process, a disk or a network interface has done.
//!
//! Two ways in. [`camp`] has the 23 functions of CAMP's Figure 3: stateless, each opens, reads and closes. The handles
//! ([`Process`], [`Interface`], [`Disk`], [`Processors`]) keep open what they read, which is several times faster, hold a
//! number of descriptors that each names, and allocate nothing in a call. A process that has ended stays gone:
//! whoever gets its number is never taken for it.
//!
//! Every [`Reading`] says when it was taken, in which steps its counter moves, and by which route it came. A rate of
//! two readings carries the bounds that those steps leave, and a pair too near for an answer has none: there is no
//! made-up 0.0.
//!
//! What CAMP did not have: what a CPU was busy with, interrupts and stolen time among it ([`Processors::each`],
//! [`shares`]), control groups of both versions ([`ControlGroup`]), pressure ([`Pressure`]), many processes by a number of
//! descriptors that is set ([`Processes`]), and what follows from several readings ([`derived`]). What a kernel lacks
//! is [`Fault::Unsupported`].
//!
//! | function | handle | route | steps |
//! |---|---|---|---|
//! | `percent_processor_time` | [`Processors`] | `/proc/uptime`, `/proc/stat` | 10 ms |
//! | `free_physical_memory` | [`physical_memory::free`] | sysinfo(2) | a page |
//! | [`physical_memory::truly_free`], [`physical_memory::available`] | [`physical_memory::Memory`] | sysinfo(2) and `/proc/zoneinfo`, `/proc/meminfo` | a page |
//! | `net_…` | [`Interface`] | `/sys/class/net/IF/statistics` | 1 |
//! | `num_reads_…`, `num_writes_…` | [`Disk`] | `/sys/class/block/NAME/stat` | 1 |
//! | `num_page_faults` | [`Process::page_faults`] | `/proc/PID/stat` | 1 |
//! | `cpu_time_total` | [`Process::cpu_time`] | clock_gettime(2) of the process's clock | 1 ns |
//! | `cpu_time_user`, `cpu_time_kernel` | [`Process::user_time`], [`Process::kernel_time`] | `/proc/PID/stat` | 10 ms |
//! | `working_set_kb`, `vm_size_kb` | [`Process::resident`], [`Process::virtual_memory`] | `/proc/PID/statm` | a page |
//! | `thread_count` | [`Process::threads`] | links of `/proc/PID/task` | 1 |
//! | [`pressure::once`] | [`Pressure`] | `/proc/pressure` | 1 µs |
//! | | [`ControlGroup`] | files of the group | 1 ns, 1 µs |
//! | `enum_…`, `cpu_count`, `process_identifier…` | [`enumeration`] | `/sys`, `/proc`, pidfd_open(2) | |
//!
//! [`probe`] reads nine of them in a block, as a monitor does at its rate; [`snapshot`] all that the machine tells of
//! itself at one moment.
//!
//! Source: CAMP: A Common API for Measuring Performance (LISA 2007); proc(5), sysfs(5).

pub mod aggregate;
pub mod camp;
pub mod control_group;
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

use crate::clock::USER_HZ;
use std::time::Duration;

/// One tick of the times in `/proc/PID/stat`, `/proc/stat` and `/proc/uptime`.
const TICK: Duration = Duration::from_nanos((1e9 / USER_HZ) as u64);

/// So many ticks. Those that 64 CPUs were idle need more than 32 bits after a week.
const fn of_ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks.saturating_mul(TICK.as_nanos() as u64))
}

pub use control_group::ControlGroup;
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
