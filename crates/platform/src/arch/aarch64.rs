//! AArch64: the virtual counter, hot loops, and the entry into the kernel: once, and in loops that begin a line of the
//! instruction cache.
//!
//! # Invariants
//!
//! * **PURE**: the assembly touches only the registers it declares (and the flags), no memory, no stack.
//! * **OWN-WORD**: the assembly writes one word to which the function holds the only reference.
//! * **RING**: each word that is loaded holds the address of another such word, and none of them changes meanwhile.
//! * **OWN-CODE**: cache maintenance covers bytes that stay borrowed meanwhile, and changes none of them.
//! * **LINE**: a borrowed cache line is evicted from the caches; none of its bytes changes.
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for. All registers keep their values but `x0`, the return value, and `x8`, the number: a call that the
//!   kernel restarts by itself after a stop (`restart_syscall`) has another number.
#![allow(unsafe_code)]

use super::{Answers, Unfit};
use std::arch::asm;

/// The name of the counter in a record.
pub const COUNTER: &str = "cntvct";

/// Opens a bracket: `isb` keeps the read from being taken before earlier instructions have finished
/// (Arm ARM D11.2.1).
#[inline(always)]
pub fn start() -> u64 {
    let ticks;
    // SAFETY: PURE. Left without `nomem`, so that the compiler moves no memory access across it.
    unsafe { asm!("isb", "mrs {t}, cntvct_el0", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// Closes a bracket: the first `isb` waits for the timed instructions, the second keeps later ones out. An `isb` waits
/// for instructions, not for memory: code that times stores, or loads whose values are not used, ends with a `dsb`.
#[inline(always)]
pub fn stop() -> u64 {
    let ticks;
    // SAFETY: PURE.
    unsafe { asm!("isb", "mrs {t}, cntvct_el0", "isb", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// One unordered read.
#[inline(always)]
pub fn read() -> u64 {
    let ticks;
    // SAFETY: PURE.
    unsafe { asm!("mrs {t}, cntvct_el0", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// The counter's frequency, Hz, and its source: the firmware's value in `cntfrq_el0`, which is stated, not measured.
pub fn frequency() -> Option<(f64, &'static str)> {
    let hz: u64;
    // SAFETY: PURE; Linux lets user space read this register.
    unsafe { asm!("mrs {f}, cntfrq_el0", f = out(reg) hz, options(nomem, nostack)) };
    (hz != 0).then_some((hz as f64, "cntfrq_el0"))
}

/// Always `None`: the architecture promises a counter of constant rate that does not stop (Arm ARM D11.1).
pub fn unfit() -> Option<Unfit> {
    None
}

/// Executes an instruction `$n` times: in blocks of 64, and the rest one by one. A block may consist of `$groups` copies of
/// `$group`, which repeats the instruction. The loop counter runs in parallel with a dependency chain, which hides its cost.
macro_rules! in_blocks {
    ($n:expr, $one:literal, $groups:literal of $group:literal, $($operands:tt)*) => {
        std::arch::asm!("cbz {b}, 3f", ".p2align 5", "2:", concat!(".rept ", $groups), $group, ".endr",
            "subs {b}, {b}, #1", "b.ne 2b", "3:", "cbz {r}, 5f", "4:", $one, "subs {r}, {r}, #1", "b.ne 4b", "5:",
            b = inout(reg) $n / 64 => _, r = inout(reg) $n % 64 => _, $($operands)*)
    };
    ($n:expr, $one:literal, $($operands:tt)*) => {
        in_blocks!($n, $one, 64 of $one, $($operands)*)
    };
}
pub(crate) use in_blocks;

chain_functions! {
    turn "subs {n}, {n}, #1", "b.ne 2b";
    add "add {sum}, {sum}, {step}";
    multiply "mul {p}, {p}, {factor}";
    load "ldr {at}, [{at}]";
    memory ["ldr {t}, [{at}]", "add {t}, {t}, #1", "str {t}, [{at}]", "ldr {t}, [{at}]", "cmp {t}, {n}", "b.lo 2b"]
        [t = out(reg) _,];
    mixed ["ldr {t}, [{at}]", "add {t}, {t}, #1", "str {t}, [{at}]", "add {v:v}.4s, {v:v}.4s, {v:v}.4s", "mov x8, #{call}",
        "svc #0"] [v = out(vreg) _, call = const libc::SYS_getpid, out("x0") _, out("x8") _,]
}

entry_functions! {
    "svc #0"; number, a, answer;
    none [inlateout("x8") number => _, lateout("x0") answer];
    first [inlateout("x8") number => _, inlateout("x0") a => answer];
    rest "x1", "x2", "x3", "x4", "x5"; lost []
}
entry_loops! {
    "svc #0", lost [], "mov x8, ", "mov x0, ", ["x8", "x0", "x1", "x2", "x3", "x4", "x5"], [reg "mov x0, {0}"; "x0"];
    low "cmp x0, {low}", "csel {low}, x0, {low}, lt";
    high "cmp x0, {high}", "csel {high}, x0, {high}, gt";
    next "cmp x0, {next_low}", "csel {next_low}, x0, {next_low}, lt";
    answer;
    turn "subs {n}, {n}, #1", "b.ne 2b"
}

/// Whether user space may evict a line from the caches.
pub const CAN_EVICT: bool = true;

/// Evicts the cache line of the first byte from all caches; Linux allows this in user space.
pub fn evict(line: &[u8]) {
    // SAFETY: LINE.
    unsafe { asm!("dc civac, {at}", "dsb sy", at = in(reg) line.as_ptr(), options(nostack)) };
}

/// Whether the word at an instruction pointer begins with the instruction that enters the kernel:
/// `svc #0`, d4000001.
pub fn is_kernel_entry(word: i64) -> bool {
    word & 0xffff_ffff == 0xd400_0001
}

/// Machine code of `b` to the address [`JUMP_BYTES`] ahead.
pub const JUMP: &[u8] = &[JUMP_BYTES as u8 / 4, 0, 0, 0x14];
/// Distance from the beginning of a [`JUMP`] to its target, bytes.
pub const JUMP_BYTES: usize = 16;

/// Machine code of `ret`.
pub const RETURN: &[u8] = &[0xc0, 0x03, 0x5f, 0xd6];

/// Makes written code safe to run. Instruction fetches bypass the data cache, so each written line is cleaned to the
/// point of unification, then its stale copy is invalidated (Arm ARM, part B, on caches). CTR_EL0 states the line
/// sizes: with an assumed 64 bytes, a core with lines of 32 bytes would keep stale lines.
pub fn publish(code: &[u8]) {
    let sizes: u64;
    // SAFETY: PURE; Linux lets user space read this register, by a trap where cores differ.
    unsafe { asm!("mrs {s}, ctr_el0", s = out(reg) sizes, options(nomem, nostack)) };
    let data_line = 4usize << (sizes >> 16 & 15);
    let code_line = 4usize << (sizes & 15);
    let lines =
        |size: usize| (code.as_ptr() as usize & !(size - 1)..code.as_ptr_range().end as usize).step_by(size);
    for at in lines(data_line) {
        // SAFETY: OWN-CODE. Left without `nomem`: the stores before it must be done.
        unsafe { asm!("dc cvau, {at}", at = in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: OWN-CODE: a barrier touches nothing.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for at in lines(code_line) {
        // SAFETY: OWN-CODE.
        unsafe { asm!("ic ivau, {at}", at = in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: OWN-CODE: barriers touch nothing. The `isb` drops the instructions that this core has fetched already;
    // another core that this thread moves to has taken an exception meanwhile, which does the same.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Always false: no processor of this architecture is a Zen.
pub fn is_amd_before_zen_5() -> bool {
    false
}
