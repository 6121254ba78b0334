//! Who came first: a new task, or its creator's return.
//!
//! # Invariants
//!
//! * **OWN-MAPPING**: the words lie in a mapping that belongs to one value, is shared with every child that is forked
//!   meanwhile, and is only reached by atomic operations.
#![allow(unsafe_code)]

use crate::clock::Delta;
use crate::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// What creator and task share.
struct Words {
    returned: AtomicBool,
    early: AtomicBool,
}

/// Memory in which a task notes that its creator had not returned when it began.
pub struct Order(NonNull<Words>);

const BYTES: NonZeroUsize = NonZeroUsize::new(size_of::<Words>()).expect("two words are not nothing");

impl Order {
    /// A mapping that is shared with children.
    pub fn new() -> Result<Self> {
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: OWN-MAPPING: it is fresh, and zero is a value of both words.
        let mapped = unsafe { mmap_anonymous(None, BYTES, protection, flags) };
        Ok(Self(mapped.map_err(|e| Error::refused("mmap of a shared page", e))?.cast()))
    }

    fn words(&self) -> &Words {
        // SAFETY: OWN-MAPPING.
        unsafe { self.0.as_ref() }
    }

    /// Before a task is created.
    #[inline(always)]
    pub fn begin(&self) {
        self.words().returned.store(false, Ordering::SeqCst);
        self.words().early.store(false, Ordering::SeqCst);
    }

    /// The task begins.
    #[inline(always)]
    pub fn arrive(&self) {
        if !self.words().returned.load(Ordering::SeqCst) {
            self.words().early.store(true, Ordering::SeqCst);
        }
    }

    /// The creator has returned.
    #[inline(always)]
    pub fn returned(&self) {
        self.words().returned.store(true, Ordering::SeqCst);
    }

    /// After the task has ended: whether it had begun before its creator returned.
    pub fn was_early(&self) -> bool {
        self.words().early.load(Ordering::SeqCst)
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        // SAFETY: OWN-MAPPING: nobody else reaches it any more.
        let _ = unsafe { munmap(self.0.cast(), BYTES.get()) };
    }
}

/// How often an operation may be done again because the new task came first.
pub struct Again {
    left: u64,
    most: u64,
}

impl Again {
    pub fn of(iterations: u64) -> Self {
        let most = 4 * iterations + 16;
        Self { left: most, most }
    }

    pub fn once_more(&mut self, call: &str) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Error::Missing(format!(
                "in {} calls of {call} the new task began before it returned: this scheduler lets it come first",
                self.most
            ))
        })?;
        Ok(())
    }
}

/// The kernel counts every task that anybody creates: there cannot be fewer than ours.
pub fn created(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
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
    use crate::platform::child::Child;
    use std::time::Duration;

    #[test]
    fn a_child_knows_who_came_first() {
        let order = Order::new().expect("a mapping");
        for had_returned in [true, false] {
            order.begin();
            if had_returned {
                order.returned();
            }
            let child = Child::start(|| order.arrive()).expect("forked");
            child.end_within(Duration::from_secs(30)).expect("it ends well");
            assert_eq!(order.was_early(), !had_returned);
        }
    }
}
