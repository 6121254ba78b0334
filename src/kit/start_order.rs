//! Detects whether a new task started before its creator returned from the call.
//!
//! # Invariants
//!
//! * **OWN-MAPPING**: the flags lie in a mapping that belongs to one value, is shared with every child forked while it
//!   exists, and is accessed by atomic operations only.
#![allow(unsafe_code)]

use crate::clock::{Counts, Delta};
use crate::error::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flags that a creator and its new task share.
struct Flags {
    returned: AtomicBool,
    early: AtomicBool,
}

/// Shared memory in which a new task notes that its creator had not returned yet when it started.
pub struct Order(NonNull<Flags>);

const BYTES: NonZeroUsize = NonZeroUsize::new(size_of::<Flags>()).expect("two flags have a size");

impl Order {
    /// Maps the memory.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: OWN-MAPPING: it is fresh, and zero is a valid value of both flags.
        let mapped = unsafe { mmap_anonymous(None, BYTES, protection, flags) };
        Ok(Self(mapped.map_err(|e| Error::from_errno("mmap of a shared page", e))?.cast()))
    }

    fn flags(&self) -> &Flags {
        // SAFETY: OWN-MAPPING.
        unsafe { self.0.as_ref() }
    }

    /// Clears both flags. Called before a task is created.
    #[inline(always)]
    pub fn clear_flags(&self) {
        self.flags().returned.store(false, Ordering::SeqCst);
        self.flags().early.store(false, Ordering::SeqCst);
    }

    /// Called by the task when it starts.
    #[inline(always)]
    pub fn note_start(&self) {
        if !self.flags().returned.load(Ordering::SeqCst) {
            self.flags().early.store(true, Ordering::SeqCst);
        }
    }

    /// Called by the creator when the creating call has returned.
    #[inline(always)]
    pub fn note_return(&self) {
        self.flags().returned.store(true, Ordering::SeqCst);
    }

    /// Whether the task started before its creator returned. Called after the task has ended.
    pub fn was_early(&self) -> bool {
        self.flags().early.load(Ordering::SeqCst)
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        // SAFETY: OWN-MAPPING: no reference to it is left.
        let _ = unsafe { munmap(self.0.cast(), BYTES.get()) };
    }
}

/// How often a creation may be repeated because the new task started before its creator returned: the bracket then
/// holds a part of the task's life, too.
pub struct Repeats {
    left: u64,
    most: u64,
}

impl Repeats {
    /// For a batch of this many creations: four times as many, and 16.
    pub fn for_batch(iterations: u64) -> Self {
        let most = 4 * iterations + 16;
        Self { left: most, most }
    }

    /// Decides whether the creation that `order` has seen counts. Called after the task has ended.
    ///
    /// A creation that is repeated starts with a new time slice: a long call by a creator whose slice ends inside each
    /// of them would otherwise give way at every return.
    ///
    /// # Errors
    /// [`Error::Disturbed`] if the repetitions are used up: other tasks want this CPU, or the scheduler runs new tasks
    /// first.
    pub fn judge_creation(&mut self, call: &str, order: &Order) -> Result<Counts> {
        if !order.was_early() {
            return Ok(Counts::Yes);
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Error::Disturbed(format!(
                "in {} calls of {call} the new task began before it returned: other tasks want this CPU, or this \
                 scheduler lets new tasks come first",
                self.most
            ))
        })?;
        std::thread::yield_now();
        Ok(Counts::Again)
    }
}

/// Claims that tasks were created. The kernel counts those of the whole machine, so there must be at least one an
/// iteration.
pub fn tasks_were_created(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    match delta.counted.created {
        Some(count) if count < iterations => Err(format!(
            "{count} tasks were created on the whole machine in {iterations} iterations: there was no child in each"
        )),
        Some(count) => Ok(format!("{count} tasks were created on this machine in {iterations} iterations")),
        None => Ok("the kernel does not tell how many tasks were created".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::run_in_child_process;

    #[test]
    fn a_child_that_starts_early_is_repeated_until_the_limit() {
        let order = Order::new().expect("a mapping");
        let mut repeats = Repeats::for_batch(1);
        order.clear_flags();
        order.note_start();
        for _ in 0..20 {
            assert_eq!(repeats.judge_creation("fork", &order).expect("repetitions are left"), Counts::Again);
        }
        assert!(matches!(repeats.judge_creation("fork", &order), Err(Error::Disturbed(_))));
    }

    #[test]
    fn a_child_knows_who_came_first() {
        let order = Order::new().expect("a mapping");
        for had_returned in [true, false] {
            order.clear_flags();
            if had_returned {
                order.note_return();
            }
            run_in_child_process(|| order.note_start());
            assert_eq!(order.was_early(), !had_returned);
        }
    }
}
