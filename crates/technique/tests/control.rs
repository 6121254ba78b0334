//! The examples of control, with `--quick`: each runs, prints its results, and leaves nothing behind, even if it is killed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use syscost_platform::testing::print_skipped;

/// The path of an example, in `target/PROFILE/examples` beside the directory of this test.
fn example(name: &str) -> Option<PathBuf> {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent()?.parent()?.join("examples").join(name);
    if built.is_file() {
        return Some(built);
    }
    print_skipped(&format!("the example `{name}` was not built; `cargo test` builds it"));
    None
}

/// These examples load the same CPU, so only one may run at a time.
fn only_one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an example with `--quick`; `None` where the machine lacks what it needs.
fn run_quickly(program: &Path, arguments: &[&OsStr]) -> Option<Output> {
    let output = Command::new(program).arg("--quick").args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if text.starts_with("skipped: ") {
        println!("{text}");
        return None;
    }
    Some(output)
}

/// The output of an example with `--quick`, which must contain each of `words`.
fn output_with_words(program: &Path, arguments: &[&OsStr], words: &[&str]) -> Option<String> {
    let output = run_quickly(program, arguments)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for word in words {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    Some(text)
}

/// Checks that the output contains this quantity, better with control than without. With the controller's output dropped, the
/// example must report that the quantity is not better, and fail.
fn only_a_closed_loop_controls(program: &Path, text: &str, quantity: &str) {
    let line = text.lines().find(|line| line.starts_with("by turns: "));
    assert!(line.is_some_and(|line| line.contains(quantity)), "{text}");
    let Some(open) = run_quickly(program, &["--open-loop".as_ref()]) else { return };
    let error = String::from_utf8_lossy(&open.stderr);
    assert_eq!(open.status.code(), Some(1), "{error}");
    assert!(error.contains(quantity) && error.contains("expected "), "{error}");
}

#[test]
fn a_live_server_is_controlled_only_in_a_closed_loop_and_is_drawn() {
    let _one = only_one_at_a_time();
    let Some(program) = example("control") else { return };
    let directory = tempfile::tempdir().unwrap();
    let words = ["one by one", "halving", "twice the limit", "\nslide "];
    let Some(text) = output_with_words(&program, &[directory.path().as_os_str()], &words) else { return };
    let svg = fs::read_to_string(directory.path().join("control-policy.svg")).unwrap();
    for words in ["halving", "goal 4.5", "background processes that run", "seconds"] {
        assert!(svg.contains(words), "no `{words}`");
    }
    only_a_closed_loop_controls(&program, &text, "response of the live server");
}

#[test]
fn live_jobs_are_controlled_only_in_a_closed_loop() {
    let _one = only_one_at_a_time();
    let Some(program) = example("multiprogramming") else { return };
    let words = ["S/F", "controlled from 6 jobs", "\nslide "];
    let Some(text) = output_with_words(&program, &[], &words) else { return };
    only_a_closed_loop_controls(&program, &text, "time between two page-ins");
}

#[test]
fn an_overlap_is_sampled() {
    let _one = only_one_at_a_time();
    let Some(program) = example("io_overlap") else { return };
    output_with_words(&program, &[], &["IO_OVERLAP(k, X)", "\nslide "]);
}

#[test]
fn a_killed_example_leaves_no_jobs_no_group_and_no_files() {
    let _one = only_one_at_a_time();
    let Some(program) = example("multiprogramming") else { return };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let files = tempfile::tempdir().unwrap();
        let mut command = Command::new(&program);
        let mut running = command.env("TMPDIR", files.path()).stdout(Stdio::piped()).spawn().unwrap();
        let group = format!("syscost-{}-", running.id());
        let found = wait_for(|| jobs(&group).len() > 2 || running.try_wait().unwrap().is_some());
        if let Some(status) = running.try_wait().unwrap() {
            let mut text = String::new();
            running.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            assert!(status.success() && text.starts_with("skipped: "), "{text}");
            return println!("{text}");
        }
        assert!(found, "no job came");
        kill(Pid::from_raw(running.id() as i32), signal).unwrap();
        running.wait().unwrap();
        assert!(wait_for(|| jobs(&group).is_empty()), "{signal}: jobs are left");
        assert!(wait_for(|| !exists(Path::new("/sys/fs/cgroup"), &group)), "{signal}: the group is left");
        assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0, "{signal}: files are left");
    }
}

/// The processes in a group whose name begins with `group`.
fn jobs(group: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_in = |process: &PathBuf| {
        fs::read_to_string(process.join("cgroup")).is_ok_and(|text| text.contains(&format!("/{group}")))
    };
    processes.filter(is_in).collect()
}

/// Whether a group whose name begins with `name` is in this directory or below it.
fn exists(directory: &Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories
        .into_iter()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(name) || exists(&entry.path(), name))
}

fn wait_for(mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}
