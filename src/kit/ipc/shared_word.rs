//! Tokens in shared memory: a futex, a condition variable, a polled word.

use super::{Channel, ChannelPair};
use crate::platform::futex::{self, Reach};
use crate::platform::shared::Words;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A word that is 1 while it holds a token. A task that waits for the token sleeps in futex(2).
pub struct Futex {
    words: Arc<Words>,
    index: usize,
    reach: Reach,
}

impl Futex {
    /// A channel in each direction, for threads of one process.
    ///
    /// # Errors
    /// The kernel refuses the page.
    pub fn private_pair(_: &Path) -> ChannelPair<Self> {
        Self::pair_with_reach(Reach::Private)
    }

    /// A channel in each direction, for processes.
    ///
    /// # Errors
    /// The kernel refuses the page.
    pub fn shared_pair(_: &Path) -> ChannelPair<Self> {
        Self::pair_with_reach(Reach::Shared)
    }

    fn pair_with_reach(reach: Reach) -> ChannelPair<Self> {
        let words = Arc::new(Words::new()?);
        Ok([0, 1].map(|index| Self { words: Arc::clone(&words), index, reach }))
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU32 {
        &self.words[self.index].value
    }
}

impl Channel for Futex {
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
    /// A condition variable for each direction.
    ///
    /// # Errors
    /// None; the type is that of the other channels.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        Ok(Default::default())
    }

    /// A channel that already holds a token. Used as a lock, it is free.
    pub fn full() -> Self {
        Self { full: Mutex::new(true), ..Self::default() }
    }
}

impl Channel for Condition {
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

/// One direction of a word that both ends poll. The word has one value for a token on the way there and another for one
/// on the way back, so that a single cache line moves between the ends.
pub struct PolledWord {
    words: Arc<Words>,
    full: u32,
}

/// Polls after which the other end counts as hung; they take some seconds.
const MOST_POLLS: u64 = 1 << 32;

impl PolledWord {
    /// Both directions of one word.
    ///
    /// # Errors
    /// The kernel refuses the page.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        let words = Arc::new(Words::new()?);
        Ok([1, 0].map(|full| Self { words: Arc::clone(&words), full }))
    }
}

impl Channel for PolledWord {
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
