//! Loops that differ between the architectures in the names of their instructions only.
//!
//! # Invariants
//!
//! * **PURE**, **RING**: as in the file of the architecture that uses them.

/// Defines the loops of known work from the instructions that end a turn, add, multiply and load.
macro_rules! chain_functions {
    (turn $($turn:literal),*; add $add:literal; multiply $multiply:literal; load $load:literal) => {
        /// `n` turns of an empty loop. Aligned, so that the loop's place in the binary does not decide its speed.
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

        /// `n` additions of two registers, each waiting for the one before: one core cycle each. Not an addition
        /// of a constant, which newer cores fold while renaming registers and which would read as 17 GHz.
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

        /// `n` multiplications, each waiting for the one before: three core cycles each on every x86-64 core
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

        /// `steps` loads, each from the address that the one before it has loaded, with neither index nor
        /// offset, which cost a cycle more on some cores. Returns the last address.
        ///
        /// # Safety
        /// RING: from `from` on, for as many words as there are steps.
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
