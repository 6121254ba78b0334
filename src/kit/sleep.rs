//! Sleeping until a moment of the monotonic clock, in the ways that the kernel offers.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads and writes only the locals that it is given, in their full length.
//! * **OWN-DESCRIPTOR**: the descriptor was opened here and is closed once, by its owner.
//! * **OWN-TASK**: the call changes the calling task's own scheduling and reads one structure of ours.
#![allow(unsafe_code)]

use crate::platform::futex;
use crate::{Error, Result};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until a moment; answers a negative error number if it cannot.
pub trait Sleep {
    /// Sleeps until this time of `CLOCK_MONOTONIC`.
    fn until(&mut self, deadline: Duration) -> i64;

    /// Whether it takes a time to wait, in whole milliseconds, instead of a moment.
    fn is_coarse(&self) -> bool {
        false
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    }
}

fn answered(answer: libc::c_int) -> i64 {
    if answer < 0 { -i64::from(nix::errno::Errno::last_raw()) } else { i64::from(answer) }
}

/// clock_nanosleep(2).
pub struct Nanosleep;

impl Sleep for Nanosleep {
    fn until(&mut self, deadline: Duration) -> i64 {
        let time = timespec(deadline);
        // SAFETY: OWN-BUFFER. It answers the error number itself.
        let errno = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, null_mut())
        };
        -i64::from(errno)
    }
}

/// A read of a timerfd(2).
pub struct TimerDescriptor(OwnedFd);

impl TimerDescriptor {
    /// Opens one.
    pub fn new() -> Result<Self> {
        // SAFETY: `timerfd_create` has no precondition.
        let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::last_os("timerfd_create"));
        }
        // SAFETY: OWN-DESCRIPTOR.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl Sleep for TimerDescriptor {
    fn until(&mut self, deadline: Duration) -> i64 {
        // SAFETY: plain numbers, for which zero is a value.
        let mut time: libc::itimerspec = unsafe { zeroed() };
        time.it_value = timespec(deadline);
        let mut expirations = 0u64;
        // SAFETY: OWN-BUFFER, OWN-DESCRIPTOR.
        let read = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const time, null_mut());
            libc::read(self.0.as_raw_fd(), (&raw mut expirations).cast(), 8)
        };
        answered(read as libc::c_int)
    }
}

/// A futex that nobody wakes.
#[derive(Default)]
pub struct FutexTimeout(AtomicU32);

impl Sleep for FutexTimeout {
    fn until(&mut self, deadline: Duration) -> i64 {
        match futex::wait_until(&self.0, 0, deadline) {
            timed_out if timed_out == -i64::from(libc::ETIMEDOUT) => 0,
            refused => refused,
        }
    }
}

/// epoll_wait(2) on nothing.
pub struct EpollTimeout(OwnedFd);

impl EpollTimeout {
    /// Opens one.
    pub fn new() -> Result<Self> {
        // SAFETY: `epoll_create1` has no precondition.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::last_os("epoll_create1"));
        }
        // SAFETY: OWN-DESCRIPTOR.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl Sleep for EpollTimeout {
    /// Its time-out counts from the call: so it waits the one millisecond that it is given.
    fn until(&mut self, _: Duration) -> i64 {
        // SAFETY: plain numbers, for which zero is a value.
        let mut event: libc::epoll_event = unsafe { zeroed() };
        // SAFETY: OWN-BUFFER, OWN-DESCRIPTOR.
        answered(unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, 1) })
    }

    fn is_coarse(&self) -> bool {
        true
    }
}

/// This thread in the real-time class `SCHED_FIFO`, until the value goes.
pub struct RealTime(());

impl RealTime {
    /// Enters the class at this priority, of 1 to 99.
    ///
    /// # Errors
    /// The kernel refuses: it takes `CAP_SYS_NICE` or `ulimit -r`.
    pub fn enter(priority: i32) -> Result<Self> {
        let class = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        match schedule(class, priority) {
            0 => Ok(Self(())),
            _ => Err(Error::last_os("sched_setscheduler SCHED_FIFO (CAP_SYS_NICE, `ulimit -r`)")),
        }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // Everybody may leave it.
        schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(class: libc::c_int, priority: i32) -> libc::c_int {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: OWN-TASK.
    unsafe { libc::sched_setscheduler(0, class, &raw const parameter) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::time::clock_gettime_ns;

    #[test]
    fn nobody_wakes_early() {
        let ways: [Box<dyn Sleep>; 4] = [
            Box::new(Nanosleep),
            Box::new(TimerDescriptor::new().expect("a timer")),
            Box::new(FutexTimeout::default()),
            Box::new(EpollTimeout::new().expect("an epoll")),
        ];
        for mut way in ways {
            let deadline = clock_gettime_ns(libc::CLOCK_MONOTONIC) + 1_000_000;
            assert!(way.until(Duration::from_nanos(deadline)) >= 0);
            assert!(clock_gettime_ns(libc::CLOCK_MONOTONIC) >= deadline);
        }
    }

    #[test]
    fn a_class_is_left_with_its_value() {
        match RealTime::enter(1) {
            Ok(real_time) => drop(real_time),
            Err(error) => println!("skipped: {error}"),
        }
        // SAFETY: `sched_getscheduler` has no precondition.
        assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
    }
}
