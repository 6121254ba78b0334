//! The loops of x86-64.
//!
//! | register | content |
//! |---|---|
//! | `rdi`, `rsi`, `rdx` | the position in `to`, `x` and `y` |
//! | `rcx`, `rax` | remaining passes, remaining blocks of this pass |
//! | `r8`, `r9` | blocks and bytes of a pass |
//! | `r10`, and vector register 15 | the constant, in every word |
//! | `r11` | where the sums of the lanes are stored |
//!
//! A block is 512 bytes: eight vectors of 64 bytes, sixteen of 32. Eight sums are independent, since an addition
//! takes a cycle and a core may perform two loads in it. Addresses have no index register, which would split the
//! instruction in two on Intel's cores. Software prefetch of reads in order was tried at 1, 2 and 4 KiB ahead, into
//! all levels and past them: on Zen 4 it gained nothing from memory and lost a third in the last level. For writes,
//! and for several pages in turn, see `wide`.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`. `bytes` is a multiple of the block, except for string instructions; `bytes` and
//!   `passes` are not zero.
//! * **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::{BLOCK, Loop, Means, Operation};
use crate::platform::arch;
use std::arch::asm;

/// Whether the processor and the kernel support these instructions.
pub(super) fn is_offered(means: Means) -> bool {
    match means {
        Means::Scalar | Means::Sse2 | Means::Strings | Means::Library => true,
        Means::Avx2 => is_x86_feature_detected!("avx2"),
        Means::Avx512 => is_x86_feature_detected!("avx512f"),
        Means::Neon => false,
    }
}

/// Waits until all earlier stores are visible to all CPUs.
#[inline(always)]
pub fn fence() {
    // SAFETY: OFFERED: SSE2, which every x86-64 processor has. It accesses no memory.
    unsafe { std::arch::x86_64::_mm_mfence() };
}

/// Defines a loop: instructions before it, for one block, and after it.
macro_rules! turns {
    ($name:ident, [$($before:expr),*], [$($block:expr),+], [$($after:expr),*]) => {
        #[inline(never)]
        unsafe fn $name(
            to: *mut u8, x: *const u8, y: *const u8, bytes: usize, passes: u64, constant: u64,
        ) -> u64 {
            let mut lanes = [0u64; 8];
            // SAFETY: INSIDE, OFFERED. `lanes` is a local of this function, as wide as the widest vector.
            unsafe {
                asm!(
                    $($before,)*
                    "2:", "mov rax, r8",
                    ".p2align 6", "3:",
                    $($block,)+
                    "add rdi, 512", "add rsi, 512", "add rdx, 512", "dec rax", "jnz 3b",
                    "sub rdi, r9", "sub rsi, r9", "sub rdx, r9", "dec rcx", "jnz 2b",
                    $($after,)*
                    inout("rdi") to => _, inout("rsi") x => _, inout("rdx") y => _, inout("rcx") passes => _,
                    out("rax") _, inout("r8") bytes / BLOCK => _, inout("r9") bytes => _,
                    inout("r10") constant => _, inout("r11") lanes.as_mut_ptr() => _,
                    out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                    clobber_abi("C"), options(nostack),
                );
            }
            lanes.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

/// Repeats a text for each of these offsets from the beginning of a block.
macro_rules! at {
    ($offsets:expr, $($text:expr),+) => {
        concat!(".irp at,", $offsets, "\n", $($text, "\n",)+ ".endr")
    };
}

/// Repeats a text for each of these vector registers.
macro_rules! each {
    ($registers:expr, $($text:expr),+) => {
        concat!(".irp i,", $registers, "\n", $($text, "\n",)+ ".endr")
    };
}

mod sse2;
mod wide;

/// The loop for this operation and means.
pub(super) fn turns(operation: Operation, means: Means) -> Option<Loop> {
    match (means, operation) {
        (Means::Sse2, _) => Some(sse2::turns(operation)),
        (Means::Avx2, _) => Some(wide::avx2::turns(operation)),
        (Means::Avx512, _) => Some(wide::avx512::turns(operation)),
        // No case uses another operation with these two means: every processor has vectors.
        (Means::Scalar, Operation::Read) => Some(read_words),
        (Means::Scalar, Operation::Write) => Some(write_words),
        (Means::Strings, Operation::Write) => Some(stosb_loop),
        (Means::Strings, Operation::Copy) => Some(movsb_loop),
        _ => None,
    }
}

/// The loop that prefetches, if there is one that is faster here. Lines to be written are prefetched on Intel's processors
/// only: Sapphire Rapids gains 7 %, and Zen 4 loses a fifth (27.3 GB/s without, 22.5 with).
pub(super) fn ahead(operation: Operation, means: Means) -> Option<Loop> {
    if operation != Operation::CopyNonTemporal && !arch::is_intel() {
        return None;
    }
    match means {
        Means::Avx2 => wide::avx2::ahead(operation),
        Means::Avx512 => wide::avx512::ahead(operation),
        _ => None,
    }
}

// Registers of eight bytes, unrolled: the bandwidth of a program without vectors.
turns!(
    read_words,
    ["xor r12d, r12d", "xor r13d, r13d", "xor r14d, r14d", "xor r15d, r15d"],
    [at!(
        "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480",
        "add r12, [rsi + \\at]",
        "add r13, [rsi + \\at + 8]",
        "add r14, [rsi + \\at + 16]",
        "add r15, [rsi + \\at + 24]"
    )],
    ["add r12, r13", "add r14, r15", "add r12, r14", "mov [r11], r12"]
);
turns!(
    write_words,
    [""],
    [at!(
        "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480",
        ".irp n,0,1,2,3",
        "mov [rdi + \\at + 8*\\n], r10",
        ".endr"
    )],
    [""]
);

// The repeated string instructions: one per pass, for any number of bytes. The direction flag is clear by the calling convention.

/// Stores the lowest byte of the constant.
#[inline(never)]
unsafe fn stosb_loop(to: *mut u8, _: *const u8, _: *const u8, bytes: usize, passes: u64, c: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE.
        unsafe {
            asm!("rep stosb", inout("rdi") to => _, inout("rcx") bytes => _, in("al") c as u8,
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
