//! A history: each added point is stored exactly once and undamaged, and changes are reported.

use crate::place::{Ended, Place, SYSCOST, alone};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// Writes a stored comparison of this night, in which three cases are slower than the reference by the share `slower`.
pub fn pairs(place: &Place, night: u64, slower: f64, release: &str) -> PathBuf {
    let label = format!("\u{1b}[31mrevision {night}");
    pairs_of(place, night, slower, release, &label, |case| format!("group/{case}"))
}

/// The same with these ids of cases; the first three cases are slower.
pub fn pairs_of(
    place: &Place,
    night: u64,
    slower: f64,
    release: &str,
    label: &str,
    id: impl Fn(u64) -> String,
) -> PathBuf {
    // Deterministic noise between nights: a few tenths of a per cent.
    let noise = |case: u64, pair: u64| {
        let mixed =
            (night * 7919 + case * 104_729 + pair * 1_299_709).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        0.004 * (mixed as f64 / f64::from(1 << 24) - 0.5)
    };
    let case = |case: u64| {
        let level = if case < 3 { slower.ln_1p() } else { 0.0 };
        let pairs: Vec<Value> = (0..16)
            .map(|pair| json!({"difference": level + noise(case, pair), "cost_ns": [100.0, 100.0], "rejected": null}))
            .collect();
        json!({"id": id(case), "canary": false, "evidence": [[], []], "versions": ["1", "1"],
               "notes": [], "ended": null, "pairs": pairs})
    };
    let paired = json!({
        "paired": 3, "tool": "syscost", "run": format!("night-{night}"), "started": 1_790_000_000 + 86_400 * night,
        "seed": 1, "rule": {"threshold": 0.01, "margin": 0.02, "looks": 3}, "by_turns": true,
        "sides": ["v1", label],
        "fingerprint": {"kernel_release": release}, "cpu": 0, "notes": [],
        "cases": (0..8).map(case).collect::<Vec<_>>(),
    });
    let path = place.path().join(format!("night-{night}.json"));
    std::fs::write(&path, paired.to_string()).unwrap();
    path
}

pub fn history(place: &Place, words: &[&str]) -> Ended {
    place.end(place.syscost(&[&["history"], words].concat()))
}

/// Starts a command and kills it after this time.
pub fn killed_after(moment: Duration, mut command: Command) {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
}

pub fn add(place: &Place, file: &Path) -> Ended {
    history(place, &["add", file.to_str().unwrap(), "--reference", "v1"])
}

/// Adds twelve nights. From the ninth on, three cases are 2 % slower and the kernel is another one.
pub fn twelve_nights(place: &Place) {
    for night in 0..12 {
        let (slower, release) = if night >= 8 { (0.02, "6.1.0-30") } else { (0.0, "6.1.0-29") };
        add(place, &pairs(place, night, slower, release)).says(0, &["8 cases against v1 added"]);
    }
}

pub fn file(place: &Place) -> PathBuf {
    place.home().join("syscost/history/main.jsonl")
}

#[test]
fn a_change_is_reported_for_its_cases_and_sets_the_exit_code() {
    let place = Place::new();
    twelve_nights(&place);
    let shown = history(&place, &["changes"]);
    shown.says(1, &["slower\t", "group/0", "group/1", "group/2"]);
    assert_eq!(shown.output.lines().count(), 3, "{shown:?}");
    assert!(!shown.output.contains('\u{1b}'), "{shown:?}");
    history(&place, &["changes", "--since", "2027-01-01"]).says(0, &[]);
    let mute = place.path().join("mute.toml");
    let muted = |id| format!("[\"group/{id}\"]\nreason = \"known\"\nuntil = \"2999-01-01\"\n");
    std::fs::write(&mute, [0, 1, 2].map(muted).concat()).unwrap();
    history(&place, &["changes", "--mute", mute.to_str().unwrap()]).says(0, &["known (until 2999-01-01)"]);
    history(&place, &["show", "group/0"]).says(0, &["1.0", "v1"]);
    history(&place, &["show", "group/9"]).refuses(&["no point has a case group/9", "group/0"]);
    let exported = history(&place, &["export"]);
    assert_eq!(exported.output.lines().count(), 1 + 8 * 12, "{exported:?}");
    assert!(
        exported.output.starts_with("case,run,started,label,reference,ratio,low,high,cost_ns,pairs,clock\n")
    );
}

#[test]
fn points_added_twice_or_concurrently_are_stored_once() {
    let place = Place::new();
    let files: Vec<_> = (0..6).map(|night| pairs(&place, night, 0.0, "6.1")).collect();
    let _alone = alone();
    let all: Vec<_> = files.iter().chain(&files).collect();
    let adding = all.iter().map(|file| {
        let words = ["history", "add", file.to_str().unwrap(), "--reference", "v1"];
        place.syscost(&words).stdout(Stdio::null()).spawn().unwrap()
    });
    let adding: Vec<_> = adding.collect();
    assert!(adding.into_iter().all(|mut child| child.wait().unwrap().success()));
    let verified = place.end_alone(place.syscost(&["history", "verify"]));
    verified.says(0, &["6 sound points, 0 damaged"]);
}

#[test]
fn a_writer_that_is_killed_at_any_moment_loses_nothing() {
    let place = Place::new();
    add(&place, &pairs(&place, 0, 0.0, "6.1")).says(0, &[]);
    let next = pairs(&place, 1, 0.0, "6.1");
    let words = ["history", "add", next.to_str().unwrap(), "--reference", "v1"];
    let _alone = alone();
    for micros in (0..30).map(|step| 700 * step) {
        killed_after(Duration::from_micros(micros), place.syscost(&words));
        let listed = place.end_alone(place.syscost(&["history", "list"]));
        listed.says(0, &[]);
        let points = listed.output.lines().count();
        assert!(points == 1 || points == 2, "{micros} us: {listed:?}");
    }
    place.end_alone(place.syscost(&words)).says(0, &["night-1"].map(|_| "v1"));
    let listed = place.end_alone(place.syscost(&["history", "list"]));
    assert_eq!(listed.output.lines().count(), 2, "{listed:?}");
}

#[test]
fn a_flipped_byte_is_reported_with_its_line_and_repaired_by_an_import() {
    let place = Place::new();
    twelve_nights(&place);
    let sound = std::fs::read(file(&place)).unwrap();
    let copy = place.path().join("copy.jsonl");
    std::fs::write(&copy, &sound).unwrap();
    let mut flipped = sound.clone();
    let third = sound.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    flipped[third + 200] ^= 4;
    std::fs::write(file(&place), &flipped).unwrap();
    let path = file(&place).display().to_string();
    history(&place, &["verify"])
        .says(1, &["11 sound points, 1 damaged", &path, "line 3: expected a sealed point"]);
    history(&place, &["changes"]).says(1, &["line 3", "group/0"]);
    let copied = history(&place, &["import", copy.to_str().unwrap()]);
    copied.says(0, &["1 of 12 points added"]);
    history(&place, &["verify"])
        .says(1, &["12 sound points, 1 damaged", "1 point began before the one above it"]);
}

#[test]
fn impossible_arguments_and_newer_files_are_refused() {
    let place = Place::new();
    history(&place, &["changes"]).says(0, &["no point yet"]);
    history(&place, &["measure", "--reference", "v1"])
        .refuses(&["there is no reference v1", "history reference v1"]);
    history(&place, &["reference", "../v1"]).refuses(&["cannot name a reference"]);
    history(&place, &["changes", "--since", "yesterday"]).refuses(&["such as 2026-11-20"]);
    history(&place, &["import", "none.jsonl"]).refuses(&["none.jsonl"]);
    add(&place, &pairs(&place, 0, 0.0, "6.1")).says(0, &[]);
    let newer = std::fs::read_to_string(file(&place)).unwrap().replace("\"history\":1", "\"history\":9");
    std::fs::write(file(&place), &newer).unwrap();
    for words in [&["changes"][..], &["verify"], &["list"]] {
        history(&place, words).refuses(&["line 1", "written by a newer syscost"]);
    }
    assert_eq!(std::fs::read_to_string(file(&place)).unwrap(), newer);
}

#[test]
fn a_reference_is_kept_once_and_measured_against() {
    let place = Place::new();
    let keep = || history(&place, &["reference", "base", "--bin", SYSCOST]);
    keep().says(0, &["references/base"]);
    keep().refuses(&["there is a file of this name"]);
    let short = ["--pairs", "8", "--scale", "smoke", "--no-canaries"];
    let case = ["known_work/add", "--exact", "--label", "today"];
    let measured = history(&place, &[&["measure", "--reference", "base"][..], &case, &short].concat());
    if measured.error.contains("no case has a number") {
        print_skipped(&format!("others use this machine too much: {measured:?}"));
        return;
    }
    measured.says(0, &["1 case against base added"]);
    history(&place, &[&["bridge", "base", "base"][..], &short].concat())
        .refuses(&["cannot take its own place"]);
    let listed = history(&place, &["list"]);
    assert!(listed.output.ends_with("\t1\tbase\ttoday\n"), "{listed:?}");
    place.is_tidy();
}

/// The data in a page, as its script reads them.
fn data(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_pages_show_the_history_and_each_run_and_replace_no_other_kind_of_file() {
    let place = Place::new();
    twelve_nights(&place);
    let public = place.path().join("public");
    let page = || place.end(place.syscost(&["page", public.to_str().unwrap()]));
    page().says(0, &["public/index.html"]);
    let alone = data(&public.join("index.html"));
    let history = &alone["histories"][0];
    assert_eq!((&alone["groups"], &history["name"]), (&json!([]), &json!("main")));
    assert_eq!(
        (history["points"].as_array().unwrap().len(), history["series"].as_array().unwrap().len()),
        (12, 8)
    );
    let event = &history["events"][0];
    assert_eq!((&event["at"], event["moved"].as_array().unwrap().len()), (&json!(8), 3));
    assert_eq!(event["profile"], json!([["kernel_release", "6.1.0-29", "6.1.0-30"]]));
    let first = history["series"][0]["ratio"].as_array().unwrap();
    assert!(first.len() == 12 && first[11].as_f64().unwrap() / 1e5 > 0.015, "{first:?}");
    for _ in 0..2 {
        if place.succeeds(|| place.run(&["known_work"])).is_none() {
            return;
        }
    }
    page().says(0, &[]);
    let (index, runs) = (data(&public.join("index.html")), std::fs::read_dir(public.join("runs")).unwrap());
    assert_eq!(
        (index["groups"][0]["name"].as_str(), index["histories"][0]["points"].as_array().unwrap().len()),
        (Some("known_work"), 12)
    );
    assert_eq!((index["others"].as_array().unwrap().len(), runs.count()), (1, 1));
    std::fs::remove_file(public.join("index.html")).unwrap();
    std::fs::create_dir(public.join("index.html")).unwrap();
    page().refuses(&["index.html: its kind: expected a plain file"]);
    let nothing = Place::new();
    nothing.end(nothing.syscost(&["page", "public"])).refuses(&["there is no run in"]);
}

#[test]
fn a_full_disk_leaves_the_history_as_it_was() {
    let place = Place::new();
    twelve_nights(&place);
    let whole = std::fs::read(file(&place)).unwrap();
    // The file system has room for the first half and for a part of another line.
    let half = whole.split_inclusive(|byte| *byte == b'\n').take(6).map(<[u8]>::len).sum::<usize>();
    std::fs::write(place.path().join("half.jsonl"), &whole[..half]).unwrap();
    let script = "size=$(( ($(stat -c %s half.jsonl) + 4095) / 4096 * 4 + 4 )); mkdir small && mount -t tmpfs -o size=${size}k none small || exit 99
        cp half.jsonl small/nights.jsonl && \"$0\" history import --file small/nights.jsonl \"$1\"; code=$?
        cmp half.jsonl small/nights.jsonl && \"$0\" history verify --file small/nights.jsonl; exit $code";
    let mut command = place.program("unshare");
    command.args(["-m", "sh", "-c", script, SYSCOST]).arg(file(&place));
    let ended = place.end(command);
    if ended.code == Some(99) || ended.error.contains("unshare") {
        return print_skipped("no file system can be mounted here");
    }
    ended.says(1, &["small/nights.jsonl: writing failed", "No space left", "6 sound points, 0 damaged"]);
}

/// The history of this crate: revisions of its own, each compared by turns with the first by `scripts/history/own`.
#[test]
fn the_history_of_this_crate_is_sound_and_has_one_change() {
    let place = Place::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/history.jsonl");
    let kept = kept.to_str().unwrap();
    history(&place, &["verify", "--file", kept]).says(0, &["sound points, 0 damaged"]);
    let shown = history(&place, &["changes", "--file", kept]);
    // The position of this code in the binary made the lock slower by one cycle of sixteen for two revisions.
    shown.says(1, &["slower\t+6.25", "lock/pthread-mutex/free\tfe0ba53"]);
}
