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
//! A cleanup process outlives its parent and removes the parent's files and control groups, even if the parent is killed.
//! They would stay otherwise, since the destructors of a killed process do not run. The cleanup process waits for a
//! message from its parent or for the parent's end, then runs one closure. It is in a session of its own, which signals
//! from a terminal do not reach.

use super::process::{PANIC_CODE, await_end, die_with, fork_into, kill_and_reap};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, close, getpid, pipe2, read, setsid, write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A child process. When this value is dropped, the child is killed unless it has ended, and reaped in any case.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// Whether the child was waited for. From then on its number may belong to another process.
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
        let child = fork_into(|| {
            let has_parent = die_with(parent) != Err(Errno::ESRCH);
            silence_output();
            if has_parent {
                body();
            }
            0
        });
        let pid = child.map_err(|e| Error::from_case_errno("fork of a child", e))?;
        Ok(Self { pid, reaped: false })
    }

    /// Its process number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the child has ended. This call does not reap it.
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
        // Another process, or the kernel when memory is short, may have sent the signal.
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
fn silence_output() {
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}

/// A child of this process that was not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreaped {
    /// Whether the child has ended and is a zombie.
    pub dead: bool,
}

/// Returns a child of this process that was not waited for, if there is one. This call does not reap it.
pub fn find_unreaped_child() -> Option<Unreaped> {
    const PEEK: WaitPidFlag = WaitPidFlag::WNOHANG.union(WaitPidFlag::WEXITED).union(WaitPidFlag::WNOWAIT);
    match waitid(Id::All, PEEK) {
        Ok(WaitStatus::StillAlive) => Some(Unreaped { dead: false }),
        Ok(_) => Some(Unreaped { dead: true }),
        Err(_) => None, // ECHILD: there are no children
    }
}

/// A forked process that does its work when this value is dropped, or when this process ends. Dropping waits for it.
#[derive(Debug)]
pub struct CleanupProcess {
    pid: Pid,
    message: OwnedFd,
}

impl CleanupProcess {
    /// Forks one. `clear_up` runs once, at any time, and must cope with whatever it finds by then.
    ///
    /// # Errors
    /// The kernel refuses a pipe or a process.
    pub fn start(clear_up: impl FnOnce()) -> Result<Self> {
        let refused = |call| move |errno| Error::from_case_errno(call, errno);
        let (listen, message) = pipe2(OFlag::O_CLOEXEC).map_err(refused("pipe of a cleanup process"))?;
        let copy = message.as_raw_fd();
        let child = fork_into(|| {
            // As long as this copy of the writing end is open, the pipe never reaches its end.
            let _ = close(copy);
            let _ = setsid();
            silence_output();
            while read(&listen, &mut [0]) == Err(Errno::EINTR) {}
            clear_up();
            0
        });
        Ok(Self { pid: child.map_err(refused("fork of a cleanup process"))?, message })
    }
}

impl Drop for CleanupProcess {
    fn drop(&mut self) {
        // Closing the pipe is not enough: a child that was forked meanwhile has a copy of this end.
        let _ = write(&self.message, b".");
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
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
    use std::path::Path;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn failure_of(body: impl FnOnce(), limit: Duration) -> String {
        let child = Child::start(body).expect("forked");
        let pid = child.pid();
        let sentence = child.wait_for_success(limit).expect_err("it should not end well").to_string();
        assert_eq!(kill(pid, None), Err(Errno::ESRCH), "it was reaped");
        sentence
    }

    #[test]
    fn a_child_that_ends_with_code_0_is_a_success() {
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
                    let _ = crate::ptrace::step_through(|| (), 0);
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
    fn a_child_that_panics_is_reported_as_such() {
        let sentence = failure_of(|| std::panic::resume_unwind(Box::new("in the child")), PATIENCE);
        assert!(sentence.contains("panicked"), "{sentence}");
    }

    #[test]
    fn a_child_without_memory_ends_there() {
        let greedy = || {
            setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20).expect("a smaller limit");
            let capacity = std::hint::black_box(1usize << 30);
            std::hint::black_box(Vec::<u8>::with_capacity(capacity));
        };
        assert!(failure_of(greedy, PATIENCE).contains("SIGABRT"));
    }

    #[test]
    fn a_child_that_accesses_a_wrong_address_is_ended_by_sigsegv() {
        // Rust's own handler, which reports stack overflows, catches the first signal and uninstalls itself.
        let twice = || {
            for _ in 0..2 {
                raise(Signal::SIGSEGV).expect("raised");
            }
        };
        assert!(failure_of(twice, PATIENCE).contains("SIGSEGV"));
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
        let sentence = failure_of(hang, Duration::from_millis(50));
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
    fn a_dropped_child_is_killed_and_reaped() {
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

    fn start_cleanup_of(path: &Path) -> CleanupProcess {
        let path = path.to_owned();
        CleanupProcess::start(move || drop(std::fs::remove_dir(path))).expect("forked")
    }

    #[test]
    fn dropping_a_cleanup_process_waits_until_it_has_cleared_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        std::fs::create_dir(&left).expect("made");
        let cleanup = start_cleanup_of(&left);
        assert!(left.exists());
        drop(cleanup);
        assert!(!left.exists());
    }

    #[test]
    fn a_cleanup_process_clears_up_after_a_killed_parent() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        let theirs = left.clone();
        let parent = Child::start(move || {
            let cleanup = start_cleanup_of(&theirs);
            // Made after the fork, so that the directory exists only once there is a cleanup process.
            std::fs::create_dir(&theirs).expect("made");
            std::thread::sleep(Duration::from_secs(60));
            drop(cleanup);
        });
        let parent = parent.expect("forked");
        let begun = Instant::now();
        let wait_for = |there: bool| {
            while left.exists() != there {
                assert!(begun.elapsed() < Duration::from_secs(20), "there: {}", left.exists());
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(true);
        drop(parent); // by SIGKILL
        wait_for(false);
    }
}
