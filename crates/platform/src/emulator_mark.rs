//! Marks for an emulator that watches a guest: no-operations that no compiler writes. On hardware they do nothing, and elsewhere
//! than on x86-64 there are none.
//!
//! The bytes are those of `nopw` with a displacement of `0x5c57c0NN` or `0x5d57c0NN`, where NN is the number of a mark or a byte
//! of text.
//!
//! # Invariants
//!
//! * **NO-OPERATION**: the code changes no register, no flag and no memory.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::{asm, global_asm};

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What is counted begins.
    BeginBracket,
    /// It ends.
    EndBracket,
    /// A batch of brackets begins.
    BeginBatch,
    /// It ends.
    EndBatch,
    /// A series of equal batches has ended.
    EndTurn,
    /// From here on instructions can be counted.
    StartCounting,
}

/// Executes a mark.
#[inline(always)]
pub fn execute(mark: Mark) {
    #[cfg(target_arch = "x86_64")]
    macro_rules! mark {
        ($number:literal) => {
            // SAFETY: NO-OPERATION. It may not be moved over memory accesses, so it is left without `nomem`.
            unsafe {
                asm!(
                    concat!(".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, ", $number, ", 0xc0, 0x57, 0x5c"),
                    options(nostack, preserves_flags)
                )
            }
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
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

// An entry of 16 bytes for each byte of text: its mark and a return.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".balign 16",
    ".globl syscost_spoken_bytes",
    ".hidden syscost_spoken_bytes",
    "syscost_spoken_bytes:",
    ".set i, 0",
    ".rept 256",
    ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, i, 0xc0, 0x57, 0x5d",
    "ret",
    ".balign 16",
    ".set i, i + 1",
    ".endr"
);

/// Hands a line of text to the emulator. No device and no driver is needed.
pub fn say_line(line: &str) {
    line.bytes().chain([b'\n']).for_each(say_byte);
}

#[cfg(target_arch = "x86_64")]
fn say_byte(byte: u8) {
    // SAFETY: NO-OPERATION: each entry of the table is a no-operation and a return.
    unsafe {
        asm!(
            "lea {entry}, [rip + syscost_spoken_bytes]",
            "add {entry}, {offset}",
            "call {entry}",
            entry = out(reg) _,
            offset = in(reg) u64::from(byte) * 16,
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
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
