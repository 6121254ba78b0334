//! An alarm: a timer that interrupts calls which block too long, so that a wait for a partner that has ended or hangs
//! ends.
//!
//! # Invariants
//!
//! * **HANDLER**: the signal handler does nothing; that it exists makes the signal interrupt a call.
//! * **OWN-TIMER**: the timer exists from the making of the value to its drop, which deletes it once.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::platform::limit;
use nix::errno::Errno;
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::time::Duration;

/// The period after the first signal: a signal that arrives just before a call blocks does not interrupt it.
const AGAIN: Duration = Duration::from_millis(10);

/// A timer for one thread.
pub struct Alarm {
    timer: libc::timer_t,
    /// Not `Send`: it signals the thread that made it.
    _here: PhantomData<*const ()>,
}

extern "C" fn ignore_signal(_: libc::c_int) {}

impl Alarm {
    /// Makes an alarm for this thread. It does not run yet.
    ///
    /// # Errors
    /// The kernel refuses the timer or the signal handler.
    pub fn new() -> Result<Self> {
        let signal = libc::SIGRTMIN() + 3; // the first few are the C library's own
        // SAFETY: plain numbers, for which zero is a valid value. Without SA_RESTART the signal interrupts a call.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = ignore_signal as extern "C" fn(_) as usize;
        // SAFETY: HANDLER.
        if unsafe { libc::sigaction(signal, &raw const action, null_mut()) } != 0 {
            return Err(Error::from_last_errno("sigaction of an alarm"));
        }
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
        let mut timer = null_mut();
        // SAFETY: OWN-TIMER.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0 {
            return Err(limit::timer_error("timer_create of an alarm", Errno::last()));
        }
        Ok(Self { timer, _here: PhantomData })
    }

    /// Runs `f`. After `limit`, every call in which it blocks is interrupted.
    pub fn run_with_limit<T>(&self, limit: Duration, f: impl FnOnce() -> T) -> T {
        self.set_timer(limit, AGAIN);
        let value = f();
        self.set_timer(Duration::ZERO, Duration::ZERO);
        value
    }

    fn set_timer(&self, first: Duration, then: Duration) {
        let spec = |d: Duration| libc::timespec {
            tv_sec: d.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(d.subsec_nanos()),
        };
        let times = libc::itimerspec { it_value: spec(first), it_interval: spec(then) };
        // SAFETY: OWN-TIMER. The kernel accepts nanoseconds below a second.
        unsafe { libc::timer_settime(self.timer, 0, &raw const times, null_mut()) };
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: OWN-TIMER.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::syscall;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_read_without_an_answer_is_interrupted() {
        let alarm = Alarm::new().expect("an alarm");
        let (read, _write) = nix::unistd::pipe().expect("a pipe");
        let answer =
            alarm.run_with_limit(Duration::from_millis(20), || syscall::read_byte(read.as_raw_fd(), &mut 0));
        assert_eq!(answer, -i64::from(libc::EINTR));
    }

    #[test]
    fn a_call_after_the_watch_is_not_interrupted() {
        let alarm = Alarm::new().expect("an alarm");
        assert_eq!(alarm.run_with_limit(Duration::from_millis(20), || 7), 7);
        let limit = libc::timespec { tv_sec: 0, tv_nsec: 40_000_000 };
        // SAFETY: it reads a local variable.
        assert_eq!(unsafe { libc::nanosleep(&raw const limit, null_mut()) }, 0);
    }
}
