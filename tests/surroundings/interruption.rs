//! Signals to any process of a run, at any time.

use crate::place::{Ended, Place, Running, SYSCOST, TWO_GROUPS, alone, waited};
use crate::process;
use nix::sys::signal::Signal;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

/// A run that has finished its first group and measures its second, which takes seconds.
fn run_in_second_group(place: &Place) -> Running<'_> {
    let mut command = place.run(&["known_work|call/u64", "--scale", "default", "--save-baseline", "main"]);
    command.env_remove("SYSCOST_SCALE");
    let running = place.begin(command);
    process::one_measuring(place, "call");
    running
}

/// Asserts that the finished group is stored, under the baseline's name too. A killed run (`ended` is false) has no files of
/// Criterion, which writes them at the end of a run.
fn assert_first_group_kept(place: &Place, ended: bool) {
    let record = place.record();
    assert_eq!(record["groups"][0]["cases"][1]["id"], "known_work/multiply");
    if !record["groups"][0]["cases"][1]["outcome"]["measured"].is_null() {
        assert_eq!(place.home().join("known_work/multiply/main/estimates.json").is_file(), ended);
        assert!(place.home().join("syscost/baselines/main.json").is_file());
    }
}

#[test]
fn an_interrupted_run_keeps_what_is_finished_and_leaves_nothing() {
    let _alone = alone();
    for (signal, of_a_terminal) in [(Signal::SIGTERM, false), (Signal::SIGINT, true)] {
        let place = Place::new();
        let running = run_in_second_group(&place);
        let send = if of_a_terminal { process::send_to_group } else { process::send };
        send(running.pid(), signal);
        let ended = running.end();
        ended.says(128 + signal as i32, &[&format!("interrupted by {signal}"), "and are kept"]);
        assert_first_group_kept(&place, true);
        let notes = place.record()["groups"][1]["notes"].to_string();
        assert!(notes.contains("interrupted: the remaining cases"), "{notes}");
        place.is_tidy();
    }
}

#[test]
fn a_session_of_minutes_goes_on_where_it_was_interrupted() {
    let _alone = alone();
    let place = Place::new();
    let words = ["record", "--session", "night", "--minutes", "60", "--processes", "1", "known_work/add"];
    let mut written = 0;
    for _ in 0..2 {
        let running = place.begin(place.syscost(&words));
        let before = written;
        waited("there are no two records more", || {
            (place.files(".syscost").len() >= before + 2).then_some(())
        });
        process::send(running.pid(), Signal::SIGINT);
        running.end().says(130, &["interrupted by SIGINT"]);
        written = place.files(".syscost").len();
        place.is_tidy();
    }
    let report = place.end_alone(place.syscost(&["report", "night", "--format", "json"]));
    let night: serde_json::Value = serde_json::from_str(&report.output).unwrap();
    assert_eq!(night["run"], "night");
    // Null if other tasks disturbed every execution.
    let measured = &night["groups"][0]["cases"][0]["outcome"]["measured"];
    let executions = measured["executions"].as_array().map_or(1, Vec::len);
    assert!(written >= 4 && (1..=written).contains(&executions), "{written} records: {night}");
}

#[test]
fn a_second_signal_ends_a_run_whose_process_hangs() {
    let _alone = alone();
    let place = Place::new();
    let running = run_in_second_group(&place);
    process::stop_one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(100));
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM"]);
    assert_first_group_kept(&place, true);
    place.is_tidy();
}

#[test]
fn a_signal_at_any_moment_ends_the_run() {
    let _alone = alone();
    for milliseconds in [10, 20, 40, 80, 160, 250] {
        let place = Place::new();
        let running = place.begin(place.run(&["known_work|call/u64", "--scale", "default"]));
        std::thread::sleep(Duration::from_millis(milliseconds));
        process::send(running.pid(), Signal::SIGINT);
        let ended = running.end();
        // Until the program handles signals, a signal kills it like any program.
        assert!(matches!(ended.code, Some(130) | None), "{milliseconds} ms: {ended:?}");
        place.is_tidy();
    }
}

#[test]
fn a_run_that_waits_for_a_cpu_can_be_interrupted() {
    let _alone = alone();
    let name = |cpu| SocketAddr::from_abstract_name(format!("syscost-measures-on-cpu-{cpu}")).unwrap();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).max(64);
    // A CPU that another process has already taken is as good.
    let _taken: Vec<_> = (0..cpus).map(|cpu| UnixListener::bind_addr(&name(cpu))).collect();
    let place = Place::new();
    let running = place.begin(place.run(&["known_work"]));
    process::one_measuring(&place, "known_work");
    std::thread::sleep(Duration::from_millis(100));
    process::send(running.pid(), Signal::SIGINT);
    running.end().says(130, &["0 measured", "interrupted by SIGINT"]);
    place.is_tidy();
}

#[test]
fn a_killed_run_takes_its_child_with_it_and_the_next_one_tidies_up() {
    let _alone = alone();
    let place = Place::new();
    run_in_second_group(&place).kill();
    assert!(process::all_end(&place), "its child lives on");
    assert_first_group_kept(&place, false);
    place.begin(place.run(&["known_work/add", "--exact"])).end();
    place.is_tidy();
}

/// The end of a run in whose first group a measuring process receives this signal.
fn signalled_alone(place: &Place, signal: Signal) -> Ended {
    let _alone = alone();
    let running = place.begin(place.run(&["known_work|call/u64/3", "--scale", "default"]));
    let measuring = process::one_measuring(place, "known_work");
    std::thread::sleep(Duration::from_millis(100));
    process::send(measuring, signal);
    let ended = running.end();
    place.is_tidy();
    ended
}

#[test]
fn a_killed_measuring_process_costs_its_case_and_no_other_group() {
    let place = Place::new();
    let ended = signalled_alone(&place, Signal::SIGKILL);
    ended.says(1, &["FAILED known_work/", "ended early (signal: 9 (SIGKILL))"]);
    assert_eq!(place.record()["groups"][1]["cases"][0]["id"], "call/u64/3");
}

#[test]
fn a_measuring_process_that_is_interrupted_alone_does_not_hide_what_is_missing() {
    signalled_alone(&Place::new(), Signal::SIGTERM).says(1, &["FAILED known_work/", "ended early"]);
}

#[test]
fn a_program_that_is_replaced_in_the_middle_measures_on() {
    let _alone = alone();
    let place = Place::new();
    let program = place.path().join("syscost");
    std::fs::copy(SYSCOST, &program).unwrap();
    let mut command = place.program(&program);
    command.args(["run", TWO_GROUPS, "--scale", "default"]);
    let running = place.begin(command);
    process::one_measuring(&place, "known_work");
    // As a build does: another file of this name.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "no program").unwrap();
    let ended = running.end();
    ended.says(0, &["3 measured", "0 failed"]);
    let record = place.record();
    let cases =
        record["groups"].as_array().unwrap().iter().flat_map(|group| group["cases"].as_array().unwrap());
    for case in cases {
        let executions = case["outcome"]["measured"]["executions"].as_array().map_or(0, Vec::len);
        // Two are enough on a busy machine, where an execution takes long; the second begins after the replacement.
        assert!(executions >= 2, "{executions} executions: {case}");
    }
    place.is_tidy();
}
