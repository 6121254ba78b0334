//! What a child and all processes that it waited for have used, and the processes that it left behind.
//!
//! # Invariants
//!
//! * **OWN-VALUES**: wait4(2) writes one integer and one structure, to the references that it is given.
//! * **NUMBERS**: the structure holds numbers only, for which zeroes are valid.
#![allow(unsafe_code)]

use super::{await_end, kill_and_reap, kill_process_tree, processes_with_parents};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Longest time between two looks at a child that runs.
const LOOK: Duration = Duration::from_millis(200);

/// What a process has used, with its descendants that were waited for (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeUsage {
    /// CPU time in user space, µs.
    pub user_us: u64,
    /// CPU time in the kernel, µs.
    pub system_us: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
    /// Switches because a process waited.
    pub voluntary_switches: u64,
    /// Switches because the kernel took the CPU.
    pub involuntary_switches: u64,
    /// Blocks of 512 bytes that were read from disks.
    pub blocks_read: u64,
    /// Blocks of 512 bytes that are to be written to disks.
    pub blocks_written: u64,
}

impl TreeUsage {
    fn from_kernel(usage: &libc::rusage) -> Self {
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        Self {
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            blocks_read: usage.ru_inblock as u64,
            blocks_written: usage.ru_oublock as u64,
        }
    }

    /// Adds what other processes used.
    pub fn add(&mut self, other: &Self) {
        self.user_us += other.user_us;
        self.system_us += other.system_us;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.blocks_read += other.blocks_read;
        self.blocks_written += other.blocks_written;
    }
}

/// Waits until a child has ended, at most `limit`; `None` if it still runs by then, or as soon as `is_enough` says so, which is
/// asked several times a second.
///
/// # Errors
/// It is no child of this process.
pub fn wait_with_usage(
    pid: i32,
    limit: Duration,
    mut is_enough: impl FnMut() -> bool,
) -> Result<Option<(ExitStatus, TreeUsage)>> {
    let begun = Instant::now();
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        await_end(pid, left.min(LOOK));
        let ended = reap(pid)?;
        if ended.is_some() || left.is_zero() || is_enough() {
            return Ok(ended);
        }
    }
}

/// What became of the processes that a child has left to this one, which is their reaper (`PR_SET_CHILD_SUBREAPER`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// How many still ran after the time that they were given, and were killed.
    pub killed: usize,
    /// What those used that ended by themselves.
    pub usage: TreeUsage,
}

/// The children of this process.
pub fn children() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists: std::io::Result<Vec<_>> =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children"))).collect();
    match lists {
        Ok(lists) => lists.join(" ").split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel without CONFIG_PROC_CHILDREN.
        Err(_) => {
            let own = std::process::id();
            let all = processes_with_parents().into_iter();
            all.filter_map(|(pid, parent)| (parent == own).then_some(pid as i32)).collect()
        }
    }
}

/// Reaps the children of this process that are not in `known`. Kills those that still run after `grace`.
///
/// # Errors
/// The kernel refuses to wait.
pub fn reap_orphans(known: &[i32], grace: Duration) -> Result<Orphans> {
    let (begun, mut orphans) = (Instant::now(), Orphans::default());
    loop {
        let mut running = Vec::new();
        for pid in children().into_iter().filter(|pid| !known.contains(pid)) {
            match reap(pid)? {
                Some((_, usage)) => orphans.usage.add(&usage),
                None => running.push(pid),
            }
        }
        if running.is_empty() {
            return Ok(orphans);
        }
        if begun.elapsed() < grace {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        orphans.killed += running.len();
        running.into_iter().for_each(|pid| {
            kill_process_tree(pid as u32);
            kill_and_reap(Pid::from_raw(pid));
        });
    }
}

/// Reaps this child if it has ended.
fn reap(pid: i32) -> Result<Option<(ExitStatus, TreeUsage)>> {
    let mut status = 0;
    // SAFETY: NUMBERS: zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: OWN-VALUES.
    match Errno::result(unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) }) {
        Ok(0) | Err(Errno::EINTR) => Ok(None),
        Ok(_) => Ok(Some((ExitStatus::from_raw(status), TreeUsage::from_kernel(&usage)))),
        Err(errno) => Err(Error::from_errno("wait4 of a command", errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_in_child_process;
    use std::process::Command;

    fn shell(line: &str) -> i32 {
        Command::new("sh").args(["-c", line]).spawn().expect("started").id() as i32
    }

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn the_usage_is_that_of_the_whole_tree() {
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let (status, usage) = wait_with_usage(shell(&format!("sh -c '{busy}'; exit 3")), PATIENCE, || false)
            .expect("waited")
            .expect("ended");
        assert_eq!(status.code(), Some(3));
        assert!(usage.user_us + usage.system_us > 1_000, "{usage:?}");
    }

    #[test]
    fn a_wait_ends_at_its_limit_and_when_enough_was_seen() {
        let sleeper = shell("exec sleep 60");
        assert_eq!(wait_with_usage(sleeper, Duration::from_millis(50), || false).expect("waited"), None);
        assert_eq!(wait_with_usage(sleeper, PATIENCE, || true).expect("waited"), None);
        kill_process_tree(sleeper as u32);
    }

    #[test]
    fn processes_that_were_left_behind_are_counted_and_killed() {
        run_in_child_process(|| {
            nix::sys::prctl::set_child_subreaper(true).expect("a reaper");
            let end = |line: &str| {
                wait_with_usage(shell(line), PATIENCE, || false).expect("waited").expect("ended");
                reap_orphans(&[], Duration::from_millis(500)).expect("reaped").killed
            };
            assert_eq!(end("true"), 0);
            assert_eq!(end("sleep 0.01 &"), 0, "it ends by itself");
            assert_eq!(end("sleep 60 & sleep 60 & true"), 2);
        });
    }
}
