//! Locks: a mutex built on futex(2), the kernel's with inheritance of priority, the C library's mutex, a POSIX and a System V
//! semaphore, a condition variable, and locks of files.
//!
//! # Invariants
//!
//! * **PLACED**: the C library's object lies in a box of its own, is initialised before its first use and destroyed
//!   once, after its last; it is accessed through its address only, as the library requires.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kit::ipc::{Channel, Condition, PosixSemaphore, Semaphore};
use crate::kit::kernel_call::check_granted;
use crate::platform::futex::{Reach, lock_pi, unlock_pi, wait, wake};
use crate::platform::shared::Word;
use std::cell::UnsafeCell;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A lock that one task holds at a time.
pub trait Lock: Send + Sync + 'static {
    /// Takes the lock, and waits as long as another task holds it.
    fn acquire(&self);
    /// Releases the lock.
    fn release(&self);
}

/// The third mutex of Drepper's *Futexes Are Tricky* (2011). The word is 0 if free, 1 if taken, 2 if taken and waited for.
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

/// The C library's mutex: pthread_mutex_lock(3).
pub struct LibraryMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: PLACED: a mutex may be used by several threads.
unsafe impl Send for LibraryMutex {}
// SAFETY: PLACED: likewise.
unsafe impl Sync for LibraryMutex {}

impl LibraryMutex {
    /// A mutex of a process that has had a second thread. Before that the GNU C library locks by plain loads and stores.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn new() -> Result<Self> {
        let second = std::thread::Builder::new().spawn(|| ());
        let ended = second.map_err(|e| Error::file("pthread_create", "starting a thread", e))?.join();
        ended.map_err(|_| Error::Child("a thread that does nothing panicked".into()))?;
        Ok(Self::default())
    }
}

impl Default for LibraryMutex {
    fn default() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }
}

impl Lock for LibraryMutex {
    #[inline(always)]
    fn acquire(&self) {
        // SAFETY: PLACED. Locking a mutex of the default type cannot fail.
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

/// A POSIX semaphore of value 1, between threads.
impl Lock for PosixSemaphore {
    #[inline(always)]
    fn acquire(&self) {
        // A wait that a signal interrupted is repeated.
        while self.receive() < 0 {}
    }

    #[inline(always)]
    fn release(&self) {
        self.send();
    }
}

/// A System V semaphore of value 1.
///
/// # Errors
/// The refusal of `semget` or `semop`.
pub fn set_semaphore() -> Result<Semaphore> {
    let [semaphore, _] = Semaphore::pair(Path::new(""))?;
    check_granted("semop", semaphore.send()).map(|()| semaphore)
}

impl Lock for Semaphore {
    #[inline(always)]
    fn acquire(&self) {
        while self.receive() == -i64::from(libc::EINTR) {}
    }

    #[inline(always)]
    fn release(&self) {
        self.send();
    }
}

/// A mutex by `FUTEX_LOCK_PI` and `FUTEX_UNLOCK_PI`, always two calls: the kernel lends the holder the priority of a waiter.
#[derive(Default)]
pub struct InheritingMutex(Word);

impl InheritingMutex {
    /// Checks that the kernel has such locks.
    ///
    /// # Errors
    /// The kernel refuses the call.
    pub fn new() -> Result<Self> {
        let mutex = Self::default();
        check_granted("futex FUTEX_LOCK_PI", lock_pi(&mutex.0.value))?;
        check_granted("futex FUTEX_UNLOCK_PI", unlock_pi(&mutex.0.value)).map(|()| mutex)
    }
}

impl Lock for InheritingMutex {
    #[inline(always)]
    fn acquire(&self) {
        // A wait that a signal interrupted, or that met an owner which just ended, is repeated.
        while lock_pi(&self.0.value) < 0 {}
    }

    #[inline(always)]
    fn release(&self) {
        unlock_pi(&self.0.value);
    }
}

impl Lock for Condition {
    fn acquire(&self) {
        self.receive();
    }

    fn release(&self) {
        self.send();
    }
}

/// flock(2) of a file by one of its open descriptions. Returns 0 or a negative error number.
pub fn flock(file: &File, operation: i32) -> i64 {
    // SAFETY: the call takes no memory.
    let answer = unsafe { libc::flock(file.as_raw_fd(), operation) };
    if answer == 0 { 0 } else { -i64::from(nix::errno::Errno::last_raw()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    fn assert_excludes(lock: impl Lock) {
        let shared = Arc::new((lock, AtomicU64::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        shared.0.acquire();
                        // Not atomic: if two threads are inside at once, an addition is lost.
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
    fn no_two_threads_hold_a_lock_at_once() {
        assert_excludes(FutexMutex::default());
        assert_excludes(LibraryMutex::default());
        assert_excludes(PosixSemaphore::new(1).expect("a semaphore"));
        assert_excludes(set_semaphore().expect("a semaphore"));
        assert_excludes(InheritingMutex::default());
        assert_excludes(Condition::full());
    }
}
