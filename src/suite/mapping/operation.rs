//! Moves the end of the data segment, the program break, up and back again (`brk`).
//!
//! # Invariants
//!
//! * **BACK**: the break ends where it was. Between the two calls nothing is allocated and no other thread of this
//!   process runs, so no allocator sees it moved.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// The address of the break.
pub fn program_break() -> usize {
    // SAFETY: an impossible address is refused and moves nothing; the answer is the current break.
    unsafe { libc::syscall(libc::SYS_brk, 0) as usize }
}

/// Moves the break from `end` up by `bytes`, and back. Returns 0 or a negative error number.
#[inline(always)]
pub fn grow_and_shrink(end: usize, bytes: usize) -> i64 {
    // SAFETY: BACK.
    let (grown, shrunk) = unsafe {
        let grown = libc::syscall(libc::SYS_brk, end + bytes) as usize;
        (grown, libc::syscall(libc::SYS_brk, end) as usize)
    };
    if (grown, shrunk) == (end + bytes, end) { 0 } else { -(Errno::ENOMEM as i64) }
}
