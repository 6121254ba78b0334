//! Loops that differ between the architectures only in the names of their instructions.
//!
//! # Invariants
//!
//! * **PURE**, **RING**, **OWN-WORD**: as in the file of the architecture that uses them.

/// Defines the loops of known work. Parameters: the instructions that end a turn, add, multiply and load; the instructions
/// of the loop with its counter in memory and of the mixed loop, each with its additional operands.
macro_rules! chain_functions {
    (turn $($turn:literal),*; add $add:literal; multiply $multiply:literal; load $load:literal;
     memory [$($memory:literal),*] [$($memory_operand:tt)*]; mixed [$($mixed:literal),*] [$($mixed_operand:tt)*]) => {
        /// Runs `n` turns of an empty loop. It is aligned, so that its place in the binary does not decide its speed.
        #[inline(never)]
        pub fn register_loop(n: u64) {
            if n == 0 {
                return;
            }
            // SAFETY: PURE.
            unsafe {
                std::arch::asm!(".p2align 5", "2:", $($turn,)* n = inout(reg) n => _, options(nomem, nostack));
            }
        }

        /// Runs `n` turns of the loop that a C compiler makes of `for (i = 0; i < n; i++);` without optimisation: the
        /// counter lives in memory.
        #[inline(never)]
        pub fn memory_loop(n: u64) {
            let mut counter = 0u64;
            if n == 0 {
                return;
            }
            // SAFETY: OWN-WORD: `counter` is a local of this function.
            unsafe {
                std::arch::asm!(".p2align 5", "2:", $($memory,)* at = in(reg) &raw mut counter, n = in(reg) n,
                    $($memory_operand)* options(nostack));
            }
            std::hint::black_box(counter);
        }

        /// Runs `n` turns of eight instructions: a load, an addition, a store, an addition of vectors (on RISC-V of
        /// floating-point numbers), a constant, the system call `getpid`, a decrement and a jump. Returns the sum.
        #[inline(never)]
        pub fn mixed_loop(n: u64) -> u64 {
            let mut word = 0u64;
            if n == 0 {
                return word;
            }
            // SAFETY: OWN-WORD: `word` is a local of this function. The call has no arguments and writes no memory.
            unsafe {
                std::arch::asm!("2:", $($mixed,)* $($turn,)* at = in(reg) &raw mut word, n = inout(reg) n => _,
                    t = out(reg) _, $($mixed_operand)* options(nostack));
            }
            word
        }

        /// Runs `n` additions of two registers, each waiting for the previous one: one core cycle each. It adds no
        /// constant: newer cores fold such additions while renaming registers, and the result would read as 17 GHz.
        #[inline(never)]
        pub fn add_chain(n: u64) -> u64 {
            let mut sum = 1u64;
            let step = std::hint::black_box(3u64);
            // SAFETY: PURE.
            unsafe {
                in_blocks!(n, $add, sum = inout(reg) sum, step = in(reg) step, options(nomem, nostack));
            }
            sum
        }

        /// Runs `n` multiplications, each waiting for the previous one: three core cycles each on every x86-64 core
        /// since 2008 (Fog, *Instruction tables*), three or more on others.
        #[inline(never)]
        pub fn multiply_chain(n: u64) -> u64 {
            let mut product = 1u64;
            let factor = std::hint::black_box(3u64);
            // SAFETY: PURE.
            unsafe {
                in_blocks!(n, $multiply, p = inout(reg) product, factor = in(reg) factor, options(nomem, nostack));
            }
            product
        }

        /// Runs `steps` loads, each from the address that the previous one has loaded. They use neither index nor
        /// offset, which would cost a cycle more on some cores. Returns the last address.
        ///
        /// # Safety
        /// RING must hold for `steps` words from `from` on.
        #[inline(never)]
        pub unsafe fn chase(from: *const u8, steps: u64) -> *const u8 {
            let mut at = from;
            // SAFETY: RING, promised by the caller.
            unsafe {
                in_blocks!(steps, $load, at = inout(reg) at, options(readonly, nostack));
            }
            at
        }
    };
}
