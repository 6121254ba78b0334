//! Whether reading the kernel's clocks enters the kernel. It does where user space cannot read the clock source (hpet, acpi_pm,
//! xen, user-mode Linux's timer), and where there is no vDSO. Then every reading of a clock is a system call, the harness' own too.
//!
//! It is found out by tracing a child that reads a clock, since that is what a case does. The name of the clock source says
//! less: /sys may be missing, and a vDSO may be there and decline. But the answer holds for that source only, which the kernel
//! replaces while it runs: its watchdog takes a counter for unstable when a guest's CPUs, or a hypervisor's, are busy.

use super::{clock_gettime_ns, time_vdso};
use crate::kernel_files::KernelFiles;
use crate::ptrace::{self, Call};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A clock as the C library reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelClock {
    /// CLOCK_MONOTONIC and its like, which need the clock source.
    Precise,
    /// CLOCK_MONOTONIC_COARSE and its like: the time of the last tick.
    Coarse,
    /// `time`.
    Seconds,
}

/// Readings of the child.
const READINGS: usize = 4;
/// The clocks of which the vDSO answers where it can (vdso(7)): realtime, monotonic, raw, their coarse ones, boottime, TAI.
const OF_THE_VDSO: [i64; 7] = [0, 1, 4, 5, 6, 7, 11];

/// Where the kernel names the source of its time, and another can be chosen.
pub const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The kernel's clock source, such as `tsc`; `None` without /sys.
pub fn clock_source(files: &KernelFiles) -> Option<String> {
    files.read_first_line(CLOCK_SOURCE)
}

/// Whether reading this clock enters the kernel; `None` if no child can be traced. Tested once in each process for each clock
/// source that the kernel has meanwhile.
pub fn enters_kernel(clock: KernelClock) -> Option<bool> {
    type Known = BTreeMap<(KernelClock, Option<String>), Option<bool>>;
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let read: fn() = match clock {
        KernelClock::Precise => || _ = clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW),
        KernelClock::Coarse => || _ = clock_gettime_ns(libc::CLOCK_MONOTONIC_COARSE),
        KernelClock::Seconds => || _ = time_vdso(),
    };
    // What is stored is whole, whichever thread panicked.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry((clock, clock_source(&KernelFiles::live()))).or_insert_with(|| trace_kernel_entry(read))
}

fn trace_kernel_entry(read: fn()) -> Option<bool> {
    let seen = ptrace::list_syscalls(|| (0..READINGS).for_each(|_| read()), usize::MAX, |_| true).ok()?;
    Some(seen.entries.iter().filter(|call| is_clock_reading(call)).count() >= READINGS)
}

/// Whether a system call reads a clock that the vDSO answers elsewhere.
pub fn is_clock_reading(call: &Call) -> bool {
    match call.number {
        libc::SYS_clock_gettime => OF_THE_VDSO.contains(&call.argument),
        libc::SYS_gettimeofday => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_time => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;
    use crate::time::clock_gettime_entry_ns;

    #[test]
    fn a_reading_by_a_system_call_is_seen_as_one() {
        let Some(is_entered) = trace_kernel_entry(|| _ = clock_gettime_entry_ns(libc::CLOCK_MONOTONIC))
        else {
            println!("skipped: no child can be traced here");
            return;
        };
        assert!(is_entered);
        assert_eq!(trace_kernel_entry(|| _ = arch::read()), Some(false));
        let other = |argument| Call { number: libc::SYS_clock_gettime, argument, answer: 0 };
        assert!(is_clock_reading(&other(4)) && !is_clock_reading(&other(3)), "CPU time is never the vDSO's");
    }
}
