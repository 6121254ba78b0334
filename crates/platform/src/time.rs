//! The kernel's clocks, by the C library (which reads the vDSO where it can) and by a system call.
//!
//! # Invariants
//!
//! * **OWN-TIMESPEC**: the kernel writes one `timespec` of the calling function, or gets a null pointer where it allows
//!   one.
//!
//! [`enters_kernel`] tells whether reading a clock enters the kernel. It does where user space cannot read the clock source (hpet, acpi_pm,
//! xen, user-mode Linux's timer), and where there is no vDSO. Then every reading of a clock is a system call, the harness' own too.
//!
//! The function traces a child that reads a clock, since that is what a case does. The name of the clock source says less: /sys
//! may be missing, and a vDSO may exist and yet enter the kernel. The result holds for the present source only. The kernel may
//! replace it: its watchdog takes a counter for unstable when a guest's CPUs, or a hypervisor's, are busy.

#![allow(unsafe_code)]

use super::arch;
use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use crate::ptrace::{self, Call};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, which NTP does not slew.
#[inline(always)]
pub fn monotonic_raw_ns() -> u64 {
    clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Nanoseconds of a clock, by the C library.
#[inline(always)]
pub fn clock_gettime_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: OWN-TIMESPEC. A clock id the kernel does not know leaves the zeros.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration as the structure that the kernel takes.
#[inline(always)]
pub(crate) fn to_timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    }
}

/// Nanoseconds of a clock, by a system call.
#[inline(always)]
pub fn clock_gettime_entry_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: OWN-TIMESPEC.
    unsafe { arch::syscall2(libc::SYS_clock_gettime, clock as usize, &raw mut time as usize) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The address of the C library's `clock_gettime`, so that a tracer can count the calls.
pub fn clock_gettime_address() -> usize {
    libc::clock_gettime as *const () as usize
}

/// The address of the C library's `time`, for the same purpose as [`clock_gettime_address`].
pub fn time_address() -> usize {
    libc::time as *const () as usize
}

/// CPU time of this thread so far, ns.
pub fn thread_cpu_ns() -> u64 {
    clock_gettime_entry_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Checks the two clock calls that a run needs to wait and to judge its cases.
///
/// # Errors
/// [`Error::Missing`] if a sandbox refuses one of them.
pub fn check_clock_calls() -> Result<()> {
    let moment = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: OWN-TIMESPEC: it is read. The call returns the error number.
    let slept =
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const moment, std::ptr::null_mut()) };
    let refused = |call, errno: Errno| {
        Error::Missing(format!(
            "{call}: {}; no run can do without it: allow it in the sandbox's filter of system calls",
            errno.desc()
        ))
    };
    match slept {
        0 | libc::EINTR if thread_cpu_ns() > 0 => Ok(()),
        0 | libc::EINTR => Err(refused("clock_gettime of the thread's CPU time", Errno::EPERM)),
        errno => Err(refused("clock_nanosleep", Errno::from_raw(errno))),
    }
}

/// CPU time of the other threads of this process so far, as two bounds. A single reading would not do: time that a hypervisor takes
/// during the reading would pass for another thread's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherThreadsTime {
    least_ns: u64,
    most_ns: u64,
}

impl OtherThreadsTime {
    /// The closest bounds of at most eight readings.
    pub fn now() -> Self {
        const TRIES: usize = 8;
        const AT_ONCE_NS: u64 = 5_000;
        let mut closest = Self { least_ns: 0, most_ns: u64::MAX };
        for _ in 0..TRIES {
            let before = thread_cpu_ns();
            let process = clock_gettime_entry_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
            let after = thread_cpu_ns();
            let seen =
                Self { least_ns: process.saturating_sub(after), most_ns: process.saturating_sub(before) };
            if seen.most_ns - seen.least_ns < closest.most_ns - closest.least_ns {
                closest = seen;
            }
            if after - before < AT_ONCE_NS {
                break;
            }
        }
        closest
    }

    /// The least CPU time that the other threads have used since `before`, ns.
    pub fn least_ns_since(self, before: Self) -> u64 {
        self.least_ns.saturating_sub(before.most_ns)
    }
}

/// Seconds since 1970 by the C library's `time`.
#[inline(always)]
pub fn time_vdso() -> i64 {
    // SAFETY: OWN-TIMESPEC: a null pointer asks for the return value only.
    unsafe { libc::time(std::ptr::null_mut()) }
}

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

/// Number of readings by the traced child.
const READINGS: usize = 4;
/// The clocks that the vDSO reads where it can (vdso(7)): realtime, monotonic, raw, their coarse ones, boottime, TAI.
const OF_THE_VDSO: [i64; 7] = [0, 1, 4, 5, 6, 7, 11];

/// The file in which the kernel names its clock source, and by which another can be chosen.
pub const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The kernel's clock source, such as `tsc`; `None` without /sys.
pub fn clock_source(files: &KernelFiles) -> Option<String> {
    files.read_first_line(CLOCK_SOURCE)
}

/// Whether reading this clock enters the kernel; `None` if no child can be traced. A process tests this once for each clock and
/// each clock source that the kernel uses.
pub fn enters_kernel(clock: KernelClock) -> Option<bool> {
    type Known = BTreeMap<(KernelClock, Option<String>), Option<bool>>;
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let read: fn() = match clock {
        KernelClock::Precise => || _ = clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW),
        KernelClock::Coarse => || _ = clock_gettime_ns(libc::CLOCK_MONOTONIC_COARSE),
        KernelClock::Seconds => || _ = time_vdso(),
    };
    // A thread that panicked has left no half-written entry.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry((clock, clock_source(&KernelFiles::live()))).or_insert_with(|| trace_kernel_entry(read))
}

fn trace_kernel_entry(read: fn()) -> Option<bool> {
    let seen = ptrace::list_syscalls(|| (0..READINGS).for_each(|_| read()), usize::MAX, |_| true).ok()?;
    Some(seen.entries.iter().filter(|call| is_clock_reading(call)).count() >= READINGS)
}

/// Whether a system call reads a clock that a vDSO can read without entering the kernel.
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
    use crate::testing::print_skipped;
    use crate::time::clock_gettime_entry_ns;

    #[test]
    fn time_taken_during_a_reading_is_not_charged_to_other_threads() {
        let seen = |least_ns, most_ns| OtherThreadsTime { least_ns, most_ns };
        assert_eq!(seen(900, 1_000).least_ns_since(seen(100, 200)), 700);
        assert_eq!(seen(100, 9_000).least_ns_since(seen(100, 9_000)), 0, "nothing is known");
    }

    #[test]
    fn the_time_of_another_thread_is_seen() {
        let before = OtherThreadsTime::now();
        let spin = || {
            let begun = thread_cpu_ns();
            while thread_cpu_ns() - begun < 20_000_000 {}
        };
        spin();
        let own = OtherThreadsTime::now().least_ns_since(before);
        std::thread::spawn(spin).join().expect("spun");
        let both = OtherThreadsTime::now().least_ns_since(before);
        assert!(both > own + 10_000_000, "{own} {both}");
    }

    #[test]
    fn library_and_system_call_read_the_same_clock() {
        let first = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let second = clock_gettime_entry_ns(libc::CLOCK_MONOTONIC);
        let third = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        assert!(first <= second && second <= third);
    }

    #[test]
    fn a_reading_by_a_system_call_is_seen_as_one() {
        let Some(is_entered) = trace_kernel_entry(|| _ = clock_gettime_entry_ns(libc::CLOCK_MONOTONIC))
        else {
            print_skipped("no child can be traced here");
            return;
        };
        assert!(is_entered);
        assert_eq!(trace_kernel_entry(|| _ = arch::read()), Some(false));
        let other = |argument| Call { number: libc::SYS_clock_gettime, argument, answer: 0 };
        assert!(is_clock_reading(&other(4)) && !is_clock_reading(&other(3)), "CPU time is never the vDSO's");
    }
}
