//! # What is timed
//! Work whose price is known beforehand: chains of dependent additions and of dependent multiplications in
//! registers, per operation. They put the clock itself on trial, and no kernel can change them: in a
//! comparison of two kernels they are the canaries.
//!
//! # What is not
//! The loop around the chain: 64 operations stand in each turn, and the turn's own counting runs beside
//! them. The intercept of the fitted line holds what is left.
//!
//! # How we know
//! A witness counts 66 instructions for 64 operations. Time grows in proportion to their number.
//!
//! # What fools it
//! An addition of a constant: recent cores fold it while renaming registers and it would read as 17 GHz.
//! These chains add and multiply two registers. A core frequency that moves during the case: it is inferred
//! from this very chain before and after every case of every group, and kept in the record.
//!
//! # Reading the number
//! An addition is one core cycle, so its inverse is the core's frequency, also where a guest has no PMU. A
//! multiplication is three cycles on every x86-64 core since 2008, and three to five on AArch64. If their ratio
//! is not three there, distrust the clock, or look for the neighbour on the other hyper-thread.
//!
//! # Source
//! Fog, *Instruction tables* (ADD r,r: latency 1; IMUL r,r: latency 3). Inferring the frequency from a chain
//! of known latency is uarch-bench's and nanoBench's habit.

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
