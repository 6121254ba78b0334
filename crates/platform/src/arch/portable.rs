//! Any other processor of 64 bits under Linux, without an instruction of its own: the clock is the kernel's, the entry into the
//! kernel that of the C library, and loops are the compiler's. No witness can step through an operation here.
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

/// No processor's counter is read.
pub fn frequency() -> Option<(f64, &'static str)> {
    None
}

/// The kernel's clock is taken.
pub fn unfit() -> Option<Unfit> {
    Some(Unfit::NotKnown)
}

/// `n` turns of an empty loop.
#[inline(never)]
pub fn register_loop(n: u64) {
    (0..n).for_each(|turn| _ = black_box(turn));
}

/// `n` turns of a loop whose counter lives in memory.
#[inline(never)]
pub fn memory_loop(n: u64) {
    let mut counter = 0u64;
    while *black_box(&counter) < n {
        *black_box(&mut counter) += 1;
    }
}

/// `n` turns of a loop with a load, an addition, a store and the system call `getpid`. The sum of the additions.
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

/// `n` steps of one core cycle, each waiting for the one before: additions and exclusive ors by turns, which no compiler sums up.
#[inline(never)]
pub fn add_chain(n: u64) -> u64 {
    let step = black_box(3u64);
    let sum = (0..n / 2).fold(1u64, |sum, _| (sum ^ step).wrapping_add(step));
    if n % 2 == 1 { sum ^ step } else { sum }
}

/// `n` multiplications, each waiting for the one before.
#[inline(never)]
pub fn multiply_chain(n: u64) -> u64 {
    let factor = black_box(3u64);
    (0..n).fold(1u64, |product, _| product.wrapping_mul(factor))
}

/// `steps` loads, each from the address that the one before it has loaded. Returns the last address.
///
/// # Safety
/// RING: from `from` on, for as many words as there are steps.
#[inline(never)]
pub unsafe fn chase(from: *const u8, steps: u64) -> *const u8 {
    // SAFETY: RING, promised by the caller.
    (0..steps).fold(from, |at, _| unsafe { at.cast::<*const u8>().read() })
}

/// No instruction that puts a line out of the caches is known.
pub const CAN_EVICT: bool = false;

/// Does nothing: see [`CAN_EVICT`].
pub fn evict(_: &[u8]) {}

/// The instruction that enters the kernel is not known.
pub fn is_kernel_entry(_: i64) -> bool {
    false
}

/// No code is written: see [`crate::cpu::flush_branch_predictor`].
pub const JUMP: &[u8] = &[];
/// How far a jump would lead.
pub const JUMP_BYTES: usize = 16;
/// See [`JUMP`].
pub const RETURN: &[u8] = &[];

/// Nothing is published.
pub fn publish(_: &[u8]) {}

/// AMD makes none of these.
pub fn is_amd_before_zen_5() -> bool {
    false
}

/// Enters the kernel with six arguments, the most that it takes; the answer is a negative error number where the C library has one.
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

/// Enters the kernel twice in each of `n` turns, with a number and a first argument for each entry and two more that
/// both share. Returns the lowest answer of each.
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

/// Enters the kernel twice in each of `n` turns: with this number and up to four arguments, and with the next number and
/// the answer. Returns the lowest answer of each.
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
