//! A forked child that runs one closure and ends. It cannot return into the parent's code, outlive its parent, or be
//! left behind.
//!
//! | a child that | ends by |
//! |---|---|
//! | panics | [`PANIC_CODE`], because the panic is caught at its only way out |
//! | runs out of memory, reads a wrong address | the signal of any other process |
//! | hangs | SIGKILL, when the time limit of the wait has passed |
//! | loses its parent | SIGKILL, by the kernel |
//!
//! # Invariants
//!
//! * **CHILD**: a forked child runs one closure and ends by `_exit`: it never returns or unwinds into the parent's
//!   code, runs no exit handler and flushes no buffer. The measuring process has one thread when it forks, so
//!   that what the closure allocates finds no lock held.
#![allow(unsafe_code)]

use super::process::{PANIC_CODE, await_end, die_with, kill_and_reap};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A child process. When this value is dropped, the child is killed unless it has ended, and reaped in any case.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// It was waited for: from then on its number may belong to another process.
    reaped: bool,
}

impl Child {
    /// Runs `body` in a forked child, which then ends with code 0. It should allocate nothing, and what it prints is
    /// lost: results go through shared memory or descriptors.
    ///
    /// # Errors
    /// The kernel refuses another process.
    pub fn start(body: impl FnOnce()) -> Result<Self> {
        let parent = getpid();
        // SAFETY: CHILD.
        match unsafe { fork() }.map_err(|e| Error::from_case_errno("fork of a child", e))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, reaped: false }),
            ForkResult::Child => {
                let has_parent = die_with(parent) != Err(Errno::ESRCH);
                silence_output();
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    if has_parent {
                        body();
                    }
                }));
                // SAFETY: CHILD: `_exit` runs no destructor and no exit handler.
                unsafe { libc::_exit(if ended.is_err() { PANIC_CODE } else { 0 }) }
            }
        }
    }

    /// Its process number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether it has ended. It is not reaped.
    pub fn has_ended(&self) -> bool {
        let look = WaitPidFlag::WNOHANG | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        self.reaped || !matches!(waitid(Id::Pid(self.pid), look), Ok(WaitStatus::StillAlive))
    }

    /// Gives up the value without killing the child. The caller must wait for it.
    pub fn into_pid(mut self) -> Pid {
        self.reaped = true;
        self.pid
    }

    /// Waits until it has ended with code 0.
    ///
    /// # Errors
    /// [`Error::Child`] says how it ended: by a panic or an exit code; [`Error::Contradicted`] that a signal ended it, or that it
    /// hung and was killed.
    pub fn wait_for_success(mut self, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if begun.elapsed() > limit => {
                    let seconds = limit.as_secs_f64();
                    return Err(Error::Contradicted(format!(
                        "a child did not end within {seconds} s and was killed"
                    )));
                }
                Ok(WaitStatus::StillAlive) => {
                    await_end(self.pid.as_raw(), limit.saturating_sub(begun.elapsed()))
                }
                Ok(status) => {
                    self.reaped = true;
                    return check_status(status);
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::from_errno("waitpid of a child", errno)),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            kill_and_reap(self.pid);
        }
    }
}

fn check_status(status: WaitStatus) -> Result<()> {
    match describe_status(status) {
        None => Ok(()),
        // Another process, or the kernel where memory is short, may have sent it.
        Some(how) if matches!(status, WaitStatus::Signaled(..)) => {
            Err(Error::Contradicted(format!("a child did not end as it should: {how}")))
        }
        Some(how) => Err(Error::Child(how)),
    }
}

/// How a child ended, in words; `None` if it ended well.
fn describe_status(status: WaitStatus) -> Option<String> {
    match status {
        WaitStatus::Exited(_, 0) => None,
        WaitStatus::Exited(_, PANIC_CODE) => Some("it panicked".into()),
        WaitStatus::Exited(_, code) => Some(format!("it ended with exit code {code}")),
        WaitStatus::Signaled(_, signal, _) => Some(format!("it was ended by {signal}")),
        other => Some(format!("it did not end: {other:?}")),
    }
}

/// How a process with this wait status ended, in words; `None` if it ended well.
pub fn describe_raw_status(status: i32) -> Option<String> {
    match WaitStatus::from_raw(Pid::from_raw(0), status) {
        Ok(status) => describe_status(status),
        Err(_) => Some(format!("its end cannot be read (status {status:#x})")),
    }
}

/// Silences the standard output and error of a child: a panic's message would appear within the parent's output.
pub(super) fn silence_output() {
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}

/// A child of this process that was not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreaped {
    /// It has ended and is a zombie.
    pub dead: bool,
}

/// A child of this process that was not waited for, if there is one. It is not reaped.
pub fn find_unreaped_child() -> Option<Unreaped> {
    const LOOK: WaitPidFlag = WaitPidFlag::WNOHANG.union(WaitPidFlag::WEXITED).union(WaitPidFlag::WNOWAIT);
    match waitid(Id::All, LOOK) {
        Ok(WaitStatus::StillAlive) => Some(Unreaped { dead: false }),
        Ok(_) => Some(Unreaped { dead: true }),
        Err(_) => None, // ECHILD: there are no children
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Pidfd;
    use crate::testing::print_skipped;
    use crate::testing::run_in_child_process;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
    use nix::sys::signal::{Signal, kill, raise};
    use std::os::fd::AsFd;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn end_of(body: impl FnOnce(), limit: Duration) -> String {
        let child = Child::start(body).expect("forked");
        let pid = child.pid();
        let sentence = child.wait_for_success(limit).expect_err("it should not end well").to_string();
        assert_eq!(kill(pid, None), Err(Errno::ESRCH), "it was reaped");
        sentence
    }

    #[test]
    fn a_child_that_ends_well_says_nothing() {
        let here = std::process::id();
        Child::start(|| ()).expect("forked").wait_for_success(PATIENCE).expect("it ends well");
        assert_eq!(here, std::process::id());
    }

    #[test]
    fn a_process_that_is_killed_while_it_forks_leaves_no_traced_child() {
        for round in 0..200 {
            let (read, write) = nix::unistd::pipe().expect("a pipe");
            let forks = Child::start(|| {
                loop {
                    let _ = crate::ptrace::step_through(|| (), None, 0);
                }
            });
            drop(write);
            std::thread::sleep(Duration::from_micros(2_000 + 37 * round));
            // Killed here, at some point of a fork.
            drop(forks.expect("forked"));
            let mut held = [PollFd::new(read.as_fd(), PollFlags::POLLIN)];
            let closed = poll(&mut held, PollTimeout::try_from(PATIENCE).expect("short")).expect("polled");
            assert_eq!(closed, 1, "round {round}: a child of the dead process lives on");
        }
    }

    #[test]
    fn a_child_that_panics_ends_there() {
        let sentence = end_of(|| std::panic::resume_unwind(Box::new("in the child")), PATIENCE);
        assert!(sentence.contains("panicked"), "{sentence}");
    }

    #[test]
    fn a_child_without_memory_ends_there() {
        let greedy = || {
            setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20).expect("a smaller limit");
            let capacity = std::hint::black_box(1usize << 30);
            std::hint::black_box(Vec::<u8>::with_capacity(capacity));
        };
        assert!(end_of(greedy, PATIENCE).contains("SIGABRT"));
    }

    #[test]
    fn a_child_with_a_wrong_address_ends_there() {
        // Rust's own handler, which tells of stacks that overflow, takes the first and gives up its place.
        let twice = || {
            for _ in 0..2 {
                raise(Signal::SIGSEGV).expect("raised");
            }
        };
        assert!(end_of(twice, PATIENCE).contains("SIGSEGV"));
    }

    #[test]
    fn a_test_in_a_process_of_its_own_says_why_it_failed() {
        let failed =
            std::panic::catch_unwind(|| run_in_child_process(|| assert_eq!(1 + 1, 3, "in the child")));
        let text = failed.expect_err("it should fail").downcast::<String>().expect("a sentence");
        assert!(text.contains("it panicked") && text.contains("in the child\n  left: 2"), "{text}");
    }

    #[test]
    fn a_child_that_hangs_is_killed_and_reaped() {
        let hang = || loop {
            std::thread::sleep(PATIENCE);
        };
        let sentence = end_of(hang, Duration::from_millis(50));
        assert!(sentence.contains("did not end within 0.05 s"), "{sentence}");
    }

    #[test]
    fn the_wait_for_a_child_sleeps_once() {
        run_in_child_process(|| {
            let child = Child::start(|| std::thread::sleep(Duration::from_millis(50))).expect("forked");
            if Pidfd::open(child.pid().as_raw()).is_err() {
                return print_skipped("this kernel has no pidfd_open");
            }
            let sleeps =
                || getrusage(UsageWho::RUSAGE_THREAD).expect("readable").voluntary_context_switches();
            let before = sleeps();
            child.wait_for_success(PATIENCE).expect("it ends well");
            assert!(sleeps() - before < 5, "{} sleeps", sleeps() - before);
        });
    }

    #[test]
    fn a_child_that_is_forgotten_is_killed_and_reaped() {
        let child = Child::start(|| std::thread::sleep(PATIENCE)).expect("forked");
        let pid = child.pid();
        drop(child);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }

    #[test]
    fn a_child_that_was_not_reaped_is_seen_and_left_alone() {
        // The other tests have children too.
        run_in_child_process(|| {
            assert_eq!(find_unreaped_child(), None);
            let hanging = Child::start(|| std::thread::sleep(PATIENCE)).expect("forked");
            assert_eq!(find_unreaped_child(), Some(Unreaped { dead: false }));
            kill(hanging.pid(), Signal::SIGKILL).expect("sent");
            while find_unreaped_child() != Some(Unreaped { dead: true }) {}
            drop(hanging);
            assert_eq!(find_unreaped_child(), None);
        });
    }

    #[test]
    fn a_status_is_read_as_the_kernel_writes_it() {
        assert_eq!(describe_raw_status(0), None);
        assert_eq!(describe_raw_status(127 << 8).as_deref(), Some("it ended with exit code 127"));
        assert_eq!(describe_raw_status(libc::SIGKILL).as_deref(), Some("it was ended by SIGKILL"));
    }
}
