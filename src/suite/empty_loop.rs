//! # What is timed
//! One iteration of a loop with an empty body: counted in a register, counted in memory as an unoptimising compiler
//! writes it, and written in Rust with `black_box` around the index.
//!
//! # What is not
//! Setting up the counter and the mispredicted last branch: they cost the same for any number of iterations and end up
//! in the intercept of the line that is fitted through several numbers of iterations.
//!
//! # How we know
//! A witness steps through 64 iterations and counts the instructions: a loop that the compiler deleted has none. Time
//! grows in proportion to the number of iterations over three decades.
//!
//! # What fools it
//! The alignment of the loop (fixed here at 32 bytes). A core frequency that changes while the counter's does not
//! (observed: the core's frequency is inferred before and after each case). Memory renaming: recent cores keep the
//! counter of the memory loop in a register, invisibly to the program, so that it costs one or two cycles instead of
//! the five or six of a store followed by a load.
//!
//! # Reading the number
//! The register loop takes one core cycle an iteration on nearly every processor since 2006. Ticks are those of the
//! clock's counter, which usually runs slower than a boosted core: less than one tick an iteration is possible.
//!
//! # Source
//! CSC501 project report (2.9 ns an iteration, unoptimised C on an i5-2520M) and CSE 221 project report (6.5 cycles on
//! an i7-3770K): both measured the memory loop. Memory renaming: Fog, *The microarchitecture of Intel, AMD and VIA
//! CPUs*.

use crate::kit::contract::*;
use crate::platform::arch;

pub const GROUP: Group = Group::new("empty_loop", include_str!("empty_loop.rs"), cases)
    .headlines(&[Headline::new(5, "memory", "a turn of an unoptimised loop")]);

fn cases() -> Vec<Case> {
    vec![
        Case::looped("register", "a turn of a loop counted in a register", arch::register_loop)
            .claim(Claim::Executes(2.0))
            .claim(Claim::Linear)
            .predict(1.0, 0.0, "one taken branch a cycle"),
        Case::looped("memory", "a turn of an unoptimised loop, counted in memory", arch::memory_loop)
            .claim(Claim::Executes(3.0))
            .claim(Claim::Linear)
            .predict(1.0, 5.0, "a store forwarded to the load of the next turn"),
        Case::looped("rust", "a turn of `for i in 0..n { black_box(i) }`", rust_loop)
            .claim(Claim::Executes(3.0))
            .claim(Claim::Linear)
            .predict(1.0, 0.0, "the store to the stack is independent from turn to turn"),
    ]
}

#[inline(never)]
fn rust_loop(n: u64) {
    for i in 0..n {
        std::hint::black_box(i);
    }
}
