//! Records that are kept, carried and joined.

use crate::place::{Ended, Place};
use crate::stored;
use serde_json::Value;

fn baseline(place: &Place, words: &[&str]) -> Ended {
    place.end(place.syscost(&[&["baseline"], words].concat()))
}

fn listed(place: &Place) -> Vec<Value> {
    serde_json::from_str(&baseline(place, &["list", "--json"]).output).unwrap()
}

/// A place with a baseline `flag` of Criterion's, of two runs, and a record `main` of the newer.
fn kept() -> Option<Place> {
    let place = Place::new();
    for filter in ["known_work", "call/u64/3"] {
        place.succeeds(|| place.run(&[filter, "--save-baseline", "flag"]))?;
    }
    baseline(&place, &["save", "main"]).says(0, &["records/main.syscost\t1\t1\t1"]);
    Some(place)
}

#[test]
fn a_record_is_carried_to_another_home_and_back() {
    let (Some(place), there) = (kept(), Place::new()) else { return };
    let file = place.path().join("carried.syscost");
    let file = file.to_str().unwrap();
    baseline(&place, &["export", "main", file]).says(0, &["carried.syscost"]);
    baseline(&place, &["export", "main", file]).says(2, &["never replaces another"]);
    baseline(&there, &["import", file]).says(0, &["records/main.syscost"]);
    baseline(&there, &["import", file]).says(2, &["never replaces another"]);
    baseline(&there, &["import", file, "--name", "again"]).says(0, &["records/again.syscost"]);
    let report = |at: &Place, name: &str| at.end(at.syscost(&["report", name, "--format", "csv"]));
    let shown = report(&there, "main");
    shown.says(0, &["call/u64/3"]);
    assert_eq!(report(&place, file).output, shown.output);
    let names: Vec<_> = listed(&there).iter().map(|kept| kept["name"].clone()).collect();
    assert_eq!(names, ["again", "main"]);
    baseline(&there, &["remove", "main"]).says(0, &[]);
    baseline(&there, &["remove", "main"]).says(2, &["no record main"]);
    there.is_tidy();
}

#[test]
fn what_criterions_flag_left_is_listed_as_unreplicated_with_each_run_of_it() {
    let Some(place) = kept() else { return };
    let list = listed(&place);
    let [main, flag] = list.try_into().unwrap();
    assert_eq!((&main["name"], &main["by"]), (&"main".into(), &"record".into()));
    assert_eq!((&flag["name"], &flag["by"]), (&"flag".into(), &"save-baseline".into()));
    assert_eq!((&flag["processes"], &flag["sessions"], &flag["cases"]), (&1.into(), &2.into(), &3.into()));
    assert_eq!(flag["replicated"], false);
    baseline(&place, &["remove", "flag"]).says(2, &["saved by --save-baseline", "by hand"]);
    baseline(&place, &["save", "whole", "flag"]).says(0, &["whole.syscost\t1\t2\t3"]);
    let lines = baseline(&place, &["list"]).output;
    assert!(lines.lines().any(|line| line.starts_with("flag\tsave-baseline\t")), "{lines}");
}

#[test]
fn runs_that_do_not_belong_together_are_not_joined() {
    let Some(place) = kept() else { return };
    baseline(&place, &["save", "twice", "main", "main"]).says(2, &["is there twice"]);
    baseline(&place, &["save", "main"]).says(2, &["never replaces another"]);
    baseline(&place, &["save", "../x"]).says(2, &["cannot name a record"]);
    baseline(&place, &["save", "x", "mian"]).says(2, &["no file mian; the nearest are main"]);
    let run = std::fs::read_dir(place.home().join("syscost/runs")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&run).unwrap();
    let counted = place.path().join("counted.json");
    // A record that was edited by hand has no seal.
    let other =
        stored::unsealed(&text).replace("\"ns\"", "\"page-faults\"").replace("\"run\":\"", "\"run\":\"x");
    std::fs::write(&counted, other).unwrap();
    let words = ["save", "mixed", "main", counted.to_str().unwrap()];
    baseline(&place, &words).says(2, &["agree in their unit", "page-faults"]);
    assert_eq!(listed(&place).len(), 2);
    place.is_tidy();
}

#[test]
fn a_damaged_record_is_named_and_hides_no_other() {
    let Some(place) = kept() else { return };
    let file = place.home().join("syscost/records/main.syscost");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(place.home().join("syscost/records/half.syscost"), &whole[..whole.len() / 4]).unwrap();
    let lines = baseline(&place, &["list"]);
    lines.says(2, &["half\tdamaged\t", "half.syscost: the head: expected whole gzip data", "main\trecord\t"]);
    place.end(place.syscost(&["report", "half"])).says(2, &["half.syscost"]);
    baseline(&place, &["import", file.to_str().unwrap(), "--name", "copy"]).says(0, &[]);
}

#[test]
fn without_a_record_the_message_says_how_to_make_one() {
    let place = Place::new();
    baseline(&place, &["list"]).says(0, &["`syscost record` makes one"]);
    baseline(&place, &["save", "main"]).says(2, &["there is no run", "syscost run"]);
    place
        .end(place.syscost(&["report", "main"]))
        .says(2, &["no file main", "`syscost record` makes a record"]);
    assert!(!place.home().exists());
}
