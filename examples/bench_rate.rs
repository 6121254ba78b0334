//! Benches that say how much an iteration processes. The table shows a rate beside the time.

use syscost::{Case, Group};

const TEXT: &str = "the quick brown fox jumps over the lazy dog; ";

fn cases() -> Vec<Case> {
    let text = || std::hint::black_box(TEXT.repeat(100));
    vec![
        Case::prepared("spaces", "spaces counted in a text", move |_| {
            let text = text();
            move || text.bytes().filter(|byte| *byte == b' ').count()
        })
        .bytes(100 * TEXT.len() as u64),
        Case::prepared("words", "words counted in a text", move |_| {
            let text = text();
            move || text.split(' ').count()
        })
        .elements(100 * 9),
    ]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_rate", include_str!("bench_rate.rs"), cases)])
}
