//! What makes two runs comparable: a run of another series is neither the last run nor in the history of a figure.

use crate::group::Group;
use crate::place::{Ended, Place, SYSCOST};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// The words with which the program reports that a run begins a series.
const OWN: &str = "begins a series of its own";
/// A filter of system calls that allows everything.
const FILTERED: [&str; 5] = [SYSCOST, "burden", "--additions", "50", "--"];

/// One short run, started by this command.
fn run(place: &Place, starter: &[&str], words: &[&str]) -> Option<Ended> {
    let words = [&["known_work/add", "--exact"], words].concat();
    let run =
        || -> Command { if starter.is_empty() { place.run(&words) } else { place.run_by(starter, &words) } };
    place.succeeds(run)
}

/// Makes three runs: a plain one, one started by this command or with these words, and a plain one again.
fn runs_around_another(starter: &[&str], words: &[&str]) -> Option<(Place, Ended)> {
    let place = Place::new();
    let first = run(&place, &[], &[])?;
    assert!(!first.error.contains(OWN), "it is the first of all: {first:?}");
    let other = run(&place, starter, words)?;
    let third = run(&place, &[], &[])?;
    assert!(!third.error.contains("last"), "the first run is its last one: {third:?}");
    place.is_tidy();
    Some((place, other))
}

#[test]
fn a_run_under_a_filter_of_system_calls_is_not_the_last_run() {
    let Some((place, filtered)) = runs_around_another(&FILTERED, &[]) else { return };
    filtered.says(0, &[OWN, "seccomp is ", "environment is SYSCOST_BURDEN=50"]);
    let name = place.record()["run"].as_str().unwrap().to_owned();
    let mut asked = place.program(FILTERED[0]);
    asked.args(&FILTERED[1..]).args([SYSCOST, "fingerprint", "--against", &name]);
    place.end(asked).says(0, &["seccomp", "another series"]);
}

#[test]
fn a_run_on_another_file_system_is_not_the_last_run() {
    if nix::sys::statfs::statfs("/dev/shm").is_err() {
        print_skipped("there is no /dev/shm");
        return;
    }
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let Some((_, other)) = runs_around_another(&[], &["--dir", memory.path().to_str().unwrap()]) else {
        return;
    };
    other.says(0, &[OWN, "scratch_filesystem is tmpfs", "scratch_device is none (tmpfs)"]);
}

#[test]
fn a_run_with_a_limit_of_memory_is_not_the_last_run() {
    let Some(group) = Group::of_memory(3 << 30) else { return };
    let starter = group.enter();
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    let Some((_, limited)) = runs_around_another(&starter, &[]) else { return };
    limited.says(0, &[OWN, "memory_limit is 3072 MiB"]);
}

#[test]
fn fixed_addresses_and_a_preloaded_library_are_series_of_their_own() {
    for (starter, words) in [
        (&["setarch", "-R"][..], "layout is fixed, and was random"),
        (&["env", "MALLOC_ARENA_MAX=1"], "environment is MALLOC_ARENA_MAX=1, and was none"),
    ] {
        if !Command::new(starter[0]).args(&starter[1..]).arg("true").status().is_ok_and(|end| end.success()) {
            print_skipped(&format!("`{}` does not work here", starter.join(" ")));
            return;
        }
        let Some((_, other)) = runs_around_another(starter, &[]) else { return };
        other.says(0, &[OWN, words]);
    }
}

#[test]
fn another_niceness_is_reported_beside_the_last_run() {
    let place = Place::new();
    let Some(_) = run(&place, &[], &[]) else { return };
    let Some(nicer) = run(&place, &["nice", "-n", "3"], &[]) else { return };
    nicer.says(0, &["was made otherwise", "nice is "]);
    assert!(!nicer.error.contains(OWN), "{nicer:?}");
}
