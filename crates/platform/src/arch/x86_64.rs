//! x86-64: the time-stamp counter, hot loops, and the entry into the kernel: once, and in loops that begin a line of the
//! instruction cache.
//!
//! # Invariants
//!
//! * **ENTRY**: a kernel entry is given a call number and arguments whose effect on memory the caller
//!   answers for. `rcx` and `r11` are declared lost, as the `syscall` instruction overwrites them, and `rax` is the
//!   return value. All other registers keep their values.
//! * **PURE**: the assembly touches only the registers it declares (and the flags), no memory, no stack.
//! * **OWN-WORD**: the assembly writes one word to which the function holds the only reference.
//! * **RING**: each word that is loaded holds the address of another such word, and none of them changes meanwhile.
//! * **LINE**: a borrowed cache line is evicted from the caches; none of its bytes changes.
#![allow(unsafe_code)]

use super::{Answers, Unfit};
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// The name of the counter in a record.
pub const COUNTER: &str = "tsc";

/// Opens a bracket. `lfence` waits until all earlier instructions have finished, so that they are not
/// counted (Intel SDM vol. 2B, RDTSC; on AMD `lfence` does so since Linux sets DE_CFG bit 1).
#[inline(always)]
pub fn start() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: PURE. Left without `nomem`, so that the compiler moves no memory access across it.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Closes a bracket. `rdtscp` waits for the timed instructions; the `lfence` keeps later ones from starting
/// before the counter is read. Stores may still be in flight: code that times stores ends with a fence.
#[inline(always)]
pub fn stop() -> u64 {
    stop_on().0
}

/// Closes a bracket, and returns the counter and the CPU (Linux keeps node and CPU in TSC_AUX).
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

/// Opens a bracket with the barrier of Intel's paper of 2010 (Paoloni) and of the CSC501 report: `cpuid`,
/// which a hypervisor emulates.
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

/// Closes a bracket of [`start_cpuid`]: `rdtscp`, then `cpuid` to keep later instructions out.
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

/// One read after `serialize`, which orders more than `lfence` and needs no trap. Call it only if
/// [`has_serialize`] returns true.
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

/// The counter's frequency, Hz, and its source: the processor (CPUID leaf 0x15) or the hypervisor (leaf
/// 0x4000_0010, in kHz).
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

/// Why the counter is unfit as a clock; `None` if it is fit. The processor promises a constant rate without stops by CPUID
/// 0x8000_0007, EDX bit 8, which Linux shows as `constant_tsc nonstop_tsc`.
pub fn unfit() -> Option<Unfit> {
    #[allow(unused_unsafe)]
    // SAFETY: PURE; the extended range's first leaf bounds it.
    let invariant =
        unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0 };
    if invariant { (!has_rdtscp()).then_some(Unfit::NoRdtscp) } else { Some(Unfit::NotConstant) }
}

/// Executes an instruction `$n` times: in blocks of 64, and the rest one by one. A block may consist of `$groups` copies of
/// `$group`, which repeats the instruction. The loop counter runs in parallel with a dependency chain, which hides its cost.
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

/// Whether user space may evict a line from the caches.
pub const CAN_EVICT: bool = true;

/// Evicts the cache line of the first byte from all caches.
pub fn evict(line: &[u8]) {
    // SAFETY: LINE; every x86-64 processor has CLFLUSH and MFENCE.
    unsafe { asm!("clflush [{at}]", "mfence", at = in(reg) line.as_ptr(), options(nostack)) };
}

/// Whether the word at an instruction pointer begins with the instruction that enters the kernel:
/// `0f 05`, syscall.
pub fn is_kernel_entry(word: i64) -> bool {
    word & 0xffff == 0x050f
}

/// Machine code of `jmp` to the address [`JUMP_BYTES`] ahead.
pub const JUMP: &[u8] = &[0xe9, JUMP_BYTES as u8 - 5, 0, 0, 0];
/// Distance from the beginning of a [`JUMP`] to its target, bytes.
pub const JUMP_BYTES: usize = 16;

/// Machine code of `ret`.
pub const RETURN: &[u8] = &[0xc3];

/// Makes written code safe to run, which takes no action here: the processor itself drops fetched instructions
/// when a store changes them (Intel SDM vol. 3A, *Self- and Cross-Modifying Code*).
pub fn publish(_: &[u8]) {}
