//! # What is timed
//! Work whose cost is known beforehand: chains of dependent additions and of dependent multiplications in registers,
//! per operation. They test the clock itself. No kernel can change their cost, so if they differ
//! between two kernels, the comparison is at fault.
//!
//! # What is not
//! The loop around the chain: each iteration has 64 operations, and its own counting runs in parallel to them. The
//! intercept of the fitted line holds the rest.
//!
//! # How we know
//! A witness counts 66 instructions for 64 operations. Time grows in proportion to their number.
//!
//! # What fools it
//! Adding a constant: recent cores fold it while renaming registers, and the result would read as 17 GHz. These chains
//! add and multiply two registers. A core frequency that changes during the case: it is inferred from this same chain
//! before and after every case of every group, and kept in the record.
//!
//! # Reading the number
//! An addition takes one core cycle, so its inverse is the core's frequency, also in a guest without a PMU. A
//! multiplication takes three cycles on every x86-64 core since 2008, and three to five on AArch64. If their ratio is
//! not three on x86-64, distrust the clock, or look for another program on the sibling hyper-thread.
//!
//! # Source
//! Fog, *Instruction tables* (ADD r,r: latency 1; IMUL r,r: latency 3). uarch-bench and nanoBench also infer the
//! frequency from a chain of known latency.

use crate::case::{Case, Claim, Group};
use crate::platform::arch;

pub const GROUP: Group = Group::new("known_work", include_str!("known_work.rs"), cases);

fn cases() -> Vec<Case> {
    vec![
        Case::looped("add", "a register addition that waits for the one before", add)
            .claim(Claim::Executes(1.0))
            .claim(Claim::Linear)
            .predict(1.0, 0.0, "latency of an addition"),
        Case::looped("multiply", "a register multiplication that waits for the one before", multiply)
            .claim(Claim::Executes(1.0))
            .claim(Claim::Linear)
            .predict(3.0, 0.0, "latency of a multiplication"),
    ]
}

fn add(n: u64) {
    std::hint::black_box(arch::add_chain(n));
}

fn multiply(n: u64) {
    std::hint::black_box(arch::multiply_chain(n));
}
