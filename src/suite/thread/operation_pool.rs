//! A pool of one thread: it sleeps until it is handed something, answers, and sleeps again.

use crate::platform::futex::{self, Reach};
use crate::platform::{cpu, process};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// What is handed over: a number that grows by one, or this, which ends the thread.
const END: u32 = u32::MAX;

#[derive(Default)]
struct Shared {
    handed: Word,
    answered: Word,
    /// Whether the next answer tells of its thread.
    asked_to_tell: AtomicBool,
    cpu: AtomicUsize,
    switches: AtomicU64,
}

/// A word in a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

/// The pool. Its thread has ended when this value has gone.
pub struct Pool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    turn: u32,
}

impl Pool {
    /// Starts its thread on this CPU.
    pub fn on(cpu: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let refused = |cause| Error::Kernel { call: "pthread_create of a pool's thread".into(), cause };
        let thread = std::thread::Builder::new()
            .spawn(move || {
                // Where it runs is asked of it later, so that a refusal does not go unnoticed.
                let _ = cpu::pin(cpu);
                work(&its);
            })
            .map_err(refused)?;
        Ok(Self { shared, thread: Some(thread), turn: 0 })
    }

    /// The number of the next turn.
    pub fn next_turn(&self) -> u32 {
        self.turn + 1
    }

    /// Hands one turn over and sleeps until it is answered: 0, or a negative error number.
    #[inline(always)]
    pub fn hand_over(&mut self) -> i64 {
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

    /// Asks its thread where it runs and how often it was switched away from, which takes a turn.
    pub fn ask(&mut self) -> Told {
        self.shared.asked_to_tell.store(true, Ordering::Relaxed);
        while self.hand_over() != 0 {}
        Told {
            cpu: self.shared.cpu.load(Ordering::Relaxed),
            switches: self.shared.switches.load(Ordering::Relaxed),
        }
    }
}

/// What the pool's thread tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The CPU that it runs on.
    pub cpu: usize,
    /// How often it was switched away from, because it slept or because who was woken came first.
    pub switches: u64,
}

/// The thread's whole life.
fn work(shared: &Shared) {
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
        if shared.asked_to_tell.load(Ordering::Relaxed) {
            shared.asked_to_tell.store(false, Ordering::Relaxed);
            shared.cpu.store(cpu::current(), Ordering::Relaxed);
            let switches = process::usage()
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
        let cpu = cpu::allowed()[0];
        let mut pool = Pool::on(cpu).expect("a thread");
        for turn in 1..=100 {
            assert_eq!(pool.next_turn(), turn);
            assert_eq!(pool.hand_over(), 0);
        }
        assert_eq!(pool.ask().cpu, cpu);
    }
}
