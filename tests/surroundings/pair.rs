//! Sides of a comparison that die, hang, send invalid output or change the machine.

use crate::place::{Place, SYSCOST, alone, files, until};
use crate::process;
use nix::sys::signal::Signal;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// The words of the shortest possible comparison.
const SHORT: [&str; 4] = ["known_work/add", "--no-canaries", "--pairs", "8"];

fn ab(place: &Place, words: &[&str]) -> std::process::Command {
    place.syscost(&[&["ab"], &SHORT[..], words].concat())
}

/// A wrapper that starts its first process, which lists the cases, unchanged, and does `deed` to later ones.
fn wrapper_of_later_sides(place: &Place, deed: &str) -> String {
    let count = place.path().join("count");
    let text = format!(
        "#!/bin/sh\necho x >> '{0}'\n[ \"$(wc -l < '{0}')\" -le 1 ] && exec \"$@\"\n{deed}\n",
        count.display()
    );
    place.script("wrapper", &text).display().to_string()
}

#[test]
fn a_program_that_is_no_side_is_refused_with_its_output() {
    let place = Place::new();
    place.end(ab(&place, &["--b-bin", "/bin/true"])).refuses(&["side B", "ended in the middle"]);
    place.end(ab(&place, &["--b-bin", "/nonexistent"])).refuses(&["/nonexistent", "looking for"]);
    place.end(ab(&place, &["--b-wrap", "echo hello;"])).refuses(&["side B", "`hello`", "standard output"]);
    place.end(ab(&place, &["--b-wrap", "no-such-wrapper"])).refuses(&["side B", "no-such-wrapper"]);
    place.end(ab(&place, &[])).refuses(&["the two sides are the same", "--b-wrap"]);
    place.is_tidy();
}

#[test]
fn a_side_that_dies_ends_its_case_with_its_last_words() {
    let place = Place::new();
    let wrapper = wrapper_of_later_sides(&place, "echo 'it is all over' >&2; exit 7");
    let ended = place.end(ab(&place, &["--b-wrap", &wrapper]));
    ended.says(1, &["incomparable", "exit status: 7", "it is all over", "Nothing was compared"]);
    place.is_tidy();
}

#[test]
fn a_side_that_is_killed_in_the_middle_ends_its_pair() {
    let place = Place::new();
    let wrapper = wrapper_of_later_sides(&place, "exec timeout -s KILL 0.03 \"$@\"");
    let ended = place.end(ab(&place, &["--b-wrap", &wrapper]));
    ended.says(1, &["known_work/add", "side B ended in the middle of the conversation"]);
    place.is_tidy();
}

#[test]
fn a_binary_that_is_replaced_in_the_middle_is_no_longer_a_side() {
    let place = Place::new();
    let [binary, newer] = ["binary", "newer"].map(|name| place.path().join(name));
    for copy in [&binary, &newer] {
        std::fs::copy(SYSCOST, copy).unwrap();
    }
    let deed = format!("mv '{}' '{}' 2>/dev/null; exec \"$@\"", newer.display(), binary.display());
    let wrapper = wrapper_of_later_sides(&place, &deed);
    let ended = place.end(ab(&place, &["--b-bin", binary.to_str().unwrap(), "--b-wrap", &wrapper]));
    let said = ["the binary of side B was replaced in the middle", binary.to_str().unwrap(), "copies"];
    ended.says(1, &said);
    place.is_tidy();
}

#[test]
fn one_cpu_is_enough_for_two_sides_and_that_is_said() {
    let place = Place::new();
    let mut command = place.program("taskset");
    command.args(["-c", "0", SYSCOST, "ab"]).args(SHORT).args(["--a-bin", SYSCOST]);
    place.end(command).says(0, &["there is one CPU", "known_work/add"]);
    place.is_tidy();
}

#[test]
fn a_side_is_never_slower_than_itself() {
    let place = Place::new();
    let ended = place.end(ab(&place, &["--a-bin", SYSCOST, "--format", "json"]));
    ended.says(0, &["known_work/add"]);
    assert!(!ended.output.contains("\"slower\"") && !ended.output.contains("\"faster\""), "{ended:?}");
    place.is_tidy();
}

#[test]
fn a_gate_fails_for_what_the_kernel_slows_and_for_nothing_else() {
    let place = Place::new();
    let slowed = format!("'{SYSCOST}' burden --additions 2000 --");
    let gate =
        |words: &[&str]| place.end(place.syscost(&[&["gate", "syscall/getppid", "--exact"], words].concat()));
    let summary = place.path().join("summary.md");
    let failed = gate(&["--b-wrap", &slowed, "--summary", summary.to_str().unwrap()]);
    if failed.code == Some(5) {
        print_skipped(&format!("others use this machine too much: {failed:?}"));
        return;
    }
    failed.says(1, &["syscall/getppid: slower by +", "gate: slower"]);
    assert!(std::fs::read_to_string(summary).unwrap().contains("| `syscall/getppid` | slower |"));
    let passed = gate(&["--b-wrap", "env"]);
    assert!([0, 4, 5].contains(&passed.code.unwrap()), "never slower: {passed:?}");
    let mute = place.path().join("mute.toml");
    std::fs::write(&mute, "[\"syscall/getppid\"]\nreason = \"known\"\nuntil = \"2999-01-01\"\n").unwrap();
    let muted = gate(&["--b-wrap", &slowed, "--mute", mute.to_str().unwrap()]);
    assert_ne!(muted.code, Some(1), "{muted:?}");
    muted.says(muted.code.unwrap(), &["overlooked: known (until 2999-01-01)"]);
    let bisect = gate(&["--bisect", "--b-bin", "/bin/true"]);
    bisect.says(125, &["side B"]);
    place.is_tidy();
}

#[test]
fn a_gate_ends_by_the_code_that_the_manual_gives() {
    let place = Place::new();
    let gate = |words: &[&str]| place.end(place.syscost(&[&["gate", "known_work/add"], words].concat()));
    gate(&["--a-bin", "/typo"]).says(2, &["/typo", "looking for"]);
    for no_program in ["/etc/passwd", "/etc"] {
        gate(&["--b-bin", no_program]).says(2, &["side B", no_program, "no program"]);
    }
    gate(&["--b-bin", "/bin/true"]).says(2, &["side B"]);
    gate(&["--mute", "/typo.toml", "--b-wrap", "env"]).says(2, &["/typo.toml"]);
    let other = place.script("other", "#!/bin/sh\n\"$@\" | sed -u 's/opt-level [0-9]/opt-level 9/'\n");
    let other = other.display().to_string();
    gate(&["--b-wrap", &other]).says(3, &["opt-level 9", "--allow-different-toolchains"]);
    gate(&["--b-wrap", &other, "--bisect"]).says(125, &["opt-level 9"]);
    let wrapper = wrapper_of_later_sides(&place, "echo 'it is all over' >&2; exit 7");
    gate(&["--b-wrap", &wrapper])
        .says(125, &[": not measured: side B", "gate: not measured", "it is all over"]);
}

#[test]
fn an_interrupted_gate_ends_by_its_signal_in_a_bisection_too() {
    for bisect in [None, Some("--bisect")] {
        let place = Place::new();
        let wrapper = wrapper_of_later_sides(&place, "touch begun; exec \"$@\"");
        let words = ["gate", "known_work/add", "--b-wrap", &wrapper];
        let running = place.begin(place.syscost(&[&words[..], bisect.as_slice()].concat()));
        until_begun(&place);
        process::send(running.pid(), Signal::SIGTERM);
        running.end().says(143, &["interrupted by SIGTERM: there is no answer"]);
        place.is_tidy();
    }
}

#[test]
fn the_same_pairs_are_judged_by_the_same_bytes() {
    let place = Place::new();
    place.end(ab(&place, &["--a-bin", SYSCOST])).says(0, &["kept in"]);
    let pairs = files(&place.home().join("syscost/pairs"), ".json").pop().expect("kept");
    let judge = || place.end(place.syscost(&["ab", "--judge", pairs.to_str().unwrap(), "--format", "json"]));
    let (first, second) = (judge(), judge());
    first.says(0, &["known_work/add"]);
    assert_eq!(first.output, second.output);
    std::fs::write(&pairs, "{\"paired\": 99}").unwrap();
    judge().refuses(&[pairs.to_str().unwrap(), "newer syscost"]);
}

/// A comparison of two states of a file whose content is `before` at first.
fn comparison_of_settings(place: &Place) -> std::process::Command {
    comparison_of_settings_after(place, "")
}

/// As [`of_settings`], with the shell words `deed` before each of the two commands.
fn comparison_of_settings_after(place: &Place, deed: &str) -> std::process::Command {
    std::fs::write(place.path().join("state"), "before\n").unwrap();
    let [a, b] = ["a", "b"].map(|value| format!("{deed}echo {value} > state"));
    ab(place, &["--a", &a, "--b", &b, "--restore", "echo before > state"])
}

/// Shell words that make a setting slow, and create a file to show that it has begun.
const SLOW: &str = "touch begun; sleep 1; ";

fn until_begun(place: &Place) {
    until("no setting is entered", || place.path().join("begun").exists());
}

/// Waits until no process is left that could change the file again.
fn until_all_have_ended(place: &Place) {
    until("processes are left", || process::of(place).is_empty());
}

fn journals(place: &Place) -> Vec<std::path::PathBuf> {
    files(&place.home().join("syscost/restore"), ".json")
}

fn state(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("state")).unwrap()
}

/// Waits until the file has its first content again. The guard needs a moment for it.
fn wait_until_restored(place: &Place) {
    until("it is not put back", || state(place) == "before\n" && journals(place).is_empty());
}

#[test]
fn settings_are_put_back_at_the_end_and_after_a_signal() {
    let place = Place::new();
    place.end(comparison_of_settings(&place)).says(0, &["restored at the end", "after \"echo b > state\""]);
    wait_until_restored(&place);
    let _alone = alone();
    let running = place.begin(comparison_of_settings(&place));
    until("it is never changed", || state(&place) != "before\n");
    process::send_to_group(running.pid(), Signal::SIGINT);
    running.end().says(130, &[]);
    wait_until_restored(&place);
    place.is_tidy();
}

#[test]
fn settings_that_cannot_be_undone_are_refused() {
    let place = Place::new();
    let ended = place.end(ab(&place, &["--a", "swapoff -a", "--b", "swapon -a"]));
    ended.refuses(&["nothing tells how to undo", "--restore"]);
    let failing = ["--a", "echo no >&2; false", "--b", "true", "--restore", "true"];
    place.end(ab(&place, &failing)).says(2, &["`echo no >&2; false` failed", "no"]);
    let glob = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    let [a, b] = ["performance", "powersave"].map(|value| format!("echo {value} | tee {glob}"));
    place.end(ab(&place, &["--a", &a, "--b", &b])).refuses(&[glob, "name each file in full", "--restore"]);
    assert!(journals(&place).is_empty());
    place.is_tidy();
}

#[test]
fn a_setting_that_outlives_its_driver_is_put_back_once_it_has_ended() {
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(comparison_of_settings_after(&place, SLOW));
    until_begun(&place);
    process::send(running.pid(), Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    until_all_have_ended(&place);
    assert_eq!((state(&place).as_str(), journals(&place).len()), ("before\n", 0));
}

#[test]
fn a_background_process_of_a_setting_does_not_delay_the_end() {
    let place = Place::new();
    let [load, rest] = ["sleep 600 & echo $! > load", "kill $(cat load); true"];
    let command = || ab(&place, &["--a", load, "--b", rest, "--restore", rest]);
    place.end(command()).says(0, &["known_work/add"]);
    place.is_tidy();
    let _alone = alone();
    let _ = std::fs::remove_file(place.path().join("load"));
    let running = place.begin(command());
    until("no load", || place.path().join("load").exists());
    process::send(running.pid(), Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    until_all_have_ended(&place);
    assert!(journals(&place).is_empty());
}

#[test]
fn a_second_comparison_of_settings_at_the_same_time_is_refused() {
    let _alone = alone();
    let (place, elsewhere) = (Place::new(), Place::new());
    let running = place.begin(comparison_of_settings_after(&place, SLOW));
    until_begun(&place);
    elsewhere.end_alone(comparison_of_settings(&elsewhere)).refuses(&["another comparison of settings runs"]);
    assert!(!journals(&place).is_empty() && state(&elsewhere) == "before\n");
    process::send_to_group(running.pid(), Signal::SIGINT);
    running.end().says(130, &[]);
    wait_until_restored(&place);
    place.is_tidy();
    elsewhere.is_tidy();
}

/// The id of the guard, the process that restores settings if the comparison is killed.
fn guard(place: &Place) -> i32 {
    let is_guard = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--guard")
    };
    process::of(place).into_iter().find(is_guard).expect("a guard")
}

#[test]
fn leftovers_of_a_killed_comparison_and_guard_are_reported_and_can_be_restored() {
    let _alone = alone();
    let place = Place::new();
    let running = place.begin(comparison_of_settings(&place));
    until("it is never changed", || state(&place) != "before\n");
    process::send(guard(&place), Signal::SIGKILL);
    process::send(running.pid(), Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    until_all_have_ended(&place);
    assert_ne!(state(&place), "before\n", "nobody is left to put it back");
    let again = ab(&place, &["--a", "true", "--b", "true", "--restore", "true"]);
    place.end_alone(again).refuses(&["run `syscost restore` first", "echo before > state"]);
    let run = place.end_alone(place.run(&["known_work/add"]));
    assert!(run.error.contains("has left its settings"), "{run:?}");
    let restore = |directory| {
        let mut command = place.syscost(&["restore"]);
        command.current_dir(directory);
        place.end_alone(command)
    };
    restore(place.temporary()).says(0, &["echo before > state"]);
    wait_until_restored(&place);
    restore(place.temporary()).says(0, &["nothing is left to be put back"]);
    place.end_alone(comparison_of_settings(&place)).says(0, &["after \"echo b > state\""]);
}

#[test]
fn whenever_it_is_killed_the_settings_are_put_back_and_the_store_is_whole() {
    let _alone = alone();
    let times = std::env::var("SYSCOST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let mut random = syscost_statistic::Random::new(50);
    for _ in 0..times {
        let place = Place::new();
        let running = place.begin(comparison_of_settings(&place));
        std::thread::sleep(Duration::from_millis(random.number_below(1_500) as u64));
        process::send(running.pid(), Signal::SIGKILL);
        let code = running.end().code;
        assert!(code.is_none() || code == Some(0), "{code:?}");
        wait_until_restored(&place);
        // After the driver has ended, a side that waits for its turn ends at once, and a running side at the end of its turn.
        assert!(process::all_end(&place), "{:?}", process::of(&place));
        // The next start removes leftover links and scratch files; the files of the store are whole now.
        crate::place::all_parse(&place.home());
        let next = place.end_alone(ab(&place, &["--a-bin", SYSCOST]));
        next.says(0, &["known_work/add"]);
        let left: Vec<_> = std::fs::read_dir(place.temporary()).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_kernel_setting_that_is_named_is_put_back_by_itself() {
    let file = "/proc/sys/vm/stat_interval";
    let before = std::fs::read_to_string(file).unwrap_or_default();
    if !nix::unistd::geteuid().is_root() || std::fs::write(file, &before).is_err() {
        print_skipped(&format!("{file} cannot be written here; run the tests as root"));
        return;
    }
    let place = Place::new();
    let [a, b] = ["7", "9"].map(|value| format!("echo {value} > {file}"));
    place.end(ab(&place, &["--a", &a, "--b", &b])).says(0, &[&format!("echo '{}' > {file}", before.trim())]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), before);
    assert!(journals(&place).is_empty(), "{:?}", journals(&place));
    place.is_tidy();
}
