//! Several copies that measure at the same time.

use crate::place::{Place, alone};
use crate::process;
use nix::sys::signal::Signal;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// Whether this process may use two CPUs.
fn has_two_cpus() -> bool {
    let has_two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !has_two {
        print_skipped("two copies need two CPUs");
    }
    has_two
}

/// The newest run of two copies.
fn record_of_two(place: &Place) -> serde_json::Value {
    let runs = place.path().join("criterion-2-copies/syscost/runs");
    let file = crate::place::files(&runs, ".json").pop().expect("a run was stored");
    let report = place.syscost(&["report", file.to_str().unwrap(), "--format", "json"]).output().unwrap();
    serde_json::from_slice(&report.stdout).unwrap()
}

#[test]
fn two_copies_have_a_sum_and_an_efficiency_and_a_place_of_their_own() {
    if !has_two_cpus() {
        return;
    }
    let place = Place::new();
    let words = ["^syscall/getppid$|^scale/open|^ping_pong/pipe-processes/(same|cross)-cpu$", "-P", "2"];
    let Some(ended) = place.succeeds(|| place.run(&words)) else { return };
    ended.says(0, &["syscall/getppid: sum ", "alone ", "efficiency ", "leave out -P"]);
    let record = record_of_two(&place);
    let syscall = record["groups"].as_array().unwrap().iter().find(|group| group["name"] == "syscall");
    let version = syscall.unwrap()["version"].as_str().unwrap();
    assert!(version.ends_with(" by 2 copies"), "{version}");
    assert!(!place.home().join("syscost/runs").exists(), "a run of one process");
    place.is_tidy();
}

#[test]
fn more_copies_than_cpus_are_refused_with_what_to_do() {
    let place = Place::new();
    let ended = place.end(place.run(&["^syscall/getppid$", "-P", "60000"]));
    ended.says(2, &["-P 60000: expected at most", "take fewer copies"]);
}

#[test]
fn a_killed_copy_costs_its_case_and_no_other_group() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.run(&["known_work|call/u64/3", "--scale", "default", "-P", "2"]));
    let measuring = process::one_measuring(&place, "known_work");
    std::thread::sleep(Duration::from_millis(100));
    process::send(measuring, Signal::SIGKILL);
    running.end().says(1, &["FAILED known_work/", "ended early (signal: 9 (SIGKILL))"]);
    assert_eq!(record_of_two(&place)["groups"][1]["cases"][0]["id"], "call/u64/3");
    place.is_tidy();
}

#[test]
fn a_signal_ends_all_copies() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.run(&["known_work|call/u64", "--scale", "default", "-P", "2"]));
    process::one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM", "and are kept"]);
    place.is_tidy();
}
