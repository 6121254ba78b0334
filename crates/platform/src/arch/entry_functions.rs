//! The entry into the kernel: once, and in loops that begin a line of the instruction cache and fit into it.
//!
//! The address of a loop changes the cost of the *kernel*: on Zen 4 (with safe returns and retpolines) all work of the kernel took
//! 30 to 50 % longer if the branch back lay in another line than the entry before it, or ended its line. Which processes were
//! affected depended on the page that each happened to get.
//!
//! # Invariants
//!
//! * **ENTRY**, **PURE**: as in the file of the architecture that uses them.

/// Defines `syscall0` to `syscall6`. Parameters: the instruction that enters; names for the number, the first argument and the
/// return value; their operands without and with the argument; the registers of the other arguments; the overwritten registers.
macro_rules! entry_functions {
    (@call $(#[$text:meta])* $name:ident($($parameter:ident: $type:ty),*), [$($unpack:tt)*], $answer:ident,
     $enter:literal, [$($operand:tt)*] [$($register:tt $value:ident),*] [$($lost:tt),*]) => {
        $(#[$text])*
        #[inline(always)]
        pub unsafe fn $name($($parameter: $type),*) -> i64 {
            let $answer;
            $($unpack)*
            // SAFETY: ENTRY, promised by the caller.
            unsafe {
                asm!($enter, $($operand)*, $(in($register) $value,)* $(out($lost) _,)* options(nostack));
            }
            $answer
        }
    };
    ($enter:literal; $number:ident, $a:ident, $answer:ident; none $none:tt; first $first:tt;
     rest $b:tt, $c:tt, $d:tt, $e:tt, $f:tt; lost $lost:tt) => {
        entry_functions! { @call
            /// Enters the kernel with no argument.
            ///
            /// # Safety
            /// ENTRY: the call must not write to memory or end the process in a way that the caller does not expect.
            syscall0($number: i64), [], $answer, $enter, $none [] $lost
        }
        entry_functions! { @call
            /// Enters the kernel with one argument.
            ///
            /// # Safety
            /// ENTRY: see [`syscall0`]; the argument must be what that call expects.
            syscall1($number: i64, $a: usize), [], $answer, $enter, $first [] $lost
        }
        entry_functions! { @call
            /// Enters the kernel with two arguments.
            ///
            /// # Safety
            /// ENTRY: see [`syscall1`].
            syscall2($number: i64, $a: usize, b: usize), [], $answer, $enter, $first [$b b] $lost
        }
        entry_functions! { @call
            /// Enters the kernel with four arguments (calls that take three ignore the last).
            ///
            /// # Safety
            /// ENTRY: see [`syscall1`].
            syscall4($number: i64, $a: usize, b: usize, c: usize, d: usize), [], $answer, $enter, $first [$b b, $c c, $d d] $lost
        }
        entry_functions! { @call
            /// Enters the kernel with six arguments, the most that it takes.
            ///
            /// # Safety
            /// ENTRY: see [`syscall1`].
            syscall6($number: i64, arguments: [usize; 6]), [let [$a, b, c, d, e, f] = arguments;], $answer, $enter,
            $first [$b b, $c c, $d d, $e e, $f f] $lost
        }
    };
}

/// Defines the loops of entries. Parameters: the instruction that enters and the registers that it overwrites; the instructions
/// that set the number and the first argument; the registers of the number and the arguments; the instructions that keep the
/// lowest and highest return value, copy a return value to the first argument, and end a turn. `$same` is for loops with the same
/// arguments in each turn: the operand of the first argument, the instruction that sets it again, and the overwritten registers.
macro_rules! entry_loops {
    (@loop $(#[$text:meta])* [$($danger:tt)?] fn $name:ident, $enter:literal, $number:literal,
     [$n:tt, $a:tt, $b:tt, $c:tt, $d:tt, $e:tt, $f:tt], [$same:tt $($again:literal)?; $($lost:tt),*], $($turn:literal),*) => {
        $(#[$text])*
        #[inline(never)]
        pub $($danger)? fn $name(number: i64, arguments: [usize; 6], n: u64) -> Answers {
            let Answers { mut lowest, mut highest } = Answers::default();
            let [a, b, c, d, e, f] = arguments;
            if n > 0 {
                // SAFETY: ENTRY, promised by the caller; without an entry PURE.
                unsafe {
                    asm!(".p2align 6", "2:", concat!($number, "{number}"), $($again,)? $enter, $($turn,)*
                        in($same) a, low = inout(reg) lowest, high = inout(reg) highest, n = inout(reg) n => _,
                        number = in(reg) number, out($n) _, in($b) b, in($c) c, in($d) d, in($e) e, in($f) f,
                        $(out($lost) _,)* options(nostack));
                }
            }
            Answers { lowest, highest }
        }
    };
    ($enter:literal, lost [$($lost:tt),*], $number:literal, $first:literal, [$n:tt, $a:tt, $b:tt, $c:tt, $d:tt, $e:tt, $f:tt],
     $same:tt; low $($low:literal),*; high $($high:literal),*; next $($next:literal),*; answer $($answer:literal)?;
     turn $($turn:literal),*) => {
        entry_loops! { @loop
            /// Enters the kernel `n` times with the same number and arguments.
            ///
            /// # Safety
            /// ENTRY: see [`syscall1`], every time.
            [unsafe] fn repeat_syscall, $enter, $number, [$n, $a, $b, $c, $d, $e, $f], $same, $($low,)* $($high,)* $($turn),*
        }
        entry_loops! { @loop
            /// The loop of [`repeat_syscall`] without the entry.
            [] fn repeat_no_syscall, "", $number, [$n, $a, $b, $c, $d, $e, $f], $same, $($low,)* $($high,)* $($turn),*
        }

        /// Enters the kernel twice in each of `n` turns. Each entry has a number and a first argument of its own; both share
        /// two more arguments. Returns the lowest return value of each.
        ///
        /// # Safety
        /// ENTRY: see [`syscall1`], every time.
        #[inline(never)]
        pub unsafe fn repeat_two_syscalls(calls: [(i64, usize); 2], shared: [usize; 2], n: u64) -> [i64; 2] {
            let [mut low, mut next_low] = [i64::MAX; 2];
            let [(number, first), (next_number, next_first)] = calls;
            if n > 0 {
                // SAFETY: ENTRY, promised by the caller.
                unsafe {
                    asm!(".p2align 6", "2:", concat!($number, "{number}"), concat!($first, "{first}"), $enter, $($low,)*
                        concat!($number, "{next_number}"), concat!($first, "{next_first}"), $enter, $($next,)* $($turn,)*
                        number = in(reg) number, first = in(reg) first, next_number = in(reg) next_number,
                        next_first = in(reg) next_first, low = inout(reg) low, next_low = inout(reg) next_low,
                        n = inout(reg) n => _, out($n) _, out($a) _, in($b) shared[0], in($c) shared[1],
                        $(out($lost) _,)* options(nostack));
                }
            }
            [low, next_low]
        }

        /// Enters the kernel twice in each of `n` turns: with `number` and up to four arguments, then with `next` and the first
        /// entry's return value as argument. Returns the lowest return value of each.
        ///
        /// # Safety
        /// ENTRY: see [`syscall1`], every time.
        #[inline(never)]
        pub unsafe fn repeat_syscall_on_answer(number: i64, arguments: [usize; 4], next: i64, n: u64) -> [i64; 2] {
            let [mut low, mut next_low] = [i64::MAX; 2];
            let [a, b, c, d] = arguments;
            if n > 0 {
                // SAFETY: ENTRY, promised by the caller.
                unsafe {
                    asm!(".p2align 6", "2:", concat!($number, "{number}"), concat!($first, "{a}"), $enter, $($low,)*
                        $($answer,)? concat!($number, "{next}"), $enter, $($next,)* $($turn,)* number = in(reg) number,
                        next = in(reg) next, a = in(reg) a, low = inout(reg) low, next_low = inout(reg) next_low,
                        n = inout(reg) n => _, out($n) _, out($a) _, in($b) b, in($c) c, in($d) d,
                        $(out($lost) _,)* options(nostack));
                }
            }
            [low, next_low]
        }
    };
}
