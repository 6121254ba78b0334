//! The system calls of a command and of all processes that it starts.
//!
//! # Invariants
//!
//! * **ASKS-ONLY**: between fork and exec the child makes one system call, and allocates nothing.
#![allow(unsafe_code)]

use super::read_call;
use crate::error::{Error, Result};
use crate::process::kill_process_tree;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// The system calls of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCalls {
    /// How often each number was called, from the first instruction of the program on.
    pub calls: BTreeMap<i64, u64>,
    /// Processes and threads that were created, without the first.
    pub created: u64,
    /// The most memory that one of its processes had resident, KiB. `wait4` reports no less than what the process had that started it.
    pub peak_kib: u64,
}

/// Runs a command under ptrace(2) and counts the system calls of all its processes. `None` if it takes longer than `limit`: it is
/// killed then.
///
/// # Errors
/// The command cannot be started, or the kernel refuses to trace it.
pub fn count_tree_calls(command: &mut Command, limit: Duration) -> Result<Option<TreeCalls>> {
    let ask = || ptrace::traceme().map_err(Into::into);
    // SAFETY: ASKS-ONLY.
    let started = unsafe { command.pre_exec(ask) }.spawn();
    let mut child =
        started.map_err(|cause| Error::Kernel { call: "start of a traced command".into(), cause })?;
    let root = Pid::from_raw(child.id() as i32);
    let counted = follow(root, limit);
    if !matches!(counted, Ok(Some(_))) {
        kill_process_tree(child.id());
    }
    // Reaped by `follow` as a rule: then there is nothing to wait for.
    let _ = child.wait();
    counted
}

fn refused(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::from_errno(call, errno)
}

fn follow(root: Pid, limit: Duration) -> Result<Option<TreeCalls>> {
    const FOLLOWED: Options = Options::PTRACE_O_TRACESYSGOOD
        .union(Options::PTRACE_O_TRACEFORK)
        .union(Options::PTRACE_O_TRACEVFORK)
        .union(Options::PTRACE_O_TRACECLONE)
        .union(Options::PTRACE_O_TRACEEXEC)
        .union(Options::PTRACE_O_TRACEEXIT)
        .union(Options::PTRACE_O_EXITKILL);
    let until = Instant::now() + limit;
    let (mut tree, mut inside) = (TreeCalls::default(), BTreeSet::new());
    // Behind its exec the first process stops once.
    let mut alive = BTreeSet::from([root]);
    let mut is_set_up = false;
    while !alive.is_empty() {
        let status = match next_stop(&alive, until)? {
            Next::Stop(status) => status,
            // A thread that executes a program takes the number of its process, and the end of its own is not reported.
            Next::AllEnded => break,
            Next::TooLate => return Ok(None),
        };
        let Some(pid) = status.pid() else { continue };
        let deliver = match status {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                alive.remove(&pid);
                inside.remove(&pid);
                continue;
            }
            WaitStatus::PtraceSyscall(_) => {
                if !inside.remove(&pid) {
                    *tree.calls.entry(read_call(pid)?.number).or_default() += 1;
                    inside.insert(pid);
                }
                None
            }
            WaitStatus::Stopped(_, _) if !is_set_up => {
                ptrace::setoptions(pid, FOLLOWED).map_err(refused("ptrace setoptions"))?;
                is_set_up = true;
                None
            }
            // A new task begins with this stop.
            WaitStatus::Stopped(_, Signal::SIGSTOP) if alive.insert(pid) => {
                tree.created += 1;
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXIT) => {
                tree.peak_kib = tree.peak_kib.max(peak_kib(pid));
                None
            }
            // An execve: the exit of the call follows. Or a task that was created: its own stop follows.
            _ => None,
        };
        match ptrace::syscall(pid, deliver) {
            // Killed meanwhile: its end is reported.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => return Err(refused("ptrace syscall")(errno)),
        }
    }
    Ok(Some(tree))
}

/// The most memory that this process had resident, KiB; 0 if the kernel does not show it.
fn peak_kib(pid: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|value| value.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

enum Next {
    Stop(WaitStatus),
    AllEnded,
    TooLate,
}

/// The next stop or end of a traced task before `until`. Spins, since a traced command stops every few
/// microseconds.
fn next_stop(alive: &BTreeSet<Pid>, until: Instant) -> Result<Next> {
    let begun = Instant::now();
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(WaitStatus::StillAlive) if Instant::now() > until => return Ok(Next::TooLate),
            Ok(WaitStatus::StillAlive) if begun.elapsed() > Duration::from_millis(1) => {
                std::thread::sleep(Duration::from_micros(100));
            }
            Ok(WaitStatus::StillAlive) => std::hint::spin_loop(),
            Ok(status) if status.pid().is_some_and(|pid| alive.contains(&pid)) => {
                return Ok(Next::Stop(status));
            }
            // A task that was created, whose first stop may come before that of its creator.
            Ok(status @ WaitStatus::Stopped(_, Signal::SIGSTOP)) => return Ok(Next::Stop(status)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(Next::AllEnded),
            Err(errno) => return Err(refused("waitpid of a traced command")(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_in_child_process;

    fn counted(line: &'static str) -> TreeCalls {
        let mut tree = TreeCalls::default();
        let limit = Duration::from_secs(30);
        if let Some(found) =
            count_tree_calls(Command::new("sh").args(["-c", line]), limit).expect("it can be traced")
        {
            tree = found;
        }
        tree
    }

    #[test]
    fn the_calls_of_all_processes_are_counted() {
        run_in_child_process(|| {
            let (once, thrice) = (counted("true | cat"), counted("true | cat; true | cat; true | cat"));
            let execs = |tree: &TreeCalls| tree.calls.get(&libc::SYS_execve).copied().unwrap_or(0);
            assert_eq!((execs(&once), execs(&thrice)), (1, 3), "{once:?} {thrice:?}");
            assert!(once.peak_kib > 100, "{once:?}");
            assert!(once.created >= 1 && thrice.created >= 3 * once.created, "{once:?} {thrice:?}");
            let same = counted("true | cat");
            assert_eq!(same.calls.get(&libc::SYS_execve), once.calls.get(&libc::SYS_execve));
        });
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed() {
        run_in_child_process(|| {
            let mut command = Command::new("sleep");
            let counted = count_tree_calls(command.arg("60"), Duration::from_millis(100)).expect("traced");
            assert_eq!(counted, None);
        });
    }
}
