//! The loops of AArch64.
//!
//! | register | content |
//! |---|---|
//! | `x0`, `x1`, `x2` | the position in `to`, `x` and `y` |
//! | `x3`, `x9` | remaining passes, remaining blocks of this pass |
//! | `x4`, `x5` | blocks and bytes of a pass |
//! | `x6`, and `v31` | the constant, in every word |
//! | `x7` | where the sums of the lanes are stored |
//!
//! A block is 512 bytes: eight times two pairs of vectors of 16 bytes. Non-temporal stores are `stnp`, which is a hint.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`. `bytes` is a multiple of the block; `bytes` and `passes` are not zero.
//! * **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::{BLOCK, Loop, Means, Operation};
use std::arch::asm;

/// Whether the processor supports these instructions.
pub(super) fn is_offered(means: Means) -> bool {
    matches!(means, Means::Scalar | Means::Neon | Means::Library)
}

/// Waits until all earlier stores are visible to all CPUs.
#[inline(always)]
pub fn fence() {
    // SAFETY: OFFERED: every processor has it. It accesses no memory.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
}

/// Defines a loop: instructions before it, for 64 bytes at the offset `\at` of a block, and after it.
macro_rules! turns {
    ($name:ident, $before:expr, [$($text:expr),+], $after:expr) => {
        #[inline(never)]
        unsafe fn $name(
            to: *mut u8, x: *const u8, y: *const u8, bytes: usize, passes: u64, constant: u64,
        ) -> u64 {
            let mut lanes = [0u64; 8];
            // SAFETY: INSIDE, OFFERED. `lanes` is a local of this function, four vectors long.
            unsafe {
                asm!(
                    $before,
                    "2:", "mov x9, x4",
                    ".p2align 6", "3:",
                    concat!(".irp at,0,64,128,192,256,320,384,448\n", $($text, "\n",)+ ".endr"),
                    "add x0, x0, #512", "add x1, x1, #512", "add x2, x2, #512", "subs x9, x9, #1", "b.ne 3b",
                    "sub x0, x0, x5", "sub x1, x1, x5", "sub x2, x2, x5", "subs x3, x3, #1", "b.ne 2b",
                    $after,
                    inout("x0") to => _, inout("x1") x => _, inout("x2") y => _, inout("x3") passes => _,
                    out("x9") _, inout("x4") bytes / BLOCK => _, inout("x5") bytes => _,
                    inout("x6") constant => _, inout("x7") lanes.as_mut_ptr() => _,
                    clobber_abi("C"), options(nostack),
                );
            }
            lanes.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

mod neon;

/// The loop for this operation and means.
pub(super) fn turns(operation: Operation, means: Means) -> Option<Loop> {
    match (means, operation) {
        (Means::Neon, _) => Some(neon::turns(operation)),
        // No case uses another operation with registers of eight bytes: every processor has vectors.
        (Means::Scalar, Operation::Read) => Some(read_words),
        (Means::Scalar, Operation::Write) => Some(write_words),
        _ => None,
    }
}

/// The loop that prefetches: there is none.
pub(super) fn ahead(_: Operation, _: Means) -> Option<Loop> {
    None
}

// Registers of eight bytes, unrolled: the bandwidth of a program without vectors.
turns!(
    read_words,
    "mov x12, #0\nmov x13, #0",
    [".irp o,0,16,32,48\nldp x10, x11, [x1, #\\at+\\o]\nadd x12, x12, x10\nadd x13, x13, x11\n.endr"],
    "stp x12, x13, [x7]"
);
turns!(write_words, "", [".irp o,0,8,16,24,32,40,48,56\nstr x6, [x0, #\\at+\\o]\n.endr"], "");
