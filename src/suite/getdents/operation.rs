//! lseek(2) and getdents64(2), without the C library.
//!
//! # Invariants
//!
//! * **QUIET**: the call reads and writes no memory of ours.
//! * **OWN-BUFFER**: the call writes only into the slice that it is given, and gets its length.
#![allow(unsafe_code)]

use crate::platform::arch::syscall4;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Goes back to the beginning of a directory. Returns 0, or a negative error number.
#[inline(always)]
pub fn rewind(directory: BorrowedFd<'_>) -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall4(libc::SYS_lseek, directory.as_raw_fd() as usize, 0, libc::SEEK_SET as usize, 0) }
}

/// Reads the next records of a directory into `buffer`. Returns how many bytes they have, 0 at the end, or a negative
/// error number.
#[inline(always)]
pub fn getdents64(directory: BorrowedFd<'_>, buffer: &mut [u8]) -> i64 {
    let (address, length) = (buffer.as_mut_ptr() as usize, buffer.len());
    // SAFETY: OWN-BUFFER.
    unsafe { syscall4(libc::SYS_getdents64, directory.as_raw_fd() as usize, address, length, 0) }
}
