//! Single instructions, repeated: as a chain, in which each needs the result of the previous one (its latency), or as several
//! independent ones (its throughput).
//!
//! # Invariants
//!
//! * **OWN-LINES**: the assembly reads and writes two cache lines to which the function holds the only reference, and the
//!   registers that it declares.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::hint::black_box;

/// An instruction.
#[derive(Clone, Copy)]
pub struct Instruction {
    /// The last part of the case's id.
    pub name: &'static str,
    /// The instruction in words.
    pub title: &'static str,
    /// The cost that an optimisation manual predicts, core cycles.
    pub cycles: f64,
    /// Number of instructions in one operation.
    pub count: f64,
    /// Executes this number of operations.
    pub run: fn(u64),
}

/// Two cache lines of zeros. A chain of loads reads 0 from them, so that its address stays the same.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[repr(align(128))]
struct Lines(#[allow(dead_code, reason = "read and written by the assembly")] [u64; 16]);

/// A table of independent instructions, a row each: name, title, predicted cycles, instructions of one operation, the instruction,
/// and the number of groups of it that make a block of 64.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! instructions {
    ($($name:literal, $title:literal, $cycles:literal, $count:literal, $one:literal, $groups:literal of $group:literal;)*) => {
        &[$(Instruction { name: $name, title: $title, cycles: $cycles, count: $count, run: {
            fn run(n: u64) {
                let mut lines = Lines([0; 16]);
                repeat!(n, $one, $groups of $group, &raw mut lines);
                black_box(&lines);
            }
            run
        } }),*]
    };
}

/// A table of chains, whose blocks hold the instruction itself.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! chains {
    ($($name:literal, $title:literal, $cycles:literal, $count:literal, $one:literal;)*) => {
        instructions! { $($name, $title, $cycles, $count, $one, 64 of $one;)* }
    };
}

#[cfg(target_arch = "x86_64")]
mod table {
    use super::{Instruction, Lines, black_box};
    use crate::arch::in_blocks;

    macro_rules! repeat {
        ($n:expr, $one:literal, $groups:literal of $group:literal, $lines:expr) => {
            // SAFETY: OWN-LINES. A division is by 3 and the upper half of its dividend is 0 or a remainder: it cannot overflow.
            unsafe {
                in_blocks!($n, $one, $groups of $group, inout("rax") 0_u64 => _, in("rcx") black_box(3_u64),
                    inout("rdx") 0_u64 => _, inout("rsi") 0_u64 => _, inout("rdi") 0_u64 => _, inout("r9") 0_u64 => _,
                    in("r8") $lines,
                    inout("xmm0") 1.5_f64 => _, inout("xmm1") 1.5_f64 => _, inout("xmm2") 1.5_f64 => _,
                    inout("xmm3") 1.5_f64 => _, inout("xmm4") 1.5_f64 => _, inout("xmm5") 1.5_f64 => _,
                    inout("xmm6") 1.5_f64 => _, inout("xmm7") 1.5_f64 => _, in("xmm8") black_box(1.000_000_1_f64),
                    options(nostack));
            }
        };
    }

    /// Latencies: Fog, *Instruction tables*, Zen 3 and Ice Lake.
    pub const LATENCY: &[Instruction] = chains! {
        "shift", "a rotation of a register by 3 bits", 1.0, 1.0, "rol rax, 3";
        "divide-32", "a division of 32-bit integers", 11.0, 1.0, "div ecx";
        "divide-64", "a division of 64-bit integers", 12.0, 1.0, "div rcx";
        "double-add", "an addition of doubles", 3.5, 1.0, "addsd xmm0, xmm8";
        "double-multiply", "a multiplication of doubles", 3.5, 1.0, "mulsd xmm0, xmm8";
        "double-divide", "a division of doubles", 13.5, 1.0, "divsd xmm0, xmm8";
        "double-root", "a square root of a double", 19.0, 1.0, "sqrtsd xmm0, xmm0";
        "load", "a load from the first-level cache", 5.0, 1.0, "mov rax, [r8 + rax]";
        "load-split", "a load across two cache lines", 7.0, 1.0, "mov rax, [r8 + rax + 60]";
        "store-load", "a store, and a load of what was stored", 5.0, 2.0, "mov [r8], rax; mov rax, [r8]";
        "store-load-narrower", "a store of 8 bytes, and a load of the last of them", 6.0, 2.0,
            "mov [r8], rax; movzx eax, byte ptr [r8 + 7]";
        "atomic-add-8", "an atomic addition of 1 byte", 8.0, 1.0, "lock xadd [r8], al";
        "atomic-add-32", "an atomic addition of 4 bytes", 8.0, 1.0, "lock xadd [r8], eax";
        "atomic-add-64", "an atomic addition of 8 bytes", 8.0, 1.0, "lock xadd [r8], rax";
        "compare-exchange", "an atomic comparison with exchange of 8 bytes", 8.0, 1.0, "lock cmpxchg [r8], rcx";
        "fence", "a full fence of memory", 35.0, 1.0, "mfence";
        "fence-loads", "a fence of loads", 7.0, 1.0, "lfence";
        "fence-stores", "a fence of stores", 2.0, 1.0, "sfence";
    };

    /// Throughputs of four or eight independent instructions, from the same source.
    pub const THROUGHPUT: &[Instruction] = instructions! {
        "add", "an addition beside others", 0.25, 1.0, "add rax, rcx",
            16 of "add rax, rcx; add rdx, rcx; add rsi, rcx; add rdi, rcx";
        "multiply", "a multiplication beside others", 1.0, 1.0, "imul rax, rcx",
            16 of "imul rax, rcx; imul rdx, rcx; imul rsi, rcx; imul rdi, rcx";
        "double-add", "an addition of doubles beside others", 0.5, 1.0, "addsd xmm0, xmm8",
            8 of "addsd xmm0, xmm8; addsd xmm1, xmm8; addsd xmm2, xmm8; addsd xmm3, xmm8; addsd xmm4, xmm8; addsd xmm5, xmm8; addsd xmm6, xmm8; addsd xmm7, xmm8";
        "double-multiply", "a multiplication of doubles beside others", 0.5, 1.0, "mulsd xmm0, xmm8",
            8 of "mulsd xmm0, xmm8; mulsd xmm1, xmm8; mulsd xmm2, xmm8; mulsd xmm3, xmm8; mulsd xmm4, xmm8; mulsd xmm5, xmm8; mulsd xmm6, xmm8; mulsd xmm7, xmm8";
        "double-divide", "a division of doubles beside others", 4.5, 1.0, "divsd xmm0, xmm8",
            8 of "divsd xmm0, xmm8; divsd xmm1, xmm8; divsd xmm2, xmm8; divsd xmm3, xmm8; divsd xmm4, xmm8; divsd xmm5, xmm8; divsd xmm6, xmm8; divsd xmm7, xmm8";
        "load", "a load from the first-level cache beside others", 0.5, 1.0, "mov rax, [r8]",
            16 of "mov rax, [r8]; mov rdx, [r8 + 8]; mov rsi, [r8 + 16]; mov rdi, [r8 + 24]";
        "store", "a store to the first-level cache beside others", 1.0, 1.0, "mov [r8], rcx",
            16 of "mov [r8], rcx; mov [r8 + 8], rcx; mov [r8 + 16], rcx; mov [r8 + 24], rcx";
    };
}

#[cfg(target_arch = "aarch64")]
mod table {
    use super::{Instruction, Lines, black_box};
    use crate::arch::in_blocks;

    macro_rules! repeat {
        ($n:expr, $one:literal, $groups:literal of $group:literal, $lines:expr) => {
            // SAFETY: OWN-LINES.
            unsafe {
                in_blocks!($n, $one, $groups of $group, inout("x0") 0_u64 => _, in("x1") black_box(3_u64),
                    inout("x2") 0_u64 => _, inout("x3") 0_u64 => _, inout("x4") 0_u64 => _, in("x5") $lines,
                    inout("v0") 1.5_f64 => _, inout("v1") 1.5_f64 => _, inout("v2") 1.5_f64 => _, inout("v3") 1.5_f64 => _,
                    in("v4") black_box(1.000_000_1_f64), options(nostack));
            }
        };
    }

    /// Latencies: Arm, *Neoverse N1 Software Optimization Guide*.
    pub const LATENCY: &[Instruction] = chains! {
        "shift", "a rotation of a register by 3 bits", 1.0, 1.0, "ror x0, x0, #3";
        "divide-32", "a division of 32-bit integers", 8.0, 1.0, "udiv w0, w0, w1";
        "divide-64", "a division of 64-bit integers", 8.0, 1.0, "udiv x0, x0, x1";
        "double-add", "an addition of doubles", 2.0, 1.0, "fadd d0, d0, d4";
        "double-multiply", "a multiplication of doubles", 3.0, 1.0, "fmul d0, d0, d4";
        "double-divide", "a division of doubles", 12.0, 1.0, "fdiv d0, d0, d4";
        "double-root", "a square root of a double", 15.0, 1.0, "fsqrt d0, d0";
        "load", "a load from the first-level cache", 4.0, 1.0, "ldr x0, [x5, x0]";
        "store-load", "a store, and a load of what was stored", 5.0, 2.0, "str x0, [x5]; ldr x0, [x5]";
        "fence", "a full fence of memory", 10.0, 1.0, "dmb ish";
        "fence-loads", "a fence of loads", 5.0, 1.0, "dmb ishld";
        "fence-stores", "a fence of stores", 5.0, 1.0, "dmb ishst";
    };

    /// Throughputs of four independent instructions, from the same source.
    pub const THROUGHPUT: &[Instruction] = instructions! {
        "add", "an addition beside others", 0.33, 1.0, "add x0, x0, x1",
            16 of "add x0, x0, x1; add x2, x2, x1; add x3, x3, x1; add x4, x4, x1";
        "multiply", "a multiplication beside others", 1.0, 1.0, "mul x0, x0, x1",
            16 of "mul x0, x0, x1; mul x2, x2, x1; mul x3, x3, x1; mul x4, x4, x1";
        "double-add", "an addition of doubles beside others", 0.5, 1.0, "fadd d0, d0, d4",
            16 of "fadd d0, d0, d4; fadd d1, d1, d4; fadd d2, d2, d4; fadd d3, d3, d4";
        "double-multiply", "a multiplication of doubles beside others", 0.75, 1.0, "fmul d0, d0, d4",
            16 of "fmul d0, d0, d4; fmul d1, d1, d4; fmul d2, d2, d4; fmul d3, d3, d4";
        "double-divide", "a division of doubles beside others", 6.0, 1.0, "fdiv d0, d0, d4",
            16 of "fdiv d0, d0, d4; fdiv d1, d1, d4; fdiv d2, d2, d4; fdiv d3, d3, d4";
        "load", "a load from the first-level cache beside others", 0.5, 1.0, "ldr x0, [x5]",
            16 of "ldr x0, [x5]; ldr x2, [x5, 8]; ldr x3, [x5, 16]; ldr x4, [x5, 24]";
        "store", "a store to the first-level cache beside others", 1.0, 1.0, "str x1, [x5]",
            16 of "str x1, [x5]; str x1, [x5, 8]; str x1, [x5, 16]; str x1, [x5, 24]";
    };
}

/// Other processors have no table.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod table {
    use super::Instruction;

    /// None.
    pub const LATENCY: &[Instruction] = &[];
    /// None.
    pub const THROUGHPUT: &[Instruction] = &[];
}

pub use table::{LATENCY, THROUGHPUT};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_runs_here_in_blocks_and_alone() {
        for instruction in LATENCY.iter().chain(THROUGHPUT) {
            [0, 1, 63, 64, 130].into_iter().for_each(instruction.run);
        }
    }
}
