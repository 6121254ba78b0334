//! Kernels that are compared by turns as guests: with a shell script as emulator, whose "guests" run sides on this machine, and with
//! user-mode Linux if it is installed.

use crate::is_running;
use crate::kernels::Bench;
use crate::place::{Ended, Place, SYSCOST, until, waited};
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Acts as the first process of a guest on its standard streams: it states its identity, and runs one side after the other.
/// `IMAGE.turns` limits the number of sides before it exits; without `IMAGE.hello` it panics at once.
const EMULATOR: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "QEMU emulator version 0 (a test's)"; exit; }
while [ $# -gt 0 ]; do
    case "$1" in -kernel) kernel=$2 ;; esac
    shift
done
echo $$ >>"$kernel.pids"
[ -e "$kernel.hello" ] || { echo "Kernel panic - not syncing: Fatal exception" >&2; exit 1; }
cat "$kernel.hello"
[ -e "$kernel.turns" ] && left=$(cat "$kernel.turns") || left=1000
while read -r request; do
    case "$request" in *start*) ;; *) continue ;; esac
    [ "$left" -gt 0 ] || exit 3
    left=$((left - 1))
    SYSCOST_SIDE=x "$SYSCOST" && how=0 || how=$?
    echo "{\"gone\":{\"how\":\"exit status: $how\"}}"
done
"#;

/// Writes a kernel whose guest states this release, and returns the path of its image.
fn kernel(bench: &Bench, name: &str, release: &str) -> String {
    let hello = format!(
        "{{\"Hello\":{{\"version\":2,\"release\":\"{release}\",\"build\":\"\",\"command_line\":\"quiet {name}\",\
         \"clocksource\":\"tsc\",\"page_size\":4096,\"mitigations\":[],\"tool\":\"0\"}}}}\n"
    );
    std::fs::write(bench.path(&format!("{name}.hello")), hello).unwrap();
    std::fs::write(bench.path(name), "image").unwrap();
    bench.path(name).display().to_string()
}

fn command(bench: &Bench, words: &[&str]) -> Command {
    let mut command = bench.syscost(words);
    command.env("SYSCOST", SYSCOST);
    command
}

fn ab(bench: &Bench, a: &str, b: &str, words: &[&str]) -> Ended {
    let turns = ["^syscall/getppid$", "--clock", "tcg", "--boots", "8"];
    bench.0.end(command(bench, &[&["kernels", "ab", a, b], &turns[..], words].concat()))
}

#[test]
fn two_kernels_are_compared_by_turns_and_every_output_names_their_clock() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [kernel(&bench, "a", "6.1.0"), kernel(&bench, "b", "6.12.0")];
    let ended = ab(&bench, &a, &b, &[]);
    ended.says(
        0,
        &["time of an emulator (tcg)", "A (tcg)", "Linux 6.1.0", "Linux 6.12.0", " boots", "known_work/add"],
    );
    ended.says(0, &["differs: command line: a, then b", "kept in"]);
    assert!(!ended.output.contains("slower") && !ended.output.contains("faster"), "{ended:?}");
    let [file] = bench.0.files(".json").try_into().unwrap();
    let judged = |form: &[&str]| {
        bench.0.end(command(&bench, &[&["ab", "--judge", file.to_str().unwrap()], form].concat()))
    };
    judged(&[]).says(0, &["A (tcg)", "time of an emulator (tcg)"]);
    judged(&["--format", "markdown"]).says(0, &["| A (tcg) |", "time of an emulator (tcg)"]);
    judged(&["--format", "csv"]).says(0, &["detectable,clock", ",tcg"]);
    judged(&["--format", "json"]).says(0, &["\"clock\": \"tcg\""]);
    bench.0.is_tidy();
}

#[test]
fn a_guest_that_ends_in_its_turn_costs_one_pair() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [kernel(&bench, "a", "6.1.0"), kernel(&bench, "b", "6.12.0")];
    // The guest ends at the third of three cases.
    std::fs::write(bench.path("b.turns"), "2").unwrap();
    let ended = ab(&bench, &a, &b, &[]);
    assert!(ended.output.contains("side B ended in the middle of the conversation"), "{ended:?}");
    assert!(ended.output.contains("a pair was lost"), "{ended:?}");
    bench.0.is_tidy();
}

#[test]
fn a_kernel_that_does_not_boot_is_reported_as_incomparable() {
    let bench = Bench::new(EMULATOR);
    let a = kernel(&bench, "a", "6.1.0");
    let dead = kernel(&bench, "dead", "6.12.0");
    std::fs::remove_file(bench.path("dead.hello")).unwrap();
    let ended = ab(&bench, &a, &dead, &[]);
    ended.says(1, &["the guest of", "did not begin: it panicked", "Fatal exception", "incomparable"]);
    let boots = std::fs::read_to_string(bench.path("dead.pids")).unwrap().lines().count();
    assert_eq!(boots, 2, "a second boot is tried, and no third");
    bench.0.is_tidy();
}

#[test]
fn guests_do_not_outlive_a_comparison_that_was_killed() {
    let bench = Bench::new(EMULATOR);
    let [a, b] = [kernel(&bench, "a", "6.1.0"), kernel(&bench, "b", "6.12.0")];
    let words = ["kernels", "ab", &a, &b, "^syscall/getppid$", "--clock", "tcg"];
    let running = bench.0.begin(command(&bench, &words));
    let pid =
        |side: &str| std::fs::read_to_string(bench.path(side)).ok()?.lines().next()?.parse::<i32>().ok();
    let pids = waited("no guests", || Some([pid("a.pids")?, pid("b.pids")?]));
    running.kill();
    until("the guests live on", || pids.iter().all(|pid| !is_running(*pid)));
}

#[test]
fn kernels_without_a_clock_in_common_are_refused() {
    let bench = Bench::new(EMULATOR);
    let a = kernel(&bench, "a", "6.1.0");
    // A kernel that is a program counts as a user-mode Linux.
    let program = bench.path("program");
    std::fs::copy("/proc/self/exe", &program).unwrap();
    let program = program.display().to_string();
    ab(&bench, &program, &program, &[]).refuses(&["--clock is for kernels that an emulator boots"]);
    let mixed = ["kernels", "ab", &a, &program, "^syscall/getppid$"];
    bench.0.end(command(&bench, &mixed)).refuses(&["no clock in common"]);
    let nobody =
        bench.0.end(command(&bench, &["kernels", "ab", "/bin/true", "/bin/true", "^syscall/getppid$"]));
    nobody.refuses(&["scripts/guest"]);
}

#[test]
fn user_mode_linux_is_compared_with_itself_by_turns() {
    let program = std::env::var_os("SYSCOST_GUEST_BINARY");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|place| place.join("linux.uml").is_file());
    let (Some(program), true) = (program, is_there) else {
        print_skipped("there is no linux.uml, or SYSCOST_GUEST_BINARY names no static program");
        return;
    };
    let place = Place::new();
    let mut command = place.syscost(&["kernels", "ab", "uml", "uml", "^syscall/getppid$", "--boots", "8"]);
    command.env("SYSCOST_GUEST_BINARY", program);
    let ended = place.end(command);
    ended.says(0, &["user-mode Linux (uml)", "A (uml)", "syscall/getppid"]);
    assert!(!ended.output.contains("slower") && !ended.output.contains("faster"), "{ended:?}");
    place.is_tidy();
}
