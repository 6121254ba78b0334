//! An heir: a process that outlives its parent and clears up behind it, however it ended.
//!
//! What a killed process leaves in a file system, a control group among it, stays: nobody runs its destructors. The heir
//! waits for its parent's word or end, then carries out one closure. It is in a session of its own, which no signal from a
//! terminal reaches.
//!
//! # Invariants
//!
//! * **CHILD**: the forked child runs one closure and ends by `_exit`: it never returns or unwinds into the parent's code,
//!   runs no exit handler and flushes no buffer. The C library's `fork` leaves its allocator usable in it.
#![allow(unsafe_code)]

use super::child::be_silent;
use crate::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read, setsid, write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The heir of this process. When the value goes, or its process, the heir does its work; the former waits for that.
#[derive(Debug)]
pub struct CleanupProcess {
    pid: Pid,
    word: OwnedFd,
}

impl CleanupProcess {
    /// Names one. `clear_up` should manage with what it finds: it runs once, early or late, and is killed by nobody.
    pub fn named(clear_up: impl FnOnce()) -> Result<Self> {
        let refused = |call| move |errno| Error::refused_to_case(call, errno);
        let (listen, word) = pipe2(OFlag::O_CLOEXEC).map_err(refused("pipe of an heir"))?;
        // SAFETY: CHILD.
        match unsafe { fork() }.map_err(refused("fork of an heir"))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, word }),
            ForkResult::Child => {
                // Its own copy would keep the end of the pipe from coming.
                drop(word);
                let _ = setsid();
                be_silent();
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
        // A word, and not the end of the pipe alone: a child that somebody else forked meanwhile has a copy of it.
        let _ = write(&self.word, b".");
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::Child;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn leaves(path: &Path) -> CleanupProcess {
        let path = path.to_owned();
        CleanupProcess::named(move || drop(std::fs::remove_dir(path))).expect("forked")
    }

    #[test]
    fn it_clears_up_before_its_value_has_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        std::fs::create_dir(&left).expect("made");
        let heir = leaves(&left);
        assert!(left.exists());
        drop(heir);
        assert!(!left.exists());
    }

    #[test]
    fn it_clears_up_behind_a_parent_that_was_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join("left");
        let theirs = left.clone();
        let parent = Child::start(move || {
            let heir = leaves(&theirs);
            // Only now, so that whoever sees it knows that there is an heir.
            std::fs::create_dir(&theirs).expect("made");
            std::thread::sleep(Duration::from_secs(60));
            drop(heir);
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
