//! The C library's `memcpy` and `memset`, one call per pass.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`: the bytes are within slices that the caller holds, and a mutable slice overlaps no
//!   other.
#![allow(unsafe_code)]

use super::{Loop, Operation};
use std::hint::black_box;

pub(super) fn find_loop(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::Write => Some(memset_loop),
        Operation::Copy => Some(memcpy_loop),
        _ => None,
    }
}

/// Stores the lowest byte of the constant.
#[inline(never)]
unsafe fn memset_loop(
    to: *mut u8,
    _: *const u8,
    _: *const u8,
    bytes: usize,
    passes: u64,
    constant: u64,
) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE. `black_box` keeps the compiler from dropping a call whose result another overwrites.
        unsafe { libc::memset(black_box(to.cast()), (constant & 0xff) as i32, bytes) };
    }
    0
}

#[inline(never)]
unsafe fn memcpy_loop(to: *mut u8, x: *const u8, _: *const u8, bytes: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE, as in `set`.
        unsafe { libc::memcpy(black_box(to.cast()), black_box(x.cast()), bytes) };
    }
    0
}
