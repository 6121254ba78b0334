//! A cleanup process: it outlives its parent and removes what the parent leaves, even if the parent is killed.
//!
//! The destructors of a killed process do not run, so that its files and control groups stay. The cleanup process waits
//! for a message from its parent or for its end, then runs one closure. It is in a session of its own, which signals
//! from a terminal do not reach.
//!
//! # Invariants
//!
//! * **CHILD**: the forked child runs one closure and ends by `_exit`: it never returns or unwinds into the
//!   parent's code, runs no exit handler and flushes no buffer. The C library's `fork` leaves its allocator usable in it.
#![allow(unsafe_code)]

use super::child::silence_output;
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read, setsid, write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
        // SAFETY: CHILD.
        match unsafe { fork() }.map_err(refused("fork of a cleanup process"))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, message }),
            ForkResult::Child => {
                // With this copy open the pipe would never end.
                drop(message);
                let _ = setsid();
                silence_output();
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    while read(&listen, &mut [0]) == Err(Errno::EINTR) {}
                    clear_up();
                }));
                // SAFETY: CHILD: `_exit` runs no destructor and no exit handler.
                unsafe { libc::_exit(0) }
            }
        }
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
    use crate::child::Child;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn leaves(path: &Path) -> CleanupProcess {
        let path = path.to_owned();
        CleanupProcess::start(move || drop(std::fs::remove_dir(path))).expect("forked")
    }

    #[test]
    fn it_clears_up_before_its_value_has_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        std::fs::create_dir(&left).expect("made");
        let cleanup = leaves(&left);
        assert!(left.exists());
        drop(cleanup);
        assert!(!left.exists());
    }

    #[test]
    fn it_clears_up_behind_a_parent_that_was_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        let theirs = left.clone();
        let parent = Child::start(move || {
            let cleanup = leaves(&theirs);
            // Only now, so that the directory exists only once there is a cleanup process.
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
