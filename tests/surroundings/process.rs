//! Which processes belong to a place: those in whose environment its name stands. And what a measuring process measures: its
//! name says so.

use crate::place::{PATIENCE, Place, waited};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The processes whose home is this place's.
pub fn of(place: &Place) -> Vec<i32> {
    with_name(place, "")
}

/// What a process was called with: its words, with blanks between them.
pub fn command_line(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Those of them that were started to measure this group.
pub fn measuring(place: &Place, group: &str) -> Vec<i32> {
    with_name(place, &format!("syscost {group}\0"))
}

/// Those whose command line begins so.
fn with_name(place: &Place, name: &str) -> Vec<i32> {
    // Several copies have a home beside it, whose name begins so.
    let home = format!("CRITERION_HOME={}", place.home().display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let text = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (environment, command) = (text("environ"), text("cmdline"));
        String::from_utf8_lossy(&environment).contains(&home) && command.starts_with(name.as_bytes())
    })
    .collect()
}

/// Waits for a measuring process of this group that has loaded our binary.
pub fn one_measuring(place: &Place, group: &str) -> i32 {
    // A process and its traced witness look the same; the lowest pid is the parent.
    waited(&format!("nobody measures {group}"), || measuring(place, group).into_iter().min())
}

/// Stops a measuring process of this group in the middle. One that was ending when it was found goes on to its end, and the
/// next one is taken.
pub fn stop_one_measuring(place: &Place, group: &str) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let pid = one_measuring(place, group);
        if kill(Pid::from_raw(pid), Signal::SIGSTOP).is_ok() && stops(pid) {
            return;
        }
    }
    panic!("no process of {group} could be stopped");
}

/// Whether a process that was told to stop does, and has not ended instead.
fn stops(pid: i32) -> bool {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match stat.rsplit(") ").next().and_then(|rest| rest.chars().next()) {
            Some('T') => return true,
            None | Some('Z' | 'X') => return false,
            Some(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What a killed process takes at most to take its own with it. It is less than the `sleep 60` of the tests, which end by
/// themselves.
const SOON: Duration = Duration::from_secs(40);

/// Whether all of the place's processes end.
pub fn all_end(place: &Place) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        if of(place).is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

pub fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// As a terminal does.
pub fn send_to_group(pid: i32, signal: Signal) {
    killpg(Pid::from_raw(pid), signal).unwrap();
}

pub fn kill_group(pid: i32) {
    let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
}
