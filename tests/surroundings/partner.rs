//! Cases that have partners: processes, threads, queues, semaphores and named pipes. None of them is left, however
//! the run ends. If partners are not allowed, the case says so.

use crate::limit::ordinary;
use crate::place::{Place, until};
use crate::process;
use crate::sandbox::forbidding;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Cases of every kind that start a partner or give a name to an object of the kernel.
const WITH_PARTNERS: &str = "^(ping_pong/|context_switch/.*-8/(0|4)KiB|context_switch/move|core_to_core/|wake_up/|lock/|scale/(getppid|pipe|record-lock)-)";

/// The objects in the kernel that a run could leave: sets of semaphores, and queues if they can be listed.
fn kernel_objects() -> BTreeSet<String> {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let sets =
        sets.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(1)).map(str::to_owned);
    let queues = std::fs::read_dir("/dev/mqueue").into_iter().flatten().flatten();
    sets.chain(queues.map(|queue| queue.file_name().to_string_lossy().into_owned())).collect()
}

/// Asserts that the run left no process and no new kernel object. Other programs may make objects, other tests do not.
fn assert_nothing_left(place: &Place, before: &BTreeSet<String>) {
    place.is_tidy();
    let left: Vec<_> = kernel_objects().difference(before).cloned().collect();
    assert!(left.is_empty(), "semaphores or queues are left: {left:?}");
}

fn ids_with_outcome(place: &Place, outcome: &str) -> Vec<String> {
    let record = place.record();
    let groups = record["groups"].as_array().unwrap().iter();
    let cases = groups.flat_map(|group| group["cases"].as_array().unwrap().iter());
    let of_outcome = cases.filter(|case| case["outcome"].get(outcome).is_some());
    of_outcome.map(|case| case["id"].as_str().unwrap().to_owned()).collect()
}

/// The first allowed CPU. Another run of this crate on this machine takes the last CPU first.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn no_process_and_no_kernel_object_is_left_after_a_run() {
    let (place, before) = (Place::new(), kernel_objects());
    // Whether a case was disturbed does not matter here.
    let ended = place.end(place.run(&[WITH_PARTNERS]));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_nothing_left(&place, &before);
}

#[test]
fn on_one_cpu_cases_across_two_are_skipped_with_their_sentence() {
    if Command::new("taskset").arg("--version").output().is_err() {
        print_skipped("there is no taskset");
        return;
    }
    let place = Place::new();
    let filter = "^(ping_pong/pipe|core_to_core/|lock/futex-mutex|scale/getppid)";
    let ended = place.end(place.run_by(&["taskset", "-c", &first_cpu()], &[filter]));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let skipped = ids_with_outcome(&place, "skipped");
    for id in [
        "ping_pong/pipe-processes/cross-cpu",
        "ping_pong/pipe-threads/cross-cpu-awake",
        "core_to_core/neighbour",
        "lock/futex-mutex/contended-2",
        "scale/getppid-processes/2",
    ] {
        assert!(skipped.iter().any(|other| other == id), "{id}: {ended:?}");
    }
    assert!(!skipped.iter().any(|id| id.ends_with("same-cpu") || id.ends_with("/one")), "{skipped:?}");
    ended.says(ended.code.unwrap(), &["allowed one only", "taskset"]);
    place.is_tidy();
}

#[test]
fn a_call_that_is_forbidden_skips_its_cases_and_no_others() {
    let (place, before) = (Place::new(), kernel_objects());
    for (number, way) in [(libc::SYS_semget, "sysv-semaphore"), (libc::SYS_mq_open, "mqueue")] {
        let Some(starter) = forbidding(number) else { return };
        let starter: Vec<_> = starter.iter().map(String::as_str).collect();
        let filter = "^ping_pong/(sysv-semaphore|mqueue)-processes/same-cpu";
        let ended = place.end(place.run_by(&starter, &[filter]));
        assert_eq!(
            ids_with_outcome(&place, "skipped"),
            [format!("ping_pong/{way}-processes/same-cpu")],
            "{ended:?}"
        );
        ended.says(ended.code.unwrap(), &["cannot be opened here", "not permitted"]);
    }
    assert_nothing_left(&place, &before);
}

#[test]
fn a_limit_on_tasks_is_named() {
    let Some(ordinary) = ordinary() else { return };
    let place = Place::new();
    // The limit allows the shell, the driver with its listener, and the measuring process, but no partner.
    let limited = "ulimit -u 4 && exec \"$@\"";
    let starter: Vec<_> = ordinary.iter().copied().chain(["bash", "-c", limited, "bash"]).collect();
    let ended = place.end(place.run_by(&starter, &["^context_switch/processes-8/4KiB"]));
    if ended.error.contains("ulimit") || !ended.output.contains("FAILED context_switch") {
        print_skipped("this user has other processes");
        return;
    }
    ended.says(1, &["ulimit -u", "temporarily unavailable"]);
    place.is_tidy();
}

#[test]
fn partners_die_with_a_measuring_process_that_is_killed() {
    let (place, before) = (Place::new(), kernel_objects());
    let _alone = crate::place::alone();
    let mut command = place.run(&["^ping_pong/pipe-processes/cross-cpu-awake|^ping_pong/sysv"]);
    command.env("SYSCOST_SCALE", "default");
    let running = place.begin(command);
    let measuring = process::one_measuring(&place, "ping_pong");
    // The measuring process itself, and at least one partner.
    until("it has no partner", || process::measuring(&place, "ping_pong").len() > 1);
    process::send(measuring, Signal::SIGKILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(process::all_end(&place), "partners are left");
    // A set of semaphores outlives its process; the next process that makes one removes it.
    drop(_alone);
    place.end(place.run(&["^ping_pong/sysv-semaphore-processes/same-cpu"]));
    assert_nothing_left(&place, &before);
}
