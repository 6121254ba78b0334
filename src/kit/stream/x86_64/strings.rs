//! The repeated string instructions: one per pass, for any number of bytes.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`. The direction flag is clear by the calling convention.
#![allow(unsafe_code)]

use super::super::{Loop, Operation};
use std::arch::asm;

pub(super) fn find_loop(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::Write => Some(stosb_loop),
        Operation::Copy => Some(movsb_loop),
        _ => None,
    }
}

/// Stores the lowest byte of the constant.
#[inline(never)]
unsafe fn stosb_loop(
    to: *mut u8,
    _: *const u8,
    _: *const u8,
    bytes: usize,
    passes: u64,
    constant: u64,
) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE.
        unsafe {
            asm!("rep stosb", inout("rdi") to => _, inout("rcx") bytes => _, in("al") constant as u8,
                options(nostack, preserves_flags));
        }
    }
    0
}

#[inline(never)]
unsafe fn movsb_loop(to: *mut u8, x: *const u8, _: *const u8, bytes: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE.
        unsafe {
            asm!("rep movsb", inout("rdi") to => _, inout("rsi") x => _, inout("rcx") bytes => _,
                options(nostack, preserves_flags));
        }
    }
    0
}
