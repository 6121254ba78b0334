//! A machine that changes during a run: a file system that becomes read-only or loses its device. And unusual set-ups: an empty
//! environment, and a directory in which nothing may be executed.

use crate::disk::{NOT_MOUNTED, mounted, on_a_disk};
use crate::limit::ordinary;
use crate::place::{Ended, Place, SYSCOST, all_parse};
use syscost_platform::testing::print_skipped;

/// Shell functions: one waits until the first round of the run `$pid` is stored in the home `$1`; the other makes `$1` read-only as
/// soon as no process writes in it.
const CHANGES: &str = r#"
    stored() { until ls "$1"/syscost/runs/*.json >/dev/null 2>&1; do kill -0 $pid || return; sleep 0.02; done; }
    read_only() { until mount -o remount,ro "$1" 2>/dev/null; do kill -0 $pid || return; sleep 0.005; done; }
"#;

/// A run in the background with time for all of its cases, in which the home becomes read-only after the first group, and
/// then `more`.
fn read_only_home(place: &Place, more: &str) -> Option<Ended> {
    let script = format!(
        "{CHANGES} run --scale default --time 8 'known_work|call/u64/[0-2]' >output.run 2>&1 & pid=$!
        stored \"$home\"; read_only \"$home\"; {more}
        wait $pid; code=$?; cat output.run; cp -r \"$home\" after; exit $code"
    );
    on_a_disk(place, "16m", &script)
}

#[test]
fn a_home_that_becomes_read_only_keeps_what_was_saved() {
    let place = Place::new();
    let Some(ended) = read_only_home(&place, "") else { return };
    let words =
        ["5 measured, 0 skipped, 0 failed", "Read-only file system", "remount it", "not saved to its end"];
    ended.says(1, &words);
    all_parse(&place.path().join("after"));
    place.is_tidy();
}

#[test]
fn a_home_that_can_be_written_again_has_the_whole_run() {
    let place = Place::new();
    let Some(ended) = read_only_home(&place, "sleep 0.3; mount -o remount,rw \"$home\"") else { return };
    ended.says(0, &["5 measured, 0 skipped, 0 failed"]);
    let after = place.path().join("after");
    all_parse(&after);
    for case in ["known_work/add", "known_work/multiply", "call/u64_0", "call/u64_1", "call/u64_2"] {
        assert!(after.join(case).join("main/estimates.json").is_file(), "{case}");
    }
    place.is_tidy();
}

/// A run of a case with its files in `mounted`, which `mount` mounts, and `change` changes once the first number is stored.
fn files_on(place: &Place, mount: &str, change: &str) -> Option<Ended> {
    ordinary()?; // the test mounts, which an ordinary user may not
    let script = format!(
        "{CHANGES} PATH=$PATH:/sbin:/usr/sbin; mkdir mounted && {{ {mount}; }} || exit {NOT_MOUNTED}
        \"$0\" run cached_read/pread/4KiB --exact --scale default --time 3 --dir mounted & pid=$!
        stored {}; {change}
        wait $pid; exit $?",
        place.home().display()
    );
    let run = || {
        let _ = std::fs::remove_dir(place.path().join("mounted"));
        let _ = std::fs::remove_dir_all(place.home());
        let mut command = place.program("unshare");
        command.args(["-m", "sh", "-c", &script, SYSCOST]);
        command
    };
    mounted(place, run)
}

/// Asserts that earlier measurements are kept, and that the missing ones are reported with a remedy.
fn assert_kept(place: &Place, ended: &Ended, words: &str) {
    place.is_tidy();
    if ended.output.contains("FAILED") {
        // If the first number was disturbed there is none, and the sentence says why.
        return ended.says(1, &[words]);
    }
    ended.says(0, &["1 measured, 0 skipped, 0 failed"]);
    let record = place.record().to_string();
    assert!(record.contains(words), "{record}");
}

#[test]
fn files_that_become_read_only_take_no_number_from_what_was_measured() {
    let place = Place::new();
    let Some(ended) = files_on(&place, "mount -t tmpfs none mounted", "read_only mounted") else { return };
    assert_kept(&place, &ended, "mounted read-only");
}

/// Ends the file system as an error of its device does: EXT4_IOC_SHUTDOWN without its journal (flag 2).
const SHUT_DOWN: &str = "python3 -c \"
import fcntl, os, struct
fcntl.ioctl(os.open('mounted', os.O_RDONLY), 0x8004587d, struct.pack('I', 2))\"";

#[test]
fn a_device_that_breaks_takes_no_number_from_what_was_measured() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return print_skipped("there is no python3, which asks for an ioctl");
    }
    let place = Place::new();
    let mount = "truncate -s 64M ground && mkfs.ext4 -q ground && mount -o loop ground mounted";
    let Some(ended) = files_on(&place, mount, SHUT_DOWN) else { return };
    assert_kept(&place, &ended, "is broken or gone");
}

#[test]
fn where_nothing_may_be_executed_programs_are_skipped_and_the_rest_is_measured() {
    if ordinary().is_none() {
        return;
    }
    let place = Place::new();
    let script = format!(
        "mount -t tmpfs -o noexec none \"$TMPDIR\" || exit {NOT_MOUNTED}
        \"$0\" run '^(fork/(fork|exec/tiny)|call/u64/3)$'; code=$?; ls -A \"$TMPDIR\"; exit $code"
    );
    let run = || {
        let mut command = place.program("unshare");
        command.args(["-m", "sh", "-c", &script, SYSCOST]).env("SYSCOST_DIR", place.temporary());
        command
    };
    let Some(ended) = mounted(&place, run) else { return };
    ended.says(0, &["1 skipped, 0 failed", "no program may be executed in", "mounted noexec"]);
    assert!(!ended.output.contains("syscost-scratch-\n"), "{ended:?}");
    place.is_tidy();
}

#[test]
fn an_empty_environment_is_enough() {
    let place = Place::new();
    let home = place.home().display().to_string();
    let bare = |words: &[&str]| {
        let mut command = place.program("env");
        command.args(["-i", SYSCOST]).args(words);
        command
    };
    let directory = place.path().to_str().unwrap();
    let run = ["run", "known_work", "--scale", "smoke", "--dir", directory, "--home", &home];
    let Some(ended) = place.at_rest(|| bare(&run)) else { return };
    ended.says(0, &["2 measured, 0 skipped, 0 failed"]);
    place.end(bare(&["runs", "--home", &home])).says(0, &["smoke"]);
    place
        .end(bare(&["report", "--home", &home]))
        .says(0, &["── known_work ─", "\nadd ", "\nmultiply ", "2 measured, 0 skipped, 0 failed"]);
    place.end(bare(&["list", "^call/"])).says(0, &["call/"]);
    all_parse(&place.home());
}
