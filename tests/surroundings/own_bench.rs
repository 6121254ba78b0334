//! The examples of a bench of one's own: each is measured, and prints the feature that it demonstrates below its table.

use crate::place::{Place, example};
use syscost_platform::testing::print_skipped;

/// Measures an example, and checks that it prints these words.
fn assert_example_shows(name: &str, words: &[&str]) {
    let Some(bench) = example(name) else { return };
    let place = Place::new();
    let Some(ended) = place.succeeds(|| {
        let mut command = place.program(&bench);
        command.args(["--bench", "--color=never"]);
        command
    }) else {
        return;
    };
    if ended.output.contains("disturbed ") {
        print_skipped(&format!("the machine is too busy to measure {name}"));
        return;
    }
    ended.says(0, words);
    place.is_tidy();
}

#[test]
fn an_operation_owns_a_map() {
    assert_example_shows("bench_data", &["look-up", "1 measured, 0 skipped, 0 failed"]);
}

#[test]
fn a_sweep_is_drawn_and_fitted() {
    assert_example_shows(
        "bench_sweep",
        &["sort/6400", " at 6400", "sort: ", "fitted over 4 cases, the worst off by "],
    );
}

#[test]
fn threads_have_an_efficiency_or_too_few_cpus() {
    let is_alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let several = if is_alone { "needs a CPU of its own" } else { "bench_threads/lock/2: efficiency " };
    assert_example_shows("bench_threads", &["lock/1", "throughput", several]);
}

#[test]
fn bytes_and_elements_are_rates() {
    assert_example_shows("bench_rate", &["throughput", " GB/s", " elem/s"]);
}

#[test]
fn a_gauge_is_averaged() {
    assert_example_shows("bench_gauge", &["bench_gauge/search: comparisons "]);
}

#[test]
fn asynchronous_code_is_measured() {
    assert_example_shows("bench_async", &["give-way", "1 measured, 0 skipped, 0 failed"]);
}

/// The blocks of this language in the manual of the library.
fn blocks_of_manual(language: &str) -> Vec<String> {
    let manual = include_str!("../../src/manual/library.md");
    let fence = format!("```{language}\n");
    let begun = manual.split(&fence).skip(1).map(|text| text.split("```").next().unwrap());
    begun.map(|text| text.replace("../syscost", env!("CARGO_MANIFEST_DIR"))).collect()
}

#[test]
fn the_manifest_of_the_manual_is_one_and_has_its_bench() {
    let place = Place::new();
    let [targets, dependency] = &blocks_of_manual("toml")[..] else { panic!("two blocks of TOML") };
    let package = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let manifest = format!("{package}{targets}[dev-dependencies]\n{dependency}");
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", ""), ("benches/mine.rs", "")] {
        let file = place.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let mut cargo = place.program(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let output = cargo.output().unwrap();
    let read: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let package = &read["packages"][0];
    assert_eq!(package["dependencies"][0]["name"], "syscost-criterion");
    let benches = package["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "bench");
    assert_eq!(benches.map(|bench| &bench["name"]).collect::<Vec<_>>(), ["mine"]);
}
