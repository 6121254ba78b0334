//! A bench of one operation by 1, 2 and more threads at once, which share what it owns.

use std::sync::Mutex;
use syscost::{Case, Group, in_threads};

fn cases() -> Vec<Case> {
    Case::over("threads", 1..=4, |threads| {
        in_threads("lock", "a lock taken and released", threads, |_| {
            let number = Mutex::new(0_u64);
            move || number.lock().map(|mut number| *number += 1).is_ok()
        })
    })
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_threads", include_str!("bench_threads.rs"), cases)])
}
