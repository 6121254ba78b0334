//! Changes in a history are shown, confirmed by another comparison, and passed to a bisection.

use crate::nights::{add, history, pairs_of, twelve_nights};
use crate::place::{Place, SYSCOST};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Adds six nights with the first label, and six with the second, in which `case` and two of seven invented cases are 40 % slower.
fn two_labels(place: &Place, labels: [&str; 2], case: &str) {
    for night in 0..12 {
        let (slower, label) = if night < 6 { (0.0, labels[0]) } else { (0.4, labels[1]) };
        let id = |other| if other == 0 { case.to_owned() } else { format!("nothing/{other}") };
        add(place, &pairs_of(place, night, slower, "6.1", label, id)).says(0, &[]);
    }
}

/// A build whose system calls are all slower.
fn burdened(place: &Place) -> PathBuf {
    let text = format!("#!/bin/sh\nexec {SYSCOST} burden --additions 1000 -- {SYSCOST} \"$@\"\n");
    place.script("burdened", &text)
}

#[test]
fn a_plot_fits_eighty_columns_and_marks_the_change() {
    let place = Place::new();
    twelve_nights(&place);
    let plotted = history(&place, &["show", "group/0", "--plot"]);
    plotted.says(0, &["group/0, 2026-", "┤", "1  2026-09-29 14:13 +1.99 % ±", "revision 8"]);
    assert!(!plotted.output.contains('\u{1b}'), "{plotted:?}");
    assert!(plotted.output.lines().all(|line| line.chars().count() <= 80), "{plotted:?}");
    let axis = plotted.output.lines().find(|line| line.contains('└')).unwrap_or_default();
    assert_eq!(axis.matches(|c: char| c.is_ascii_digit()).collect::<Vec<_>>(), ["1"], "{axis}");
    let quiet = history(&place, &["show", "group/7", "--plot"]);
    assert_eq!(quiet.output.lines().count(), 1 + 8 + 1, "{quiet:?}");
}

#[test]
fn changes_are_printed_as_json_and_expired_mutes_give_a_warning() {
    let place = Place::new();
    twelve_nights(&place);
    let reported = history(&place, &["changes", "--json"]);
    reported.says(1, &[]);
    let read: Value = serde_json::from_str(&reported.output).unwrap();
    assert_eq!((&read["points"], &read["cases"], &read["clock"]), (&json!(12), &json!(8), &json!("host")));
    let event = &read["events"][0];
    assert_eq!(event["moved"].as_array().map(Vec::len), Some(3), "{read}");
    assert_eq!(event["machine"]["kernel_release"], json!(["6.1.0-29", "6.1.0-30"]));
    assert_eq!((&event["after"]["run"], &event["found"]["run"]), (&json!("night-8"), &json!("night-9")));
    let mute = place.path().join("mute.toml");
    std::fs::write(&mute, "[\"group/0\"]\nreason = \"known\"\nuntil = \"2020-01-01\"\n").unwrap();
    history(&place, &["changes", "--mute", mute.to_str().unwrap()])
        .says(1, &["the mute of group/0 ended on 2020-01-01: known"]);
    history(&place, &["changes", "--json", "--since", "2027-01-01"]).says(0, &["\"events\": []"]);
}

#[test]
fn a_missing_side_is_reported_with_exit_code_125() {
    let place = Place::new();
    history(&place, &["confirm"]).refuses(&["tells of no change"]);
    two_labels(&place, ["deadbeef0 old", "release two"], "syscall/getppid");
    for command in ["confirm", "bisect"] {
        let gone = history(&place, &[command]);
        gone.says(125, &["the side before the change is gone", "deadbeef0 old", "--before"]);
        history(&place, &[command, "release one"]).refuses(&["they begin at: release two"]);
    }
    let kept = |name: &str| history(&place, &["reference", name, "--bin", SYSCOST]);
    kept("one").says(0, &[]);
    history(&place, &["confirm", "release two", "--before", "one"])
        .says(125, &["the side after the change is gone", "release two"]);
    kept("two").says(0, &[]);
    history(&place, &["bisect", "--before", "one", "--after", "two"])
        .says(125, &["name both sides as git revisions"]);
}

#[test]
fn a_change_is_confirmed_if_the_sides_differ_and_refuted_otherwise() {
    let place = Place::new();
    two_labels(&place, ["old", "new"], "syscall/getppid");
    let slow = burdened(&place);
    for (name, binary) in [("old", SYSCOST), ("same", SYSCOST), ("new", slow.to_str().unwrap())] {
        history(&place, &["reference", name, "--bin", binary]).says(0, &[]);
    }
    let short = ["confirm", "--scale", "smoke"];
    let confirmed = history(&place, &short);
    let refuted = history(&place, &[&short[..], &["--after", "same"]].concat());
    // Other tests may disturb the comparison: it may stay undecided, but never gives a wrong verdict.
    assert!(matches!(confirmed.code, Some(1 | 4 | 5 | 125)), "{confirmed:?}");
    assert!(matches!(refuted.code, Some(0 | 4 | 5 | 125)), "{refuted:?}");
    if confirmed.code == Some(1) {
        assert!(confirmed.output.starts_with("confirmed\t+40.0"), "{confirmed:?}");
        assert!(confirmed.output.contains("\tsyscall/getppid\t"), "{confirmed:?}");
    }
    if refuted.code == Some(0) {
        assert!(refuted.output.starts_with("refuted\t"), "{refuted:?}");
    }
    place.is_tidy();
}

#[test]
fn a_bisection_is_printed_with_both_revisions() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = place.program("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(words);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet", "."]);
    let commit = |name: &str| {
        git(&["commit", "--quiet", "--allow-empty", "-m", name]);
        git(&["rev-parse", "HEAD"])
    };
    let (good, bad) = (commit("good"), commit("bad"));
    two_labels(&place, [&good[..10], &bad[..10]], "syscall/getppid");
    let expected = format!(
        "git bisect start {bad} {good}\ngit bisect run syscost gate --bisect --a-rev {good} --b-rev HEAD --max-regress "
    );
    let printed = history(&place, &["bisect"]);
    printed.says(0, &["% '^(", "\ngit bisect reset\n"]);
    assert!(printed.output.starts_with(&expected), "{printed:?}");
    assert!(printed.output.contains("syscall/getppid"), "{printed:?}");
    assert_eq!(git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

/// Writes stored counts of two kernels, of which the second executes this number of instructions.
fn counts(place: &Place, night: u64, instructions: u64) -> PathBuf {
    let boots = |n: u64| json!([{"counted": {"iterations": 10, "batches": [10 * n, 20 * n]}}, {"counted": {"iterations": 10, "batches": [10 * n, 20 * n]}}]);
    let case = json!({"id": "syscall/getppid", "canary": false, "sides": [boots(300), boots(instructions)]});
    let side = |name: &str| json!({"name": name, "identity": null, "boots": 2, "faults": []});
    let counts = json!({
        "instruction_counts": 2, "clock": "icount", "tool": "syscost", "run": format!("counts-{night}"),
        "started": 1_790_000_000 + 86_400 * night, "threshold": 0.001, "machine": "QEMU", "sides": [side("6.1"), side("6.12")],
        "notes": [], "method": "executed", "cases": [case],
    });
    let path = place.path().join(format!("counts-{night}.json"));
    std::fs::write(&path, counts.to_string()).unwrap();
    path
}

#[test]
fn counted_instructions_need_a_history_of_their_own() {
    let place = Place::new();
    twelve_nights(&place);
    let add = |night, instructions, history_name: &str| {
        let file = counts(&place, night, instructions);
        let words = ["add", file.to_str().unwrap(), "--reference", "6.1", "--history", history_name];
        history(&place, &words)
    };
    add(0, 300, "main").refuses(&["by the clock host, and these by icount", "--history NAME"]);
    for night in 0..8 {
        add(night, if night < 5 { 300 } else { 303 }, "counted").says(0, &["1 case against 6.1 added"]);
    }
    let history_flags = ["--history", "counted"];
    history(&place, &[&["changes"][..], &history_flags].concat())
        .says(1, &["slower\t+1.00\t", "syscall/getppid\t6.12"]);
    history(&place, &[&["changes", "--json"][..], &history_flags].concat())
        .says(1, &["\"clock\": \"icount\""]);
    history(&place, &[&["show", "syscall/getppid"][..], &history_flags].concat())
        .says(0, &["303.0 instr\t6.1\t6.12"]);
    history(&place, &[&["export"][..], &history_flags].concat()).says(0, &[",icount\n"]);
    history(&place, &[&["bisect", "--before", "6.1.0-20"][..], &history_flags].concat())
        .says(0, &["syscost kernels bisect --good 6.1.0-20 --bad 6.12 --exact syscall/getppid\n"]);
}
