//! Runs that share a home: none replaces another, even if their process ids are equal.

use crate::place::{Place, SYSCOST, alone};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// The names of the stored runs.
fn runs(place: &Place) -> Vec<String> {
    let name = |file: &std::path::PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    place.files(".json").iter().filter(|file| file.parent().unwrap().ends_with("runs")).map(name).collect()
}

fn own_processes(words: &[&str]) -> Vec<String> {
    ["unshare", "-pf", "--mount-proc"].iter().chain(words).map(ToString::to_string).collect()
}

fn can_unshare() -> bool {
    let own = own_processes(&["true"]);
    let can = Command::new(&own[0]).args(&own[1..]).status().is_ok_and(|status| status.success());
    if !can {
        print_skipped("no namespace of processes can be made here");
    }
    can
}

#[test]
fn containers_with_equal_process_ids_keep_all_their_runs() {
    if !can_unshare() {
        return;
    }
    let (place, _alone) = (Place::new(), alone());
    let words = [SYSCOST, "run", "known_work/add", "--exact"];
    let start = |_| {
        let own = own_processes(&words);
        let mut command = place.program(&own[0]);
        command.args(&own[1..]).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some() && !error.contains("the clock was set back"), "{error}");
    }
    let runs = runs(&place);
    assert_eq!(runs.len(), 4, "{runs:?}");
    for run in &runs {
        place.end_alone(place.syscost(&["report", run])).says(0, &[]);
    }
    place.is_tidy();
}

#[test]
fn overlapping_runs_are_not_reported_as_a_changed_clock() {
    let (place, _alone) = (Place::new(), alone());
    let mut long = place.begin(place.run(&["known_work", "--scale", "default", "--time", "8"]));
    crate::process::one_measuring(&place, "known_work");
    let short = place.run(&["known_work/add", "--exact"]).output().unwrap();
    assert!(long.child.try_wait().unwrap().is_none());
    let ended = long.end();
    let said = format!("{}{}", ended.error, String::from_utf8_lossy(&short.stderr));
    assert!(!said.contains("clock"), "{said}");
    assert_eq!(runs(&place).len(), 2);
}
