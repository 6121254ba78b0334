//! Comparing with what is missing, broken or of another unit; and saving at the same time.

use crate::place::{Place, TWO_GROUPS, alone};
use crate::stored;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// A place in which a baseline `a` was saved.
fn saved_as_a() -> Option<Place> {
    let place = Place::new();
    place.succeeds(|| place.run(&[TWO_GROUPS, "--save-baseline", "a"]))?;
    Some(place)
}

#[test]
fn a_saved_baseline_can_be_compared_with() {
    let Some(place) = saved_as_a() else { return };
    let compare = || place.run(&[TWO_GROUPS, "--baseline", "a"]);
    let Some(ended) = place.succeeds(compare) else { return };
    ended.says(0, &["3 measured", "change:", "known_work/add"]);
    place.is_tidy();
}

#[test]
fn a_missing_baseline_is_refused_before_anything_is_measured() {
    let place = Place::new();
    place.end(place.run(&[TWO_GROUPS, "--baseline", "a"])).refuses(&["no baseline a", "--save-baseline a"]);
    assert!(!place.home().exists());
    for name in ["../a", "new", ".a", ""] {
        place.end(place.run(&[TWO_GROUPS, "--save-baseline", name])).refuses(&["cannot name a baseline"]);
    }
    assert!(!place.home().exists());
}

#[test]
fn a_case_without_a_baseline_is_measured_all_the_same() {
    let place = Place::new();
    if place.succeeds(|| place.run(&["known_work", "--save-baseline", "a"])).is_none() {
        return;
    }
    let compare = || place.run(&[TWO_GROUPS, "--baseline", "a"]);
    let Some(ended) = place.at_rest(compare) else { return };
    ended.says(1, &["3 measured, 0 skipped, 0 failed", "call/u64/3 cannot be compared"]);
}

#[test]
fn a_truncated_file_of_criterions_is_named_and_costs_no_number() {
    let Some(place) = saved_as_a() else { return };
    let file = place.home().join("known_work/add/a/estimates.json");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let compare = || place.run(&[TWO_GROUPS, "--baseline", "a"]);
    let Some(ended) = place.at_rest(compare) else { return };
    ended.says(1, &["3 measured, 0 skipped, 0 failed", file.to_str().unwrap()]);
}

#[test]
fn files_at_which_criterion_would_hang_or_panic_are_named_and_cost_no_number() {
    let Some(place) = saved_as_a() else { return };
    let [pipe, short] = ["add/a/estimates.json", "multiply/a/sample.json"]
        .map(|name| place.home().join("known_work").join(name));
    std::fs::remove_file(&pipe).unwrap();
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    std::fs::write(&short, r#"{"sampling_mode":"Flat","iters":[1.0],"times":[1.0]}"#).unwrap();
    let compare = || place.run(&[TWO_GROUPS, "--baseline", "a"]);
    let Some(ended) = place.at_rest(compare) else { return };
    ended.says(1, &["3 measured, 0 skipped, 0 failed", pipe.to_str().unwrap(), short.to_str().unwrap()]);
    assert!(!ended.output.contains("could not write"), "{ended:?}");
    // Saving again replaces the damaged files.
    let Some(_) = place.succeeds(|| place.run(&[TWO_GROUPS, "--save-baseline", "a"])) else { return };
    assert!(pipe.is_file() && std::fs::read_to_string(&short).unwrap().len() > 200);
}

#[test]
fn a_baseline_of_another_unit_is_refused() {
    let Some(place) = saved_as_a() else { return };
    let file = place.home().join("syscost/baselines/a.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let other = stored::unsealed(&text).replace("\"unit\":\"ns\"", "\"unit\":\"page-faults\"");
    std::fs::write(&file, other).unwrap();
    place.end(place.run(&[TWO_GROUPS, "--baseline", "a"])).refuses(&["page-faults", "ns"]);
}

#[test]
fn a_damaged_record_of_a_baseline_is_named_and_left_alone() {
    let Some(place) = saved_as_a() else { return };
    let file = place.home().join("syscost/baselines/a.json");
    std::fs::write(&file, "{").unwrap();
    for words in [["--baseline", "a"], ["--save-baseline", "a"]] {
        let run = || place.run(&[TWO_GROUPS, words[0], words[1]]);
        let Some(ended) = place.at_rest(run) else { return };
        ended.says(1, &["3 measured", file.to_str().unwrap(), "damaged"]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"{");
}

#[test]
fn runs_at_the_same_time_in_one_home_lose_nothing() {
    let place = Place::new();
    let _alone = alone();
    let ids = |place: &Place| {
        let text = std::fs::read_to_string(place.home().join("syscost/baselines/a.json")).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let groups = records.flat_map(|record| record["groups"].as_array().unwrap().clone());
        groups.map(|group| group["cases"].as_array().unwrap().len()).sum::<usize>()
    };
    // Each run has its own output; all share one home.
    let run = |filter: &str| {
        let mut command = place.run(&[filter, "--save-baseline", "a"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let runs: Vec<_> = ["known_work", "call/u64/[0-2]", "call/u64/[0-2]"].into_iter().map(run).collect();
    let mut measured = true;
    for mut run in runs {
        measured &= run.wait().unwrap().success();
    }
    assert_eq!(place.files(".json").iter().filter(|f| f.parent().unwrap().ends_with("runs")).count(), 3);
    assert!(ids(&place) == 5 || !measured, "{}", ids(&place));
    place.is_tidy();
}

#[test]
fn each_record_of_a_session_is_kept_and_its_name_means_all_of_them() {
    let place = Place::new();
    for name in ["before", "before", "after"] {
        let record = || {
            let short = ["record", "--session", name, "--processes", "2", "--scale", "smoke", "known_work"];
            place.syscost(&short)
        };
        if place.succeeds(record).is_none() {
            return;
        }
    }
    place.end(place.syscost(&["baseline", "list"])).says(0, &["before.1", "before.2", "after.1"]);
    place.end(place.syscost(&["report", "before"])).says(0, &["known_work", "multiply"]);
    place
        .end(place.syscost(&["compare", "before", "after"]))
        .says(0, &["known_work/add", "known_work/multiply"]);
    let refused = place.end(place.syscost(&["record", "--session", "../before", "known_work"]));
    refused.refuses(&["cannot name a record"]);
}
