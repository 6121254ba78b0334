//! Vectors of 32 and of 64 bytes: AVX spells both alike.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

/// An instruction whose last operand is memory, for each register of a row.
macro_rules! from {
    ($size:literal, $instruction:expr, $array:literal) => {
        eight!(concat!($instruction, ", [", $array, " + \\at + ", $size, "*\\i]"))
    };
}

/// An instruction that stores each register of a row.
macro_rules! into {
    ($v:literal, $size:literal, $instruction:literal) => {
        eight!(concat!($instruction, " [rdi + \\at + ", $size, "*\\i], ", $v, "\\i"))
    };
}

/// Loads each register of a row.
macro_rules! load {
    ($v:literal, $size:literal, $array:literal) => {
        from!($size, concat!("vmovupd ", $v, "\\i"), $array)
    };
}

/// Calculates each register of a row from itself, or from the constant, and a place of memory.
macro_rules! own {
    ($v:literal, $size:literal, $instruction:literal, $array:literal) => {
        from!($size, concat!($instruction, " ", $v, "\\i, ", $v, "\\i"), $array)
    };
}
macro_rules! constant {
    ($v:literal, $size:literal, $instruction:literal, $array:literal) => {
        from!($size, concat!($instruction, " ", $v, "\\i, ", $v, "15"), $array)
    };
}

/// Puts the constant into every word of these registers.
macro_rules! spread {
    ($v:literal, $registers:literal) => {
        concat!("vmovq xmm15, r10\n.irp i,", $registers, "\nvpbroadcastq ", $v, "\\i, xmm15\n.endr")
    };
}

/// The loops by registers of this name and size; a block is eight of them from each of these offsets on.
macro_rules! wide {
    ($v:literal, $size:literal, $rows:literal) => {
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

        turns!(
            read,
            [eight!("vpxor xmm\\i, xmm\\i, xmm\\i")],
            [at!($rows, own!($v, $size, "vpaddq", "rsi"))],
            [
                concat!(".irp i,1,2,3,4,5,6,7\nvpaddq ", $v, "0, ", $v, "0, ", $v, "\\i\n.endr"),
                concat!("vmovupd [r11], ", $v, "0"),
                "vzeroupper"
            ]
        );
        turns!(
            write,
            [spread!($v, "0,1,2,3,4,5,6,7")],
            [at!($rows, into!($v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            write_non_temporal,
            [spread!($v, "0,1,2,3,4,5,6,7")],
            [at!($rows, into!($v, $size, "vmovntpd"))],
            ["sfence", "vzeroupper"]
        );
        turns!(
            copy,
            [""],
            [at!($rows, load!($v, $size, "rsi"), into!($v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            copy_non_temporal,
            [""],
            [at!($rows, load!($v, $size, "rsi"), into!($v, $size, "vmovntpd"))],
            ["sfence", "vzeroupper"]
        );
        turns!(
            update,
            [spread!($v, "15")],
            [at!($rows, constant!($v, $size, "vpaddq", "rdi"), into!($v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            scale,
            [spread!($v, "15")],
            [at!($rows, constant!($v, $size, "vmulpd", "rsi"), into!($v, $size, "vmovupd"))],
            ["vzeroupper"]
        );
        turns!(
            add,
            [""],
            [at!(
                $rows,
                load!($v, $size, "rsi"),
                own!($v, $size, "vaddpd", "rdx"),
                into!($v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
        turns!(
            triad,
            [spread!($v, "15")],
            [at!(
                $rows,
                constant!($v, $size, "vmulpd", "rdx"),
                own!($v, $size, "vaddpd", "rsi"),
                into!($v, $size, "vmovupd")
            )],
            ["vzeroupper"]
        );
    };
}

pub(super) mod avx2 {
    wide!("ymm", "32", "0,256");
}

pub(super) mod avx512 {
    wide!("zmm", "64", "0");
}
