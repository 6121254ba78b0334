//! The entry into the kernel: once, and in loops.
//!
//! A loop around an entry begins a line of the instruction cache and fits into it. Its place decides what the *kernel*
//! costs: on Zen 4 (with safe returns and retpolines) everything that the kernel did took 30 to 50 % longer where the
//! branch back lay in another line than the entry before it, or ended its line; in which processes depended on the
//! page that each had drawn.
//!
//! # Invariants
//!
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for; `rcx` and `r11` are declared lost, as the `syscall` instruction loses them, and `rax` is the answer.
//!   All others come back as they were.
//! * **PURE**: the assembly touches only the registers it declares (and the flags), no memory, no stack.
#![allow(unsafe_code)]

use super::super::Answers;
use std::arch::asm;

/// Enters the kernel with no argument.
///
/// # Safety
/// ENTRY: the call must not write to memory or end the process in a way that the caller does not expect.
#[inline(always)]
pub unsafe fn syscall0(number: i64) -> i64 {
    let answer;
    // SAFETY: ENTRY, promised by the caller.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, out("rcx") _, out("r11") _, options(nostack))
    };
    answer
}

/// Enters the kernel with one argument.
///
/// # Safety
/// ENTRY: see [`syscall0`]; the argument must be what that call expects.
#[inline(always)]
pub unsafe fn syscall1(number: i64, a: usize) -> i64 {
    let answer;
    // SAFETY: ENTRY, promised by the caller.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") a, out("rcx") _, out("r11") _,
            options(nostack));
    }
    answer
}

/// Enters the kernel with two arguments.
///
/// # Safety
/// ENTRY: see [`syscall1`].
#[inline(always)]
pub unsafe fn syscall2(number: i64, a: usize, b: usize) -> i64 {
    let answer;
    // SAFETY: ENTRY, promised by the caller.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, out("rcx") _,
            out("r11") _, options(nostack));
    }
    answer
}

/// Enters the kernel with four arguments (calls that take three ignore the last).
///
/// # Safety
/// ENTRY: see [`syscall1`].
#[inline(always)]
pub unsafe fn syscall4(number: i64, a: usize, b: usize, c: usize, d: usize) -> i64 {
    let answer;
    // SAFETY: ENTRY, promised by the caller.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, out("rcx") _, out("r11") _, options(nostack));
    }
    answer
}

/// Enters the kernel with six arguments, the most that it takes.
///
/// # Safety
/// ENTRY: see [`syscall1`].
#[inline(always)]
pub unsafe fn syscall6(number: i64, arguments: [usize; 6]) -> i64 {
    let answer;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: ENTRY, promised by the caller.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, out("rcx") _, out("r11") _, options(nostack));
    }
    answer
}

/// Defines a loop of `n` turns in one cache line: `$enter` in each, and the lowest and the highest answer kept.
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
                    asm!(".p2align 6", "2:", "mov rax, {number}", $enter, "cmp rax, {low}", "cmovl {low}, rax",
                        "cmp rax, {high}", "cmovg {high}, rax", "dec {n}", "jnz 2b", number = in(reg) number,
                        low = inout(reg) lowest, high = inout(reg) highest, n = inout(reg) n => _,
                        out("rax") _, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
                        in("r9") f, out("rcx") _, out("r11") _, options(nostack));
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
    [unsafe] fn repeat_syscall, "syscall"
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
            asm!(".p2align 6", "2:", "mov rax, {number}", "mov rdi, {first}", "syscall", "cmp rax, {low}",
                "cmovl {low}, rax", "mov rax, {next_number}", "mov rdi, {next_first}", "syscall",
                "cmp rax, {next_low}", "cmovl {next_low}, rax", "dec {n}", "jnz 2b", number = in(reg) number,
                first = in(reg) first, next_number = in(reg) next_number, next_first = in(reg) next_first,
                low = inout(reg) low, next_low = inout(reg) next_low, n = inout(reg) n => _, out("rax") _,
                out("rdi") _, in("rsi") shared[0], in("rdx") shared[1], out("rcx") _, out("r11") _,
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
            asm!(".p2align 6", "2:", "mov rax, {number}", "mov rdi, {a}", "syscall", "cmp rax, {low}",
                "cmovl {low}, rax", "mov rdi, rax", "mov rax, {next}", "syscall", "cmp rax, {next_low}",
                "cmovl {next_low}, rax", "dec {n}", "jnz 2b", number = in(reg) number, next = in(reg) next,
                a = in(reg) a, low = inout(reg) low, next_low = inout(reg) next_low, n = inout(reg) n => _,
                out("rax") _, out("rdi") _, in("rsi") b, in("rdx") c, in("r10") d, out("rcx") _, out("r11") _,
                options(nostack));
        }
    }
    [low, next_low]
}
