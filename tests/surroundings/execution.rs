//! A case is measured by several processes, and the results of all of them are kept.

use crate::place::{Place, alone, example};
use serde_json::Value;
use syscost_platform::testing::print_skipped;

fn run(place: &Place, words: &[&str]) -> Value {
    let mut command = place.run(&[&["known_work", "--scale", "default"], words].concat());
    command.env_remove("SYSCOST_SCALE");
    place.begin(command).end();
    place.record()
}

/// The first case, if this machine let it be measured.
fn measured(record: &Value) -> Option<&Value> {
    let outcome = &record["groups"][0]["cases"][0]["outcome"]["measured"];
    if outcome.is_null() {
        print_skipped("the machine is too busy to measure known_work/add");
        return None;
    }
    Some(outcome)
}

fn length(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

#[test]
fn criterion_gets_the_samples_of_all_executions_in_their_order() {
    let _alone = alone();
    let place = Place::new();
    let record = run(&place, &["--save-baseline", "a"]);
    let Some(measured) = measured(&record) else { return };
    let (executions, counted) = (length(&measured["executions"]), length(&measured["counted"]));
    let disturbed = length(&measured["left_out"]);
    assert!(executions + disturbed >= 2, "{measured}");
    // The operation is short, and so are its samples.
    assert_eq!(counted, 20 * executions);
    let file = place.home().join("known_work/add/a/sample.json");
    let sample: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(length(&sample["times"]), counted);
    let hz = record["groups"][0]["clock"]["hz"].as_f64().unwrap();
    for at in [0, counted / 2, counted - 1] {
        let of = |list: &Value| list[at].as_f64().unwrap();
        let criterions = of(&sample["times"]) / of(&sample["iters"]);
        let ours = of(&measured["counted"]) / of(&measured["iterations"]) * 1e9 / hz;
        assert!((criterions / ours - 1.0).abs() < 1e-9, "sample {at}: {criterions} and {ours}");
    }
    let at: Vec<_> =
        measured["executions"].as_array().unwrap().iter().map(|e| e["at"].as_f64().unwrap()).collect();
    assert!(at.is_sorted() && at[0] > 0.0, "{at:?}");
}

#[test]
fn a_second_run_knows_the_first() {
    let _alone = alone();
    let place = Place::new();
    let first = run(&place, &[]);
    let second = run(&place, &[]);
    let (Some(first), Some(second)) = (measured(&first), measured(&second)) else { return };
    let (Some(figure), Some(next)) =
        (first["quiet"]["figure"]["estimate"].as_f64(), second["quiet"].as_object())
    else {
        print_skipped("one execution only was undisturbed");
        return;
    };
    assert_eq!((&first["quiet"]["earlier"], &next["earlier"]), (&0.into(), &1.into()));
    let (low, high) = (next["figure"]["low"].as_f64().unwrap(), next["figure"]["high"].as_f64().unwrap());
    // Each figure is converted to a core frequency, and a brief run knows only its own frequency.
    let hz = |quiet: &Value| quiet["core_hz"].as_f64().unwrap_or(1.0);
    let figure = figure * hz(&first["quiet"]) / hz(&second["quiet"]);
    let is_inside = low <= figure * (1.0 + 1e-9) && figure * (1.0 - 1e-9) <= high;
    assert!(is_inside, "{figure} is not in [{low}, {high}]");
}

#[test]
fn a_run_whose_limit_is_over_begins_no_case_and_fails() {
    let place = Place::new();
    for scale in ["smoke", "default"] {
        let mut command = place.run(&["known_work", "--scale", scale]);
        command.env("SYSCOST_TIME", "0");
        let ended = place.end(command);
        ended.says(1, &["the limit of 0 s was over before 2 of 2 cases had begun: a larger --time"]);
    }
}

#[test]
fn every_case_is_measured_two_or_three_times_or_more() {
    let _alone = alone();
    let place = Place::new();
    let record = run(&place, &[]);
    for case in record["groups"][0]["cases"].as_array().unwrap() {
        let outcome = &case["outcome"]["measured"];
        if !outcome.is_null() {
            // Two executions are enough if one takes half a second, as on a busy machine.
            let executions = length(&outcome["executions"]) + length(&outcome["left_out"]);
            assert!(executions >= 2, "{outcome}");
        }
    }
}

#[test]
fn a_test_of_a_bench_target_asks_the_claims_of_a_short_operation() {
    let Some(mine) = example("mine") else { return };
    let place = Place::new();
    let mut command = place.program(&mine);
    command.args(["--bench", "--test", "--color=never"]);
    let ended = place.end(command);
    if ended.output.contains("mine/parent: disturbed: other tasks had") {
        print_skipped("the machine is too busy to measure mine/parent");
        return;
    }
    ended.says(0, &["mine/parent: ok, "]);
    assert!(!place.home().join("mine").exists(), "a test saves nothing");
}
