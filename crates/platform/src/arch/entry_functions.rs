//! The entry into the kernel where the first argument's register is that of the answer, and the number has another.
//!
//! # Invariants
//!
//! * **ENTRY**: as in the file of the architecture that uses them.

/// Defines `syscall0` to `syscall6`: the instruction that enters, the register of the number, and those of the arguments.
macro_rules! entry_functions {
    ($enter:literal, $number:tt, [$a:tt, $b:tt, $c:tt, $d:tt, $e:tt, $f:tt]) => {
        /// Enters the kernel with no argument.
        ///
        /// # Safety
        /// ENTRY: the call must not write to memory or end the process in a way that the caller does not expect.
        #[inline(always)]
        pub unsafe fn syscall0(number: i64) -> i64 {
            let answer;
            // SAFETY: ENTRY, promised by the caller.
            unsafe { asm!($enter, inlateout($number) number => _, lateout($a) answer, options(nostack)) };
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
            unsafe { asm!($enter, inlateout($number) number => _, inlateout($a) a => answer, options(nostack)) };
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
                asm!($enter, inlateout($number) number => _, inlateout($a) a => answer, in($b) b, options(nostack))
            };
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
                asm!($enter, inlateout($number) number => _, inlateout($a) a => answer, in($b) b, in($c) c, in($d) d,
                    options(nostack));
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
                asm!($enter, inlateout($number) number => _, inlateout($a) a => answer, in($b) b, in($c) c, in($d) d,
                    in($e) e, in($f) f, options(nostack));
            }
            answer
        }
    };
}
