//! Loops around a call that does nothing, one for each arity and type.
//!
//! The callee is `syscost_return`, one `ret` written in assembly ([`crate::platform::arch`]). The compiler cannot
//! see into it, so it must place every argument as the calling convention demands, in every iteration: that is the cost
//! that is measured. One symbol serves every signature, because it reads no argument.
//!
//! # Invariants
//!
//! * **RETURNS**: `syscost_return` accesses neither registers nor memory, so it may be called with any arguments and by any
//!   signature without a result.
//! * **LIBC**: the C library's function reads its argument registers only, and returns.
#![allow(unsafe_code)]
#![allow(clashing_extern_declarations)] // one symbol, several signatures: see above

use std::hint::black_box;

/// Sixteen bytes: passed in two registers by the calling conventions of both architectures.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes16([u64; 2]);

/// Sixty-four bytes: too many for registers, so the caller copies them to memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes64([u64; 8]);

/// Defines a loop of `n` direct calls with these arguments.
macro_rules! direct {
    ($name:ident: $($argument:ident $type:ty = $value:expr),*) => {
        #[inline(never)]
        fn $name(n: u64) {
            unsafe extern "C" {
                #[link_name = "syscost_return"]
                #[allow(improper_ctypes)]
                fn callee($($argument: $type),*);
            }
            $(let $argument: $type = black_box($value);)*
            for _ in 0..n {
                // SAFETY: RETURNS.
                unsafe { callee($($argument),*) };
            }
        }
    };
}

/// Defines the nine loops of one type, arity 0 to 8, and their table.
macro_rules! arities {
    ($table:ident $zero:ident $one:ident $two:ident $three:ident $four:ident $five:ident $six:ident $seven:ident
     $eight:ident: $a:ty, $b:ty, $c:ty, $d:ty, $e:ty, $f:ty, $g:ty, $h:ty) => {
        direct!($zero:);
        direct!($one: a $a = 1 as $a);
        direct!($two: a $a = 1 as $a, b $b = 2 as $b);
        direct!($three: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c);
        direct!($four: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c, d $d = 4 as $d);
        direct!($five: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c, d $d = 4 as $d, e $e = 5 as $e);
        direct!($six: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c, d $d = 4 as $d, e $e = 5 as $e,
            f $f = 6 as $f);
        direct!($seven: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c, d $d = 4 as $d, e $e = 5 as $e,
            f $f = 6 as $f, g $g = 7 as $g);
        direct!($eight: a $a = 1 as $a, b $b = 2 as $b, c $c = 3 as $c, d $d = 4 as $d, e $e = 5 as $e,
            f $f = 6 as $f, g $g = 7 as $g, h $h = 8 as $h);
        /// Loops of direct calls; the index is the number of arguments.
        pub const $table: [fn(u64); 9] = [$zero, $one, $two, $three, $four, $five, $six, $seven, $eight];
    };
}

arities!(U32 u32_0 u32_1 u32_2 u32_3 u32_4 u32_5 u32_6 u32_7 u32_8: u32, u32, u32, u32, u32, u32, u32, u32);
arities!(U64 u64_0 u64_1 u64_2 u64_3 u64_4 u64_5 u64_6 u64_7 u64_8: u64, u64, u64, u64, u64, u64, u64, u64);
arities!(F32 f32_0 f32_1 f32_2 f32_3 f32_4 f32_5 f32_6 f32_7 f32_8: f32, f32, f32, f32, f32, f32, f32, f32);
arities!(F64 f64_0 f64_1 f64_2 f64_3 f64_4 f64_5 f64_6 f64_7 f64_8: f64, f64, f64, f64, f64, f64, f64, f64);
arities!(MIXED mixed_0 mixed_1 mixed_2 mixed_3 mixed_4 mixed_5 mixed_6 mixed_7 mixed_8:
    u32, f64, u64, f32, u32, f64, u64, f32);

direct!(by_value_16: s Bytes16 = Bytes16([1, 2]));
direct!(by_value_64: s Bytes64 = Bytes64([1, 2, 3, 4, 5, 6, 7, 8]));

/// Loops of calls with a structure by value: 16 bytes are passed in registers, 64 in memory.
pub const STRUCT: [fn(u64); 2] = [by_value_16, by_value_64];

unsafe extern "C" {
    fn syscost_return();
    #[link_name = "syscost_return"]
    fn return_3(a: u64, b: u64, c: u64);
    /// A function of the shared C library without arguments: one `lea` and a `ret` in glibc.
    fn gnu_get_libc_version() -> *const libc::c_char;
}

/// Address of the callee, so that a witness can count its executions.
pub fn callee() -> usize {
    syscost_return as *const () as usize
}

/// The control: `n` iterations of the loop without a call. The empty assembly keeps the compiler from deleting it.
#[inline(never)]
pub fn control(n: u64) {
    for _ in 0..n {
        // SAFETY: RETURNS: there is no instruction in it.
        unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    }
}

/// `n` calls of three arguments through a pointer that the compiler cannot see through.
#[inline(never)]
pub fn pointer_3(n: u64) {
    let callee: unsafe extern "C" fn(u64, u64, u64) = black_box(return_3);
    let (a, b, c) = black_box((1u64, 2u64, 3u64));
    for _ in 0..n {
        // SAFETY: RETURNS.
        unsafe { callee(a, b, c) };
    }
}

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

/// `n` calls of three arguments through a table of methods.
#[inline(never)]
pub fn dyn_3(n: u64) {
    let callee: &dyn Callee = &Nothing;
    let (a, b, c) = black_box((1u64, 2u64, 3u64));
    for _ in 0..n {
        // Inside the loop, so that the compiler cannot load the method once before it.
        black_box(callee).call(a, b, c);
    }
}

/// Address of the method that [`dyn_3`] calls.
pub fn dyn_callee() -> usize {
    <Nothing as Callee>::call as fn(&Nothing, u64, u64, u64) as *const () as usize
}

/// `n` calls of the C library's `gnu_get_libc_version` through the procedure linkage table: a call to a
/// stub, and an indirect jump to the function in the shared object.
#[inline(never)]
pub fn plt_0(n: u64) {
    for _ in 0..n {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: LIBC.
        unsafe {
            std::arch::asm!("call {f}@PLT", f = sym gnu_get_libc_version, clobber_abi("C"));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: LIBC.
        unsafe {
            std::arch::asm!("bl {f}", f = sym gnu_get_libc_version, clobber_abi("C"));
        }
    }
}

/// Address of the C library's function.
pub fn plt_callee() -> usize {
    gnu_get_libc_version as *const () as usize
}
