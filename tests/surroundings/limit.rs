//! Runs with too few descriptors, processes, bytes, CPUs or rights.

use crate::group::Group;
use crate::place::{Place, SYSCOST, TWO_GROUPS};
use std::process::Command;
use syscost_platform::testing::print_skipped;

#[test]
fn a_shortage_of_descriptors_is_a_sentence_for_each_case() {
    for descriptors in [12, 8] {
        let place = Place::new();
        let ended = place.end(place.run_under(&format!("-n {descriptors}"), &[TWO_GROUPS]));
        ended.says(1, &["0 measured, 3 skipped, 0 failed", "nothing was measured"]);
        assert!(ended.output.contains("Too many open files"), "{ended:?}");
        place.is_tidy();
    }
}

#[test]
fn without_any_descriptor_the_run_still_has_its_last_word() {
    for descriptors in [5, 4] {
        let place = Place::new();
        place
            .end(place.run_under(&format!("-n {descriptors}"), &[TWO_GROUPS]))
            .says(1, &["0 measured", "0 failed", "nothing was measured"]);
        place.is_tidy();
    }
}

#[test]
fn sixteen_descriptors_are_enough() {
    let place = Place::new();
    place.succeeds(|| place.run_under("-n 16", &[TWO_GROUPS]));
    place.is_tidy();
}

#[test]
fn a_shortage_of_processes_is_a_sentence_for_each_group() {
    let Some(ordinary) = ordinary() else { return };
    let place = Place::new();
    let starter: Vec<_> =
        ordinary.iter().copied().chain(["bash", "-c", "ulimit -u 1 && exec \"$@\"", "bash"]).collect();
    let ended = place.end(place.run_by(&starter, &[TWO_GROUPS]));
    // An ordinary user has other processes, so that even the shell may fail to start.
    if !ended.error.contains("ulimit") && !ended.error.contains("fork") {
        ended.says(1, &["0 measured", "Resource temporarily unavailable"]);
    }
    place.is_tidy();
}

/// Cases that create tasks, in two ways.
const TASKS: &str = "^(fork/vfork|thread/same-cpu/std)$";

#[test]
fn a_limit_of_tasks_for_a_user_is_named() {
    let Some(ordinary) = ordinary() else { return };
    let mut said = String::new();
    for processes in 2..=4 {
        let place = Place::new();
        let limited = format!("ulimit -u {processes} && exec \"$@\"");
        let starter: Vec<_> = ordinary.iter().copied().chain(["bash", "-c", &limited, "bash"]).collect();
        let ended = place.end(place.run_by(&starter, &[TASKS]));
        said += &format!("{processes}: {}{}\n", ended.output, ended.error);
        place.is_tidy();
    }
    if said.contains(" measured, ") {
        assert!(said.contains("(RLIMIT_NPROC, `ulimit -u`)"), "{said}");
    } else {
        print_skipped(&format!(
            "whoever runs this has so many processes that nothing can be started: {said}"
        ));
    }
}

#[test]
fn a_limit_of_tasks_for_a_control_group_is_named() {
    let Some(group) = Group::of_tasks(1000) else { return };
    for tasks in [1, 2] {
        assert!(group.limit("pids.max", tasks));
        let place = Place::new();
        let enter = group.enter();
        let ended = place.end(place.run_by(&enter.each_ref().map(String::as_str), &[TASKS]));
        let sentence = format!("may have {tasks} tasks and has");
        assert!(ended.output.contains(&sentence) && ended.output.contains("pids.max"), "{tasks}: {ended:?}");
        place.is_tidy();
    }
}

#[test]
fn a_file_that_may_not_grow_is_a_sentence_and_not_the_end() {
    let place = Place::new();
    let ended = place.end(place.run_under("-f 0", &[TWO_GROUPS, "--save-baseline", "a"]));
    // The limit also holds for the files to which the streams of this test lead.
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(place.files(".json").is_empty());
    place.is_tidy();
}

#[test]
fn a_small_stack_is_enough() {
    let place = Place::new();
    place.succeeds(|| place.run_under("-s 400", &["known_work/add", "--exact"]));
}

#[test]
fn one_cpu_is_enough() {
    if Command::new("taskset").arg("--version").output().is_err() {
        print_skipped("there is no taskset");
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let last = allowed.trim().rsplit([',', '-']).next().unwrap();
    let place = Place::new();
    place.succeeds(|| place.run_by(&["taskset", "-c", last], &[TWO_GROUPS]));
    place
        .end(place.run_by(&["taskset", "-c", last], &["thread/cross-cpu/hand-off", "--exact"]))
        .says(1, &["0 measured, 1 skipped", "there is one CPU to run on, and this needs two"]);
    place.is_tidy();
}

#[test]
fn an_ordinary_user_measures() {
    let Some(ordinary) = ordinary() else { return };
    let place = Place::new();
    place.succeeds(|| place.run_by(&ordinary, &[TWO_GROUPS]));
    place.is_tidy();
}

/// The words of a command that runs another one as an ordinary user; `None` if that is not possible.
pub fn ordinary() -> Option<Vec<&'static str>> {
    let starter = match nix::unistd::geteuid().is_root() {
        true => vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        false => vec!["env"],
    };
    let works = Command::new(starter[0]).args(&starter[1..]).args([SYSCOST, "--version"]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(starter);
    }
    print_skipped(&format!("setpriv is missing, or an ordinary user may not start {SYSCOST}"));
    None
}
