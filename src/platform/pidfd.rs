//! A process by a descriptor that is never another's, whoever gets its number (pidfd_open(2)).
//!
//! # Invariants
//!
//! * **NUMBERS-ONLY**: the call is given numbers, and a null pointer where it allows one.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A process.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// The process that has this number now.
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: NUMBERS-ONLY: the number of a process and no flags.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: NUMBERS-ONLY: the kernel has just given us this descriptor, and nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }))
    }

    /// Whether it is still there, if only as a zombie that nobody has waited for. Signal 0 is sent, which is none.
    #[inline]
    pub fn is_there(&self) -> bool {
        // SAFETY: NUMBERS-ONLY: no information goes with the signal.
        let answer = unsafe {
            let none = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), 0, none, 0)
        };
        // Whose process we may not signal is there all the same.
        answer == 0 || Errno::last() == Errno::EPERM
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let process = Pidfd::open(child.id() as i32).expect("a descriptor");
        assert!(process.is_there());
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(!process.is_there());
    }

    #[test]
    fn nobody_has_a_number_below_one() {
        assert!(Pidfd::open(-1).is_err());
    }
}
