//! A watchdog: a wait in the middle of what is timed ends when it takes too long, and costs nothing when it
//! does not.
//!
//! A timer interrupts the measuring thread, and only that, every few seconds. If it finds the same wait that it
//! found before, it kills the child that is waited for; a wait for anything else answers `EINTR`, since the
//! handler does not restart calls. So a wait is cut short after one to two periods, and a program that was
//! stopped as a whole meanwhile is not blamed at once when it goes on.
//!
//! # Invariants
//!
//! * **HANDLER**: the handler loads and stores atomics of its thread, which need neither allocation nor
//!   registration, and calls `kill`. POSIX allows both there.
#![allow(unsafe_code)]

use crate::{Error, Result};
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The period where nothing else is asked for: no wait of ours takes a hundredth of it.
pub const PERIOD: Duration = Duration::from_secs(5);

/// A signal that nothing else here uses, and that profilers leave alone. Its handler stays when the watchdog has
/// gone: a program that is started has the default again.
const SIGNAL: Signal = Signal::SIGVTALRM;

/// What the handler and its thread share.
struct Watch {
    /// What is waited for: a child by its number, anything else by a negative number, nothing by zero.
    wait: AtomicI64,
    /// What was waited for when the timer last expired.
    seen: AtomicI64,
    barked: AtomicBool,
}

thread_local! {
    static WATCH: Watch = const {
        Watch { wait: AtomicI64::new(0), seen: AtomicI64::new(0), barked: AtomicBool::new(false) }
    };
}

extern "C" fn look(_: libc::c_int) {
    WATCH.with(|watch| {
        let wait = watch.wait.load(Ordering::SeqCst);
        if watch.seen.swap(wait, Ordering::SeqCst) != wait || wait == 0 {
            return;
        }
        watch.barked.store(true, Ordering::SeqCst);
        if let Ok(child @ 1..) = i32::try_from(wait) {
            let errno = nix::errno::Errno::last_raw();
            // SAFETY: HANDLER. The child is waited for, so its number is nobody else's.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // What was interrupted finds errno as it left it.
            nix::errno::Errno::set_raw(errno);
        }
    });
}

/// While it lives, the waits of the thread that made it are watched.
pub struct Watchdog {
    period: Duration,
    /// Deleted when the watchdog goes; an expiry that is pending then finds that nothing is waited for.
    _timer: Timer,
}

impl Watchdog {
    /// Watches this thread.
    pub fn over_this_thread(period: Duration) -> Result<Self> {
        let action = SigAction::new(SigHandler::Handler(look), SaFlags::empty(), SigSet::empty());
        // SAFETY: HANDLER.
        unsafe { sigaction(SIGNAL, &action) }.map_err(|e| Error::refused_to_case("sigaction", e))?;
        WATCH.with(|watch| {
            watch.wait.store(0, Ordering::SeqCst);
            watch.barked.store(false, Ordering::SeqCst);
        });
        Ok(Self { period, _timer: timer(period)? })
    }

    /// Says which child is waited for from here on.
    #[inline(always)]
    pub fn waits_for(&self, child: i32) {
        WATCH.with(|watch| watch.wait.store(i64::from(child), Ordering::Relaxed));
    }

    /// Says that the answer to this turn of a conversation is waited for from here on.
    #[inline(always)]
    pub fn waits_for_turn(&self, turn: u32) {
        WATCH.with(|watch| watch.wait.store(-1 - i64::from(turn), Ordering::Relaxed));
    }

    /// Says that nothing is waited for.
    #[inline(always)]
    pub fn rests(&self) {
        WATCH.with(|watch| watch.wait.store(0, Ordering::Relaxed));
    }

    /// What is to be said of a wait that was cut short; it is said once.
    pub fn bark(&self) -> Option<String> {
        let barked = WATCH.with(|watch| watch.barked.swap(false, Ordering::SeqCst));
        barked.then(|| format!("nothing happened for {} s, and it was ended", self.period.as_secs_f64()))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.rests();
    }
}

fn timer(period: Duration) -> Result<Timer> {
    let refused = |e| Error::refused_to_case("timer_create of a watchdog", e);
    let thread_id = nix::unistd::gettid().as_raw();
    let event = SigEvent::new(SigevNotify::SigevThreadId { signal: SIGNAL, thread_id, si_value: 0 });
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, event).map_err(refused)?;
    timer.set(Expiration::Interval(period.into()), TimerSetTimeFlags::empty()).map_err(refused)?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::Child;
    use nix::errno::Errno;
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;

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
        let watchdog = Watchdog::over_this_thread(SHORT).expect("a timer");
        let child = Child::start(|| std::thread::sleep(Duration::from_secs(60))).expect("forked");
        let child = child.leave();
        watchdog.waits_for(child.as_raw());
        assert_eq!(waits(child), Ok(WaitStatus::Signaled(child, Signal::SIGKILL, false)));
        let sentence = watchdog.bark().expect("it barked");
        assert!(sentence.contains("0.03 s"), "{sentence}");
        assert_eq!(watchdog.bark(), None, "once");
    }

    #[test]
    fn another_wait_each_time_is_progress() {
        let watchdog = Watchdog::over_this_thread(SHORT).expect("a timer");
        let begun = std::time::Instant::now();
        for turn in 0.. {
            watchdog.waits_for_turn(turn);
            std::thread::yield_now();
            if begun.elapsed() > 8 * SHORT {
                break;
            }
        }
        watchdog.rests();
        assert_eq!(watchdog.bark(), None);
    }

    #[test]
    fn a_wait_for_anything_else_is_interrupted() {
        let watchdog = Watchdog::over_this_thread(SHORT).expect("a timer");
        let (read, _write) = nix::unistd::pipe().expect("a pipe");
        watchdog.waits_for_turn(7);
        let mut ends = (0..1_000).map(|_| nix::unistd::read(&read, &mut [0]));
        // The first expiry only looks; the read that it interrupted is begun again.
        assert!(ends.by_ref().take(3).all(|end| end == Err(Errno::EINTR)));
        assert!(watchdog.bark().is_some());
    }
}
