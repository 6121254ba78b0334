//! The example whose subjects lie.

use crate::place::{Place, example};
use std::path::Path;
use std::process::Command;

fn run_with_option(place: &Place, liars: &Path, option: &str) -> Command {
    let mut command = place.program(liars);
    command.args(["--bench", option]);
    command
}

#[test]
fn each_lie_ends_its_case_and_leaves_no_number() {
    let Some(liars) = example("liars") else { return };
    let place = Place::new();
    let lies = [
        ("inlined", "the call was inlined or skipped"),
        ("optimised-away", "optimised away"),
        ("remembered", "the kernel was not entered as claimed"),
        ("panics", "out of patience"),
    ];
    let mut ended = place.end(run_with_option(&place, &liars, "--color=never"));
    if ended.output.contains("FAILED liars/honest") {
        ended = place.end(run_with_option(&place, &liars, "--color=never")); // another process used the CPU
    }
    ended.says(1, &["1 measured, 0 skipped, 4 failed"]);
    for (name, sentence) in lies {
        let line = ended.output.lines().find(|line| line.starts_with(&format!("FAILED liars/{name}:")));
        assert!(line.is_some_and(|line| line.contains(sentence)), "{name}: {ended:?}");
        assert!(!place.home().join("liars").join(name).join("new/estimates.json").exists(), "{name}");
    }
    let saved: Vec<_> = place.files("estimates.json");
    assert!(
        !saved.is_empty() && saved.iter().all(|file| file.starts_with(place.home().join("liars/honest")))
    );
    place.is_tidy();
}

#[test]
fn what_criterion_would_panic_at_is_refused_in_a_sentence() {
    let Some(liars) = example("liars") else { return };
    let place = Place::new();
    for option in
        ["--sample-size=3", "--warm-up-time=0", "--confidence-level=2", "--color=x", "--load-baseline=a"]
    {
        // The sentence on `--load-baseline` names `--baseline`.
        let named = option.split('=').next().unwrap().replace("load-", "");
        place.end(run_with_option(&place, &liars, option)).refuses(&[&named]);
    }
}

#[test]
fn a_quick_run_asks_every_claim() {
    let Some(liars) = example("liars") else { return };
    let place = Place::new();
    place
        .end(run_with_option(&place, &liars, "--quick"))
        .says(1, &["1 measured, 0 skipped, 4 failed", "no number to keep"]);
}
