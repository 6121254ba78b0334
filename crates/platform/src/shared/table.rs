//! A table that executed processes share through a file without a name: a row for each of them.
//!
//! # Invariants
//!
//! * **MAPPED**: the rows are mapped as long as the value lives, readable and writable, aligned to a page, and any bytes are a
//!   value of an atomic. The file was as long as the rows, and has no name by which another program could shorten it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Numbers that one process writes and the others read. Rows share no cache line, or pair of lines.
pub type Row = [AtomicU64; 16];

/// A mapped table.
pub struct Table(NonNull<[Row]>);

// SAFETY: MAPPED: what is there are atomics, which any thread may use.
unsafe impl Send for Table {}
// SAFETY: MAPPED: likewise.
unsafe impl Sync for Table {}

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
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: MAPPED: a fresh mapping where the kernel chooses.
        let start = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, file, 0) };
        start.map(|start| Self(NonNull::slice_from_raw_parts(start.cast(), rows))).map_err(refused)
    }
}

impl std::ops::Deref for Table {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        // SAFETY: MAPPED.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: MAPPED: no reference of this process outlives the value.
        let _ = unsafe { munmap(self.0.cast(), self.0.len() * size_of::<Row>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

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
