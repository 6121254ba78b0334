//! A history is pruned and imported by processes that are killed meanwhile; the file stays undamaged.

use crate::nights::{add, file, history, killed_after, pairs, twelve_nights};
use crate::place::{Place, alone};
use std::process::Stdio;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

#[test]
fn prune_prints_its_effect_and_removes_points_only_with_yes() {
    let place = Place::new();
    history(&place, &["prune", "--keep-last", "5"]).refuses(&["main.jsonl"]);
    twelve_nights(&place);
    history(&place, &["prune"]).refuses(&["--keep-last"]);
    let whole = std::fs::read(file(&place)).unwrap();
    history(&place, &["prune", "--keep-last", "5"])
        .says(0, &["7 points would be forgotten; --yes does it", "1 event is reported before, 0 after"]);
    assert_eq!(std::fs::read(file(&place)).unwrap(), whole);
    let copy = place.path().join("copy.jsonl");
    std::fs::write(&copy, &whole).unwrap();
    history(&place, &["prune", "--case", "group/[4-7]", "--yes"])
        .says(0, &["0 points and 48 ratios of others forgotten"]);
    history(&place, &["verify"]).says(0, &["12 sound points, 0 damaged"]);
    history(&place, &["show", "group/5"]).refuses(&["no point has a case group/5"]);
    history(&place, &["prune", "--weekly", "--before", "2026-09-28", "--yes"]).says(0, &["points forgotten"]);
    history(&place, &["prune", "--keep-last", "5", "--yes"]).says(0, &["points forgotten"]);
    history(&place, &["verify"]).says(0, &["5 sound points, 0 damaged"]);
    history(&place, &["import", copy.to_str().unwrap()]).says(0, &["7 of 12 points added"]);
    place.is_tidy();
}

#[test]
fn a_bridge_is_not_forgotten_and_the_ratios_stay() {
    let place = Place::new();
    twelve_nights(&place);
    let bridge = pairs(&place, 12, 0.05, "6.1.0-30");
    let words = ["add", bridge.to_str().unwrap(), "--reference", "v1", "--bridge-to", "v2"];
    history(&place, &words).says(0, &[]);
    for night in 13..16 {
        let today = pairs(&place, night, 0.01, "6.1.0-30");
        history(&place, &["add", today.to_str().unwrap(), "--reference", "v2"]).says(0, &[]);
    }
    let shown = |case: &str| history(&place, &["show", case]).output;
    let before = shown("group/0");
    history(&place, &["prune", "--keep-last", "2", "--yes"]).says(0, &["13 points forgotten"]);
    let after = shown("group/0");
    assert_eq!(after.lines().count(), 2, "{after}");
    assert!(before.ends_with(&after), "{before}\n{after}");
    history(&place, &["list"]).says(0, &["bridge to v2"]);
}

#[test]
fn a_prune_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let place = Place::new();
    twelve_nights(&place);
    let whole = std::fs::read(file(&place)).unwrap();
    let _alone = alone();
    for micros in (0..24).map(|step| 900 * step) {
        std::fs::write(file(&place), &whole).unwrap();
        let prune = place.syscost(&["history", "prune", "--keep-last", "4", "--yes"]);
        killed_after(Duration::from_micros(micros), prune);
        let verified = place.end_alone(place.syscost(&["history", "verify"]));
        let is_whole = ["12 sound points, 0 damaged", "4 sound points, 0 damaged"]
            .iter()
            .any(|n| verified.output.contains(n));
        assert!(is_whole, "{micros} us: {verified:?}");
    }
}

#[test]
fn two_importers_and_a_prune_at_once_lose_nothing() {
    let place = Place::new();
    twelve_nights(&place);
    let copy = place.path().join("copy.jsonl");
    std::fs::copy(file(&place), &copy).unwrap();
    history(&place, &["prune", "--keep-last", "1", "--yes"]).says(0, &["11 points forgotten"]);
    let _alone = alone();
    let import = || place.syscost(&["history", "import", copy.to_str().unwrap()]);
    let forget = || place.syscost(&["history", "prune", "--label", "no point has it", "--yes"]);
    let both = (0..4).flat_map(|_| [import(), forget()]);
    let running: Vec<_> = both.map(|mut command| command.stdout(Stdio::null()).spawn().unwrap()).collect();
    assert!(running.into_iter().all(|mut child| child.wait().unwrap().success()));
    place.end_alone(place.syscost(&["history", "verify"])).says(0, &["12 sound points, 0 damaged"]);
}

#[test]
fn an_import_that_is_killed_is_finished_by_the_next_one() {
    let place = Place::new();
    add(&place, &pairs(&place, 0, 0.0, "6.1")).says(0, &[]);
    let many = place.path().join("many.jsonl");
    let one = std::fs::read_to_string(file(&place)).unwrap();
    let invented = place
        .program("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/history/invent"))
        .args(["300", "40"])
        .arg(&many)
        .output();
    if !invented.is_ok_and(|output| output.status.success()) {
        return print_skipped("there is no python3 here");
    }
    let words = ["history", "import", many.to_str().unwrap()];
    let _alone = alone();
    let mut torn = 0;
    for millis in (0..12).map(|step| 6 * step) {
        std::fs::write(file(&place), &one).unwrap();
        killed_after(Duration::from_millis(millis), place.syscost(&words));
        let again = place.end_alone(place.syscost(&words));
        again.says(0, &["of 300 points added"]);
        let verified = place.end_alone(place.syscost(&["history", "verify"]));
        // An incomplete line is reported and loses no point.
        assert!(verified.output.contains("301 sound points"), "{millis} ms: {verified:?}");
        torn += usize::from(verified.code == Some(1));
    }
    println!("{torn} of 12 left a torn line");
}

#[test]
fn a_clock_that_went_back_is_reported_and_the_lines_keep_their_order() {
    let place = Place::new();
    for night in [0, 1, 2, 7, 3, 4, 5, 6] {
        add(&place, &pairs(&place, night, 0.0, "6.1")).says(0, &[]);
    }
    history(&place, &["verify"]).says(0, &["1 point began before the one above it", "8 sound points"]);
    history(&place, &["changes"]).says(0, &[]);
    let shown = history(&place, &["show", "group/0"]);
    assert!(shown.output.lines().nth(3).is_some_and(|line| line.contains("revision 7")), "{shown:?}");
}
