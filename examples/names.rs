//! A bench target whose names are a trap: the variable `NAMES` says which. Criterion makes one directory of several names, and
//! the kernel takes no variable that holds the ids of thousands of cases.
//!
//!     NAMES=alike cargo run --release --example names -- --bench

use std::hint::black_box;
use std::process::ExitCode;
use syscost::{Case, Claim, Group};

/// A loop of `work` multiplications a turn.
fn case(name: impl Into<String>, title: &str, work: u64) -> Case {
    Case::looped(name, title, move |n| {
        for turn in 0..n * work {
            black_box(turn.wrapping_mul(31));
        }
    })
    .claim(Claim::Linear)
}

fn cases() -> Vec<Case> {
    let long = |end: &str| format!("{}{end}", "x".repeat(64));
    match std::env::var("NAMES").unwrap_or_default().as_str() {
        "twice" => vec![case("a", "the first", 1), case("a", "the second", 100)],
        "shared" => vec![case("x_y", "one word", 1), case("x/y", "two parts", 100)],
        "too-long" => vec![case("x".repeat(300), "a long name", 1)],
        "line-feed" => vec![case("two\nlines", "a name of two lines", 1)],
        "many" => (0..5_000).map(|at| case(format!("{}/{at}", "many".repeat(8)), "one of many", 1)).collect(),
        _ => vec![
            case("x/y_z", "replaced", 1),
            case("x/y/z", "replaced", 10),
            case("x?y", "replaced", 100),
            case(long("a"), "cut", 10),
            case(long("b"), "cut", 100),
        ],
    }
}

fn main() -> ExitCode {
    let group = Group::new("names", include_str!("names.rs"), cases);
    let another = (std::env::var_os("NAMES").is_some_and(|names| names == "groups")).then_some(group);
    syscost::harness::main(&[Some(group), another].into_iter().flatten().collect::<Vec<_>>())
}
