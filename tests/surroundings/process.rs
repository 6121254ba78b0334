//! Finds the processes of a place, whose environment contains its path, and the measuring processes among them, whose command line
//! names the group.

use crate::place::{PATIENCE, Place, waited};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The processes whose home is this place's.
pub fn of(place: &Place) -> Vec<i32> {
    with_name(place, "")
}

/// The command line of a process, its words separated by blanks.
pub fn command_line(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// The processes of the place that measure this group.
pub fn measuring(place: &Place, group: &str) -> Vec<i32> {
    with_name(place, &format!("syscost {group}\0"))
}

/// The processes of the place whose command line begins with `name`.
fn with_name(place: &Place, name: &str) -> Vec<i32> {
    // A run of several copies has homes beside this one, whose names begin alike.
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

/// Stops a measuring process of this group while it measures. If a process was just ending, it continues to its end, and the next
/// one is stopped.
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

/// Whether a process that was sent a stop signal stops, and does not end instead.
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

/// The time in which the children of a killed process must end. It is shorter than the `sleep 60` of the tests, which ends by
/// itself.
const SOON: Duration = Duration::from_secs(40);

/// Whether all processes of the place end in time.
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

/// Sends a signal to a process group, as a terminal does.
pub fn send_to_group(pid: i32, signal: Signal) {
    killpg(Pid::from_raw(pid), signal).unwrap();
}

pub fn kill_group(pid: i32) {
    let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
}
