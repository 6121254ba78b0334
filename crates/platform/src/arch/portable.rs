//! Any other 64-bit processor under Linux, without assembly: the clock is the kernel's, kernel entries go through the C library,
//! and the compiler generates the loops. An operation cannot be single-stepped here.
//!
//! # Invariants
//!
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller answers for.
//! * **RING**: each word that is loaded holds the address of another such word, and none of them changes meanwhile.
#![allow(unsafe_code)]

use super::{Answers, Unfit};
use crate::time::clock_gettime_ns;
use std::hint::black_box;

/// The name of the counter in a record.
pub const COUNTER: &str = "monotonic-raw";

/// Opens a bracket: ns of `CLOCK_MONOTONIC_RAW`.
#[inline(always)]
pub fn start() -> u64 {
    read()
}

/// Closes a bracket.
#[inline(always)]
pub fn stop() -> u64 {
    read()
}

/// One reading.
#[inline(always)]
pub fn read() -> u64 {
    clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Always `None`: no processor counter is read.
pub fn frequency() -> Option<(f64, &'static str)> {
    None
}

/// Always [`Unfit::NotKnown`]: the kernel's clock is used.
pub fn unfit() -> Option<Unfit> {
    Some(Unfit::NotKnown)
}

/// Runs `n` turns of an empty loop.
#[inline(never)]
pub fn register_loop(n: u64) {
    (0..n).for_each(|turn| _ = black_box(turn));
}

/// Runs `n` turns of a loop whose counter lives in memory.
#[inline(never)]
pub fn memory_loop(n: u64) {
    let mut counter = 0u64;
    while *black_box(&counter) < n {
        *black_box(&mut counter) += 1;
    }
}

/// Runs `n` turns of a loop with a load, an addition, a store and the system call `getpid`. Returns the sum.
#[inline(never)]
pub fn mixed_loop(n: u64) -> u64 {
    let mut word = 0u64;
    for _ in 0..n {
        *black_box(&mut word) += 1;
        // SAFETY: ENTRY: the call has no arguments and writes no memory.
        black_box(unsafe { syscall0(libc::SYS_getpid) });
    }
    word
}

/// Runs `n` steps of one core cycle, each waiting for the previous one: exclusive ors and additions in turn, which no compiler folds.
#[inline(never)]
pub fn add_chain(n: u64) -> u64 {
    let step = black_box(3u64);
    let sum = (0..n / 2).fold(1u64, |sum, _| (sum ^ step).wrapping_add(step));
    if n % 2 == 1 { sum ^ step } else { sum }
}

/// Runs `n` multiplications, each waiting for the previous one.
#[inline(never)]
pub fn multiply_chain(n: u64) -> u64 {
    let factor = black_box(3u64);
    (0..n).fold(1u64, |product, _| product.wrapping_mul(factor))
}

/// Runs `steps` loads, each from the address that the previous one has loaded. Returns the last address.
///
/// # Safety
/// RING must hold for `steps` words from `from` on.
#[inline(never)]
pub unsafe fn chase(from: *const u8, steps: u64) -> *const u8 {
    // SAFETY: RING, promised by the caller.
    (0..steps).fold(from, |at, _| unsafe { at.cast::<*const u8>().read() })
}

/// Whether user space may evict a line from the caches: no instruction for it is known.
pub const CAN_EVICT: bool = false;

/// Does nothing: see [`CAN_EVICT`].
pub fn evict(_: &[u8]) {}

/// Always false: the instruction that enters the kernel is not known.
pub fn is_kernel_entry(_: i64) -> bool {
    false
}

/// Empty, since no machine code is written: see [`crate::cpu::flush_branch_predictor`].
pub const JUMP: &[u8] = &[];
/// Distance of a jump, bytes.
pub const JUMP_BYTES: usize = 16;
/// See [`JUMP`].
pub const RETURN: &[u8] = &[];

/// Does nothing: no machine code is written.
pub fn publish(_: &[u8]) {}

/// Always false: no processor of this architecture is a Zen.
pub fn is_amd_before_zen_5() -> bool {
    false
}

/// Enters the kernel with six arguments, the most that it takes. Returns the negative error number if the call fails.
///
/// # Safety
/// ENTRY: the call must not write to memory or end the process in a way that the caller does not expect.
#[inline(always)]
pub unsafe fn syscall6(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> i64 {
    // SAFETY: ENTRY, promised by the caller.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => -i64::from(nix::errno::Errno::last_raw()),
        answer => answer,
    }
}

/// Enters the kernel with no argument.
///
/// # Safety
/// ENTRY: see [`syscall6`].
#[inline(always)]
pub unsafe fn syscall0(number: i64) -> i64 {
    // SAFETY: ENTRY, promised by the caller.
    unsafe { syscall6(number, [0; 6]) }
}

/// Enters the kernel with one argument.
///
/// # Safety
/// ENTRY: see [`syscall6`].
#[inline(always)]
pub unsafe fn syscall1(number: i64, a: usize) -> i64 {
    // SAFETY: ENTRY, promised by the caller.
    unsafe { syscall6(number, [a, 0, 0, 0, 0, 0]) }
}

/// Enters the kernel with two arguments.
///
/// # Safety
/// ENTRY: see [`syscall6`].
#[inline(always)]
pub unsafe fn syscall2(number: i64, a: usize, b: usize) -> i64 {
    // SAFETY: ENTRY, promised by the caller.
    unsafe { syscall6(number, [a, b, 0, 0, 0, 0]) }
}

/// Enters the kernel with four arguments.
///
/// # Safety
/// ENTRY: see [`syscall6`].
#[inline(always)]
pub unsafe fn syscall4(number: i64, a: usize, b: usize, c: usize, d: usize) -> i64 {
    // SAFETY: ENTRY, promised by the caller.
    unsafe { syscall6(number, [a, b, c, d, 0, 0]) }
}

/// Enters the kernel `n` times with the same number and arguments.
///
/// # Safety
/// ENTRY: see [`syscall6`], every time.
#[inline(never)]
pub unsafe fn repeat_syscall(number: i64, arguments: [usize; 6], n: u64) -> Answers {
    // SAFETY: ENTRY, promised by the caller.
    fold_answers(n, || unsafe { syscall6(number, arguments) })
}

/// The loop of [`repeat_syscall`] without the entry.
#[inline(never)]
pub fn repeat_no_syscall(number: i64, arguments: [usize; 6], n: u64) -> Answers {
    fold_answers(n, || black_box((number, arguments)).0)
}

fn fold_answers(n: u64, mut enter: impl FnMut() -> i64) -> Answers {
    (0..n).fold(Answers::default(), |Answers { lowest, highest }, _| {
        let answer = enter();
        Answers { lowest: lowest.min(answer), highest: highest.max(answer) }
    })
}

/// Enters the kernel twice in each of `n` turns. Each entry has a number and a first argument of its own; both share
/// two more arguments. Returns the lowest return value of each.
///
/// # Safety
/// ENTRY: see [`syscall6`], every time.
#[inline(never)]
pub unsafe fn repeat_two_syscalls(calls: [(i64, usize); 2], [b, c]: [usize; 2], n: u64) -> [i64; 2] {
    (0..n).fold([i64::MAX; 2], |low, _| {
        // SAFETY: ENTRY, promised by the caller.
        let answers = calls.map(|(number, first)| unsafe { syscall4(number, first, b, c, 0) });
        [low[0].min(answers[0]), low[1].min(answers[1])]
    })
}

/// Enters the kernel twice in each of `n` turns: with `number` and up to four arguments, then with `next` and the first
/// entry's return value as argument. Returns the lowest return value of each.
///
/// # Safety
/// ENTRY: see [`syscall6`], every time.
#[inline(never)]
pub unsafe fn repeat_syscall_on_answer(number: i64, [a, b, c, d]: [usize; 4], next: i64, n: u64) -> [i64; 2] {
    (0..n).fold([i64::MAX; 2], |low, _| {
        // SAFETY: ENTRY, promised by the caller.
        let answer = unsafe { syscall4(number, a, b, c, d) };
        // SAFETY: ENTRY, promised by the caller.
        let then = unsafe { syscall1(next, answer as usize) };
        [low[0].min(answer), low[1].min(then)]
    })
}
