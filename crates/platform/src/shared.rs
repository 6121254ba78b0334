//! Memory that this process shares with its forked children and its threads, or with executed processes through a file
//! without a name.
//!
//! # Invariants
//!
//! * **MAPPED**: the mapping stays as long as the value lives, readable and writable. It is aligned to a page, and any bytes
//!   are a value of an atomic. A fresh page is zero, and a file is as long as the rows, with no name by which another program
//!   could shorten it. A forked child keeps the mapping until it ends, and drops nothing.

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A word that shares its cache line, or pair of lines where the processor fetches pairs, with no other.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Word {
    /// The word, which [`super::futex`] can wait for.
    pub value: AtomicU32,
}

/// How many words a [`Words`] holds.
pub const COUNT: usize = 4096 / size_of::<Word>();

/// Numbers that one process writes and the others read. Rows share no cache line, or pair of lines.
pub type Row = [AtomicU64; 16];

/// Mapped atomics.
pub struct Shared<T: ?Sized>(NonNull<T>);

/// A page of words, initially zero.
pub type Words = Shared<[Word; COUNT]>;

/// A table that processes share, a row for each of them.
pub type Table = Shared<[Row]>;

// SAFETY: MAPPED: the content is atomics, which any thread may use.
unsafe impl<T: ?Sized> Send for Shared<T> {}
// SAFETY: MAPPED: likewise.
unsafe impl<T: ?Sized> Sync for Shared<T> {}

const PROTECTION: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

impl Words {
    /// Maps a page.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        let length = const { NonZeroUsize::new(size_of::<[Word; COUNT]>()).expect("words have a size") };
        // SAFETY: MAPPED: a fresh mapping where the kernel chooses.
        let page = unsafe { mmap_anonymous(None, length, PROTECTION, MapFlags::MAP_SHARED) };
        page.map(|page| Self(page.cast())).map_err(|e| Error::from_errno("mmap of a shared page", e))
    }
}

impl Table {
    /// The length of the file of a table of this many rows, bytes.
    pub fn file_length(rows: usize) -> u64 {
        (rows * size_of::<Row>()) as u64
    }

    /// Maps the table in this file, which is zero at first and has [`Table::file_length`].
    ///
    /// # Errors
    /// The file is too short, there are no rows, or the kernel refuses the mapping.
    pub fn map(file: &File, rows: usize) -> Result<Self> {
        let refused = |errno| Error::from_errno("mmap of a shared table", errno);
        let long_enough = file.metadata().is_ok_and(|data| data.len() >= Self::file_length(rows));
        let length = NonZeroUsize::new(Self::file_length(rows) as usize).filter(|_| long_enough);
        let length = length.ok_or_else(|| refused(nix::errno::Errno::EINVAL))?;
        // SAFETY: MAPPED: a fresh mapping where the kernel chooses.
        let start = unsafe { mmap(None, length, PROTECTION, MapFlags::MAP_SHARED, file, 0) };
        start.map(|start| Self(NonNull::slice_from_raw_parts(start.cast(), rows))).map_err(refused)
    }
}

impl<T: ?Sized> std::ops::Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: MAPPED.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: MAPPED: no reference of this process outlives the value.
        let _ = unsafe { munmap(self.0.cast(), size_of_val(self.0.as_ref())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fork_child;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn a_child_writes_what_its_parent_reads() {
        let words = Words::new().expect("mapped");
        assert!(words.iter().all(|word| word.value.load(SeqCst) == 0));
        let child = fork_child(|| words[COUNT - 1].value.store(7, SeqCst)).expect("forked");
        nix::sys::wait::waitpid(child, None).expect("waited");
        assert_eq!(words[COUNT - 1].value.load(SeqCst), 7);
    }

    #[test]
    fn two_mappings_of_one_file_are_one_table() {
        let file = tempfile::tempfile().expect("a file");
        assert!(Table::map(&file, 3).is_err(), "the file is empty");
        file.set_len(Table::file_length(3)).expect("longer");
        let [one, other] = [0, 1].map(|_| Table::map(&file, 3).expect("mapped"));
        assert!(one.len() == 3 && one.iter().flatten().all(|word| word.load(SeqCst) == 0));
        one[2][15].store(7, SeqCst);
        assert_eq!(other[2][15].load(SeqCst), 7);
        assert!(Table::map(&file, 0).is_err());
    }
}
