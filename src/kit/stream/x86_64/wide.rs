//! Vectors of 32 and of 64 bytes: AVX spells both alike.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

/// Bytes of four pages.
const FOUR_PAGES: usize = 4 * 4096;

/// All eight registers, and a pair. Sums need eight to run beside one another. What loads and stores takes turns by
/// the pair: after rows of eight, memory was slower by a quarter on Zen 4, and the first level no faster.
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

/// Calculates each of these registers from itself, or from the constant, and a place of memory.
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

/// Puts the constant into every word of these registers.
macro_rules! spread {
    ($v:literal, $registers:expr) => {
        concat!("vmovq xmm15, r10\n.irp i,", $registers, "\nvpbroadcastq ", $v, "\\i, xmm15\n.endr")
    };
}

/// Asks for the lines that a pair of registers will be stored to, 1 KiB before they are: to have them read for
/// ownership is what a stream of stores waits for, and prefetchers begin with loads. On Sapphire Rapids STREAM's three
/// gain 7 % from memory; from 512 bytes on the distance matters no more. In the first level the requests would take the
/// place of loads.
macro_rules! ask {
    ($lines:literal) => {
        concat!(".irp l,", $lines, "\nprefetchw [rdi + \\at + \\l + 1024]\n.endr")
    };
}

/// A copy past the caches that goes over four pages in turns, 256 bytes of each, and asks for the same place of the four
/// that come next. A stream of loads has the prefetchers of one page to help it, and four have those of four: on Sapphire
/// Rapids from memory 18.7 GB/s, where one page after the other is 13.7, four without asking 17.4, eight 18.2, and the C
/// library's memcpy, which takes four too, 16.2. What is no four pages is left to the plain loop.
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
                    // SAFETY: INSIDE, OFFERED. What is only asked for may lie outside.
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

/// STREAM's three, each pair of registers with this beside it.
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

/// The loops by registers of this name and size; a block is eight of them from each of the first
/// offsets on, and a pair of them, which are these lines, from each of the others; 256 bytes are so many of them.
macro_rules! wide {
    ($v:literal, $size:literal, $rows:literal, $pairs:literal, $lines:literal, $quarter:literal) => {
        use super::*;

        pub(in super::super) fn turns(operation: Operation) -> Loop {
            match operation {
                Operation::Read => read,
                Operation::Write => write,
                Operation::WriteNonTemporal => write_non_temporal,
                Operation::Copy => copy,
                Operation::CopyNonTemporal => copy_non_temporal,
                Operation::Update => update,
                Operation::Scale => scale,
                Operation::Add => add,
                Operation::Triad => triad,
            }
        }

        /// Those that ask ahead.
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
        arithmetic!(scale_ahead, add_ahead, triad_ahead, $v, $size, $pairs, ask!($lines));
    };
}

pub(super) mod avx2 {
    wide!("ymm", "32", "0,256", "0,64,128,192,256,320,384,448", "0", "0,1,2,3,4,5,6,7");
}

pub(super) mod avx512 {
    wide!("zmm", "64", "0", "0,128,256,384", "0,64", "0,1,2,3");
}
