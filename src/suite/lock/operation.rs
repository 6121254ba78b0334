//! Locks: a mutex of a word and futex(2), the C library's mutex, POSIX semaphores.
//!
//! # Invariants
//!
//! * **PLACED**: the C library's object stands in a box of its own, is initialised before it is used and destroyed
//!   once, after its last use; it is reached through its address alone, as the library wants it.
#![allow(unsafe_code)]

use crate::kit::ipc::{Channel, Semaphore};
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::shared::Word;
use crate::{Error, Result};
use std::cell::UnsafeCell;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Something that one task has at a time.
pub trait Lock: Send + Sync + 'static {
    /// Takes it, and waits for it as long as another has it.
    fn acquire(&self);
    /// Gives it back.
    fn release(&self);
}

/// The mutex of Drepper's *Futexes Are Tricky* (2011), his third: 0 free, 1 taken, 2 taken and waited for.
#[derive(Default)]
pub struct FutexMutex(Word);

impl Lock for FutexMutex {
    #[inline(always)]
    fn acquire(&self) {
        let word = &self.0.value;
        if word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while word.swap(2, Acquire) != 0 {
                wait(word, 2, Reach::Private);
            }
        }
    }

    #[inline(always)]
    fn release(&self) {
        if self.0.value.swap(0, Release) == 2 {
            wake(&self.0.value, Reach::Private);
        }
    }
}

/// pthread_mutex_lock(3).
pub struct LibraryMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: PLACED: a mutex is for several threads.
unsafe impl Send for LibraryMutex {}
// SAFETY: PLACED: likewise.
unsafe impl Sync for LibraryMutex {}

impl Default for LibraryMutex {
    fn default() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }
}

impl Lock for LibraryMutex {
    #[inline(always)]
    fn acquire(&self) {
        // SAFETY: PLACED. A plain mutex refuses nobody.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline(always)]
    fn release(&self) {
        // SAFETY: PLACED.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for LibraryMutex {
    fn drop(&mut self) {
        // SAFETY: PLACED.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// sem_wait(3) and sem_post(3), between threads.
pub struct LibrarySemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: PLACED: a semaphore is for several threads.
unsafe impl Send for LibrarySemaphore {}
// SAFETY: PLACED: likewise.
unsafe impl Sync for LibrarySemaphore {}

impl LibrarySemaphore {
    /// One that can be taken once.
    pub fn new() -> Result<Self> {
        // SAFETY: plain bytes, for which zero is a value; `sem_init` follows.
        let semaphore = Self(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: PLACED.
        match unsafe { libc::sem_init(semaphore.0.get(), 0, 1) } {
            0 => Ok(semaphore),
            _ => Err(Error::last_os("sem_init")),
        }
    }
}

impl Lock for LibrarySemaphore {
    #[inline(always)]
    fn acquire(&self) {
        // SAFETY: PLACED. A signal interrupts it: then it is tried again.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }

    #[inline(always)]
    fn release(&self) {
        // SAFETY: PLACED.
        unsafe { libc::sem_post(self.0.get()) };
    }
}

impl Drop for LibrarySemaphore {
    fn drop(&mut self) {
        // SAFETY: PLACED.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// A System V semaphore that can be taken once.
pub struct SetSemaphore(Semaphore);

impl SetSemaphore {
    /// Makes one.
    pub fn new() -> Result<Self> {
        let [semaphore, _] = Semaphore::pair(Path::new(""))?;
        match semaphore.send() {
            refused if refused < 0 => Err(Error::refused("semop", Error::errno(refused))),
            _ => Ok(Self(semaphore)),
        }
    }
}

impl Lock for SetSemaphore {
    #[inline(always)]
    fn acquire(&self) {
        while self.0.receive() == -i64::from(libc::EINTR) {}
    }

    #[inline(always)]
    fn release(&self) {
        self.0.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    fn excludes(lock: impl Lock) {
        let shared = Arc::new((lock, AtomicU64::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        shared.0.acquire();
                        // Not one step: two who are inside at once lose one.
                        shared.1.store(shared.1.load(Relaxed) + 1, Relaxed);
                        shared.0.release();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("joined"));
        assert_eq!(shared.1.load(Relaxed), 60_000);
    }

    #[test]
    fn no_two_are_inside_at_once() {
        excludes(FutexMutex::default());
        excludes(LibraryMutex::default());
        excludes(LibrarySemaphore::new().expect("a semaphore"));
        excludes(SetSemaphore::new().expect("a semaphore"));
    }
}
