//! Invalid requests are refused before anything is measured.

use crate::place::{Place, TWO_GROUPS};
use syscost_platform::testing::print_skipped;

fn run_with_variable(
    place: &Place,
    variable: &str,
    value: impl AsRef<std::ffi::OsStr>,
) -> crate::place::Ended {
    let mut command = place.run(&[TWO_GROUPS]);
    command.env(variable, value);
    place.end(command)
}

#[test]
fn a_filter_without_a_match_is_refused_with_the_nearest_ids() {
    let place = Place::new();
    place.end(place.run(&["getpdi"])).refuses(&["\"getpdi\"", "syscall/getpid"]);
    place.end(place.run(&["call/u64/.*", "--exact"])).refuses(&["call/u64/"]);
    place.end(place.run(&["("])).refuses(&["not a regular expression", "--exact"]);
    let long = place.end(place.run(&[&"x".repeat(100_000)]));
    long.refuses(&["no case matches", "the nearest are"]);
    assert!(long.error.len() < 1_000, "{}", long.error.len());
}

#[test]
fn an_unknown_word_is_refused_with_the_known_ones() {
    let place = Place::new();
    run_with_variable(&place, "SYSCOST_SCALE", "bogus").refuses(&["SYSCOST_SCALE", "smoke, default or full"]);
    run_with_variable(&place, "SYSCOST_MEASURE", "bogus").refuses(&["no event bogus", "page-faults"]);
    for variable in ["SYSCOST_SCALE", "SYSCOST_MEASURE"] {
        let no_text = std::os::unix::ffi::OsStringExt::from_vec(vec![b'n', 0xff]);
        let no_text: std::ffi::OsString = no_text;
        run_with_variable(&place, variable, no_text).refuses(&[variable, "UTF-8"]);
    }
    run_with_variable(&place, "SYSCOST_TASK", "call").refuses(&["SYSCOST_TASK", "unset it"]);
    assert!(!place.home().exists(), "something was saved");
}

#[test]
fn a_machine_that_is_named_often_is_shown_once() {
    let place = Place::new();
    let names = vec!["csc501"; 5_000].join(",");
    let Some(_) = place.succeeds(|| place.run(&["known_work/add", "--exact"])) else { return };
    let ended = place.end(place.syscost(&["report", "--all", "--against", &names]));
    assert_eq!(ended.output.matches("csc501: ").count(), 1, "{ended:?}");
    assert_eq!(ended.output.matches("csc501").count(), 2, "a column and its source: {ended:?}");
}

#[test]
fn predictions_that_cannot_be_read_are_refused_by_place() {
    let place = Place::new();
    let file = place.path().join("mine.toml");
    for (text, words) in [
        ("[\"call/u64/3\"]\nhardware_ns = \"x\"", ["key `hardware_ns`", "expected"]),
        ("[\"call/u64/3\"\nhardware_ns = 1", ["line 1", "expected"]),
        ("\0", ["line 1", "expected"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let words = ["mine.toml", words[0], words[1]];
        run_with_variable(&place, "SYSCOST_PREDICTIONS", &file).refuses(&words);
        place.end(place.run(&[TWO_GROUPS, "--predictions", file.to_str().unwrap()])).refuses(&words);
    }
    assert!(!place.home().exists(), "something was saved");
}

#[test]
fn a_pmu_is_there_or_its_absence_is_a_sentence() {
    let place = Place::new();
    let ended = run_with_variable(&place, "SYSCOST_MEASURE", "cpu-cycles");
    if ended.code == Some(2) {
        ended.refuses(&["cpu-cycles"]);
    }
}

#[test]
fn counts_have_a_home_of_their_own() {
    let place = Place::new();
    if place.succeeds(|| place.run(&["known_work"])).is_none() {
        return;
    }
    let before = crate::place::files(&place.home(), "").into_iter().map(|f| (std::fs::read(&f).unwrap(), f));
    let before: Vec<_> = before.collect();
    let ended = run_with_variable(&place, "SYSCOST_MEASURE", "page-faults");
    if ended.code == Some(2) && ended.error.contains("perf_event") {
        print_skipped(&ended.error);
        return;
    }
    ended.says(0, &["3 measured"]);
    for (bytes, file) in before {
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{}", file.display());
    }
    let beside: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(beside.contains(&"criterion-page-faults".into()), "{beside:?}");
    assert!(!beside.contains(&"criterion-page-faults-page-faults".into()), "{beside:?}");
}
