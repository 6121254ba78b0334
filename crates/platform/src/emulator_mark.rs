//! Marks for an emulator that watches a guest: no-operations that no compiler generates. On hardware they do nothing. Processors
//! other than the three below have no marks.
//!
//! The instructions are `nopw` with a displacement of `0x5c57c0NN` or `0x5d57c0NN`, `movz xzr, #0x5cNN` or `#0x5dNN`, and
//! `lui zero, 0x5c7NN` or `0x5d7NN`, where NN is the number of a mark or a byte of text.
//!
//! # Invariants
//!
//! * **NO-OPERATION**: the code changes no register, no flag and no memory.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
use std::arch::{asm, global_asm};

/// The assembler's text for the instruction of mark NN (kind `5c`) or of the text byte NN (kind `5d`).
#[cfg(target_arch = "x86_64")]
macro_rules! instruction {
    ($kind:literal, $number:literal) => {
        concat!(".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, ", $number, ", 0xc0, 0x57, 0x", $kind)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! instruction {
    ($kind:literal, $number:literal) => {
        concat!(".4byte 0xd280001f + ((0x", $kind, "00 + ", $number, ") << 5)")
    };
}
#[cfg(target_arch = "riscv64")]
macro_rules! instruction {
    ($kind:literal, $number:literal) => {
        concat!(".4byte 0x", $kind, "700037 + (", $number, " << 12)")
    };
}

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A bracket begins, in which instructions are counted.
    BeginBracket,
    /// A bracket ends.
    EndBracket,
    /// A batch of brackets begins.
    BeginBatch,
    /// A batch of brackets ends.
    EndBatch,
    /// A series of equal batches has ended.
    EndTurn,
    /// From here on instructions can be counted.
    StartCounting,
}

/// Executes a mark.
#[inline(always)]
pub fn execute(mark: Mark) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
    macro_rules! mark {
        ($number:literal) => {
            // SAFETY: NO-OPERATION. Left without `nomem`, so that the compiler moves no memory access across it.
            unsafe { asm!(instruction!("5c", $number), options(nostack, preserves_flags)) }
        };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    macro_rules! mark {
        ($number:literal) => {
            ()
        };
    }
    match mark {
        Mark::BeginBracket => mark!(1),
        Mark::EndBracket => mark!(2),
        Mark::BeginBatch => mark!(3),
        Mark::EndBatch => mark!(4),
        Mark::EndTurn => mark!(5),
        Mark::StartCounting => mark!(6),
    }
}

// A table with an entry of 16 bytes for each value of a text byte: its mark and a return.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
global_asm!(
    ".balign 16",
    ".globl syscost_spoken_bytes",
    ".hidden syscost_spoken_bytes",
    "syscost_spoken_bytes:",
    ".set i, 0",
    ".rept 256",
    instruction!("5d", "i"),
    "ret",
    ".balign 16",
    ".set i, i + 1",
    ".endr"
);

/// Passes a line of text to the emulator, without a device or a driver.
pub fn say_line(line: &str) {
    line.bytes().chain([b'\n']).for_each(say_byte);
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
fn say_byte(byte: u8) {
    unsafe extern "C" {
        static syscost_spoken_bytes: [[u8; 16]; 256];
    }
    // SAFETY: NO-OPERATION: each entry of the table is a no-operation and a return.
    let entry: extern "C" fn() =
        unsafe { std::mem::transmute(&raw const syscost_spoken_bytes[usize::from(byte)]) };
    entry();
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn say_byte(_: u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_text_do_nothing_here() {
        for mark in [
            Mark::BeginBracket,
            Mark::EndBracket,
            Mark::BeginBatch,
            Mark::EndBatch,
            Mark::EndTurn,
            Mark::StartCounting,
        ] {
            execute(mark);
        }
        say_line("all bytes: \u{0}\u{7f}é");
    }
}
