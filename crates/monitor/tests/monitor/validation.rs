//! `syscost validate` confirms the results of its functions.

use crate::place::Place;
use serde_json::Value;
use std::process::Output;

fn syscost(place: &Place, words: &[&str]) -> Output {
    place.syscost(words).output().unwrap()
}

/// The output of a successful run.
fn answer(place: &Place, words: &[&str]) -> String {
    let output = syscost(place, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The sentence of a refusal, with exit code 2.
fn refusal(place: &Place, words: &[&str]) -> String {
    let output = syscost(place, words);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn validate_compares_counters_with_known_work_and_gives_each_a_verdict() {
    let place = Place::new();
    let found: Value = serde_json::from_str(&answer(&place, &["validate", "--json", "c7", "C5"])).unwrap();
    let rows = found.as_array().unwrap();
    let rows_of = |name: &str| rows.iter().filter(|row| row["experiment"] == name).collect::<Vec<_>>();
    assert_eq!(rows_of("C5").len(), 3, "{found}");
    assert!(rows_of("C5").iter().all(|row| row["verdict"] == "passed"), "{found}");
    assert_eq!((&rows_of("C5")[1]["expected"], &rows_of("C5")[1]["found"]), (&"10".into(), &"10".into()));
    let faults = rows_of("C7");
    assert!(faults.iter().any(|row| row["found"] == "1000" && row["verdict"] == "passed"), "{found}");
    // Without a disk, or without `ps`, a row says so and does not count as passed.
    for row in faults.iter().filter(|row| row["verdict"] != "passed") {
        assert!(row["verdict"] == "not judged" && row["why"].is_string(), "{row}");
    }
    let table = answer(&place, &["validate", "C5"]);
    assert!(table.lines().count() == 3 && table.lines().all(|line| line.split('\t').count() == 7), "{table}");
}

#[test]
fn validate_lists_its_valid_arguments() {
    let place = Place::new();
    for (arguments, expected) in [
        (["validate", "C9"], "C1 to C8"),
        (["validate", "--samples=9"], "10..=10000"),
        (["validate", "--sample"], "--samples"),
        (["validate", "--interval=0.05"], "0.1 to 10"),
    ] {
        let sentence = refusal(&place, &arguments);
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}
