//! x86-64: the time-stamp counter, hot loops, and the entry into the kernel: once, and in loops that begin a line of the
//! instruction cache.
//!
//! # Invariants
//!
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for; `rcx` and `r11` are declared lost, as the `syscall` instruction loses them, and `rax` is the answer.
//!   All others come back as they were.
//! * **PURE**: the assembly touches only the registers it declares (and the flags), no memory, no stack.
//! * **OWN-WORD**: the assembly writes one word to which the function holds the only reference.
//! * **RING**: each word that is loaded holds the address of another such word, and none of them changes meanwhile.
//! * **LINE**: a borrowed cache line is put out of the caches; none of its bytes changes.
#![allow(unsafe_code)]

use super::{Answers, Unfit};
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// The name of the counter in a record.
pub const COUNTER: &str = "tsc";

/// Opens a bracket. `lfence` waits until everything before has finished, so that earlier work is not
/// counted (Intel SDM vol. 2B, RDTSC; on AMD `lfence` does so since Linux sets DE_CFG bit 1).
#[inline(always)]
pub fn start() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: PURE. Left without `nomem`, so that the compiler moves no memory access across it.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Closes a bracket. `rdtscp` waits for what is timed; the `lfence` keeps what follows from starting
/// before the counter is read. Stores may still be in flight: code that times stores ends with a fence.
#[inline(always)]
pub fn stop() -> u64 {
    stop_on().0
}

/// Closes a bracket, and returns the CPU too (Linux keeps node and CPU in TSC_AUX).
#[inline(always)]
pub fn stop_on() -> (u64, usize) {
    let (low, high, aux): (u32, u32, u32);
    // SAFETY: PURE.
    unsafe {
        asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") aux, options(nostack));
    }
    (u64::from(high) << 32 | u64::from(low), (aux & 0xfff) as usize)
}

/// One unordered read: it waits for no other instruction, and none waits for it.
#[inline(always)]
pub fn read() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: PURE.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// The bracket's opening with the barrier of Intel's paper of 2010 (Paoloni) and of the CSC501 report: `cpuid`,
/// which a hypervisor answers in place of the processor.
#[inline(always)]
pub fn start_cpuid() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: PURE. `rbx` is saved by hand because the compiler reserves it.
    unsafe {
        asm!("mov {saved}, rbx", "xor eax, eax", "cpuid", "rdtsc", "mov rbx, {saved}",
            saved = out(reg) _, out("eax") low, out("edx") high, out("ecx") _, options(nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The bracket's closing of the same recipe: `rdtscp`, then `cpuid` to keep later work out.
#[inline(always)]
pub fn stop_cpuid() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: PURE, as in `start_cpuid`.
    unsafe {
        asm!("rdtscp", "mov {low}, rax", "mov {high}, rdx", "mov {saved}, rbx", "xor eax, eax", "cpuid",
            "mov rbx, {saved}", low = out(reg) low, high = out(reg) high, saved = out(reg) _,
            out("eax") _, out("edx") _, out("ecx") _, options(nostack));
    }
    high << 32 | low
}

/// One read behind `serialize`, which orders more than `lfence` and needs no trap. Only where
/// [`has_serialize`] says so.
#[inline(always)]
pub fn read_serialize() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: PURE; the caller has asked `has_serialize`. Spelt as bytes: assemblers before 2020 lack it.
    unsafe { asm!(".byte 0x0f, 0x01, 0xe8", "rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Whether the processor has `serialize` (CPUID leaf 7, EDX bit 14).
pub fn has_serialize() -> bool {
    // `__cpuid` is safe from Rust 1.94 on and unsafe before: the block must stay for the older compilers.
    #[allow(unused_unsafe)]
    // SAFETY: PURE; every x86-64 processor has CPUID, and leaf 0 tells whether leaf 7 exists.
    unsafe {
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & (1 << 14) != 0
    }
}

/// Whether the processor has `rdtscp` (CPUID leaf 0x80000001, EDX bit 27).
pub fn has_rdtscp() -> bool {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; the extended range's first leaf bounds it.
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & (1 << 27) != 0
    }
}

/// Whether Intel made the processor: the first word of its name in CPUID leaf 0.
pub fn is_intel() -> bool {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; every x86-64 processor has leaf 0.
    unsafe {
        __cpuid(0).ebx == u32::from_le_bytes(*b"Genu")
    }
}

/// Whether AMD made the processor before Zen 5, which is family 1A: CPUID leaves 0 and 1.
pub fn is_amd_before_zen_5() -> bool {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; every x86-64 processor has leaves 0 and 1.
    let (maker, version) = unsafe { (__cpuid(0).ebx, __cpuid(1).eax) };
    let family = ((version >> 8) & 0xf) + ((version >> 20) & 0xff);
    maker == u32::from_le_bytes(*b"Auth") && family < 0x1a
}

/// Whether a hypervisor says that it runs below: CPUID leaf 1, ECX bit 31.
pub fn is_guest() -> bool {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; every x86-64 processor has leaf 1.
    unsafe {
        __cpuid(1).ecx & (1 << 31) != 0
    }
}

/// The counter's frequency as the processor (leaf 0x15) or the hypervisor (leaf 0x4000_0010, kHz) states
/// it, Hz, and which of them does.
pub fn frequency() -> Option<(f64, &'static str)> {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; each leaf is read only after the leaf that bounds it.
    unsafe {
        if __cpuid(0).eax >= 0x15 {
            let leaf = __cpuid(0x15);
            if leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0 {
                let hz = f64::from(leaf.ecx) * f64::from(leaf.ebx) / f64::from(leaf.eax);
                return Some((hz, "CPUID leaf 0x15"));
            }
        }
        if is_guest() && __cpuid(0x4000_0000).eax >= 0x4000_0010 {
            let khz = __cpuid(0x4000_0010).eax;
            return (khz != 0).then(|| (f64::from(khz) * 1e3, "the hypervisor's CPUID leaf"));
        }
    }
    None
}

/// Whether the processor promises a counter that neither changes its rate nor stops: CPUID 0x8000_0007,
/// EDX bit 8, which Linux shows as `constant_tsc nonstop_tsc`.
pub fn unfit() -> Option<Unfit> {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; the extended range's first leaf bounds it.
    let invariant =
        unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0 };
    if invariant { (!has_rdtscp()).then_some(Unfit::NoRdtscp) } else { Some(Unfit::NotConstant) }
}

/// Executes an instruction `$n` times: blocks of 64 in a row, and the rest one by one. In a block `$groups` of `$group`, in which it
/// stands several times, may take its place. The loop's own counter runs beside a chain and is hidden by it.
macro_rules! in_blocks {
    ($n:expr, $one:literal, $groups:literal of $group:literal, $($operands:tt)*) => {
        std::arch::asm!("test {b}, {b}", "jz 3f", ".p2align 5", "2:", concat!(".rept ", $groups), $group, ".endr",
            "dec {b}", "jnz 2b", "3:", "test {r}, {r}", "jz 5f", "4:", $one, "dec {r}", "jnz 4b", "5:",
            b = inout(reg) $n / 64 => _, r = inout(reg) $n % 64 => _, $($operands)*)
    };
    ($n:expr, $one:literal, $($operands:tt)*) => {
        in_blocks!($n, $one, 64 of $one, $($operands)*)
    };
}
pub(crate) use in_blocks;

chain_functions! {
    turn "dec {n}", "jnz 2b";
    add "add {sum}, {step}";
    multiply "imul {p}, {factor}";
    load "mov {at}, [{at}]";
    memory ["add qword ptr [{at}], 1", "cmp qword ptr [{at}], {n}", "jb 2b"] [];
    mixed ["mov {t}, [{at}]", "add {t}, 1", "mov [{at}], {t}", "paddd {v}, {v}", "mov eax, {call}", "syscall"]
        [v = out(xmm_reg) _, call = const libc::SYS_getpid, out("rax") _, out("rcx") _, out("r11") _,]
}

entry_functions! {
    "syscall"; number, a, answer;
    none [inlateout("rax") number => answer];
    first [inlateout("rax") number => answer, in("rdi") a];
    rest "rsi", "rdx", "r10", "r8", "r9"; lost ["rcx", "r11"]
}
entry_loops! {
    "syscall", lost ["rcx", "r11"], "mov rax, ", "mov rdi, ", ["rax", "rdi", "rsi", "rdx", "r10", "r8", "r9"],
    ["rdi"; "rcx", "r11"];
    low "cmp rax, {low}", "cmovl {low}, rax";
    high "cmp rax, {high}", "cmovg {high}, rax";
    next "cmp rax, {next_low}", "cmovl {next_low}, rax";
    answer "mov rdi, rax";
    turn "dec {n}", "jnz 2b"
}

/// User space may put a line out of the caches.
pub const CAN_EVICT: bool = true;

/// Puts the cache line at the first byte out of all caches.
pub fn evict(line: &[u8]) {
    // SAFETY: LINE; every x86-64 processor has CLFLUSH and MFENCE.
    unsafe { asm!("clflush [{at}]", "mfence", at = in(reg) line.as_ptr(), options(nostack)) };
}

/// Whether the word at an instruction pointer begins with the instruction that enters the kernel:
/// `0f 05`, syscall.
pub fn is_kernel_entry(word: i64) -> bool {
    word & 0xffff == 0x050f
}

/// `jmp` to what lies [`JUMP_BYTES`] ahead.
pub const JUMP: &[u8] = &[0xe9, JUMP_BYTES as u8 - 5, 0, 0, 0];
/// How far [`JUMP`] leads from its own beginning.
pub const JUMP_BYTES: usize = 16;

/// `ret`.
pub const RETURN: &[u8] = &[0xc3];

/// Makes written code safe to run: nothing is left to do, since the processor itself drops what it has
/// fetched when a store changes it (Intel SDM vol. 3A, *Self- and Cross-Modifying Code*).
pub fn publish(_: &[u8]) {}
