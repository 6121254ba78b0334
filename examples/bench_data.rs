//! A bench of an operation that owns a map, made in the measuring process.

use std::collections::HashMap;
use syscost::{Case, Group};

fn cases() -> Vec<Case> {
    vec![Case::prepared("look-up", "a look-up in a map of 1000", |_| {
        let squares: HashMap<u64, u64> = (0..1_000).map(|n| (n, n * n)).collect();
        let mut keys = (0..1_000).cycle();
        move || keys.next().map(|key| squares[&key])
    })]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_data", include_str!("bench_data.rs"), cases)])
}
