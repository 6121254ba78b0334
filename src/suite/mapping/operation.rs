//! The end of the data segment, moved up and back again (`brk`).
//!
//! # Invariants
//!
//! * **BACK**: the break ends where it was. Between the two calls nothing is allocated and no other thread of this
//!   process runs, so that no allocator sees it elsewhere.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// Where the break is now.
pub fn end() -> usize {
    // SAFETY: an address that cannot be is refused, and the answer is the break as it is.
    unsafe { libc::syscall(libc::SYS_brk, 0) as usize }
}

/// Moves the break from `end` up by so many bytes, and back. Answers 0 or a negative error number.
#[inline(always)]
pub fn grow_and_shrink(end: usize, bytes: usize) -> i64 {
    // SAFETY: BACK.
    let (grown, shrunk) = unsafe {
        let grown = libc::syscall(libc::SYS_brk, end + bytes) as usize;
        (grown, libc::syscall(libc::SYS_brk, end) as usize)
    };
    if (grown, shrunk) == (end + bytes, end) { 0 } else { -(Errno::ENOMEM as i64) }
}
