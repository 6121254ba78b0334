//! A timer that interrupts its thread, and a handler that looks at what the thread is doing: at a word in which the
//! thread says its state, and at the address of the instruction that is next.
//!
//! # Invariants
//!
//! * **LOOK**: the handler reads and adds to atomics, reads the clock and the context that the kernel hands over, and sets
//!   its own timer again, all of which POSIX allows. Only this file's timers are believed: a signal that somebody sent
//!   is told from them by its code, and carries no pointer.
//! * **OWN-TIMER**: the timer carries the address of the sampler's own board, which is boxed and dropped after the timer
//!   was deleted. The timer's signal is for the thread that made it, which the sampler cannot leave, so that none is
//!   under way once `timer_delete` has returned there.
#![allow(unsafe_code)]

use crate::platform::time::clock_gettime_ns;
use crate::{Error, Result};
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// States that are told apart. A higher number counts as the last.
pub const STATES: usize = 8;

/// The times between two looks.
#[derive(Clone, Debug)]
pub enum Gaps {
    /// Always the same: the kernel keeps the step.
    Every(Duration),
    /// These, ns, again and again: each is set when the one before has ended.
    Drawn(Vec<u32>),
    /// None: only [`Sampler::look_now`].
    Never,
}

/// What the handler sees and writes.
struct Board {
    state: AtomicU32,
    found: [AtomicU64; STATES],
    /// Addresses that are looked for.
    range: Range<usize>,
    within: AtomicU64,
    looks: AtomicU64,
    /// Expiries that came while the one before was still waiting for its handler.
    late: AtomicU64,
    moments: Box<[AtomicU64]>,
    gaps: Gaps,
    /// The kernel's timer, from before the first expiry on.
    timer: AtomicU64,
    running: AtomicBool,
}

/// Looks at one thread.
pub struct Sampler {
    board: Box<Board>,
    /// It stays on its thread.
    _here: PhantomData<*const ()>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// How often somebody looked.
    pub count: u64,
    /// … and found this state.
    pub in_state: [u64; STATES],
    /// … and an address in the range.
    pub in_range: u64,
    /// Expiries that were not looked at, since the one before was not yet.
    pub lost: u64,
    /// When, ns of `CLOCK_MONOTONIC`: the first, as many as there was room for.
    pub moments: Vec<u64>,
}

extern "C" fn look(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: LOOK: the kernel hands over valid structures, and OWN-TIMER: what the timer carries is alive.
    unsafe {
        if (*info).si_code == libc::SI_TIMER {
            let board = &*(*info).si_value().sival_ptr.cast::<Board>();
            board.look(next_instruction(context.cast()), overrun(info));
        }
    }
}

/// # Safety
/// LOOK: the context that the kernel hands to a handler.
unsafe fn next_instruction(context: *const libc::ucontext_t) -> usize {
    // SAFETY: promised by the caller.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return machine.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return machine.pc as usize;
}

/// # Safety
/// LOOK: the structure that the kernel hands to the handler of a timer, which holds the timer's number and how many
/// expiries were joined.
unsafe fn overrun(info: *const libc::siginfo_t) -> u64 {
    // Behind signal, error and code there are a number to pad, the timer, and the overrun: siginfo(2).
    // SAFETY: promised by the caller; the structure is 128 bytes.
    let overrun = unsafe { info.cast::<i32>().add(5).read() };
    u64::try_from(overrun).unwrap_or(0)
}

impl Board {
    fn look(&self, address: usize, late: u64) {
        let at = self.looks.load(Relaxed);
        if let Some(moment) = self.moments.get(at as usize) {
            moment.store(clock_gettime_ns(libc::CLOCK_MONOTONIC), Relaxed);
        }
        let add = |count: &AtomicU64, more| count.store(count.load(Relaxed) + more, Relaxed);
        let state = (self.state.load(Relaxed) as usize).min(STATES - 1);
        add(&self.found[state], 1);
        add(&self.within, u64::from(self.range.contains(&address)));
        add(&self.late, late);
        self.looks.store(at + 1, Relaxed);
        if let (Gaps::Drawn(gaps), true) = (&self.gaps, self.running.load(Relaxed)) {
            let gap = gaps[at as usize % gaps.len()];
            self.set(Duration::from_nanos(u64::from(gap)), Duration::ZERO);
        }
    }

    /// A first time of zero stops it.
    fn set(&self, first: Duration, then: Duration) {
        let spec = |d: Duration| libc::timespec {
            tv_sec: d.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(d.subsec_nanos()),
        };
        let times = libc::itimerspec { it_value: spec(first), it_interval: spec(then) };
        let timer = self.timer.load(Relaxed) as usize as libc::timer_t;
        // SAFETY: OWN-TIMER: the timer exists. Of a valid timer and such times it refuses none.
        unsafe { libc::timer_settime(timer, 0, &raw const times, null_mut()) };
    }
}

impl Sampler {
    /// A sampler of this thread, which looks for addresses in `range` and keeps so many moments. It is not started.
    ///
    /// # Errors
    /// The kernel has no timer for us: `ulimit -i` bounds their number.
    pub fn new(gaps: Gaps, range: Range<usize>, moments: usize) -> Result<Self> {
        let signal = libc::SIGRTMIN() + 4; // one behind the alarm's
        // SAFETY: plain numbers, for which zero is a value. A call that it interrupts is begun again.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = look as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: LOOK.
        if unsafe { libc::sigaction(signal, &raw const action, null_mut()) } != 0 {
            return Err(Error::last_os("sigaction of a sampler"));
        }
        let gaps = if matches!(&gaps, Gaps::Drawn(gaps) if gaps.is_empty()) { Gaps::Never } else { gaps };
        let board = Box::new(Board {
            state: AtomicU32::new(0),
            found: Default::default(),
            range,
            within: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            late: AtomicU64::new(0),
            moments: (0..moments).map(|_| AtomicU64::new(0)).collect(),
            gaps,
            timer: AtomicU64::new(0),
            running: AtomicBool::new(false),
        });
        // SAFETY: plain numbers likewise.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
        event.sigev_value.sival_ptr = (&raw const *board).cast_mut().cast();
        let mut timer = null_mut();
        // SAFETY: OWN-TIMER.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0 {
            return Err(Error::last_os("timer_create of a sampler (`ulimit -i`)"));
        }
        board.timer.store(timer as usize as u64, Relaxed);
        Ok(Self { board, _here: PhantomData })
    }

    /// Begins to look: the first time after one gap.
    pub fn start(&self) {
        self.board.running.store(true, Relaxed);
        match &self.board.gaps {
            Gaps::Every(gap) => self.board.set(*gap, *gap),
            Gaps::Drawn(gaps) => {
                self.board.set(Duration::from_nanos(u64::from(gaps[gaps.len() - 1])), Duration::ZERO);
            }
            Gaps::Never => {}
        }
    }

    /// Looks no more. What was found stays.
    pub fn stop(&self) {
        self.board.running.store(false, Relaxed);
        self.board.set(Duration::ZERO, Duration::ZERO);
    }

    /// Lets the timer expire at once. The handler runs at the next interrupt, which is some microseconds away.
    #[inline(always)]
    pub fn look_now(&self) {
        self.board.set(Duration::from_nanos(1), Duration::ZERO);
    }

    /// The word in which the thread says its state: a number below [`STATES`].
    pub fn state(&self) -> &AtomicU32 {
        &self.board.state
    }

    /// How often somebody has looked so far.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.board.looks.load(Relaxed)
    }

    /// What was found so far.
    pub fn found(&self) -> Looks {
        let board = &self.board;
        let kept = board.moments.len().min(self.count() as usize);
        Looks {
            count: self.count(),
            in_state: std::array::from_fn(|state| board.found[state].load(Relaxed)),
            in_range: board.within.load(Relaxed),
            lost: board.late.load(Relaxed),
            moments: board.moments[..kept].iter().map(|moment| moment.load(Relaxed)).collect(),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let timer = self.board.timer.load(Relaxed) as usize as libc::timer_t;
        self.board.running.store(false, Relaxed);
        // SAFETY: OWN-TIMER: it is deleted once, here.
        unsafe { libc::timer_delete(timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn spin_until(mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(20), "no timer is so late");
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_state_is_found_and_its_moments_are_in_order() {
        for gaps in [Gaps::Every(Duration::from_micros(500)), Gaps::Drawn(vec![300_000, 700_000])] {
            let sampler = Sampler::new(gaps, 0..usize::MAX, 3).expect("a sampler");
            sampler.state().store(2, Relaxed);
            sampler.start();
            spin_until(|| sampler.count() >= 5);
            sampler.state().store(99, Relaxed);
            spin_until(|| sampler.found().in_state[STATES - 1] > 0);
            sampler.stop();
            let found = sampler.found();
            assert!(found.in_state[2] >= 5, "{found:?}");
            assert_eq!((found.count, found.count), (found.in_state.iter().sum(), found.in_range));
            assert_eq!(found.moments.len(), 3);
            assert!(found.moments[0] > 0 && found.moments.is_sorted(), "{found:?}");
        }
    }

    #[test]
    fn stopped_it_looks_no_more() {
        let sampler = Sampler::new(Gaps::Drawn(vec![50_000]), 0..0, 0).expect("a sampler");
        sampler.start();
        spin_until(|| sampler.count() > 0);
        sampler.stop();
        let found = sampler.found();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((sampler.found(), found.in_range), (found.clone(), 0));
    }

    #[test]
    fn asked_to_it_looks_once() {
        let sampler = Sampler::new(Gaps::Never, 0..0, 0).expect("a sampler");
        sampler.start();
        for wanted in 1..4 {
            sampler.look_now();
            spin_until(|| sampler.count() == wanted);
        }
    }
}
