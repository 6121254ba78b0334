//! Benches as a user runs them: listed, tested, measured, compared by turns, and with Criterion's files.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// An example that Cargo has built beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a program");
    let built = test.parent().and_then(Path::parent).expect("below the target directory");
    built.join("examples").join(name)
}

fn run(name: &str, arguments: &[&str], home: &Path) -> Output {
    run_with(name, arguments, home, &[])
}

fn run_with(name: &str, arguments: &[&str], home: &Path, variables: &[(&str, &str)]) -> Output {
    let program = example(name);
    assert!(program.exists(), "{} is built by `cargo test -p syscost-criterion`", program.display());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("CRITERION_HOME", home)
        .env("SYSCOST_SCALE", "smoke")
        .envs(variables.iter().copied());
    command.env_remove("SYSCOST_TASK").output().expect("it runs")
}

fn utf8_output(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const PARTS: [&str; 12] = [
    "criterion_parts/hash of a word",
    "criterion_parts/sort/64",
    "criterion_parts/hash/16",
    "criterion_parts/hash/256",
    "criterion_parts/bencher/iter_batched_ref",
    "criterion_parts/bencher/iter_with_setup",
    "criterion_parts/bencher/iter_with_large_drop",
    "criterion_parts/bencher/iter_custom",
    "criterion_parts/bencher/to_async",
    "criterion_parts/bencher/borrowed",
    "criterion_parts/bencher/twice?",
    "criterion_parts/bencher/twice? #2",
];

#[test]
fn every_part_is_listed_under_criterions_ids_and_calls_no_benchmark() {
    let home = tempfile::tempdir().expect("a directory");
    let listed = utf8_output(&run("criterion_parts", &["--bench", "--list"], home.path()).stdout);
    let expected: Vec<_> = PARTS.iter().map(|id| format!("{id}: benchmark")).collect();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_program_of_another_name_has_the_same_ids() {
    let home = tempfile::tempdir().expect("a directory");
    // A comparison of two revisions gives the links of a build such names.
    let renamed = home.path().join("syscost-side");
    std::fs::copy(example("criterion_parts"), &renamed).expect("a copy");
    let output = Command::new(renamed).args(["--bench", "--list"]).env_remove("SYSCOST_TASK").output();
    let listed = utf8_output(&output.expect("it runs").stdout);
    assert_eq!(listed.lines().next(), Some("criterion_parts/hash of a word: benchmark"));
}

#[test]
fn a_filter_may_omit_the_bench_target_and_may_match_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let listed = |arguments: &[&str]| {
        let all = [&["--bench", "--list"], arguments].concat();
        let output = run("criterion_parts", &all, home.path());
        assert!(output.status.success(), "{}", utf8_output(&output.stderr));
        utf8_output(&output.stdout).lines().count()
    };
    assert_eq!(listed(&["^hash/"]), 2);
    assert_eq!(listed(&["--exact", "sort/64"]), 1);
    assert_eq!(listed(&["criterion_parts/bencher/iter_b"]), 1);
    assert_eq!(listed(&["nothing of that name"]), 0);
}

#[test]
fn a_bench_of_every_part_ends_with_a_table_and_criterions_files() {
    let home = tempfile::tempdir().expect("a directory");
    let output = run("criterion_parts", &["--bench"], home.path());
    let (shown, told) = (utf8_output(&output.stdout), utf8_output(&output.stderr));
    for part in ["hash of a word", "sort/64", "iter_custom", "to_async", "borrowed"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}\n{told}");
    }
    assert!(told.contains("accepted, without effect: measurement_time, plot_config, sample_size, sampling_mode, without_plots"), "{told}");
    let saved = home.path().join("criterion_parts/hash_256/new/benchmark.json");
    let saved =
        std::fs::read(&saved).unwrap_or_else(|error| panic!("{}: {error}\n{shown}\n{told}", saved.display()));
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("Criterion's JSON");
    assert_eq!(saved["full_id"], "criterion_parts/hash/256");
    assert_eq!(saved["throughput"]["Bytes"], 256);
}

#[test]
fn the_table_has_the_allocations_of_the_timed_part() {
    let home = tempfile::tempdir().expect("a directory");
    let output = run("criterion_allocations", &["--bench"], home.path());
    let shown = utf8_output(&output.stdout);
    for line in [
        "nothing, an iteration: allocations 0, allocated-bytes 0, peak-bytes 0",
        "a box, an iteration: allocations 1, allocated-bytes 8, peak-bytes 8",
        "a vector that grows, an iteration: allocations 3, allocated-bytes 112, peak-bytes 64",
        "a box from an input, an iteration: allocations 1, allocated-bytes 8, peak-bytes 8",
        "results that are kept, an iteration: allocations 1, allocated-bytes 800, peak-bytes 800",
        "not counted: allocations of an operation that measures its own time",
    ] {
        assert!(shown.contains(line), "{line:?} is missing:\n{shown}\n{}", utf8_output(&output.stderr));
    }
}

/// The instructions of each allocation benchmark that matches this filter; the error is the report of a run that could not
/// count.
fn counted_instructions(how: &str, filter: &str) -> Result<Vec<(String, f64)>, String> {
    let place = tempfile::tempdir().expect("a directory");
    // The directory of this unit is beside it.
    let output = run("criterion_allocations", &["--bench", how, filter], &place.path().join("criterion"));
    let unit = if how.ends_with("callgrind") { "callgrind-instructions" } else { "user-instructions" };
    let runs = std::fs::read_dir(place.path().join(format!("criterion-{unit}/syscost/runs")));
    let Some(run) = runs.ok().and_then(|mut runs| runs.next()) else {
        return Err(utf8_output(&output.stderr));
    };
    let text = std::fs::read_to_string(run.expect("an entry").path()).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["unit"], unit);
    let cases = record["groups"][0]["cases"].as_array().expect("cases").clone();
    Ok(cases
        .iter()
        .filter_map(|case| {
            Some((case["id"].to_string(), case["outcome"]["measured"]["instructions"].as_f64()?))
        })
        .collect())
}

#[test]
fn instructions_are_equal_in_every_run_and_missing_without_a_bracket() {
    let counted = match counted_instructions("--instructions", "nothing|grows|input|own clock") {
        Err(refused) if refused.contains("single steps, which are refused here") => {
            print_skipped("no process may be traced here");
            return;
        }
        counted => counted.expect("a record"),
    };
    assert_eq!(counted.len(), 3, "its own clock opens no bracket: {counted:?}");
    assert!(counted.iter().all(|(_, each)| *each >= 2.0), "{counted:?}");
    let again = counted_instructions("--instructions", "nothing|grows|input|own clock").expect("a record");
    assert_eq!(counted, again);
}

#[test]
fn callgrind_and_single_steps_count_the_same() {
    let by_callgrind = match counted_instructions("--instructions=callgrind", "nothing") {
        Err(refused) if refused.contains("valgrind is not installed") => {
            print_skipped("valgrind is not installed");
            return;
        }
        counted => counted.expect("a record"),
    };
    let Ok(by_steps) = counted_instructions("--instructions", "nothing") else {
        print_skipped("no process may be traced here");
        return;
    };
    assert!(!by_callgrind.is_empty());
    assert_eq!(by_callgrind, by_steps);
}

/// The exit code of this example with `--test`, which judges every claim and keeps no number, and the verdict of each
/// benchmark that matches the filter.
fn verdicts(name: &str, filter: &str) -> (Option<i32>, Vec<(String, String)>) {
    let home = tempfile::tempdir().expect("a directory");
    let output = run(name, &["--test", filter], home.path());
    let text = utf8_output(&output.stdout);
    let verdict = |line: &str| {
        let (id, end) = line.split_once(": ")?;
        Some((id.trim_start_matches(&format!("{name}/")).to_owned(), end.to_owned()))
    };
    (output.status.code(), text.lines().filter_map(verdict).collect())
}

/// Checks that this benchmark was refused, with a sentence that contains `why` or contradicts its times. A benchmark that the
/// machine disturbed also has no number, and proves nothing.
fn assert_refused(verdicts: &[(String, String)], name: &str, why: &str) {
    let end = end_of(verdicts, name);
    if end.starts_with("disturbed") {
        print_skipped(&format!("{name} was {end}"));
        return;
    }
    assert!(end.contains(why) || end.starts_with("not settled"), "{name}: {end}");
}

fn end_of<'a>(verdicts: &'a [(String, String)], name: &str) -> &'a str {
    let found = verdicts.iter().rfind(|(id, _)| id == name);
    &found.unwrap_or_else(|| panic!("no verdict on {name}: {verdicts:?}")).1
}

#[test]
fn liars_are_caught_and_honest_benchmarks_are_not() {
    let (code, verdicts) = verdicts("criterion_liars", "");
    assert_eq!(code, Some(1), "{verdicts:?}");
    for (name, why) in [
        ("liar/vanishes whole", "time does not grow"),
        ("liar/ends early", "time does not grow"),
        ("liar/makes up", "and only"),
        ("liar/never iterates", "called no method of its Bencher"),
    ] {
        assert_refused(&verdicts, name, why);
    }
    for name in ["honest/work", "honest/long", "honest/grows", "honest/goes round", "honest/in parallel"] {
        let end = end_of(&verdicts, name);
        assert!(!end.starts_with("FAILED"), "{name}: {end}");
    }
    if verdicts.iter().any(|(_, end)| end.contains("no witness could be called: ptrace")) {
        print_skipped("no process may be traced here");
        return;
    }
    if !cfg!(debug_assertions) {
        assert_refused(&verdicts, "liar/vanishes", "nothing is left of this operation");
    }
    assert_refused(&verdicts, "liar/runs out", "FAILED");
    assert_refused(&verdicts, "liar/remembers", "unwitnessed");
}

#[test]
fn work_done_once_and_a_small_share_of_the_time_are_not_accepted() {
    let (_, verdicts) = verdicts("criterion_lies", "once/queue|lazy/iterator|error/file|time/a tenth");
    if verdicts.iter().any(|(_, end)| end.contains("no witness could be called: ptrace")) {
        print_skipped("no process may be traced here");
        return;
    }
    for name in
        ["once/queue drained", "lazy/iterator", "error/file that is missing", "time/a tenth of the time"]
    {
        let end = end_of(&verdicts, name);
        assert!(!end.starts_with("ok"), "{name}: {end}");
    }
}

#[test]
fn no_odd_benchmark_fails() {
    let (code, verdicts) = verdicts("criterion_odd", "batched/rotation|batched/mul|short/add|grows in|round");
    let failed: Vec<_> = verdicts.iter().filter(|(_, end)| end.starts_with("FAILED")).collect();
    assert!(failed.is_empty() && verdicts.len() >= 9, "{code:?} {verdicts:?}");
}

#[test]
fn an_operation_that_sleeps_is_reported_as_waiting() {
    let home = tempfile::tempdir().expect("a directory");
    let output = run("criterion_odd", &["--bench", "waiting/sleep|short/addition"], home.path());
    let shown = utf8_output(&output.stdout);
    let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    let sleeps = line("waiting/sleep");
    // A kernel that does not report how long a thread is ready shows no waiting time.
    let is_known = std::fs::read_to_string("/proc/thread-self/schedstat").is_ok();
    assert!(!is_known || !sleeps.contains(" ns ") && sleeps.contains(" waits "), "{shown}");
    assert!(!line("short/addition").contains(" waits "), "{shown}");
}

#[test]
fn work_left_to_a_thread_and_a_kept_result_are_reported() {
    let home = tempfile::tempdir().expect("a directory");
    let output = run("criterion_liars", &["--bench", "remembers|hands over|in parallel"], home.path());
    let runs = std::fs::read_dir(home.path().join("syscost/runs")).expect("runs are kept");
    let records: String =
        runs.map(|run| std::fs::read_to_string(run.expect("an entry").path()).expect("a record")).collect();
    let told = utf8_output(&output.stdout) + &utf8_output(&output.stderr);
    if records.contains("ptrace") {
        print_skipped("no process may be traced here");
        return;
    }
    assert!(
        records.contains("the first iteration could not be followed to its end within 30000 instructions"),
        "{told}\n{records}"
    );
    assert_eq!(records.matches("work is left to other threads").count(), 1, "{told}\n{records}");
    assert!(records.contains("other threads of the process ran for"), "{told}\n{records}");
}

/// Both outputs of a run of `criterion_setups`.
fn run_setups(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().expect("a directory");
    let output = run_with("criterion_setups", arguments, home.path(), variables);
    utf8_output(&output.stdout) + &utf8_output(&output.stderr)
}

#[test]
fn a_runner_that_does_not_greet_is_ignored_and_reported_once() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port().to_string();
    // If a measuring process waited for the greeting, its case would be killed.
    let variables = [("CARGO_CRITERION_PORT", &*port), ("SYSCOST_CASE_TIME", "30")];
    let told = run_setups(&["--bench", "address"], &variables);
    assert!(told.contains("1 measured"), "{told}");
    assert_eq!(told.matches("CARGO_CRITERION_PORT is ignored").count(), 1, "{told}");
}

#[test]
fn a_port_that_the_bench_keeps_is_free_for_the_measuring_process() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("an address");
    let told = run_setups(&["--bench", "address"], &[("HELD_PORT", &free.port().to_string())]);
    assert!(told.contains("1 measured"), "{told}");
}

#[test]
fn durations_of_another_measurement_are_times() {
    let told = run_setups(&["--bench", "half seconds"], &[]);
    assert!(told.contains("1 measured") && told.contains(" ns "), "{told}");
}

#[test]
fn a_case_that_never_ends_is_killed_and_the_next_one_measured() {
    let told = run_setups(&["--bench", "endless|behind"], &[("SYSCOST_CASE_TIME", "10")]);
    for line in
        ["the case did not end within 10 s and was killed; SYSCOST_CASE_TIME", "1 measured", "1 failed"]
    {
        assert!(told.contains(line), "{line:?} is missing:\n{told}");
    }
}

#[test]
fn a_list_mentions_no_setting_and_a_quick_run_is_at_smoke_scale() {
    let listed = run_setups(&["--bench", "--list"], &[]);
    assert!(!listed.contains("without effect"), "{listed}");
    let quick = run_setups(&["--bench", "--quick", "half"], &[("SYSCOST_SCALE", "full")]);
    assert!(quick.contains("1 measured") && quick.contains("smoke scale"), "{quick}");
}

#[test]
fn a_comparison_shows_criterions_verdict_and_none_of_its_progress() {
    let home = tempfile::tempdir().expect("a directory");
    run("criterion_setups", &["--bench", "--save-baseline", "old", "half"], home.path());
    let output = run("criterion_setups", &["--bench", "--baseline", "old", "half"], home.path());
    let told = utf8_output(&output.stdout) + &utf8_output(&output.stderr);
    assert!(told.contains("change: ["), "{told}");
    assert!(!told.contains("Warming up"), "{told}");
}

#[test]
fn a_run_whose_cargo_is_terminated_prints_what_it_measured() {
    let home = tempfile::tempdir().expect("a directory");
    // The run reads the name of its parent process.
    let cargo = home.path().join("cargo");
    symlink("/bin/sh", &cargo).expect("a link");
    let mut shell = Command::new(cargo);
    shell.args(["-c", "\"$0\" --bench 'half|address'; true"]).arg(example("criterion_setups"));
    shell.env("CRITERION_HOME", home.path()).env("SYSCOST_TIME", "600").env_remove("SYSCOST_TASK");
    let mut shell = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
    let runs = home.path().join("syscost/runs");
    let is_saved = || std::fs::read_dir(&runs).is_ok_and(|entries| entries.count() > 0);
    while !is_saved() && shell.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = Command::new("kill").arg(shell.id().to_string()).status();
    assert!(ended.expect("kill(1)").success());
    // Reads until the bench closes its output.
    let output = shell.wait_with_output().expect("its output");
    let (shown, told) = (utf8_output(&output.stdout), utf8_output(&output.stderr));
    assert!(told.contains("interrupted by SIGTERM"), "{told}");
    assert!(shown.contains("half seconds") && shown.contains("measured"), "{shown}\n{told}");
}
