//! Tokens in memory: a word that is slept on, a condition variable, a word that is polled.

use super::{Both, Line};
use crate::platform::futex::{self, Reach};
use crate::platform::shared::Words;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A word that is 1 while a token is in it; who waits for one sleeps in the kernel.
pub struct Futex {
    words: Arc<Words>,
    index: usize,
    reach: Reach,
}

impl Futex {
    /// For threads.
    pub fn private(_: &Path) -> Both<Self> {
        Self::both(Reach::Private)
    }

    /// For processes.
    pub fn shared(_: &Path) -> Both<Self> {
        Self::both(Reach::Shared)
    }

    fn both(reach: Reach) -> Both<Self> {
        let words = Arc::new(Words::new()?);
        Ok([0, 1].map(|index| Self { words: Arc::clone(&words), index, reach }))
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU32 {
        &self.words[self.index].value
    }
}

impl Line for Futex {
    #[inline(always)]
    fn send(&self) -> i64 {
        self.word().store(1, Release);
        futex::wake(self.word(), self.reach)
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        while self.word().compare_exchange(1, 0, Acquire, Acquire).is_err() {
            let answer = futex::wait(self.word(), 0, self.reach);
            if answer < 0 && answer != -i64::from(libc::EAGAIN) {
                return answer;
            }
        }
        0
    }
}

/// The standard library's mutex and condition variable, between threads. A wait cannot be interrupted.
#[derive(Default)]
pub struct Condition {
    full: Mutex<bool>,
    changed: Condvar,
}

impl Condition {
    /// One in each direction.
    pub fn both(_: &Path) -> Both<Self> {
        Ok(Default::default())
    }
}

impl Line for Condition {
    #[inline(always)]
    fn send(&self) -> i64 {
        *self.full.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
        0
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        while !*full {
            full = self.changed.wait(full).unwrap_or_else(PoisonError::into_inner);
        }
        *full = false;
        0
    }
}

/// One direction of a word that both ends poll: it has one value on the way there and another on the way back,
/// so that one cache line goes to and fro.
pub struct Toggle {
    words: Arc<Words>,
    full: u32,
}

/// Polls after which nobody answers any more: some seconds of them.
const MOST_POLLS: u64 = 1 << 32;

impl Toggle {
    /// Both directions of one word.
    pub fn both(_: &Path) -> Both<Self> {
        let words = Arc::new(Words::new()?);
        Ok([1, 0].map(|full| Self { words: Arc::clone(&words), full }))
    }
}

impl Line for Toggle {
    #[inline(always)]
    fn send(&self) -> i64 {
        self.words[0].value.store(self.full, Release);
        0
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        for _ in 0..MOST_POLLS {
            if self.words[0].value.load(Acquire) == self.full {
                return 0;
            }
        }
        -i64::from(libc::ETIMEDOUT)
    }
}
