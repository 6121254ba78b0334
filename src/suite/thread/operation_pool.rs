//! A pool of one thread that sleeps until it is given a turn, answers, and sleeps again.

use crate::error::{Error, Result};
use crate::platform::futex::{self, Reach};
use crate::platform::{cpu, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// The value that ends the thread. A turn is a number below it, one more each time.
const END: u32 = u32::MAX;

#[derive(Default)]
struct Shared {
    handed: Word,
    answered: Word,
    /// Whether the thread fills in `cpu` and `switches` before its next answer.
    usage_wanted: AtomicBool,
    cpu: AtomicUsize,
    switches: AtomicU64,
}

/// A word in a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

/// The pool. Dropping it ends and joins the thread.
pub struct Pool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    turn: u32,
}

impl Pool {
    /// Starts the thread and pins it to this CPU.
    ///
    /// # Errors
    /// [`Error::Kernel`] if no thread can be created.
    pub fn start_on(cpu: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let refused = |cause| Error::Kernel { call: "pthread_create of a pool's thread".into(), cause };
        let thread = std::thread::Builder::new()
            .spawn(move || {
                // A refusal shows later: the thread is asked where it runs.
                let _ = cpu::pin_thread(cpu);
                serve_turns(&theirs);
            })
            .map_err(refused)?;
        Ok(Self { shared, thread: Some(thread), turn: 0 })
    }

    /// The number of the next turn.
    pub fn next_turn_number(&self) -> u32 {
        self.turn + 1
    }

    /// Gives the thread a turn and sleeps until it is answered. Returns 0, or a negative error number.
    #[inline(always)]
    pub fn run_turn(&mut self) -> i64 {
        self.turn = if self.turn == END - 1 { 0 } else { self.turn + 1 };
        let before = self.shared.answered.0.load(Ordering::Relaxed);
        self.shared.handed.0.store(self.turn, Ordering::Release);
        let woken = futex::wake(&self.shared.handed.0, Reach::Private);
        if woken < 0 {
            return woken;
        }
        loop {
            if self.shared.answered.0.load(Ordering::Acquire) == self.turn {
                return 0;
            }
            match futex::wait(&self.shared.answered.0, before, Reach::Private) {
                answer if answer == -i64::from(libc::EINTR) => return answer,
                _ => {}
            }
        }
    }

    /// Takes one turn in which the thread reports its CPU and its context switches.
    pub fn read_usage(&mut self) -> Usage {
        self.shared.usage_wanted.store(true, Ordering::Relaxed);
        while self.run_turn() != 0 {}
        Usage {
            cpu: self.shared.cpu.load(Ordering::Relaxed),
            switches: self.shared.switches.load(Ordering::Relaxed),
        }
    }
}

/// What the pool's thread reports of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The CPU that it runs on.
    pub cpu: usize,
    /// How often the kernel switched away from it, because it slept or was preempted.
    pub switches: u64,
}

/// The thread's loop.
fn serve_turns(shared: &Shared) {
    let mut done = 0;
    loop {
        let turn = shared.handed.0.load(Ordering::Acquire);
        if turn == END {
            return;
        }
        if turn == done {
            futex::wait(&shared.handed.0, done, Reach::Private);
            continue;
        }
        if shared.usage_wanted.load(Ordering::Relaxed) {
            shared.usage_wanted.store(false, Ordering::Relaxed);
            shared.cpu.store(cpu::current_cpu(), Ordering::Relaxed);
            let switches = process::thread_usage()
                .map_or(0, |usage| usage.voluntary_context_switches() + usage.involuntary_context_switches());
            shared.switches.store(switches as u64, Ordering::Relaxed);
        }
        done = turn;
        shared.answered.0.store(turn, Ordering::Release);
        futex::wake(&shared.answered.0, Reach::Private);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.handed.0.store(END, Ordering::Release);
        futex::wake(&self.shared.handed.0, Reach::Private);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it does not panic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_answered_on_the_cpu_that_was_asked_for() {
        let cpu = cpu::allowed_cpus()[0];
        let mut pool = Pool::start_on(cpu).expect("a thread");
        for turn in 1..=100 {
            assert_eq!(pool.next_turn_number(), turn);
            assert_eq!(pool.run_turn(), 0);
        }
        assert_eq!(pool.read_usage().cpu, cpu);
    }
}
