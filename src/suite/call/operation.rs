//! Loops around a call that does nothing, one for each arity and type.
//!
//! The loops are written in assembly. A compiler that does not see a function's definition calls it through a register, even
//! where the source names it; if it sees the definition, it drops the arguments; and its placement of a loop decides a
//! cycle in five. The loops here begin a cache line and fit into it. In every iteration each argument is loaded from the stack to where
//! the calling convention wants it, as compiled code does with what it has spilled: no register that a callee may change keeps an
//! argument.
//!
//! The callee, one `ret`, is in the cache line before its loop. On Zen 5 an iteration takes five cycles and not four where a multiple of
//! 16 MiB lies between a call and its callee: with one callee for all loops, 4 MiB away, the address at which a process was
//! loaded decided. A call through a pointer or a table still takes four or six, depending on what the predictor of indirect
//! branches has learnt.
//!
//! A loop is entered after a chain of 40 multiplications, some 120 cycles, in which the front end runs ahead and fills its
//! queues. Entered with empty queues, right after a reading of the clock, a batch stayed by chance in one of five modes from
//! 4 to 6 cycles a call (Zen 5), and 4 to 9 of 10 batches were slow.
//!
//! # Invariants
//!
//! * **RETURNS**: the callee is a `ret`, which accesses no register of an argument, so it may be called with any.
//! * **BALANCED**: the assembly reads and writes only the stack that it has reserved, and releases it. The stack is aligned at
//!   the call, as it was before: what is reserved is a multiple of 16 bytes.
//! * **LIBC**: the C library's function reads its argument registers only, and returns.
#![allow(unsafe_code)]

pub use crate::platform::arch::register_loop as control;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
use std::arch::asm;

unsafe extern "C" {
    /// A function of the shared C library without arguments: one `lea` and a `ret` in glibc.
    fn gnu_get_libc_version() -> *const libc::c_char;
}

/// A callee, and a loop of calls of it.
#[derive(Clone, Copy)]
pub struct Call {
    /// Calls `n` times.
    pub turns: fn(u64),
    /// Address of the callee, so that a witness can count its executions.
    pub callee: fn() -> usize,
}

/// The value of each of the eight arguments: 1.0 as an `f32` in its lower half, and about 1.0 as an `f64`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
const ARGUMENT: u64 = 0x3ff0_0000_3f80_0000;

/// Defines a loop that returns the address of the callee before it. For the processor it takes the registers of the arguments'
/// value and of the count, and the instructions that push the arguments, test the count, end an iteration, and leave. For the
/// call it takes the instructions before the loop, those that place arguments, the one that calls, and their operands.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
macro_rules! loop_of_calls {
    ([$value:tt $count:tt $enter:tt $look:tt $end:tt $leave:tt],
        $name:ident, $before:literal, [$($place:literal)*], $call:literal $(, $($operand:tt)*)?) => {
        #[inline(never)]
        pub(super) fn $name(n: u64) -> usize {
            let callee;
            // SAFETY: RETURNS or LIBC, BALANCED. The arguments lie above the 64 bytes that the callee is given.
            unsafe {
                asm!($enter, $before, $look, ".p2align 7", "3:", "ret", ".p2align 6", "2:", $($place,)* $call, $end, "4:", $leave,
                    inout($value) ARGUMENT => callee, inout($count) n => _, $($($operand)*,)? clobber_abi("C"));
            }
            callee
        }
    };
}

/// Defines such a loop for x86-64.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
macro_rules! calling {
    ($($of:tt)*) => { loop_of_calls! { ["rax" "r13"
        ".rept 8\npush rax\n.endr\nsub rsp, 64\n.rept 40\nimul rax, rax\n.endr" "test r13, r13; jz 4f; jmp 2f"
        "dec r13; jnz 2b" "add rsp, 128; lea rax, [rip + 3b]"], $($of)* } };
}

/// Defines such a loop for AArch64.
#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
macro_rules! calling {
    ($($of:tt)*) => { loop_of_calls! { ["x9" "x21"
        ".rept 4\nstp x9, x9, [sp, #-16]!\n.endr\nsub sp, sp, #64\n.rept 40\nmul x9, x9, x9\n.endr" "cbz x21, 4f; b 2f"
        "subs x21, x21, #1; b.ne 2b" "add sp, sp, #128; adr x9, 3b"], $($of)* } };
}

/// Defines such a loop for RISC-V.
#[cfg(target_arch = "riscv64")]
#[rustfmt::skip]
macro_rules! calling {
    ($($of:tt)*) => { loop_of_calls! { ["t0" "s2"
        "addi sp, sp, -64\n.irp at,0,8,16,24,32,40,48,56\nsd t0, \\at(sp)\n.endr\naddi sp, sp, -64\n.rept 40\nmul t0, t0, t0\n.endr"
        "beqz s2, 4f; j 2f" "addi s2, s2, -1; bnez s2, 2b" "addi sp, sp, 128; lla t0, 3b"], $($of)* } };
}

/// A direct call by this instruction, after those that place arguments.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
macro_rules! direct {
    ($call:literal; $($place:literal)*) => {{
        calling!(turns, "", [$($place)*], $call);
        Call { turns: |n| _ = turns(n), callee: || turns(0) }
    }};
}

/// Calls with 0 to 8 arguments of one type.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
macro_rules! arities {
    ($x:literal; $a:literal, $b:literal, $c:literal, $d:literal, $e:literal, $f:literal, $g:literal, $h:literal) => {
        [direct!($x;), direct!($x; $a), direct!($x; $a $b), direct!($x; $a $b $c), direct!($x; $a $b $c $d),
            direct!($x; $a $b $c $d $e), direct!($x; $a $b $c $d $e $f), direct!($x; $a $b $c $d $e $f $g),
            direct!($x; $a $b $c $d $e $f $g $h)]
    };
}

/// System V AMD64: six integers and eight floating-point numbers in registers, the others and large structures on the stack.
#[cfg(target_arch = "x86_64")]
mod place {
    use super::*;

    /// Calls by the type of their arguments; the mixed ones are u32, f64, u64, f32, and these again.
    #[rustfmt::skip]
    pub const TYPES: [(&str, [Call; 9]); 5] = [
        ("u32", arities!("call 3b"; "mov edi, [rsp + 64]", "mov esi, [rsp + 72]", "mov edx, [rsp + 80]", "mov ecx, [rsp + 88]", "mov r8d, [rsp + 96]", "mov r9d, [rsp + 104]", "mov eax, [rsp + 112]; mov [rsp], eax", "mov eax, [rsp + 120]; mov [rsp + 8], eax")),
        ("u64", arities!("call 3b"; "mov rdi, [rsp + 64]", "mov rsi, [rsp + 72]", "mov rdx, [rsp + 80]", "mov rcx, [rsp + 88]", "mov r8, [rsp + 96]", "mov r9, [rsp + 104]", "mov rax, [rsp + 112]; mov [rsp], rax", "mov rax, [rsp + 120]; mov [rsp + 8], rax")),
        ("f32", arities!("call 3b"; "movss xmm0, [rsp + 64]", "movss xmm1, [rsp + 72]", "movss xmm2, [rsp + 80]", "movss xmm3, [rsp + 88]", "movss xmm4, [rsp + 96]", "movss xmm5, [rsp + 104]", "movss xmm6, [rsp + 112]", "movss xmm7, [rsp + 120]")),
        ("f64", arities!("call 3b"; "movsd xmm0, [rsp + 64]", "movsd xmm1, [rsp + 72]", "movsd xmm2, [rsp + 80]", "movsd xmm3, [rsp + 88]", "movsd xmm4, [rsp + 96]", "movsd xmm5, [rsp + 104]", "movsd xmm6, [rsp + 112]", "movsd xmm7, [rsp + 120]")),
        ("mixed", arities!("call 3b"; "mov edi, [rsp + 64]", "movsd xmm0, [rsp + 72]", "mov rsi, [rsp + 80]", "movss xmm1, [rsp + 88]", "mov edx, [rsp + 96]", "movsd xmm2, [rsp + 104]", "mov rcx, [rsp + 112]", "movss xmm3, [rsp + 120]")),
    ];

    /// Structures by value: 16 bytes are passed in two registers, 64 in memory.
    pub const STRUCT: [Call; 2] = [
        direct!("call 3b"; "mov rdi, [rsp + 64]" "mov rsi, [rsp + 72]"),
        direct!("call 3b"; "movups xmm0, [rsp + 64]; movups [rsp], xmm0" "movups xmm0, [rsp + 80]; movups [rsp + 16], xmm0"
            "movups xmm0, [rsp + 96]; movups [rsp + 32], xmm0" "movups xmm0, [rsp + 112]; movups [rsp + 48], xmm0"),
    ];

    calling!(pointer, "lea r12, [rip + 3f]", ["mov rdi, [rsp + 64]" "mov rsi, [rsp + 72]" "mov rdx, [rsp + 80]"],
        "call r12", out("r12") _);
    calling!(dynamic, "lea r12, [rip + 3f]; mov [rsp + 24], r12; mov r12, rsp", ["mov rdi, [rsp + 64]"
        "mov rsi, [rsp + 72]" "mov rdx, [rsp + 80]" "mov rcx, [rsp + 88]"], "call [r12 + 24]", out("r12") _);
    calling!(plt, "", [], "call {plt}@PLT", plt = sym gnu_get_libc_version);
}

/// AAPCS64: eight integers and eight floating-point numbers in registers; of a large structure the address of a copy.
#[cfg(target_arch = "aarch64")]
mod place {
    use super::*;

    /// Calls by the type of their arguments; the mixed ones are u32, f64, u64, f32, and these again.
    #[rustfmt::skip]
    pub const TYPES: [(&str, [Call; 9]); 5] = [
        ("u32", arities!("bl 3b"; "ldr w0, [sp, #64]", "ldr w1, [sp, #72]", "ldr w2, [sp, #80]", "ldr w3, [sp, #88]", "ldr w4, [sp, #96]", "ldr w5, [sp, #104]", "ldr w6, [sp, #112]", "ldr w7, [sp, #120]")),
        ("u64", arities!("bl 3b"; "ldr x0, [sp, #64]", "ldr x1, [sp, #72]", "ldr x2, [sp, #80]", "ldr x3, [sp, #88]", "ldr x4, [sp, #96]", "ldr x5, [sp, #104]", "ldr x6, [sp, #112]", "ldr x7, [sp, #120]")),
        ("f32", arities!("bl 3b"; "ldr s0, [sp, #64]", "ldr s1, [sp, #72]", "ldr s2, [sp, #80]", "ldr s3, [sp, #88]", "ldr s4, [sp, #96]", "ldr s5, [sp, #104]", "ldr s6, [sp, #112]", "ldr s7, [sp, #120]")),
        ("f64", arities!("bl 3b"; "ldr d0, [sp, #64]", "ldr d1, [sp, #72]", "ldr d2, [sp, #80]", "ldr d3, [sp, #88]", "ldr d4, [sp, #96]", "ldr d5, [sp, #104]", "ldr d6, [sp, #112]", "ldr d7, [sp, #120]")),
        ("mixed", arities!("bl 3b"; "ldr w0, [sp, #64]", "ldr d0, [sp, #72]", "ldr x1, [sp, #80]", "ldr s1, [sp, #88]", "ldr w2, [sp, #96]", "ldr d2, [sp, #104]", "ldr x3, [sp, #112]", "ldr s3, [sp, #120]")),
    ];

    /// Structures by value: 16 bytes are passed in two registers, of 64 the address of a copy.
    pub const STRUCT: [Call; 2] = [
        direct!("bl 3b"; "ldr x0, [sp, #64]" "ldr x1, [sp, #72]"),
        direct!("bl 3b"; "ldr q0, [sp, #64]; str q0, [sp]" "ldr q0, [sp, #80]; str q0, [sp, #16]"
            "ldr q0, [sp, #96]; str q0, [sp, #32]" "ldr q0, [sp, #112]; str q0, [sp, #48]" "mov x0, sp"),
    ];

    calling!(pointer, "adr x20, 3f", ["ldr x0, [sp, #64]" "ldr x1, [sp, #72]" "ldr x2, [sp, #80]"], "blr x20",
        out("x20") _);
    calling!(dynamic, "adr x20, 3f; str x20, [sp, #24]; mov x20, sp", ["ldr x0, [sp, #64]" "ldr x1, [sp, #72]"
        "ldr x2, [sp, #80]" "ldr x3, [sp, #88]" "ldr x9, [x20, #24]"], "blr x9", out("x20") _);
    calling!(plt, "", [], "bl {plt}", plt = sym gnu_get_libc_version);
}

/// The psABI of RISC-V, lp64d: eight integers and eight floating-point numbers in registers; of a large structure the address of a copy.
#[cfg(target_arch = "riscv64")]
mod place {
    use super::*;

    /// Calls by the type of their arguments; the mixed ones are u32, f64, u64, f32, and these again.
    #[rustfmt::skip]
    pub const TYPES: [(&str, [Call; 9]); 5] = [
        ("u32", arities!("jal 3b"; "lw a0, 64(sp)", "lw a1, 72(sp)", "lw a2, 80(sp)", "lw a3, 88(sp)", "lw a4, 96(sp)", "lw a5, 104(sp)", "lw a6, 112(sp)", "lw a7, 120(sp)")),
        ("u64", arities!("jal 3b"; "ld a0, 64(sp)", "ld a1, 72(sp)", "ld a2, 80(sp)", "ld a3, 88(sp)", "ld a4, 96(sp)", "ld a5, 104(sp)", "ld a6, 112(sp)", "ld a7, 120(sp)")),
        ("f32", arities!("jal 3b"; "flw fa0, 64(sp)", "flw fa1, 72(sp)", "flw fa2, 80(sp)", "flw fa3, 88(sp)", "flw fa4, 96(sp)", "flw fa5, 104(sp)", "flw fa6, 112(sp)", "flw fa7, 120(sp)")),
        ("f64", arities!("jal 3b"; "fld fa0, 64(sp)", "fld fa1, 72(sp)", "fld fa2, 80(sp)", "fld fa3, 88(sp)", "fld fa4, 96(sp)", "fld fa5, 104(sp)", "fld fa6, 112(sp)", "fld fa7, 120(sp)")),
        ("mixed", arities!("jal 3b"; "lw a0, 64(sp)", "fld fa0, 72(sp)", "ld a1, 80(sp)", "flw fa1, 88(sp)", "lw a2, 96(sp)", "fld fa2, 104(sp)", "ld a3, 112(sp)", "flw fa3, 120(sp)")),
    ];

    /// Structures by value: 16 bytes are passed in two registers, of 64 the address of a copy.
    pub const STRUCT: [Call; 2] = [
        direct!("jal 3b"; "ld a0, 64(sp)" "ld a1, 72(sp)"),
        direct!("jal 3b"; "ld t1, 64(sp); sd t1, 0(sp); ld t1, 72(sp); sd t1, 8(sp)" "ld t1, 80(sp); sd t1, 16(sp); ld t1, 88(sp); sd t1, 24(sp)" "ld t1, 96(sp); sd t1, 32(sp); ld t1, 104(sp); sd t1, 40(sp)" "ld t1, 112(sp); sd t1, 48(sp); ld t1, 120(sp); sd t1, 56(sp)" "mv a0, sp"),
    ];

    calling!(pointer, "lla s3, 3f", ["ld a0, 64(sp)" "ld a1, 72(sp)" "ld a2, 80(sp)"], "jalr s3", out("s3") _);
    calling!(dynamic, "lla s3, 3f; sd s3, 24(sp); mv s3, sp", ["ld a0, 64(sp)" "ld a1, 72(sp)" "ld a2, 80(sp)"
        "ld a3, 88(sp)" "ld t1, 24(s3)"], "jalr t1", out("s3") _);
    calling!(plt, "", [], "call {plt}", plt = sym gnu_get_libc_version);
}

/// Placeholders for other processors, for which no loop is written and [`ARE_WRITTEN`] is false.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod place {
    use super::*;

    const NONE: Call = Call { turns: control, callee: || 0 };
    pub const TYPES: [(&str, [Call; 9]); 5] = [
        ("u32", [NONE; 9]),
        ("u64", [NONE; 9]),
        ("f32", [NONE; 9]),
        ("f64", [NONE; 9]),
        ("mixed", [NONE; 9]),
    ];
    pub const STRUCT: [Call; 2] = [NONE; 2];

    pub(super) fn pointer(_: u64) -> usize {
        0
    }
    pub(super) use pointer as dynamic;
    pub(super) use pointer as plt;
}

/// Whether the loops are written for this processor.
pub const ARE_WRITTEN: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

pub use place::{STRUCT, TYPES};

/// Calls with 64-bit integers.
pub const U64: [Call; 9] = TYPES[1].1;

/// Three arguments through a pointer.
pub const POINTER_3: Call = Call { turns: |n| _ = place::pointer(n), callee: || place::pointer(0) };

/// The C library's `gnu_get_libc_version` through the procedure linkage table: a call to a stub, and an indirect jump to the
/// function in the shared object.
pub const PLT_0: Call =
    Call { turns: |n| _ = place::plt(n), callee: || gnu_get_libc_version as *const () as usize };

/// Three arguments through a table of methods.
pub const DYN_3: Call = Call { turns: |n| _ = place::dynamic(n), callee: || place::dynamic(0) };
