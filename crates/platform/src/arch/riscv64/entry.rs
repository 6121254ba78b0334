//! The entry into the kernel: once, and in loops that begin a line of the instruction cache.
//!
//! # Invariants
//!
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for. All registers but `a0`, the answer, and `a7`, the number, come back as they were: a call that the
//!   kernel restarts by itself after a stop (`restart_syscall`) has another number.
//! * **PURE**: the assembly touches only the registers it declares, no memory, no stack.
#![allow(unsafe_code)]

use super::super::Answers;
use std::arch::asm;

entry_functions!("ecall", "a7", ["a0", "a1", "a2", "a3", "a4", "a5"]);

/// Defines a loop of `n` turns: `$enter` in each, and the lowest and the highest answer kept.
macro_rules! entering {
    ($(#[$text:meta])* [$($danger:tt)?] fn $name:ident, $enter:literal) => {
        $(#[$text])*
        #[inline(never)]
        pub $($danger)? fn $name(number: i64, arguments: [usize; 6], n: u64) -> Answers {
            let Answers { mut lowest, mut highest } = Answers::default();
            let [a, b, c, d, e, f] = arguments;
            if n > 0 {
                // SAFETY: ENTRY, promised by the caller; without an entry PURE.
                unsafe {
                    asm!(".p2align 6", "2:", "mv a7, {number}", "mv a0, {a}", $enter, "bge a0, {low}, 3f",
                        "mv {low}, a0", "3:", "bge {high}, a0, 4f", "mv {high}, a0", "4:", "addi {n}, {n}, -1",
                        "bnez {n}, 2b", a = in(reg) a, low = inout(reg) lowest,
                        high = inout(reg) highest, n = inout(reg) n => _, number = in(reg) number, out("a7") _, out("a0") _,
                        in("a1") b, in("a2") c, in("a3") d, in("a4") e, in("a5") f, options(nostack));
                }
            }
            Answers { lowest, highest }
        }
    };
}

entering! {
    /// Enters the kernel `n` times with the same number and arguments.
    ///
    /// # Safety
    /// ENTRY: see [`syscall1`], every time.
    [unsafe] fn repeat_syscall, "ecall"
}
entering! {
    /// The loop of [`repeat_syscall`] without the entry.
    [] fn repeat_no_syscall, ""
}

/// Enters the kernel twice in each of `n` turns, with a number and a first argument for each entry and two more that
/// both share. Returns the lowest answer of each.
///
/// # Safety
/// ENTRY: see [`syscall1`], every time.
#[inline(never)]
pub unsafe fn repeat_two_syscalls(calls: [(i64, usize); 2], shared: [usize; 2], n: u64) -> [i64; 2] {
    let [mut low, mut next_low] = [i64::MAX; 2];
    let [(number, first), (next_number, next_first)] = calls;
    if n > 0 {
        // SAFETY: ENTRY, promised by the caller.
        unsafe {
            asm!(".p2align 6", "2:", "mv a7, {number}", "mv a0, {first}", "ecall", "bge a0, {low}, 3f", "mv {low}, a0", "3:",
                "mv a7, {next_number}", "mv a0, {next_first}", "ecall", "bge a0, {next_low}, 4f", "mv {next_low}, a0",
                "4:", "addi {n}, {n}, -1", "bnez {n}, 2b",
                number = in(reg) number, first = in(reg) first, next_number = in(reg) next_number,
                next_first = in(reg) next_first, low = inout(reg) low, next_low = inout(reg) next_low,
                n = inout(reg) n => _, out("a7") _, out("a0") _, in("a1") shared[0], in("a2") shared[1],
                options(nostack));
        }
    }
    [low, next_low]
}

/// Enters the kernel twice in each of `n` turns: with this number and up to four arguments, and with the next number and
/// the answer. Returns the lowest answer of each.
///
/// # Safety
/// ENTRY: see [`syscall1`], every time.
#[inline(never)]
pub unsafe fn repeat_syscall_on_answer(number: i64, arguments: [usize; 4], next: i64, n: u64) -> [i64; 2] {
    let [mut low, mut next_low] = [i64::MAX; 2];
    let [a, b, c, d] = arguments;
    if n > 0 {
        // SAFETY: ENTRY, promised by the caller.
        unsafe {
            asm!(".p2align 6", "2:", "mv a7, {number}", "mv a0, {a}", "ecall", "bge a0, {low}, 3f", "mv {low}, a0", "3:",
                "mv a7, {next}", "ecall", "bge a0, {next_low}, 4f", "mv {next_low}, a0", "4:", "addi {n}, {n}, -1",
                "bnez {n}, 2b", number = in(reg) number,
                next = in(reg) next, a = in(reg) a, low = inout(reg) low, next_low = inout(reg) next_low,
                n = inout(reg) n => _, out("a7") _, out("a0") _, in("a1") b, in("a2") c, in("a3") d,
                options(nostack));
        }
    }
    [low, next_low]
}
