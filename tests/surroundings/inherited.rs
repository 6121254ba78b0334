//! Properties that a run inherits from the process that started it: signals, scheduling class, limits, descriptors. None of them
//! makes a run hang, fails an honest case or changes a number without a note.

use crate::place::{Place, SYSCOST, alone, until, waited};
use crate::process;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Whether this command works here; otherwise the test is skipped.
fn works(command: &[&str]) -> bool {
    let works =
        Command::new(command[0]).args(&command[1..]).output().is_ok_and(|output| output.status.success());
    if !works {
        print_skipped(&format!("`{}` does not work here", command.join(" ")));
    }
    works
}

fn works_as_starter(starter: &[&str]) -> bool {
    works(&[starter, &["true"]].concat())
}

/// Measures this case in a run that `starter` starts, and returns all notes of the run.
fn measured(starter: &[&str], case: &str, words: &[&str]) -> String {
    let place = Place::new();
    let ended = place.end(place.run_by(starter, &[case, "--exact"]));
    ended.says(0, &[&["1 measured, 0 skipped, 0 failed"], words].concat());
    place.is_tidy();
    place.record()["groups"][0]["notes"].to_string()
}

const REAL_TIME: [&str; 4] = ["chrt", "--fifo", "50", "env"];
const DEADLINE: [&str; 10] = [
    "chrt",
    "--deadline",
    "--sched-runtime",
    "5000000",
    "--sched-deadline",
    "10000000",
    "--sched-period",
    "10000000",
    "0",
    "env",
];

#[test]
fn an_inherited_real_time_class_is_left_and_noted() {
    if !works_as_starter(&REAL_TIME) {
        return;
    }
    // A busy loop of the same class would keep the CPU for ever.
    let notes = measured(&REAL_TIME, "wake_up/timerfd/beside-hog", &[]);
    assert!(notes.contains("SCHED_FIFO at priority 50 was inherited"), "{notes}");
    let notes = measured(&["chrt", "--rr", "5"], "wake_up/timerfd/beside-hog", &[]);
    assert!(notes.contains("SCHED_RR at priority 5"), "{notes}");
}

#[test]
fn a_class_whose_tasks_may_not_fork_is_left() {
    if works_as_starter(&DEADLINE) {
        let notes = measured(&DEADLINE, "call/u64/3", &[]);
        assert!(notes.contains("SCHED_DEADLINE was inherited"), "{notes}");
    }
}

#[test]
fn the_measuring_process_is_an_ordinary_task_and_the_driver_is_as_it_was_started() {
    if !works_as_starter(&REAL_TIME) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.run_by(&REAL_TIME, &["call/u64", "--scale", "default"]));
    let class = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Field 41 of proc_pid_stat(5).
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(38).map(str::to_owned))
    };
    let measuring = process::one_measuring(&place, "call");
    until("the class is never left", || class(measuring).is_none_or(|class| class == "0"));
    assert_eq!(class(running.pid()).as_deref(), Some("1"));
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM"]);
    place.is_tidy();
}

#[test]
fn inherited_settings_that_change_a_number_are_noted() {
    for (starter, words) in [
        (["nice", "-n", "3"].as_slice(), "the nice value"),
        (&["chrt", "--batch", "0"], "SCHED_BATCH was inherited"),
        (&["setarch", "--addr-no-randomize"], "share one layout of memory"),
        (&["ionice", "-c", "3"], "the I/O priority idle"),
        (&["env", "MALLOC_ARENA_MAX=1"], "MALLOC_ARENA_MAX=1 was inherited"),
    ] {
        if works_as_starter(starter) {
            let notes = measured(starter, "call/u64/3", &[]);
            assert!(notes.contains(words), "{words}: {notes}");
        }
    }
}

#[test]
fn without_inherited_settings_there_is_no_note() {
    let notes = measured(&["env"], "call/u64/3", &[]);
    for words in ["SCHED_", "personality", "I/O priority", "CPU time", "timer slack of"] {
        assert!(!notes.contains(words), "{words}: {notes}");
    }
}

#[test]
fn signals_that_were_blocked_are_caught_and_end_a_run() {
    let starter = ["env", "--block-signal"];
    if !works_as_starter(&starter) {
        return;
    }
    measured(&starter, "signal/timer", &[]);
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.run_by(&starter, &["call/u64", "--scale", "default"]));
    process::one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM"]);
    place.is_tidy();
}

#[test]
fn children_can_be_waited_for_where_their_end_was_ignored() {
    if works_as_starter(&["env", "--ignore-signal=CHLD"]) {
        measured(&["env", "--ignore-signal=CHLD"], "fork/mappings/1", &[]);
        measured(&["env", "--ignore-signal"], "fork/mappings/1", &[]);
    }
}

#[test]
fn an_ignored_hangup_and_an_ignored_interrupt_stay_ignored() {
    let starter = ["env", "--ignore-signal=HUP,INT,TERM"];
    if !works_as_starter(&starter) {
        return;
    }
    let _alone = alone();
    for signal in [Signal::SIGHUP, Signal::SIGINT] {
        let place = Place::new();
        let running = place.begin(place.run_by(&starter, &["known_work|call/u64/3"]));
        process::one_measuring(&place, "known_work");
        process::send_to_group(running.pid(), signal);
        running.end().says(0, &["3 measured"]);
    }
    let place = Place::new();
    let running = place.begin(place.run_by(&starter, &["call/u64", "--scale", "default"]));
    process::one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM"]);
}

#[test]
fn one_signal_ends_a_run_whose_measuring_process_hangs() {
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(place.run(&["call/u64", "--scale", "default"]));
    process::one_measuring(&place, "call");
    process::stop_one_measuring(&place, "call");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &["interrupted by SIGTERM"]);
    place.is_tidy();
}

#[test]
fn a_descriptor_that_was_left_open_is_not_copied_by_every_fork() {
    let _alone = alone();
    let place = Place::new();
    let left = place.script("left-open", "");
    let mut command = place.run_by(&["bash", "-c", "exec 77<left-open; exec \"$@\"", "bash"], &[]);
    command.args(["call/u64", "--scale", "default"]);
    let running = place.begin(command);
    let files = |pid: i32| -> Vec<PathBuf> {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    };
    let measuring = waited("it opens no pipe", || {
        let pid = process::one_measuring(&place, "call");
        (!files(pid).is_empty()).then_some(pid)
    });
    assert!(!files(measuring).contains(&left), "{:?}", files(measuring));
    assert!(files(running.pid()).contains(&left), "the driver keeps what the user's shell gave it");
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &[]);
}

#[test]
fn a_run_can_read_its_own_files_whatever_the_mask_was() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let starter = ["sh", "-c", "umask 777; exec \"$@\"", "sh"];
    place.end(place.run_by(&starter, &["call/u64/3", "--exact"])).says(0, &["1 measured"]);
    for file in place.files(".json") {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600, "{}", file.display());
    }
}

#[test]
fn a_limit_of_timers_skips_the_cases_that_need_one() {
    let place = Place::new();
    // Not every `sh` knows this limit.
    let starter = ["bash", "-c", "ulimit -i 0 && exec \"$@\"", "bash"];
    let ended = place.end(place.run_by(&starter, &["^fork/mappings/1$|^signal/timer$"]));
    ended.says(1, &["0 measured, 2 skipped, 0 failed", "RLIMIT_SIGPENDING"]);
    place.is_tidy();
}

#[test]
fn a_limit_of_cpu_time_condemns_no_case() {
    let place = Place::new();
    let ended = place.end(place.run_under("-t 1", &["^call/"]));
    // One second may also be too short to write Criterion's files, for which there is another sentence.
    let is_told =
        ended.error.contains("Criterion's files of call: the measuring process had used up its 1 s");
    ended.says(i32::from(is_told), &[" 0 failed"]);
    assert!(place.record().to_string().contains("1 s of CPU time (RLIMIT_CPU"));
    place.is_tidy();
}

#[test]
fn a_command_under_burden_inherits_the_signals_and_umask_of_the_caller() {
    let started_by = |words: &[&str]| {
        let script = "umask; grep -E '^Sig(Ign|Blk)' /proc/self/status";
        let starter =
            ["sh", "-c", "umask 0777; exec env --ignore-signal=CHLD,XFSZ --block-signal=USR1 \"$@\"", "sh"];
        let place = Place::new();
        let output =
            place.program(starter[0]).args(&starter[1..]).args(words).args(["sh", "-c", script]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    if works_as_starter(&["env", "--ignore-signal=CHLD"]) && works(&[SYSCOST, "burden", "true"]) {
        assert_eq!(started_by(&[]), started_by(&[SYSCOST, "burden", "--"]));
    }
}

/// The CPU on which the only group of the newest run was measured.
fn cpu(place: &Place) -> Option<u64> {
    place.record()["groups"][0]["cpu"].as_u64()
}

#[test]
fn two_runs_in_different_network_namespaces_take_different_cpus() {
    let starter = ["unshare", "--net"];
    if !works_as_starter(&starter) || std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return print_skipped("there is one CPU, or no right to make a network namespace");
    }
    let _alone = alone();
    let (first, second) = (Place::new(), Place::new());
    let running = first.begin(first.run_by(&starter, &["call/u64", "--scale", "default"]));
    let measuring = process::one_measuring(&first, "call");
    until("it is never pinned", || {
        let status = std::fs::read_to_string(format!("/proc/{measuring}/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.is_none_or(|list| list.trim().parse::<u64>().is_ok())
    });
    second.end_alone(second.run(&["call/u64/3", "--exact"])).says(0, &[]);
    process::send(running.pid(), Signal::SIGTERM);
    running.end().says(143, &[]);
    assert_ne!(cpu(&first), cpu(&second));
}
