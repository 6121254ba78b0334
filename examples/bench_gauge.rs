//! A bench with a figure of its own, averaged and shown below the table: the comparisons of a search.

use syscost::{Case, Group};

fn cases() -> Vec<Case> {
    vec![Case::prepared("search", "a search from the front, in 1000 numbers", |preparation| {
        let comparisons = preparation.gauge("comparisons", "");
        let numbers: Vec<u64> = (0..1_000).collect();
        let mut wanted = numbers.clone().into_iter().cycle();
        move || {
            let key = wanted.next();
            let at = numbers.iter().position(|number| Some(*number) == key);
            comparisons.note(at.map_or(numbers.len(), |at| at + 1) as f64);
            at
        }
    })]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_gauge", include_str!("bench_gauge.rs"), cases)])
}
