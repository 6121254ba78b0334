//! A descriptor of a process, and waiting for the process's end.
//!
//! # Invariants
//!
//! * **NUMBERS-ONLY**: the call is given numbers, and a null pointer where it allows one.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor of a process, which never refers to another process that is given the same number (pidfd_open(2)).
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// The process that has this number now.
    ///
    /// # Errors
    /// No process has it.
    #[inline]
    pub fn open(pid: i32) -> nix::Result<Self> {
        // SAFETY: NUMBERS-ONLY: the number of a process and no flags.
        let descriptor = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        // SAFETY: NUMBERS-ONLY: the kernel has just made this descriptor, which has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }))
    }

    /// Waits until the process has ended, or until the limit has passed.
    pub fn await_end(&self, limit: Duration) {
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        // A signal ends the wait early: the caller checks whether the process has ended.
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], limit);
    }

    /// Sends signal 0, which is not delivered.
    ///
    /// # Errors
    /// The process does not exist, or may not be signalled.
    #[inline]
    pub fn send_no_signal(&self) -> nix::Result<()> {
        // SAFETY: NUMBERS-ONLY: no information goes with the signal.
        let answer = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), 0, 0usize, 0) };
        Errno::result(answer).map(drop)
    }

    /// Whether the process still exists. A zombie exists, and so does a process that may not be signalled.
    #[inline]
    pub fn is_there(&self) -> bool {
        matches!(self.send_no_signal(), Ok(()) | Err(Errno::EPERM))
    }
}

/// Sleeps until a child has ended, or until the limit has passed. It does not sleep longer, because a case that waits for its
/// child is judged by the idle time of its CPU. It may return early.
pub fn await_end(child: i32, limit: Duration) {
    /// Time between two checks if the kernel offers no descriptor of the child.
    const POLL_INTERVAL: Duration = Duration::from_micros(500);
    match Pidfd::open(child) {
        Ok(child) => child.await_end(limit),
        Err(_) => std::thread::sleep(POLL_INTERVAL.min(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let process = Pidfd::open(child.id() as i32).expect("a descriptor");
        assert!(process.is_there());
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(!process.is_there());
    }
}
