//! A bench of one operation at several sizes. Below the table is the law by which its cost grows.

use syscost::{Case, Group};

fn cases() -> Vec<Case> {
    Case::over("numbers", [100, 400, 1_600, 6_400], |count| {
        Case::prepared("sort", format!("{count} numbers, copied and sorted"), move |_| {
            let numbers: Vec<u64> = (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            move || {
                let mut sorted = numbers.clone();
                sorted.sort();
                sorted
            }
        })
    })
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_sweep", include_str!("bench_sweep.rs"), cases)])
}
