//! Loops around a call that does nothing, one for each arity and type.
//!
//! The loops are written in assembly. A compiler calls what it does not see defined through a register, even where the source
//! names it; of a callee that it can see into, it drops the arguments; and where it places a loop decides a cycle in
//! five. The loops here begin a cache line and fit into it, and so does the callee, `syscost_return`, one `ret`
//! ([`crate::platform::arch`]). In every iteration each argument is loaded from the stack to where the calling convention wants it,
//! as compiled code does with what it has spilled: no register that a callee may change keeps an argument.
//!
//! A loop is entered behind a chain of 40 multiplications, some 120 cycles, in which the front end runs ahead and fills its
//! queues. Entered with empty ones, right behind a reading of the clock, a batch stayed by chance in one of five modes from
//! 4 to 6 cycles a call (Zen 5), and 4 to 9 of 10 batches were slow.
//!
//! # Invariants
//!
//! * **RETURNS**: `syscost_return` accesses neither registers nor memory, so it may be called with any arguments and by any
//!   signature without a result.
//! * **BALANCED**: the assembly reads and writes only the stack that it has reserved, and gives it back. The stack is aligned at
//!   the call, as it was before: what is reserved is a multiple of 16 bytes.
//! * **LIBC**: the C library's function reads its argument registers only, and returns.
#![allow(unsafe_code)]

pub use crate::platform::arch::register_loop as control;
use std::arch::asm;
use std::hint::black_box;

unsafe extern "C" {
    fn syscost_return();
    /// A function of the shared C library without arguments: one `lea` and a `ret` in glibc.
    fn gnu_get_libc_version() -> *const libc::c_char;
}

/// What is called, and a loop of so many calls.
#[derive(Clone, Copy)]
pub struct Call {
    /// Calls `n` times.
    pub turns: fn(u64),
    /// Address of the callee, so that a witness can count its executions.
    pub callee: fn() -> usize,
}

impl Call {
    const fn of_nothing(turns: fn(u64)) -> Self {
        Self { turns, callee: || syscost_return as *const () as usize }
    }
}

/// The arguments, eight of these: 1.0 as the lower half, and about 1.0 as a whole.
const ARGUMENT: u64 = 0x3ff0_0000_3f80_0000;

/// Defines a loop: instructions that place arguments, the one that calls, and the operands that it names.
#[cfg(target_arch = "x86_64")]
macro_rules! calling {
    ($name:ident, [$($place:literal)*], $call:literal, $($operand:tt)*) => {
        #[inline(never)]
        pub fn $name(n: u64) {
            if n > 0 {
                // SAFETY: RETURNS or LIBC, BALANCED. The arguments lie above the 64 bytes that the callee is given.
                unsafe {
                    asm!(".rept 8", "push rax", ".endr", "sub rsp, 64", ".rept 40", "imul rax, rax", ".endr",
                        ".p2align 6", "2:", $($place,)* $call,
                        "dec r13", "jnz 2b", "add rsp, 128", inout("rax") ARGUMENT => _, inout("r13") n => _,
                        $($operand)*, clobber_abi("C"));
                }
            }
        }
    };
}

/// See above.
#[cfg(target_arch = "aarch64")]
macro_rules! calling {
    ($name:ident, [$($place:literal)*], $call:literal, $($operand:tt)*) => {
        #[inline(never)]
        pub fn $name(n: u64) {
            if n > 0 {
                // SAFETY: RETURNS or LIBC, BALANCED. The arguments lie above the 64 bytes that the callee is given.
                unsafe {
                    asm!(".rept 4", "stp x9, x9, [sp, #-16]!", ".endr", "sub sp, sp, #64", ".rept 40",
                        "mul x9, x9, x9", ".endr", ".p2align 6", "2:", $($place,)* $call,
                        "subs x21, x21, #1", "b.ne 2b", "add sp, sp, #128", inout("x9") ARGUMENT => _, inout("x21") n => _, $($operand)*, clobber_abi("C"));
                }
            }
        }
    };
}

/// The direct call's instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! direct {
    ($name:ident, $($place:literal)*) => { calling!($name, [$($place)*], "call {callee}", callee = sym syscost_return); };
}

/// See above.
#[cfg(target_arch = "aarch64")]
macro_rules! direct {
    ($name:ident, $($place:literal)*) => { calling!($name, [$($place)*], "bl {callee}", callee = sym syscost_return); };
}

/// Defines the table of one type, by arity 0 to 8.
macro_rules! arities {
    ($(#[$text:meta])* $table:ident, $a:literal, $b:literal, $c:literal, $d:literal, $e:literal, $f:literal, $g:literal,
     $h:literal) => {
        $(#[$text])*
        pub const $table: [Call; 9] = {
            direct!(none,);
            direct!(one, $a);
            direct!(two, $a $b);
            direct!(three, $a $b $c);
            direct!(four, $a $b $c $d);
            direct!(five, $a $b $c $d $e);
            direct!(six, $a $b $c $d $e $f);
            direct!(seven, $a $b $c $d $e $f $g);
            direct!(eight, $a $b $c $d $e $f $g $h);
            [Call::of_nothing(none), Call::of_nothing(one), Call::of_nothing(two), Call::of_nothing(three),
                Call::of_nothing(four), Call::of_nothing(five), Call::of_nothing(six), Call::of_nothing(seven),
                Call::of_nothing(eight)]
        };
    };
}

/// System V AMD64: six integers and eight floating-point numbers in registers, the others and large structures on the stack.
#[cfg(target_arch = "x86_64")]
mod place {
    use super::*;

    arities! {
        /// 32-bit integers.
        U32, "mov edi, [rsp + 64]", "mov esi, [rsp + 72]", "mov edx, [rsp + 80]", "mov ecx, [rsp + 88]",
        "mov r8d, [rsp + 96]", "mov r9d, [rsp + 104]", "mov eax, [rsp + 112]; mov [rsp], eax",
        "mov eax, [rsp + 120]; mov [rsp + 8], eax"
    }
    arities! {
        /// 64-bit integers.
        U64, "mov rdi, [rsp + 64]", "mov rsi, [rsp + 72]", "mov rdx, [rsp + 80]", "mov rcx, [rsp + 88]",
        "mov r8, [rsp + 96]", "mov r9, [rsp + 104]", "mov rax, [rsp + 112]; mov [rsp], rax",
        "mov rax, [rsp + 120]; mov [rsp + 8], rax"
    }
    arities! {
        /// Single precision.
        F32, "movss xmm0, [rsp + 64]", "movss xmm1, [rsp + 72]", "movss xmm2, [rsp + 80]", "movss xmm3, [rsp + 88]",
        "movss xmm4, [rsp + 96]", "movss xmm5, [rsp + 104]", "movss xmm6, [rsp + 112]", "movss xmm7, [rsp + 120]"
    }
    arities! {
        /// Double precision.
        F64, "movsd xmm0, [rsp + 64]", "movsd xmm1, [rsp + 72]", "movsd xmm2, [rsp + 80]", "movsd xmm3, [rsp + 88]",
        "movsd xmm4, [rsp + 96]", "movsd xmm5, [rsp + 104]", "movsd xmm6, [rsp + 112]", "movsd xmm7, [rsp + 120]"
    }
    arities! {
        /// u32, f64, u64, f32, and these again.
        MIXED, "mov edi, [rsp + 64]", "movsd xmm0, [rsp + 72]", "mov rsi, [rsp + 80]", "movss xmm1, [rsp + 88]",
        "mov edx, [rsp + 96]", "movsd xmm2, [rsp + 104]", "mov rcx, [rsp + 112]", "movss xmm3, [rsp + 120]"
    }

    direct!(in_registers, "mov rdi, [rsp + 64]" "mov rsi, [rsp + 72]");
    direct!(in_memory, "movups xmm0, [rsp + 64]; movups [rsp], xmm0" "movups xmm0, [rsp + 80]; movups [rsp + 16], xmm0"
        "movups xmm0, [rsp + 96]; movups [rsp + 32], xmm0" "movups xmm0, [rsp + 112]; movups [rsp + 48], xmm0");

    calling!(pointer, ["mov rdi, [rsp + 64]" "mov rsi, [rsp + 72]" "mov rdx, [rsp + 80]"], "call r12",
        in("r12") syscost_return as unsafe extern "C" fn());
    calling!(plt, [], "call {callee}@PLT", callee = sym gnu_get_libc_version);
}

/// AAPCS64: eight integers and eight floating-point numbers in registers; of a large structure the address of a copy.
#[cfg(target_arch = "aarch64")]
mod place {
    use super::*;

    arities! {
        /// 32-bit integers.
        U32, "ldr w0, [sp, #64]", "ldr w1, [sp, #72]", "ldr w2, [sp, #80]", "ldr w3, [sp, #88]", "ldr w4, [sp, #96]",
        "ldr w5, [sp, #104]", "ldr w6, [sp, #112]", "ldr w7, [sp, #120]"
    }
    arities! {
        /// 64-bit integers.
        U64, "ldr x0, [sp, #64]", "ldr x1, [sp, #72]", "ldr x2, [sp, #80]", "ldr x3, [sp, #88]", "ldr x4, [sp, #96]",
        "ldr x5, [sp, #104]", "ldr x6, [sp, #112]", "ldr x7, [sp, #120]"
    }
    arities! {
        /// Single precision.
        F32, "ldr s0, [sp, #64]", "ldr s1, [sp, #72]", "ldr s2, [sp, #80]", "ldr s3, [sp, #88]", "ldr s4, [sp, #96]",
        "ldr s5, [sp, #104]", "ldr s6, [sp, #112]", "ldr s7, [sp, #120]"
    }
    arities! {
        /// Double precision.
        F64, "ldr d0, [sp, #64]", "ldr d1, [sp, #72]", "ldr d2, [sp, #80]", "ldr d3, [sp, #88]", "ldr d4, [sp, #96]",
        "ldr d5, [sp, #104]", "ldr d6, [sp, #112]", "ldr d7, [sp, #120]"
    }
    arities! {
        /// u32, f64, u64, f32, and these again.
        MIXED, "ldr w0, [sp, #64]", "ldr d0, [sp, #72]", "ldr x1, [sp, #80]", "ldr s1, [sp, #88]", "ldr w2, [sp, #96]",
        "ldr d2, [sp, #104]", "ldr x3, [sp, #112]", "ldr s3, [sp, #120]"
    }

    direct!(in_registers, "ldr x0, [sp, #64]" "ldr x1, [sp, #72]");
    direct!(in_memory, "ldr q0, [sp, #64]; str q0, [sp]" "ldr q0, [sp, #80]; str q0, [sp, #16]"
        "ldr q0, [sp, #96]; str q0, [sp, #32]" "ldr q0, [sp, #112]; str q0, [sp, #48]" "mov x0, sp");

    calling!(pointer, ["ldr x0, [sp, #64]" "ldr x1, [sp, #72]" "ldr x2, [sp, #80]"], "blr x20",
        in("x20") syscost_return as unsafe extern "C" fn());
    calling!(plt, [], "bl {callee}", callee = sym gnu_get_libc_version);
}

pub use place::{F32, F64, MIXED, U32, U64};

/// Structures by value: 16 bytes are passed in two registers, 64 in memory.
pub const STRUCT: [Call; 2] = [Call::of_nothing(place::in_registers), Call::of_nothing(place::in_memory)];

/// Three arguments through a pointer.
pub const POINTER_3: Call = Call::of_nothing(place::pointer);

/// The C library's `gnu_get_libc_version` through the procedure linkage table: a call to a stub, and an indirect jump to the
/// function in the shared object.
pub const PLT_0: Call = Call { turns: place::plt, callee: || gnu_get_libc_version as *const () as usize };

/// Three arguments through a table of methods, as the compiler writes it.
pub const DYN_3: Call = Call { turns: dyn_3, callee: dyn_callee };

/// What is called through a `dyn` reference.
trait Callee {
    fn call(&self, a: u64, b: u64, c: u64);
}

struct Nothing;

impl Callee for Nothing {
    /// An empty body, which compiles to one `ret`.
    #[inline(never)]
    fn call(&self, _: u64, _: u64, _: u64) {}
}

#[inline(never)]
fn dyn_3(n: u64) {
    let callee: &dyn Callee = &Nothing;
    let (a, b, c) = black_box((1u64, 2u64, 3u64));
    for _ in 0..n {
        // Inside the loop, so that the compiler cannot load the method once before it.
        black_box(callee).call(a, b, c);
    }
}

fn dyn_callee() -> usize {
    <Nothing as Callee>::call as fn(&Nothing, u64, u64, u64) as *const () as usize
}
