//! Timers that end waits that take too long. An [`Alarm`] interrupts calls that block, so that no thread waits forever for a
//! partner that hangs or has ended. A [`Watchdog`] ends a wait inside a timed part; a wait that ends in time costs one store.
//!
//! Each of the two is a timer that signals the thread that made it, and no other. The handler does not restart system calls: a call
//! that it interrupts returns `EINTR`. If it finds the same wait for a child at two expirations in a row, it kills the child.
//! A watchdog therefore ends a wait after one to two periods, and does not fire at once when a program that was stopped as a
//! whole continues. An alarm is set only while no wait is noted.
//!
//! # Invariants
//!
//! * **HANDLER**: the handler loads and stores atomics of its thread, which need neither allocation nor
//!   registration, and calls `kill`. POSIX allows both in a handler.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::platform::limit;
use crate::platform::signal::thread_signal_event;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The usual period: no wait of an operation takes a hundredth of it.
pub const PERIOD: Duration = Duration::from_secs(5);

/// A signal that neither the rest of this crate nor profilers use. Its handler stays installed after the watchdog is
/// dropped; a program that is executed has the default action again.
const SIGNAL: Signal = Signal::SIGVTALRM;

/// State that the handler and its thread share.
struct Watch {
    /// The current wait: the id of a child, a negative number for anything else, 0 for none.
    wait: AtomicI64,
    /// The wait that was current when the timer last expired.
    seen: AtomicI64,
    expired: AtomicBool,
}

thread_local! {
    static WATCH: Watch = const {
        Watch { wait: AtomicI64::new(0), seen: AtomicI64::new(0), expired: AtomicBool::new(false) }
    };
}

extern "C" fn end_stuck_wait(_: libc::c_int) {
    WATCH.with(|watch| {
        let wait = watch.wait.load(Ordering::SeqCst);
        if watch.seen.swap(wait, Ordering::SeqCst) != wait || wait == 0 {
            return;
        }
        watch.expired.store(true, Ordering::SeqCst);
        if let Ok(child @ 1..) = i32::try_from(wait) {
            let errno = nix::errno::Errno::last_raw();
            // SAFETY: HANDLER. The child has not been reaped, so its id is not reused.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // The interrupted code must find its errno unchanged.
            nix::errno::Errno::set_raw(errno);
        }
    });
}

/// Watches the waits of the thread that made it, until it is dropped.
pub struct Watchdog {
    period: Duration,
    /// Deleted with this value; the handler of an expiry that is then pending finds no wait.
    _timer: Timer,
}

impl Watchdog {
    /// Installs the handler and starts the timer for the calling thread.
    ///
    /// # Errors
    /// The refusal of `sigaction` or `timer_create`.
    pub fn for_this_thread(period: Duration) -> Result<Self> {
        let mut timer = new_timer("timer_create of a watchdog")?;
        WATCH.with(|watch| {
            watch.wait.store(0, Ordering::SeqCst);
            watch.expired.store(false, Ordering::SeqCst);
        });
        timer
            .set(Expiration::Interval(period.into()), TimerSetTimeFlags::empty())
            .map_err(|e| Error::from_case_errno("timer_settime of a watchdog", e))?;
        Ok(Self { period, _timer: timer })
    }

    /// Starts a wait for this child.
    #[inline(always)]
    pub fn watch_child(&self, child: i32) {
        WATCH.with(|watch| watch.wait.store(i64::from(child), Ordering::Relaxed));
    }

    /// Starts a wait for the answer to this turn of an exchange.
    #[inline(always)]
    pub fn watch_turn(&self, turn: u32) {
        WATCH.with(|watch| watch.wait.store(-1 - i64::from(turn), Ordering::Relaxed));
    }

    /// Ends the current wait.
    #[inline(always)]
    pub fn end_wait(&self) {
        WATCH.with(|watch| watch.wait.store(0, Ordering::Relaxed));
    }

    /// A sentence about a wait that the watchdog has ended. Each such wait is reported once.
    pub fn take_expired_sentence(&self) -> Option<String> {
        let expired = WATCH.with(|watch| watch.expired.swap(false, Ordering::SeqCst));
        expired.then(|| format!("nothing happened for {} s, and it was ended", self.period.as_secs_f64()))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end_wait();
    }
}

/// Installs the handler of the signal and makes a timer for the calling thread. The timer is not set yet.
fn new_timer(call: &str) -> Result<Timer> {
    let action = SigAction::new(SigHandler::Handler(end_stuck_wait), SaFlags::empty(), SigSet::empty());
    // SAFETY: HANDLER.
    unsafe { sigaction(SIGNAL, &action) }.map_err(|e| Error::from_case_errno("sigaction", e))?;
    let event = thread_signal_event(SIGNAL, nix::unistd::gettid().as_raw());
    Timer::new(ClockId::CLOCK_MONOTONIC, event).map_err(|e| limit::timer_error(call, e))
}

/// The period of an alarm after its first signal. It repeats, since a signal just before a call blocks does not interrupt it.
const AGAIN: Duration = Duration::from_millis(10);

/// An alarm for the thread that made it.
pub struct Alarm(Timer);

impl Alarm {
    /// Makes an alarm for this thread. It does not run yet.
    ///
    /// # Errors
    /// The kernel refuses the timer or the signal handler.
    pub fn new() -> Result<Self> {
        new_timer("timer_create of an alarm").map(Self)
    }

    /// Runs `f`. After `limit`, every call in which it blocks is interrupted.
    pub fn run_with_limit<T>(&mut self, limit: Duration, f: impl FnOnce() -> T) -> T {
        self.set_timer(Expiration::IntervalDelayed(limit.into(), AGAIN.into()));
        let value = f();
        // An expiration after zero time disarms the timer.
        self.set_timer(Expiration::OneShot(Duration::ZERO.into()));
        value
    }

    fn set_timer(&mut self, expiration: Expiration) {
        // The kernel accepts every time.
        let _ = self.0.set(expiration, TimerSetTimeFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::Child;
    use crate::platform::syscall;
    use nix::errno::Errno;
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;
    use std::os::fd::AsRawFd;

    const SHORT: Duration = Duration::from_millis(30);

    fn waits(child: Pid) -> nix::Result<WaitStatus> {
        loop {
            match waitpid(child, None) {
                Err(Errno::EINTR) => {}
                ended => return ended,
            }
        }
    }

    #[test]
    fn a_child_that_hangs_is_killed_in_the_middle_of_a_wait() {
        let watchdog = Watchdog::for_this_thread(SHORT).expect("a timer");
        let child = Child::start(|| std::thread::sleep(Duration::from_secs(60))).expect("forked");
        let child = child.into_pid();
        watchdog.watch_child(child.as_raw());
        assert_eq!(waits(child), Ok(WaitStatus::Signaled(child, Signal::SIGKILL, false)));
        let sentence = watchdog.take_expired_sentence().expect("it expired");
        assert!(sentence.contains("0.03 s"), "{sentence}");
        assert_eq!(watchdog.take_expired_sentence(), None, "once");
    }

    #[test]
    fn a_new_wait_each_time_does_not_expire() {
        let watchdog = Watchdog::for_this_thread(SHORT).expect("a timer");
        let begun = std::time::Instant::now();
        for turn in 0.. {
            watchdog.watch_turn(turn);
            std::thread::yield_now();
            if begun.elapsed() > 8 * SHORT {
                break;
            }
        }
        watchdog.end_wait();
        assert_eq!(watchdog.take_expired_sentence(), None);
    }

    #[test]
    fn a_wait_for_anything_else_is_interrupted() {
        let watchdog = Watchdog::for_this_thread(SHORT).expect("a timer");
        let (read, _write) = nix::unistd::pipe().expect("a pipe");
        watchdog.watch_turn(7);
        let mut ends = (0..1_000).map(|_| nix::unistd::read(&read, &mut [0]));
        // The first expiry only looks; the read that it interrupted is started again.
        assert!(ends.by_ref().take(3).all(|end| end == Err(Errno::EINTR)));
        assert!(watchdog.take_expired_sentence().is_some());
    }

    #[test]
    fn a_read_without_an_answer_is_interrupted() {
        let mut alarm = Alarm::new().expect("an alarm");
        let (read, _write) = nix::unistd::pipe().expect("a pipe");
        let answer =
            alarm.run_with_limit(Duration::from_millis(20), || syscall::read_byte(read.as_raw_fd(), &mut 0));
        assert_eq!(answer, -i64::from(libc::EINTR));
    }

    #[test]
    fn a_call_after_the_alarm_has_ended_is_not_interrupted() {
        let mut alarm = Alarm::new().expect("an alarm");
        assert_eq!(alarm.run_with_limit(Duration::from_millis(20), || 7), 7);
        let limit = libc::timespec { tv_sec: 0, tv_nsec: 40_000_000 };
        // SAFETY: HANDLER does not matter: it reads a local variable.
        assert_eq!(unsafe { libc::nanosleep(&raw const limit, std::ptr::null_mut()) }, 0);
    }
}
