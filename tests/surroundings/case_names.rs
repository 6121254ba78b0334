//! Names of cases. Names that are ambiguous or cannot be stored are refused before anything is measured. Names that Criterion would
//! merge get separate files. Thousands of names work like one.

use crate::place::{Place, example, files};
use std::path::Path;
use std::process::Command;

/// The bench target with these names.
fn bench(place: &Place, names: &str, words: &[&str]) -> Option<Command> {
    let mut command = place.program(example("names")?);
    command.args(["--bench", "--color=never"]).args(words).env("NAMES", names);
    Some(command)
}

#[test]
fn names_that_cannot_be_told_apart_or_kept_are_refused_before_anything_is_measured() {
    let refused = [
        ("twice", &["two cases have the id names/a", "`the first`", "`the second`"][..]),
        ("groups", &["two groups have the name names"]),
        ("shared", &["names/x_y and names/x/y", "would share Criterion's directory names/x_y"]),
        ("too-long", &["names/xxx", "it has 306 bytes, of at most 200"]),
        ("line-feed", &["names/two lines", "U+000A"]),
    ];
    for (names, words) in refused {
        for mode in [&[][..], &["--test"]] {
            let place = Place::new();
            let Some(command) = bench(&place, names, mode) else { return };
            place.end(command).refuses(words);
            assert!(!place.home().exists());
        }
    }
}

/// The values of a file of Criterion's.
fn json(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn names_that_criterion_would_make_one_have_files_of_their_own() {
    let place = Place::new();
    for words in [["--save-baseline", "main"], ["--baseline", "main"]] {
        let Some(command) = bench(&place, "alike", &words) else { return };
        let ended = place.end(command);
        // A case may have been disturbed, but none was taken for another.
        assert!(
            !ended.output.contains("FAILED") && !ended.error.contains("write its files whole"),
            "{ended:?}"
        );
    }
    let saved: Vec<_> = files(&place.home(), "/main/benchmark.json");
    let mut ids: Vec<_> =
        saved.iter().map(|file| json(file)["full_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert!(ids.len() == saved.len() && saved.len() >= 4, "{saved:?}");
    let changes = files(&place.home(), "/change/estimates.json");
    for change in &changes {
        let ratio = json(change)["mean"]["point_estimate"].as_f64().unwrap();
        assert!(ratio.abs() < 5.0, "{}: {ratio}: the other case is ten times as slow", change.display());
    }
    assert!(changes.len() >= 4, "{changes:?}");
}

#[test]
fn five_thousand_cases_are_handed_to_one_process() {
    let place = Place::new();
    let Some(command) = bench(&place, "many", &["--test"]) else { return };
    // The test ends after some cases: it is enough that one process received all of them.
    let mut running = place.begin(command);
    running.until_it_says("names/manymanymanymanymanymanymanymany/19");
    running.kill();
}
