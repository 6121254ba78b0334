//! Vectors of 32 and of 64 bytes, whose AVX instructions have the same names.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

/// Bytes of four pages.
const FOUR_PAGES: usize = 4 * 4096;

/// All eight registers, and a pair. Sums use eight, which are independent. Loops that load and store alternate by
/// pairs: by rows of eight, memory was slower by a quarter on Zen 4, and the first level no faster.
macro_rules! eight {
    () => {
        "0,1,2,3,4,5,6,7"
    };
}
macro_rules! pair {
    () => {
        "0,1"
    };
}

/// An instruction whose last operand is memory, for each of these registers.
macro_rules! from {
    ($registers:expr, $size:literal, $instruction:expr, $array:literal) => {
        each!($registers, concat!($instruction, ", [", $array, " + \\at + ", $size, "*\\i]"))
    };
}

/// An instruction that stores each of these registers.
macro_rules! into {
    ($registers:expr, $v:literal, $size:literal, $instruction:literal) => {
        each!($registers, concat!($instruction, " [rdi + \\at + ", $size, "*\\i], ", $v, "\\i"))
    };
}

/// Loads each of these registers.
macro_rules! load {
    ($registers:expr, $v:literal, $size:literal, $array:literal) => {
        from!($registers, $size, concat!("vmovupd ", $v, "\\i"), $array)
    };
}

/// Calculates each of these registers from itself, or from the constant, and a memory operand.
macro_rules! own {
    ($registers:expr, $v:literal, $size:literal, $instruction:literal, $array:literal) => {
        from!($registers, $size, concat!($instruction, " ", $v, "\\i, ", $v, "\\i"), $array)
    };
}
macro_rules! constant {
    ($registers:expr, $v:literal, $size:literal, $instruction:literal, $array:literal) => {
        from!($registers, $size, concat!($instruction, " ", $v, "\\i, ", $v, "15"), $array)
    };
}

/// Fills these registers with the constant.
macro_rules! spread {
    ($v:literal, $registers:expr) => {
        concat!("vmovq xmm15, r10\n.irp i,", $registers, "\nvpbroadcastq ", $v, "\\i, xmm15\n.endr")
    };
}

/// Prefetches the lines of a pair of stores, 1 KiB ahead: a stream of stores waits for the read-for-ownership, and
/// hardware prefetchers react to loads. On Sapphire Rapids STREAM's three gain 7 % from memory; from 512 bytes on the
/// distance does not matter. In the first level the requests would displace loads.
macro_rules! prefetch_stores {
    ($lines:literal) => {
        concat!(".irp l,", $lines, "\nprefetchw [rdi + \\at + \\l + 1024]\n.endr")
    };
}

/// A copy past the caches that alternates between four pages, 256 bytes of each, and prefetches the same place of the
/// next four. Hardware prefetchers work per page, so four streams of loads have four times the help: on Sapphire
/// Rapids from memory 18.7 GB/s. One page after another reaches 13.7, four pages without prefetch 17.4, eight 18.2,
/// and the C library's memcpy, which alternates between four too, 16.2. The plain loop copies a remainder of fewer
/// than four pages.
macro_rules! four_pages {
    ($name:ident, $plain:ident, $v:literal, $size:literal, $registers:literal) => {
        #[inline(never)]
        unsafe fn $name(
            to: *mut u8,
            x: *const u8,
            y: *const u8,
            bytes: usize,
            passes: u64,
            constant: u64,
        ) -> u64 {
            let groups = bytes / FOUR_PAGES;
            let done = groups * FOUR_PAGES;
            for _ in 0..passes {
                if groups > 0 {
                    // SAFETY: INSIDE, OFFERED. A prefetch may be outside.
                    unsafe {
                        asm!(
                            "2:", "mov rax, 16",
                            ".p2align 6", "3:",
                            at!(
                                "0,4096,8192,12288",
                                from!($registers, $size, concat!("vmovupd ", $v, "\\i"), "rsi"),
                                ".irp l,0,64,128,192\nprefetcht0 [rsi + \\at + \\l + 16384]\n.endr",
                                into!($registers, $v, $size, "vmovntpd")
                            ),
                            "add rdi, 256", "add rsi, 256", "dec rax", "jnz 3b",
                            "add rdi, 12288", "add rsi, 12288", "dec rcx", "jnz 2b",
                            "sfence", "vzeroupper",
                            inout("rdi") to => _, inout("rsi") x => _, inout("rcx") groups => _, out("rax") _,
                            clobber_abi("C"), options(nostack),
                        );
                    }
                }
                if done < bytes {
                    // SAFETY: INSIDE, OFFERED: the rest of the same arrays.
                    unsafe { $plain(to.add(done), x.add(done), y, bytes - done, 1, constant) };
                }
            }
            0
        }
    };
}

/// STREAM's three operations, with these instructions before each pair of registers.
macro_rules! arithmetic {
    ($scale:ident, $add:ident, $triad:ident, $v:literal, $size:literal, $pairs:literal, $beside:expr) => {
        turns!(
            $scale,
            [spread!($v, "15")],
            [at!(
                $pairs,
                $beside,
                constant!(pair!(), $v, $size, "vmulpd", "rsi"),
                into!(pair!(), $v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
        turns!(
            $add,
            [""],
            [at!(
                $pairs,
                $beside,
                load!(pair!(), $v, $size, "rsi"),
                own!(pair!(), $v, $size, "vaddpd", "rdx"),
                into!(pair!(), $v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
        turns!(
            $triad,
            [spread!($v, "15")],
            [at!(
                $pairs,
                $beside,
                constant!(pair!(), $v, $size, "vmulpd", "rdx"),
                own!(pair!(), $v, $size, "vaddpd", "rsi"),
                into!(pair!(), $v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
    };
}

/// Defines the loops for registers of this name and size. `$rows` are the offsets of eight registers within a block,
/// `$pairs` those of a pair, `$lines` the offsets of the lines within a pair, `$quarter` the registers of 256 bytes.
macro_rules! wide {
    ($v:literal, $size:literal, $rows:literal, $pairs:literal, $lines:literal, $quarter:literal) => {
        use super::*;

        nine_turns!(pub(in super::super));

        /// The loops that prefetch.
        pub(in super::super) fn ahead(operation: Operation) -> Option<Loop> {
            match operation {
                Operation::CopyNonTemporal => Some(copy_four_pages),
                Operation::Scale => Some(scale_ahead),
                Operation::Add => Some(add_ahead),
                Operation::Triad => Some(triad_ahead),
                _ => None,
            }
        }

        turns!(
            read,
            [each!(eight!(), "vpxor xmm\\i, xmm\\i, xmm\\i")],
            [at!($rows, own!(eight!(), $v, $size, "vpaddq", "rsi"))],
            [
                concat!(".irp i,1,2,3,4,5,6,7\nvpaddq ", $v, "0, ", $v, "0, ", $v, "\\i\n.endr"),
                concat!("vmovupd [r11], ", $v, "0"),
                "vzeroupper"
            ]
        );
        turns!(
            write,
            [spread!($v, eight!())],
            [at!($rows, into!(eight!(), $v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            write_non_temporal,
            [spread!($v, eight!())],
            [at!($rows, into!(eight!(), $v, $size, "vmovntpd"))],
            ["sfence", "vzeroupper"]
        );
        turns!(
            copy,
            [""],
            [at!($pairs, load!(pair!(), $v, $size, "rsi"), into!(pair!(), $v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            copy_non_temporal,
            [""],
            [at!($rows, load!(eight!(), $v, $size, "rsi"), into!(eight!(), $v, $size, "vmovntpd"))],
            ["sfence", "vzeroupper"]
        );
        turns!(
            update,
            [spread!($v, "15")],
            [at!(
                $pairs,
                constant!(pair!(), $v, $size, "vpaddq", "rdi"),
                into!(pair!(), $v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
        four_pages!(copy_four_pages, copy_non_temporal, $v, $size, $quarter);
        arithmetic!(scale, add, triad, $v, $size, $pairs, "");
        arithmetic!(scale_ahead, add_ahead, triad_ahead, $v, $size, $pairs, prefetch_stores!($lines));
    };
}

pub(super) mod avx2 {
    wide!("ymm", "32", "0,256", "0,64,128,192,256,320,384,448", "0", "0,1,2,3,4,5,6,7");
}

pub(super) mod avx512 {
    wide!("zmm", "64", "0", "0,128,256,384", "0,64", "0,1,2,3");
}
