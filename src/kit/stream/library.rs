//! What the C library offers: `memcpy` and `memset`, one call a pass.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`: the bytes lie within slices that the caller holds, and a mutable slice overlaps
//!   with no other.
#![allow(unsafe_code)]

use super::{Loop, Operation};
use std::hint::black_box;

pub(super) fn turns(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::Write => Some(set),
        Operation::Copy => Some(copy),
        _ => None,
    }
}

/// The last byte of the constant is what a byte can be set to.
#[inline(never)]
unsafe fn set(to: *mut u8, _: *const u8, _: *const u8, bytes: usize, passes: u64, constant: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE. The compiler knows the call, and is kept from dropping one that another overwrites.
        unsafe { libc::memset(black_box(to.cast()), (constant & 0xff) as i32, bytes) };
    }
    0
}

#[inline(never)]
unsafe fn copy(to: *mut u8, x: *const u8, _: *const u8, bytes: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE, as in `set`.
        unsafe { libc::memcpy(black_box(to.cast()), black_box(x.cast()), bytes) };
    }
    0
}
