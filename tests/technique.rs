//! The examples of the techniques of measuring: each runs to its end, proves what it shows, and ends with the number of the
//! slides beside ours, or with the reason for another.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]

use std::path::PathBuf;
use std::process::Command;

/// Beside the directory of this test: `target/PROFILE/examples/NAME`.
fn built(name: &str) -> Option<PathBuf> {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent()?.parent()?.join("examples").join(name);
    built.is_file().then_some(built)
}

/// What an example says in a hurry; nothing where it was not built.
fn said(name: &str, words: &[&str]) -> Option<String> {
    let Some(example) = built(name) else {
        println!("skipped: the example `{name}` was not built; `cargo test` builds it");
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(example).args(words).current_dir(&directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "it leaves something behind");
    text.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
    Some(text)
}

/// The last line names the slide, and has a number of ours.
fn ends_with_the_slide(text: &str) {
    let last = text.lines().next_back().unwrap_or_default();
    assert!(last.starts_with("slide ") && last.contains("ours: "), "{text}");
}

#[test]
fn the_compiler_is_right_and_its_fraction_is_estimated() {
    let Some(text) = said("symbol_table", &["--quick"]) else { return };
    assert!(text.contains("all print what they must"), "{text}");
    // By either clock; a correction by either cost of a probe.
    let rows = [("truth", 2), ("naive", 2), ("corrected", 4), ("… over the uninstrumented whole", 4)];
    for (row, count) in rows {
        let found = text.lines().filter(|line| line.trim_start().starts_with(row)).count();
        assert_eq!(found, count, "{row}: {text}");
    }
    ends_with_the_slide(&text);
}

#[test]
fn a_load_in_step_is_seen_for_what_it_is_not() {
    let Some(text) = said("sampling", &["--quick"]) else { return };
    assert!(text.contains("at random, a step in the mean"), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn seek_distances_are_those_of_the_slide() {
    let Some(text) = said("seek_distance", &[]) else { return };
    assert!(text.contains("traced             distances [30, 20, 40, 30, 20]"), "{text}");
    assert!(text.ends_with("ours: [30, 20, 40, 30, 20], [10, 10], [0, 0, 30, 0, 0, 20]\n"), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn two_flags_and_a_ring_capture_everything() {
    let Some(text) = said("hybrid", &["--quick"]) else { return };
    let rows = text.lines().filter(|line| line.starts_with("two flags") || line.starts_with("ring"));
    assert!(rows.clone().all(|row| row.ends_with("100.0 %")), "{text}");
    assert!(rows.count() == 4 || text.contains("skipped: one CPU"), "{text}");
    ends_with_the_slide(&text);
}

#[test]
fn every_instruction_is_counted_where_nothing_is_lost() {
    let Some(text) = said("instruction_frequency", &[]) else { return };
    for way in ["in memory", "two flags", "ring"] {
        let row = text.lines().find(|line| line.starts_with(way));
        let whole = row.map(|row| row.split_whitespace().next_back() == Some("0"));
        assert!(whole.unwrap_or_else(|| text.contains("skipped: one CPU")), "{way}: {text}");
    }
    ends_with_the_slide(&text);
}
