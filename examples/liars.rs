//! A bench target with operations that do not do what they claim, and one that does: each false claim ends its case
//! with a sentence and saves no number, the honest case is still measured, and the exit code is 1.
//!
//!     cargo run --release --example liars -- --bench

use std::hint::black_box;
use std::process::ExitCode;
use syscost::suite::call::operation as call;
use syscost::{Case, Claim, Group};

fn cases() -> Vec<Case> {
    vec![
        Case::looped("inlined", "a call that the compiler took away", call::control)
            .claim(Claim::Calls(call::U64[0].callee)),
        Case::looped("optimised-away", "a loop without turns", |n| {
            black_box(n);
        })
        .claim(Claim::Linear),
        Case::looped("remembered", "a system call answered from memory", |n| {
            for _ in 0..n {
                black_box(4711);
            }
        })
        .claim(Claim::Enters(vec![("getppid", syscost::libc::SYS_getppid)])),
        Case::looped("panics", "an operation that panics", |n| assert!(n < 4, "out of patience"))
            .claim(Claim::NeverEnters),
        Case::looped("honest", "getppid, entered each time", |n| {
            for _ in 0..n {
                black_box(std::os::unix::process::parent_id());
            }
        })
        .claim(Claim::Linear),
    ]
}

fn main() -> ExitCode {
    syscost::harness::main(&[Group::new("liars", include_str!("liars.rs"), cases)])
}
