//! POSIX semaphores of the C library between threads: it enters the kernel only where a thread waits.
//!
//! # Invariants
//!
//! * **PLACED**: the semaphore was initialised at an address that does not change until it is destroyed.
#![allow(unsafe_code)]

use super::{Channel, ChannelPair};
use crate::error::{Error, Result};
use nix::errno::Errno;
use std::cell::UnsafeCell;
use std::path::Path;

/// sem_post(3) and sem_wait(3).
pub struct PosixSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: PLACED: a semaphore may be used by several threads.
unsafe impl Send for PosixSemaphore {}
// SAFETY: PLACED: likewise.
unsafe impl Sync for PosixSemaphore {}

impl PosixSemaphore {
    /// A semaphore of this value.
    ///
    /// # Errors
    /// The refusal of `sem_init`.
    pub fn new(value: u32) -> Result<Self> {
        // SAFETY: PLACED: plain bytes, for which zero is valid; `sem_init` follows.
        let semaphore = Self(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: PLACED.
        match unsafe { libc::sem_init(semaphore.0.get(), 0, value) } {
            0 => Ok(semaphore),
            _ => Err(Error::from_last_errno("sem_init")),
        }
    }

    /// A semaphore without a token for each direction.
    ///
    /// # Errors
    /// Those of [`PosixSemaphore::new`].
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        Ok([Self::new(0)?, Self::new(0)?])
    }
}

impl Channel for PosixSemaphore {
    #[inline(always)]
    fn send(&self) -> i64 {
        // SAFETY: PLACED.
        kernel_answer(unsafe { libc::sem_post(self.0.get()) })
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        // SAFETY: PLACED.
        kernel_answer(unsafe { libc::sem_wait(self.0.get()) })
    }
}

/// The library's answer as the kernel gives one: a negative error number or 0.
#[inline(always)]
fn kernel_answer(answer: i32) -> i64 {
    if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
}

impl Drop for PosixSemaphore {
    fn drop(&mut self) {
        // SAFETY: PLACED.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
