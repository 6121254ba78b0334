//! The files of the file cases: in memory, on a full disk, on a disk that breaks, in a missing directory; and leftovers.

use crate::limit::ordinary;
use crate::place::{Place, SYSCOST, alone, files};
use crate::process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use syscost_platform::testing::print_skipped;

/// A private directory in memory.
fn in_memory() -> Option<tempfile::TempDir> {
    let found = tempfile::tempdir_in("/dev/shm").ok();
    if found.is_none() {
        print_skipped("there is no /dev/shm to make a directory in");
    }
    found
}

/// Runs a case with its files in this directory.
fn in_directory(place: &Place, directory: &Path, case: &str) -> Command {
    place.run(&[case, "--exact", "--dir", directory.to_str().unwrap()])
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn memory_is_skipped_and_a_disk_is_named() {
    let Some(memory) = in_memory() else { return };
    let place = Place::new();
    for case in ["direct_read/random/4KiB", "contention/others/0", "file_ops/fsync/1"] {
        let ended = place.end(in_directory(&place, memory.path(), case));
        ended.says(1, &["0 measured, 1 skipped, 0 failed", "which is memory", "--dir"]);
    }
    assert!(is_empty(memory.path()));
    place.is_tidy();
}

#[test]
fn a_local_directory_is_not_remote() {
    let place = Place::new();
    let ended = place.end(in_directory(&place, &place.temporary(), "remote_read/random-by-file/128KiB"));
    ended.says(1, &["0 measured, 1 skipped, 0 failed", "on this machine", "SYSCOST_DIR"]);
    place.is_tidy();
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let place = Place::new();
    let ended = place.end(in_directory(&place, &place.path().join("nowhere"), "cached_read/pread/4KiB"));
    ended.refuses(&["/nowhere: making a scratch directory failed", "--dir or SYSCOST_DIR"]);
    place.is_tidy();
}

#[test]
fn the_environment_names_it_too_and_it_is_left_empty() {
    let Some(memory) = in_memory() else { return };
    let place = Place::new();
    let run = || {
        let mut command = place.run(&["cached_read/pread/4KiB", "--exact"]);
        command.env("SYSCOST_DIR", memory.path());
        command
    };
    if let Some(ended) = place.at_rest(run) {
        ended.says(0, &["1 measured"]);
        let filesystem = place.record()["fingerprint"]["scratch_filesystem"].to_string();
        assert_eq!(filesystem, "\"tmpfs\"");
    }
    assert!(is_empty(memory.path()));
    place.is_tidy();
}

#[test]
fn a_file_above_the_limit_is_named_and_kills_nobody() {
    let place = Place::new();
    // 512 or 1024 bytes a unit: 1 to 2 MiB, and the file has 8.
    let ended = place.end(place.run_under("-f 2048", &["cached_read/pread/4KiB", "--exact"]));
    ended.says(1, &["FAILED cached_read/pread/4KiB", "stamped-8388608: writing failed", "RLIMIT_FSIZE"]);
    place.is_tidy();
}

#[test]
fn a_full_disk_is_named() {
    if ordinary().is_none() {
        return; // the test mounts, which an ordinary user may not
    }
    let place = Place::new();
    let script = "mkdir small && mount -t tmpfs -o size=4m none small || exit 99
        \"$0\" run cached_read/pread/4KiB --exact --dir small; code=$?
        [ -z \"$(ls -A small)\" ] || exit 98; exit $code";
    let mut command = place.program("unshare");
    command.args(["-m", "sh", "-c", script, SYSCOST]);
    let ended = place.end(command);
    if ended.code == Some(99) {
        return print_skipped("no file system can be mounted here");
    }
    ended.says(1, &["stamped-8388608: writing failed", "No space left"]);
    place.is_tidy();
}

/// A script with a file system on a loop device, whose backing file is truncated again and again, since writes would
/// extend it again.
const BREAKS: &str = r#"
    truncate -s 256M ground && mkfs.ext4 -q ground && mkdir mounted && mount -o loop ground mounted || exit 99
    "$0" run '^direct_read/(random|sequential)/' --scale default --dir mounted & run=$!
    until ls mounted/syscost-scratch-* >/dev/null 2>&1; do kill -0 $run 2>/dev/null || break; sleep 0.02; done
    while kill -0 $run 2>/dev/null; do sleep 0.1; truncate -s 64K ground; done
    wait $run; exit $?
"#;

#[test]
fn a_device_that_breaks_is_an_error_of_the_file_that_was_on_it() {
    if ordinary().is_none() {
        return;
    }
    let place = Place::new();
    let mut command = place.program("unshare");
    command.args(["-m", "sh", "-c", BREAKS, SYSCOST]);
    let ended = place.end(command);
    if ended.code == Some(99) {
        return print_skipped(&format!("no loop device can be mounted here: {}", ended.error));
    }
    // Executions before the disk broke are kept; later ones are left out with the same sentence.
    match ended.code {
        Some(0) => ended.says(0, &["left out: ", "mounted/syscost-scratch-"]),
        _ => ended.says(1, &["FAILED", "mounted/syscost-scratch-"]),
    }
    let broken = ["Input/output error", "Read-only file system", "Structure needs cleaning"];
    assert!(broken.iter().any(|words| ended.output.contains(words)), "{ended:?}");
}

/// Files and directories below one, by name.
fn left(directory: &Path) -> Vec<PathBuf> {
    files(directory, "")
}

#[test]
fn a_killed_run_leaves_no_file_and_the_next_one_no_directory() {
    let _alone = alone();
    let place = Place::new();
    let mut command = place.run(&["^cached_read/", "--scale", "default"]);
    command.env_remove("SYSCOST_SCALE");
    let running = place.begin(command);
    process::one_measuring(&place, "cached_read");
    std::thread::sleep(Duration::from_millis(500));
    running.kill();
    assert!(process::all_end(&place), "its child lives on");
    // A run may have been killed while it made its file.
    let left = left(&place.temporary());
    assert!(left.len() <= 1, "{left:?}");
    place.begin(place.run(&["known_work/add", "--exact"])).end();
    place.is_tidy();
}
