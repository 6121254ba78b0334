//! `--why` on this machine names the functions of a difference. The tests use slowdowns whose function is known.

use crate::place::{Ended, Place, SYSCOST, example};
use crate::sandbox::forbidding;
use serde_json::Value;
use std::path::Path;
use syscost_platform::testing::print_skipped;

/// The printed JSON; `None` if perf events are not available.
fn explained(place: &Place, words: &[&str]) -> Option<Value> {
    let ended = place.end(place.syscost(&[words, &["--why", "--exact", "--format", "json"]].concat()));
    if ended.code == Some(1) && ended.error.contains("stacks cannot be sampled here") {
        print_skipped(ended.error.trim());
        return None;
    }
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.is_tidy();
    let case = serde_json::from_str::<Value>(&ended.output).unwrap()["cases"][0].take();
    assert!(case["failure"].is_null(), "{case}");
    Some(case)
}

/// Asserts that the function that differs most is significant, is one of these, and takes more time on side B. The assertion is
/// skipped if the whole operation is not slower there: other programs may empty the caches of side A as well.
fn assert_first_function(case: &Value, names: &[&str]) {
    if case["total"]["figure"]["low"].as_f64() <= Some(0.0) {
        print_skipped(
            "other programs disturb this machine so much that the slowdown is not seen in the whole operation",
        );
        return;
    }
    let first = &case["functions"][0];
    let name = first["name"].as_str().unwrap();
    assert!(names.iter().any(|known| name.contains(known)), "{name}: {case:#}");
    assert!(first["is_significant"] == true && first["figure"]["low"].as_f64() > Some(0.0), "{first}");
    let sum: f64 = case["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["figure"]["estimate"].as_f64().unwrap())
        .sum();
    let total = case["total"]["figure"]["estimate"].as_f64().unwrap();
    assert!((sum - total).abs() < 1e-6 * total.abs(), "{sum} of {total}");
}

fn compare_bench(bench: &Path, id: &str, setting: &str) -> Option<Value> {
    let (bench, wrap) = (bench.to_str().unwrap(), format!("env {setting}"));
    let words = ["ab", "--a-bin", bench, "--b-bin", bench, "--b-wrap", &wrap, id, "--pairs", "8"];
    explained(&Place::new(), &words)
}

#[test]
fn a_filter_of_system_calls_comes_first() {
    let burden = format!("{SYSCOST} burden --additions 300 --");
    let words = ["ab", "--b-wrap", &burden, "syscall/getppid", "--pairs", "8"];
    let Some(case) = explained(&Place::new(), &words) else { return };
    // A kernel without a compiler for filters interprets them. If its symbols are hidden, the kernel is one row.
    assert_first_function(&case, &["(generated code", "bpf_prog_run", "(the kernel"]);
}

#[test]
fn a_function_of_a_library_that_is_called_more_often_comes_first() {
    let Some(bench) = example("bench_why") else { return };
    let Some(case) = compare_bench(&bench, "bench_why/query", "EXTRA_CALLS=64") else { return };
    assert_first_function(&case, &["library::current_time"]);
}

#[test]
fn a_function_whose_data_left_the_caches_comes_first() {
    let Some(bench) = example("bench_why") else { return };
    let Some(case) = compare_bench(&bench, "bench_why/query", "COLD=1") else { return };
    assert_first_function(&case, &["library::look_up"]);
}

#[test]
fn the_time_of_an_operation_is_shown_by_class_and_function() {
    let place = Place::new();
    let Some(bench) = example("bench_why") else { return };
    let words = ["run", "--bin", bench.to_str().unwrap(), "bench_why/query"];
    let Some(case) = explained(&place, &words) else { return };
    assert_first_function(&case, &["library::look_up"]);
    assert_eq!(case["classes"][0]["name"], "user", "{case:#}");
}

#[test]
fn without_perf_events_it_is_one_sentence() {
    let Some(starter) = forbidding(libc::SYS_perf_event_open) else { return };
    let place = Place::new();
    for words in
        [&["run", "--why", "syscall/getppid"][..], &["ab", "--why", "syscall/getppid", "--b-wrap", "env"]]
    {
        let mut command = place.program(&starter[0]);
        command.args(&starter[1..]).arg(SYSCOST).args(words);
        let ended: Ended = place.end(command);
        ended.says(1, &["syscost: stacks cannot be sampled here", "kernel.perf_event_paranoid is"]);
        assert_eq!((ended.output.as_str(), ended.error.lines().count()), ("", 1), "{ended:?}");
    }
}
