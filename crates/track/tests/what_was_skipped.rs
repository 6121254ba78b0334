//! This is no test, but the last program that `cargo test` starts before the documentation tests. It prints the number of tests that
//! were skipped because something is missing on this machine, with a line for each reason.

use std::collections::{BTreeMap, BTreeSet};
use syscost_platform::testing::skipped_tests;

#[allow(clippy::print_stdout, reason = "its output is all that it is for")]
fn main() {
    // With `--list` a runner only lists the tests, so none was run.
    if std::env::args().any(|word| word == "--list") {
        return;
    }
    let skipped = skipped_tests();
    let tests: BTreeSet<&String> = skipped.iter().map(|(test, _)| test).collect();
    let mut reasons: BTreeMap<&String, usize> = BTreeMap::new();
    for (_, reason) in &skipped {
        *reasons.entry(reason).or_default() += 1;
    }
    println!("\n{} tests were skipped on this machine", tests.len());
    for (reason, times) in reasons {
        println!("  {reason}{}", if times > 1 { format!(" ({times} times)") } else { String::new() });
    }
}
