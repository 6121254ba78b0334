//! A timer that interrupts its thread, and a handler that records what the thread is doing: the state that the thread
//! has stored in a word, and the address of its next instruction.
//!
//! # Invariants
//!
//! * **LOOK**: the handler reads and adds to atomics, reads the clock and the context that the kernel passes, and
//!   sets its own timer, all of which POSIX permits. It acts only on signals of this file's timers: a signal that a
//!   process sent has another code and carries no pointer.
//! * **OWN-TIMER**: the timer carries the address of the sampler's own board, which is boxed and dropped after the
//!   timer is deleted. The timer's signal goes to the thread that made the timer. The sampler cannot leave that thread,
//!   so that no signal is pending once `timer_delete` has returned there.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::limit;
use crate::time::{clock_gettime_ns, to_timespec};
use nix::errno::Errno;
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of states. A higher state counts as the last.
pub const STATES: usize = 8;

/// The intervals between two samples.
#[derive(Clone, Debug)]
pub enum Gaps {
    /// A fixed period, kept by the kernel.
    Every(Duration),
    /// These intervals, ns, in turn: each begins when the handler of the previous one has run.
    Drawn(Vec<u32>),
    /// No timer: samples only at [`Sampler::sample_now`].
    Never,
}

/// The state shared with the handler.
struct Board {
    state: AtomicU32,
    /// Samples of each state.
    found: [AtomicU64; STATES],
    /// Addresses to be counted.
    range: Range<usize>,
    within: AtomicU64,
    looks: AtomicU64,
    /// Expiries that occurred while the previous one was still pending.
    late: AtomicU64,
    moments: Box<[AtomicU64]>,
    gaps: Gaps,
    /// The kernel's timer, set before its first expiry.
    timer: AtomicU64,
    running: AtomicBool,
}

/// Samples one thread.
pub struct Sampler {
    board: Box<Board>,
    /// Binds the sampler to its thread.
    _here: PhantomData<*const ()>,
}

/// The samples that a [`Sampler`] has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// All samples.
    pub count: u64,
    /// Samples of each state.
    pub in_state: [u64; STATES],
    /// Samples with an address in the range.
    pub in_range: u64,
    /// Expiries without a sample, because the previous one was still pending.
    pub lost: u64,
    /// The times of the first samples, ns of `CLOCK_MONOTONIC`, as many as there was room for.
    pub moments: Vec<u64>,
}

extern "C" fn handle_timer_signal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: LOOK: the kernel passes valid structures. OWN-TIMER: the board exists.
    unsafe {
        if (*info).si_code == libc::SI_TIMER {
            let board = &*(*info).si_value().sival_ptr.cast::<Board>();
            board.record_sample(next_instruction(context.cast()), timer_overrun(info));
        }
    }
}

/// # Safety
/// LOOK: the context that the kernel passes to a handler.
unsafe fn next_instruction(context: *const libc::ucontext_t) -> usize {
    // SAFETY: promised by the caller.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return machine.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return machine.pc as usize;
    // The first of the general registers is the program counter (asm/ptrace.h).
    #[cfg(target_arch = "riscv64")]
    return machine.__gregs[0] as usize;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        let _ = machine;
        0
    }
}

/// # Safety
/// LOOK: the structure that the kernel passes to the handler of a timer, with the timer's number and its overrun.
unsafe fn timer_overrun(info: *const libc::siginfo_t) -> u64 {
    // After signal, error and code come padding, the timer's number, and the overrun (siginfo(2)).
    // SAFETY: promised by the caller; the structure is 128 bytes.
    let overrun = unsafe { info.cast::<i32>().add(5).read() };
    u64::try_from(overrun).unwrap_or(0)
}

impl Board {
    fn record_sample(&self, address: usize, late: u64) {
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
            self.set_timer(Duration::from_nanos(u64::from(gap)), Duration::ZERO);
        }
    }

    /// Starts the timer, or stops it if `first` is zero.
    fn set_timer(&self, first: Duration, then: Duration) {
        let times = libc::itimerspec { it_value: to_timespec(first), it_interval: to_timespec(then) };
        let timer = self.timer.load(Relaxed) as usize as libc::timer_t;
        // SAFETY: OWN-TIMER: the timer exists. With a valid timer and such times the call cannot fail.
        unsafe { libc::timer_settime(timer, 0, &raw const times, null_mut()) };
    }
}

impl Sampler {
    /// Makes a sampler of this thread, which counts addresses in `range` and keeps the times of the first `moments`
    /// samples. The sampler is not started.
    ///
    /// # Errors
    /// The kernel refuses a timer: `ulimit -i` limits their number.
    pub fn new(gaps: Gaps, range: Range<usize>, moments: usize) -> Result<Self> {
        let signal = libc::SIGRTMIN() + 4; // the one after the alarm's
        // SAFETY: plain numbers, for which zero is a value. Interrupted calls are restarted.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handle_timer_signal as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: LOOK.
        if unsafe { libc::sigaction(signal, &raw const action, null_mut()) } != 0 {
            return Err(Error::from_last_errno("sigaction of a sampler"));
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
            return Err(limit::timer_error("timer_create of a sampler", Errno::last()));
        }
        board.timer.store(timer as usize as u64, Relaxed);
        Ok(Self { board, _here: PhantomData })
    }

    /// Starts sampling. The first sample comes after one interval.
    pub fn start(&self) {
        self.board.running.store(true, Relaxed);
        match &self.board.gaps {
            Gaps::Every(gap) => self.board.set_timer(*gap, *gap),
            Gaps::Drawn(gaps) => {
                self.board.set_timer(Duration::from_nanos(u64::from(gaps[gaps.len() - 1])), Duration::ZERO);
            }
            Gaps::Never => {}
        }
    }

    /// Stops sampling and keeps the samples.
    pub fn stop(&self) {
        self.board.running.store(false, Relaxed);
        self.board.set_timer(Duration::ZERO, Duration::ZERO);
    }

    /// Makes the timer expire at once. The handler runs at the next interrupt, some microseconds later.
    #[inline(always)]
    pub fn sample_now(&self) {
        self.board.set_timer(Duration::from_nanos(1), Duration::ZERO);
    }

    /// The word in which the thread stores its state: a number below [`STATES`].
    pub fn state_word(&self) -> &AtomicU32 {
        &self.board.state
    }

    /// The number of samples until now.
    #[inline(always)]
    pub fn sample_count(&self) -> u64 {
        self.board.looks.load(Relaxed)
    }

    /// The samples until now.
    pub fn samples(&self) -> Looks {
        let board = &self.board;
        let kept = board.moments.len().min(self.sample_count() as usize);
        Looks {
            count: self.sample_count(),
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
        // SAFETY: OWN-TIMER: it is deleted only here.
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
            assert!(begun.elapsed() < Duration::from_secs(20), "the timer did not expire");
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_state_is_sampled_and_its_times_ascend() {
        for gaps in [Gaps::Every(Duration::from_micros(500)), Gaps::Drawn(vec![300_000, 700_000])] {
            let sampler = Sampler::new(gaps, 0..usize::MAX, 3).expect("a sampler");
            sampler.state_word().store(2, Relaxed);
            sampler.start();
            spin_until(|| sampler.sample_count() >= 5);
            sampler.state_word().store(99, Relaxed);
            spin_until(|| sampler.samples().in_state[STATES - 1] > 0);
            sampler.stop();
            let found = sampler.samples();
            assert!(found.in_state[2] >= 5, "{found:?}");
            assert_eq!((found.count, found.count), (found.in_state.iter().sum(), found.in_range));
            assert_eq!(found.moments.len(), 3);
            assert!(found.moments[0] > 0 && found.moments.is_sorted(), "{found:?}");
        }
    }

    #[test]
    fn a_stopped_sampler_takes_no_sample() {
        let sampler = Sampler::new(Gaps::Drawn(vec![50_000]), 0..0, 0).expect("a sampler");
        sampler.start();
        spin_until(|| sampler.sample_count() > 0);
        sampler.stop();
        let found = sampler.samples();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((sampler.samples(), found.in_range), (found.clone(), 0));
    }

    #[test]
    fn a_request_takes_one_sample() {
        let sampler = Sampler::new(Gaps::Never, 0..0, 0).expect("a sampler");
        sampler.start();
        for wanted in 1..4 {
            sampler.sample_now();
            spin_until(|| sampler.sample_count() == wanted);
        }
    }
}
