//! A home that cannot be made or written, and a disk that is full or becomes so.

use crate::limit::ordinary;
use crate::place::{Ended, Place, SYSCOST, TWO_GROUPS, all_parse, files};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// Asserts that nothing was measured, and that the message names the home.
fn assert_refused(ended: &Ended, home: &Path) {
    ended.refuses(&[home.to_str().unwrap(), "nothing was measured", "--home"]);
}

#[test]
fn a_home_that_cannot_be_made_is_refused_before_anything_is_measured() {
    let place = Place::new();
    std::fs::write(place.path().join("file"), "").unwrap();
    symlink("nowhere", place.path().join("dangling")).unwrap();
    for home in ["file/criterion", "file", "dangling"] {
        let home = place.path().join(home);
        assert_refused(&place.end(place.run(&[TWO_GROUPS, "--home", home.to_str().unwrap()])), &home);
    }
    place.is_tidy();
}

#[test]
fn a_home_that_may_not_be_written_or_read_is_refused() {
    let Some(ordinary) = ordinary() else { return };
    for mode in [0o555, 0o333] {
        let place = Place::new();
        let runs = place.home().join("syscost/runs");
        std::fs::create_dir_all(&runs).unwrap();
        for directory in [place.home(), place.home().join("syscost"), runs] {
            std::fs::set_permissions(directory, PermissionsExt::from_mode(mode)).unwrap();
        }
        assert_refused(&place.end(place.run_by(&ordinary, &[TWO_GROUPS])), &place.home());
        for directory in ["", "syscost", "syscost/runs"] {
            std::fs::set_permissions(place.home().join(directory), PermissionsExt::from_mode(0o777)).unwrap();
        }
        place.is_tidy();
    }
}

#[test]
fn a_home_may_have_any_name() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("real")).unwrap();
    symlink("real", place.path().join("link")).unwrap();
    let no_text = OsString::from_vec(vec![b'a', 0xff]);
    let names = ["a b/ü…", "link", "./relative/../relative", "new\nline"].map(OsString::from);
    for home in names.into_iter().chain([no_text]) {
        let run = || {
            let mut command = place.run(&["known_work/add", "--exact"]);
            command.env("CRITERION_HOME", &home);
            command
        };
        let Some(_) = place.succeeds(run) else { return };
        let saved = place.path().join(&home).join("known_work/add/base/estimates.json");
        assert!(saved.is_file(), "{home:?}");
    }
}

/// The exit code of a script that may not mount a file system.
pub const NOT_MOUNTED: i32 = 99;

/// The command that gives a shell its own mount table; `None` if that is not possible.
pub fn own_mounts(place: &Place) -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["unshare", "-rm"], &["unshare", "-m"]];
    let mounts = |way: &&&[&str]| {
        let mut command = Command::new(way[0]);
        command.args(&way[1..]).args(["mount", "-t", "tmpfs", "none"]).arg(place.temporary());
        command.output().is_ok_and(|output| output.status.success())
    };
    let way = ways.iter().find(mounts).copied();
    if way.is_none() {
        print_skipped("no file system can be mounted here, neither as a user nor as root");
    }
    way
}

/// A shell with a file system of this size as its `home`, where `run` is a run of a few cases.
pub fn on_a_disk(place: &Place, size: &str, script: &str) -> Option<Ended> {
    let way = own_mounts(place)?;
    std::fs::create_dir_all(place.home()).unwrap();
    let script = format!(
        "set -u; home={}; mount -t tmpfs -o size={size} none \"$home\" || exit {NOT_MOUNTED}; rm -rf before after\n\
         run() {{ {SYSCOST} run --save-baseline main \"${{@:-known_work|call/u64/[0-2]}}\"; }}\n{script}",
        place.home().display()
    );
    let run = || {
        let mut command = place.program(way[0]);
        command.args(&way[1..]).args(["sh", "-c", &script]);
        command
    };
    mounted(place, run)
}

/// The end of these commands on a machine at rest. `None`, with a printed sentence, if they could not mount their file system.
pub fn mounted(place: &Place, run: impl Fn() -> Command) -> Option<Ended> {
    let ended = place.at_rest(run)?;
    if ended.code == Some(NOT_MOUNTED) {
        print_skipped(&format!("it cannot be mounted here: {}", ended.error));
        return None;
    }
    Some(ended)
}

#[test]
fn a_full_disk_keeps_the_baseline_that_is_on_it() {
    let place = Place::new();
    let script = "run >first || { cat first; exit 98; }; cp -r \"$home\" before
        cat /dev/zero >\"$home/filler\" 2>filled
        run; code=$?
        rm \"$home/filler\"; cp -r \"$home\" after; exit $code";
    let Some(ended) = on_a_disk(&place, "8m", script) else { return };
    ended.says(2, &["KiB are free", "make room first"]);
    let estimates = |of: &str| {
        let files = files(&place.path().join(of), ".json");
        files.into_iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(estimates("before"), estimates("after"));
    assert!(estimates("after").len() > 5 * 8);
}

#[test]
fn a_disk_that_fills_in_the_middle_keeps_nothing_half() {
    let place = Place::new();
    let script = "run >first || { cat first; exit 98; }
        run --scale default 'known_work|call/u64/[34]' >again & pid=$!
        until [ \"$(ls \"$home/syscost/runs\" | wc -l)\" -gt 1 ]; do kill -0 $pid || break; sleep 0.05; done
        cat /dev/zero >\"$home/filler\" 2>filled
        wait $pid; code=$?
        cat again; cp -r \"$home\" after; exit $code";
    let Some(ended) = on_a_disk(&place, "8m", script) else { return };
    ended.says(1, &["4 measured", "KiB are free", "nothing more is saved"]);
    all_parse(&place.path().join("after"));
    // The files that were saved before the disk was full are whole.
    assert!(place.path().join("after/known_work/add/main/estimates.json").is_file());
    place.is_tidy();
}

#[test]
fn a_disk_with_a_little_room_is_left_before_it_is_full() {
    let place = Place::new();
    // There is room for the first group, and some pages too few for the second.
    let script = "run >first || { cat first; exit 98; }
        free=$(df -k --output=avail \"$home\" | tail -1)
        head -c $(( (free - 4096 - 12) * 1024 )) /dev/zero >\"$home/filler\"
        rm -r \"$home/known_work\" \"$home/call\"; head -c $(( 100 * 1024 )) /dev/zero >\"$home/more\"
        run; code=$?
        cp -r \"$home\" after; exit $code";
    let Some(ended) = on_a_disk(&place, "8m", script) else { return };
    assert_eq!(ended.output.matches("5 measured").count(), 1, "{ended:?}");
    all_parse(&place.path().join("after"));
    place.is_tidy();
}

#[test]
fn a_read_only_disk_is_refused() {
    let place = Place::new();
    let Some(ended) = on_a_disk(&place, "8m", "mount -o remount,ro \"$home\" || exit 99; run") else {
        return;
    };
    ended.refuses(&["Read-only file system", "nothing was measured"]);
    place.is_tidy();
}

#[test]
fn a_missing_temporary_directory_is_refused() {
    let place = Place::new();
    let mut command = place.run(&[TWO_GROUPS]);
    command.env("TMPDIR", place.path().join("nowhere"));
    place.end(command).refuses(&["/nowhere: making a scratch directory", "SYSCOST_DIR"]);
    place.is_tidy();
}
