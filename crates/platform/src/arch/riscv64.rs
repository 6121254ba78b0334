//! RISC-V of 64 bits: the time counter, hot loops, and the entry into the kernel: once, and in loops that begin a line of the
//! instruction cache.
//!
//! # Invariants
//!
//! * **PURE**: the assembly touches only the registers it declares, no memory, no stack.
//! * **OWN-WORD**: the assembly writes one word to which the function holds the only reference.
//! * **RING**: each word that is loaded holds the address of another such word, and none of them changes meanwhile.
//! * **OWN-CODE**: the kernel drops stale copies of bytes that stay borrowed meanwhile, and changes none of them.
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for. All registers keep their values but `a0`, the return value, and `a7`, the number: a call that the
//!   kernel restarts by itself after a stop (`restart_syscall`) has another number.
#![allow(unsafe_code)]

use super::{Answers, Unfit};
use std::arch::asm;

/// The name of the counter in a record.
pub const COUNTER: &str = "time";

/// Opens a bracket. The architecture has no instruction that waits for all earlier ones; `fence` waits for their memory
/// accesses, and reading a CSR drains the pipeline of existing cores.
#[inline(always)]
pub fn start() -> u64 {
    let ticks;
    // SAFETY: PURE. Left without `nomem`, so that the compiler moves no memory access across it.
    unsafe { asm!("fence iorw, iorw", "rdtime {t}", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// Closes a bracket: the fences wait for the timed accesses and keep later ones out.
#[inline(always)]
pub fn stop() -> u64 {
    let ticks;
    // SAFETY: PURE.
    unsafe {
        asm!("fence iorw, iorw", "rdtime {t}", "fence iorw, iorw", t = out(reg) ticks, options(nostack))
    };
    ticks
}

/// One unordered read.
#[inline(always)]
pub fn read() -> u64 {
    let ticks;
    // SAFETY: PURE.
    unsafe { asm!("rdtime {t}", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// The counter's frequency, Hz, and its source: the firmware's device tree. The value is stated, not measured.
pub fn frequency() -> Option<(f64, &'static str)> {
    let bytes = std::fs::read("/proc/device-tree/cpus/timebase-frequency").ok()?;
    let hz = u32::from_be_bytes(bytes.try_into().ok()?);
    (hz != 0).then_some((f64::from(hz), "timebase-frequency"))
}

/// Always `None`: the architecture promises a counter of constant rate, the same on all cores (Unprivileged ISA, Zicntr).
pub fn unfit() -> Option<Unfit> {
    None
}

/// Executes an instruction `$n` times: in blocks of 64, and the rest one by one. A block may consist of `$groups` copies of
/// `$group`, which repeats the instruction. The loop counter runs in parallel with a dependency chain, which hides its cost.
macro_rules! in_blocks {
    ($n:expr, $one:literal, $groups:literal of $group:literal, $($operands:tt)*) => {
        std::arch::asm!("beqz {b}, 3f", ".p2align 5", "2:", concat!(".rept ", $groups), $group, ".endr",
            "addi {b}, {b}, -1", "bnez {b}, 2b", "3:", "beqz {r}, 5f", "4:", $one, "addi {r}, {r}, -1", "bnez {r}, 4b", "5:",
            b = inout(reg) $n / 64 => _, r = inout(reg) $n % 64 => _, $($operands)*)
    };
    ($n:expr, $one:literal, $($operands:tt)*) => {
        in_blocks!($n, $one, 64 of $one, $($operands)*)
    };
}

chain_functions! {
    turn "addi {n}, {n}, -1", "bnez {n}, 2b";
    add "add {sum}, {sum}, {step}";
    multiply "mul {p}, {p}, {factor}";
    load "ld {at}, 0({at})";
    memory ["ld {t}, 0({at})", "addi {t}, {t}, 1", "sd {t}, 0({at})", "ld {t}, 0({at})", "bltu {t}, {n}, 2b"]
        [t = out(reg) _,];
    mixed ["ld {t}, 0({at})", "addi {t}, {t}, 1", "sd {t}, 0({at})", "fadd.d {v}, {v}, {v}", "li a7, {call}", "ecall"]
        [v = out(freg) _, call = const libc::SYS_getpid, out("a0") _, out("a7") _,]
}

entry_functions! {
    "ecall"; number, a, answer;
    none [inlateout("a7") number => _, lateout("a0") answer];
    first [inlateout("a7") number => _, inlateout("a0") a => answer];
    rest "a1", "a2", "a3", "a4", "a5"; lost []
}
entry_loops! {
    "ecall", lost [], "mv a7, ", "mv a0, ", ["a7", "a0", "a1", "a2", "a3", "a4", "a5"], [reg "mv a0, {0}"; "a0"];
    low "bge a0, {low}, 3f", "mv {low}, a0", "3:";
    high "bge {high}, a0, 4f", "mv {high}, a0", "4:";
    next "bge a0, {next_low}, 4f", "mv {next_low}, a0", "4:";
    answer;
    turn "addi {n}, {n}, -1", "bnez {n}, 2b"
}

/// Whether user space may evict a line from the caches: Linux enables no `cbo.flush` for it (Zicbom).
pub const CAN_EVICT: bool = false;

/// Does nothing: see [`CAN_EVICT`].
pub fn evict(_: &[u8]) {}

/// Whether the word at an instruction pointer begins with the instruction that enters the kernel: `ecall`, 00000073.
pub fn is_kernel_entry(word: i64) -> bool {
    word & 0xffff_ffff == 0x73
}

/// Machine code of `j` to the address [`JUMP_BYTES`] ahead.
pub const JUMP: &[u8] = &[0x6f, 0x00, 0x00, 0x01];
/// Distance from the beginning of a [`JUMP`] to its target, bytes.
pub const JUMP_BYTES: usize = 16;

/// Machine code of `ret`.
pub const RETURN: &[u8] = &[0x67, 0x80, 0x00, 0x00];

/// Makes written code safe to run, by riscv_flush_icache(2), whose number libc does not name. A `fence.i` here would act on
/// one core only, and the thread may move to another.
pub fn publish(code: &[u8]) {
    const FLUSH_INSTRUCTION_CACHE: i64 = 259;
    let range = code.as_ptr_range();
    // SAFETY: OWN-CODE.
    unsafe { syscall4(FLUSH_INSTRUCTION_CACHE, range.start as usize, range.end as usize, 0, 0) };
}

/// Always false: no processor of this architecture is a Zen.
pub fn is_amd_before_zen_5() -> bool {
    false
}
