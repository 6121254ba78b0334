//! The examples of the measuring techniques. Each runs to its end, proves what it shows, and ends with the number of the
//! slides beside ours, or with the reason for a different number.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]

use std::path::PathBuf;
use std::process::{Command, Output};
use syscost_platform::testing::print_skipped;

/// The path of an example in `target/PROFILE/examples/NAME`, beside the directory of this test.
fn built(name: &str) -> Option<PathBuf> {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent()?.parent()?.join("examples").join(name);
    built.is_file().then_some(built)
}

/// Runs an example, which must leave no file behind, and returns its output; `None` where it was not built.
fn run_example(name: &str, words: &[&str]) -> Option<Output> {
    let Some(example) = built(name) else {
        print_skipped(&format!("the example `{name}` was not built; `cargo test` builds it"));
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(example).args(words).current_dir(&directory).output().unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "it leaves something behind");
    Some(output)
}

/// The standard output of an example, which must succeed.
fn successful_output(name: &str, words: &[&str]) -> Option<String> {
    let output = run_example(name, words)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
    Some(text)
}

/// Checks that the output ends with a number of the slides and ours, and then with the known values.
fn ends_with_the_slide(text: &str) {
    let known = |line: &&str| line.starts_with("known: ") || line.starts_with("on a clock that");
    let mut last = text.lines().rev().skip_while(known);
    let slide = last.next().unwrap_or_default();
    assert!(slide.starts_with("slide ") && slide.contains("ours: "), "{text}");
}

/// Checks that an example confirms its known value, and fails once that value is moved out of the found interval.
fn assert_known_value_is_checked(name: &str, words: &[&str]) {
    let Some(text) = successful_output(name, words) else { return };
    if text.lines().any(|line| line.starts_with("skipped")) && !text.contains("known: ") {
        return;
    }
    assert!(text.lines().next_back().is_some_and(|last| last.starts_with("known: ")), "{text}");
    let Some(moved) = run_example(name, &[words, &["--moved"]].concat()) else { return };
    let error = String::from_utf8_lossy(&moved.stderr).into_owned();
    assert_eq!(moved.status.code(), Some(1), "{error}");
    assert!(error.contains("the truth lies outside"), "{error}");
}

#[test]
fn examples_with_a_known_part_confirm_it_and_fail_once_it_is_moved() {
    let known = ["symbol_table", "sampling", "seek_distance", "io_overlap", "control", "multiprogramming"];
    for name in known.into_iter().chain(["virtual_clock", "queue_model"]) {
        assert_known_value_is_checked(name, &["--known"]);
    }
}

#[test]
fn examples_that_count_confirm_their_counts_and_fail_once_these_are_moved() {
    for name in [
        "sampling",
        "symbol_table",
        "seek_distance",
        "queue_model",
        "hybrid",
        "instruction_frequency",
        "logical_time",
        "probe_point",
        "steering",
        "time_line",
    ] {
        assert_known_value_is_checked(name, &["--quick"]);
    }
}

/// The known values of a simulated machine prove nothing about a live monitor, so each of these also checks its live part.
#[test]
fn examples_check_their_live_measurements() {
    let live = [
        ("sampling", "known: the live load seen at random moments"),
        ("symbol_table", "known: fraction in the live symbol table"),
        ("seek_distance", "known: the sum of the seeks on the device"),
        ("queue_model", "known: the live server's service"),
        ("steering", "known: share of the time that the server is busy, by its schedule"),
    ];
    for (name, sentence) in live {
        let Some(text) = successful_output(name, &["--quick"]) else { continue };
        assert!(text.contains(sentence) || text.contains("skipped: "), "{name}: {text}");
    }
}

#[test]
fn the_compiler_is_right_and_its_fraction_is_estimated() {
    let Some(text) = successful_output("symbol_table", &["--quick"]) else { return };
    assert!(text.contains("all print what they must"), "{text}");
    // Two clocks, and for a correction two costs of a probe.
    let rows = [("truth", 2), ("naive", 2), ("corrected", 4), ("… over the uninstrumented whole", 4)];
    for (row, count) in rows {
        let found = text.lines().filter(|line| line.trim_start().starts_with(row)).count();
        assert_eq!(found, count, "{row}: {text}");
    }
    assert!(text.contains("by turns: ms of compiling, by a list of symbols and with an index"), "{text}");
    let faults = text.lines().find(|line| line.trim_start().starts_with("minor page faults"));
    assert_eq!(faults.map(|line| line.split_whitespace().count()), Some(6), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn a_profile_and_a_call_graph_of_the_compiler_are_written_to_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let Some(text) =
        successful_output("symbol_table", &["--quick", "--profile", file.path().to_str().unwrap()])
    else {
        return;
    };
    let profile = std::fs::read_to_string(file.path()).unwrap();
    let calls = |line: &str| line.split_whitespace().next().unwrap().parse::<u64>().unwrap();
    let arcs: Vec<_> = profile.lines().filter(|line| line.contains(" -> ")).skip(1).collect();
    assert!(arcs.iter().any(|line| line.ends_with("  expression -> term")), "{profile}");
    // The calls of a routine are the sum of the calls by its callers.
    let term = profile.lines().find(|line| line.ends_with(" %  term")).unwrap();
    let of_callers: u64 = arcs.iter().filter(|line| line.ends_with(" -> term")).map(|line| calls(line)).sum();
    assert_eq!(calls(term), of_callers, "{profile}{text}");
}

#[test]
fn a_synchronous_load_is_sampled_wrongly() {
    let Some(text) = successful_output("sampling", &["--quick"]) else { return };
    assert!(text.contains("at random, a step in the mean"), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn seek_distances_are_those_of_the_slide() {
    let Some(text) = successful_output("seek_distance", &[]) else { return };
    assert!(text.contains("traced             distances [30, 20, 40, 30, 20]"), "{text}");
    assert!(text.contains("ours: [30, 20, 40, 30, 20], [10, 10], [0, 0, 30, 0, 0, 20]\n"), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn two_flags_and_a_ring_capture_everything() {
    let Some(text) = successful_output("hybrid", &["--quick"]) else { return };
    let rows = text.lines().filter(|line| line.starts_with("two flags") || line.starts_with("ring"));
    assert!(rows.clone().all(|row| row.ends_with("100.0 %")), "{text}");
    assert!(rows.count() == 4 || text.contains("skipped: one CPU"), "{text}");
    let copied = text.contains("known: events captured through copies of memory")
        && text.contains("by turns: ns an event");
    assert!(copied || text.contains("skipped: "), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn every_instruction_is_counted_if_no_event_is_lost() {
    let Some(text) = successful_output("instruction_frequency", &[]) else { return };
    for way in ["in memory", "two flags", "ring"] {
        let row = text.lines().find(|line| line.starts_with(way));
        let whole = row.map(|row| row.split_whitespace().next_back() == Some("0"));
        assert!(whole.unwrap_or_else(|| text.contains("skipped: one CPU")), "{way}: {text}");
    }
    let kinds = text.lines().find(|line| line.starts_with("a loop of eight instructions"));
    let counts: Vec<_> = kinds.unwrap_or_default().split_whitespace().skip(5).collect();
    assert!(
        counts == ["500", "1000", "1000", "500", "500", "500"] || text.contains("skipped: instructions"),
        "{text}"
    );
    ends_with_the_slide(&text);
}
