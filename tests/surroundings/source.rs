//! Counters and clocks that return no value or a wrong one, by preloaded libraries of `fixtures/field`; and a witness that is
//! refused.

use crate::place::Place;
use crate::sandbox::forbidding;
use std::path::PathBuf;
use std::process::Command;
use syscost_platform::testing::print_skipped;

const CASE: [&str; 2] = ["known_work/add", "--exact"];

/// The library that `cc` builds from this file of `fixtures/field`.
fn library(place: &Place, name: &str) -> Option<PathBuf> {
    let source = format!("{}/fixtures/field/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let library = place.path().join(name).with_extension("so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    if made.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    print_skipped("there is no cc, or it makes no shared library");
    None
}

/// A run with this library, and with these variables.
fn preloaded(place: &Place, library: &PathBuf, variables: &[(&str, &str)], words: &[&str]) -> Command {
    let mut command = place.run(&[&CASE[..], words].concat());
    command.env("LD_PRELOAD", library).envs(variables.iter().copied());
    command
}

#[test]
fn a_counter_that_does_not_count_known_work_is_refused() {
    let place = Place::new();
    let Some(mute) = library(&place, "mute_counter") else { return };
    for (kind, sentence) in [
        ("mute", "cannot be counted here"),
        ("shared", "was counted in 50.0 % of the time"),
        ("back", "went back from"),
    ] {
        for event in ["instructions", "cpu-cycles", "page-faults", "context-switches", "task-clock"] {
            let variables = [("COUNTER", kind), ("COUNTER_OF", "all")];
            let ended = place.end(preloaded(&place, &mute, &variables, &["--measure", event]));
            ended.refuses(&[event, sentence]);
        }
    }
    assert!(!place.home().exists(), "something was saved");
}

#[test]
fn a_counter_beside_the_time_that_does_not_count_is_a_remark() {
    let place = Place::new();
    let Some(mute) = library(&place, "mute_counter") else { return };
    let run = || preloaded(&place, &mute, &[("COUNTER", "mute")], &["--events", "instructions"]);
    let Some(_) = place.succeeds(run) else { return };
    let record = place.record().to_string();
    assert!(record.contains("instructions cannot be counted here"), "{record}");
}

#[test]
fn clocks_that_contradict_each_other_by_far_end_the_run_before_it_measures() {
    let place = Place::new();
    let Some(odd) = library(&place, "odd_clock") else { return };
    let alone = [("CLOCK_RATE", "10"), ("CLOCK_ONLY", "4")];
    let slow = [("CLOCK_RATE", "0.8"), ("SYSCOST_CLOCK", "monotonic-raw")];
    for variables in [&[("CLOCK_RATE", "10")][..], &alone, &slow] {
        let ended = place.end(preloaded(&place, &odd, variables, &[]));
        ended.says(1, &["the clocks contradict each other", "LD_PRELOAD"]);
        assert!(ended.output.is_empty(), "{ended:?}");
    }
    assert!(!place.home().exists(), "something was saved");
}

#[test]
fn clocks_that_contradict_each_other_a_little_mark_every_figure() {
    let place = Place::new();
    let Some(odd) = library(&place, "odd_clock") else { return };
    let variables = [("CLOCK_RATE", "1.03"), ("CLOCK_ONLY", "1")];
    let Some(ended) = place.succeeds(|| preloaded(&place, &odd, &variables, &[])) else { return };
    assert!(ended.output.contains("ns! ") && ended.output.contains("!: the clocks contradict"), "{ended:?}");
    let disputed = &place.record()["groups"][0]["clock"]["disputed"];
    assert_eq!(disputed[0], "CLOCK_MONOTONIC", "{disputed}");
    assert!(disputed[1].as_f64().is_some_and(|by| (by - 0.03).abs() < 0.005), "{disputed}");
}

#[test]
fn the_step_of_a_clock_is_noted_and_sets_the_uncertainty() {
    let place = Place::new();
    let Some(odd) = library(&place, "odd_clock") else { return };
    let Some(ended) = place.succeeds(|| preloaded(&place, &odd, &[("CLOCK_STEP", "1000")], &[])) else {
        return;
    };
    assert!(ended.output.contains("the kernel's clock moves in steps of 1000 ns"), "{ended:?}");
    let clock = place.record()["groups"][0]["clock"].clone();
    // One step in at least 40 ms.
    assert!(clock["uncertainty_ppm"].as_f64().is_some_and(|ppm| (10.0..1_000.0).contains(&ppm)), "{clock}");
}

#[test]
fn a_clock_of_long_steps_gives_long_batches_and_an_interval() {
    let place = Place::new();
    let Some(odd) = library(&place, "odd_clock") else { return };
    let variables = [("CLOCK_STEP", "20000"), ("SYSCOST_CLOCK", "monotonic-raw")];
    let ended = place.end(preloaded(&place, &odd, &variables, &[]));
    if !ended.output.contains("1 measured") {
        return print_skipped(&format!("this machine disturbs what it measures: {}", ended.output));
    }
    // Samples of a coarse clock may all be equal, and then Criterion writes no files.
    let without_files = ended.error.contains("Criterion could not write its files whole");
    assert_eq!(ended.code, Some(i32::from(without_files)), "{ended:?}");
    let record = place.record();
    let measured = &record["groups"][0]["cases"][0]["outcome"]["measured"];
    assert_eq!(record["groups"][0]["clock"]["step"], 20_000);
    let counted = measured["counted"].as_array().unwrap();
    assert!(counted.iter().all(|ticks| ticks.as_f64().unwrap() > 100.0 * 20_000.0), "{counted:?}");
    let [low, high] = ["low", "high"].map(|end| measured["median"][end].as_f64().unwrap());
    assert!(high > low, "{measured}");
}

#[test]
fn what_no_witness_has_seen_is_unwitnessed_and_strictly_not_enough() {
    let Some(starter) = forbidding(libc::SYS_ptrace) else { return };
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    let place = Place::new();
    let run = || place.run_by(&starter, &["syscall/getppid", "--exact"]);
    let Some(ended) = place.succeeds(run) else { return };
    ended.says(0, &["unwitnessed: ", "1 measured, 1 of them unwitnessed, 0 skipped, 0 failed"]);
    assert!(!ended.output.contains('✓'), "{ended:?}");
    let strict = || place.run_by(&starter, &["syscall/getppid", "--exact", "--strict"]);
    let Some(ended) = place.at_rest(strict) else { return };
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let mut report = place.syscost(&["report", "--format", "csv"]);
    let text = place.end({
        report.env("COLUMNS", "200");
        report
    });
    assert!(text.output.contains(",unwitnessed,"), "{text:?}");
}
