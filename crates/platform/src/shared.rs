//! Words that this process shares with its forked children and its threads.
//!
//! # Invariants
//!
//! * **MAPPED**: the page is mapped as long as the value lives, readable and writable, aligned
//!   and initially zero, which is a value of every atomic. A forked child keeps the mapping until it
//!   ends, and drops nothing.
#![allow(unsafe_code)]

pub mod table;

use crate::error::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A word that shares its cache line, or pair of lines where the processor fetches pairs, with no other.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Word {
    /// The word, which [`super::futex`] can wait for.
    pub value: AtomicU32,
}

/// How many words a [`Words`] holds.
pub const COUNT: usize = 4096 / size_of::<Word>();

/// A page of words, initially zero.
pub struct Words(NonNull<[Word; COUNT]>);

// SAFETY: MAPPED: what is there are atomics, which any thread may use.
unsafe impl Send for Words {}
// SAFETY: MAPPED: likewise.
unsafe impl Sync for Words {}

impl Words {
    /// Maps a page.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        let length = const { NonZeroUsize::new(size_of::<[Word; COUNT]>()).expect("words have a size") };
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: MAPPED: a fresh mapping where the kernel chooses.
        let page = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_SHARED) };
        page.map(|page| Self(page.cast())).map_err(|e| Error::from_errno("mmap of a shared page", e))
    }
}

impl std::ops::Deref for Words {
    type Target = [Word; COUNT];

    fn deref(&self) -> &Self::Target {
        // SAFETY: MAPPED.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: MAPPED: no reference of this process outlives the value.
        let _ = unsafe { munmap(self.0.cast(), size_of::<[Word; COUNT]>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fork_child;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_child_writes_what_its_parent_reads() {
        let words = Words::new().expect("mapped");
        assert!(words.iter().all(|word| word.value.load(Ordering::SeqCst) == 0));
        let child = fork_child(|| words[COUNT - 1].value.store(7, Ordering::SeqCst)).expect("forked");
        nix::sys::wait::waitpid(child, None).expect("waited");
        assert_eq!(words[COUNT - 1].value.load(Ordering::SeqCst), 7);
    }
}
