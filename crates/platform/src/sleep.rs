//! Sleeping until a time of the monotonic clock, by several system calls.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads and writes only the local variables that it is given, in their full length.
//! * **OWN-DESCRIPTOR**: the descriptor was opened here, and only its owner closes it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::futex;
use crate::process::inheritance::set_scheduling_class;
use crate::time::to_timespec;
use nix::sys::epoll::{Epoll, EpollCreateFlags};
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// A way to sleep.
pub trait Sleep {
    /// Sleeps until this time of `CLOCK_MONOTONIC`. Returns a negative error number if the kernel refuses.
    fn sleep_until(&mut self, deadline: Duration) -> i64;

    /// Whether this way sleeps for whole milliseconds and ignores the deadline.
    fn is_coarse(&self) -> bool {
        false
    }
}

fn answer_or_errno(answer: libc::c_int) -> i64 {
    if answer < 0 { -i64::from(nix::errno::Errno::last_raw()) } else { i64::from(answer) }
}

/// clock_nanosleep(2).
pub struct Nanosleep;

impl Sleep for Nanosleep {
    fn sleep_until(&mut self, deadline: Duration) -> i64 {
        let time = to_timespec(deadline);
        // SAFETY: OWN-BUFFER. The call returns the error number.
        let errno = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, null_mut())
        };
        -i64::from(errno)
    }
}

/// A read of a timerfd(2).
pub struct TimerDescriptor(TimerFd);

impl TimerDescriptor {
    /// # Errors
    /// `timerfd_create` is refused.
    pub fn new() -> Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        timer.map(Self).map_err(|errno| Error::from_errno("timerfd_create", errno))
    }
}

impl Sleep for TimerDescriptor {
    fn sleep_until(&mut self, deadline: Duration) -> i64 {
        // SAFETY: plain numbers, for which zero is a value.
        let mut time: libc::itimerspec = unsafe { zeroed() };
        time.it_value = to_timespec(deadline);
        let mut expirations = 0u64;
        let timer = self.0.as_fd().as_raw_fd();
        // SAFETY: OWN-BUFFER, OWN-DESCRIPTOR.
        let read = unsafe {
            libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &raw const time, null_mut());
            libc::read(timer, (&raw mut expirations).cast(), 8)
        };
        answer_or_errno(read as libc::c_int)
    }
}

/// A wait for a futex that is never woken.
#[derive(Default)]
pub struct FutexTimeout(AtomicU32);

impl Sleep for FutexTimeout {
    fn sleep_until(&mut self, deadline: Duration) -> i64 {
        match futex::wait_until(&self.0, 0, deadline) {
            timed_out if timed_out == -i64::from(libc::ETIMEDOUT) => 0,
            refused => refused,
        }
    }
}

/// epoll_wait(2) on an empty set.
pub struct EpollTimeout(OwnedFd);

impl EpollTimeout {
    /// # Errors
    /// `epoll_create1` is refused.
    pub fn new() -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        epoll.map(|epoll| Self(epoll.0)).map_err(|errno| Error::from_errno("epoll_create1", errno))
    }
}

impl Sleep for EpollTimeout {
    /// The time-out is relative and in milliseconds: the sleep lasts 1 ms, whatever the deadline.
    fn sleep_until(&mut self, _: Duration) -> i64 {
        // SAFETY: plain numbers, for which zero is a value.
        let mut event: libc::epoll_event = unsafe { zeroed() };
        // SAFETY: OWN-BUFFER, OWN-DESCRIPTOR.
        answer_or_errno(unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, 1) })
    }

    fn is_coarse(&self) -> bool {
        true
    }
}

/// Keeps idle CPUs out of every state that takes time to leave, until this value is dropped: the kernel withdraws the
/// request when its descriptor is closed, whichever way the process ends.
pub struct ShallowIdle(#[expect(dead_code, reason = "held open")] File);

impl ShallowIdle {
    /// # Errors
    /// The kernel has no such file, or only root may write to it.
    pub fn hold() -> Result<Self> {
        let request = OpenOptions::new().write(true).open(LATENCY).and_then(|mut file| {
            file.write_all(&0i32.to_ne_bytes())?; // microseconds
            Ok(file)
        });
        request.map(Self).map_err(|error| Error::file(LATENCY, "asking for shallow idle states", error))
    }
}

/// The file that takes the greatest allowed latency of leaving an idle state, µs. It is in force while the file is open.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Keeps this thread in the real-time class `SCHED_FIFO` until this value is dropped.
pub struct RealTime(());

impl RealTime {
    /// Enters the class at this priority, 1 to 99.
    ///
    /// # Errors
    /// The kernel refuses without `CAP_SYS_NICE` or `ulimit -r`.
    pub fn enter(priority: i32) -> Result<Self> {
        let class = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        let refused =
            |errno| Error::from_errno("sched_setscheduler SCHED_FIFO (CAP_SYS_NICE, `ulimit -r`)", errno);
        set_scheduling_class(class, priority).map(|()| Self(())).map_err(refused)
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // Leaving the class needs no privilege.
        let _ = set_scheduling_class(libc::SCHED_OTHER, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;
    use crate::time::clock_gettime_ns;

    #[test]
    fn every_sleep_lasts_until_its_deadline() {
        let ways: [Box<dyn Sleep>; 4] = [
            Box::new(Nanosleep),
            Box::new(TimerDescriptor::new().expect("a timer")),
            Box::new(FutexTimeout::default()),
            Box::new(EpollTimeout::new().expect("an epoll")),
        ];
        for mut way in ways {
            let deadline = clock_gettime_ns(libc::CLOCK_MONOTONIC) + 1_000_000;
            assert!(way.sleep_until(Duration::from_nanos(deadline)) >= 0);
            assert!(clock_gettime_ns(libc::CLOCK_MONOTONIC) >= deadline);
        }
    }

    #[test]
    fn the_class_is_left_when_the_value_is_dropped() {
        match RealTime::enter(1) {
            Ok(real_time) => drop(real_time),
            Err(error) => print_skipped(&error.to_string()),
        }
        // SAFETY: `sched_getscheduler` has no precondition.
        assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
    }
}
