//! Asking which of many descriptors are ready, without waiting: poll(2), select(2), epoll(7).
//!
//! Each question is asked a number of times; the answers are how many are ready, or negative error numbers.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads and writes memory that belongs to the value or the calling function, within its
//!   length.
//! * **OPEN**: the descriptors should stay open as long as the value; for a closed one the kernel only returns an error.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::platform::arch::{Answers, syscall6};
use crate::platform::syscall::RawCall;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// One more than the highest descriptor that select(2) accepts.
pub const SELECT_LIMIT: RawFd = libc::FD_SETSIZE as RawFd;

/// The system calls. AArch64 has only those that take a signal mask.
#[cfg(target_arch = "x86_64")]
mod call {
    /// Name and number of the call of [`super::Polled`].
    pub const POLL: (&str, i64) = ("poll", libc::SYS_poll);
    /// Name and number of the call of [`super::Selected`].
    pub const SELECT: (&str, i64) = ("select", libc::SYS_select);
    /// Name and number of the call of [`super::Registered`].
    pub const EPOLL: (&str, i64) = ("epoll_wait", libc::SYS_epoll_wait);
}
#[cfg(not(target_arch = "x86_64"))]
mod call {
    /// Name and number of the call of [`super::Polled`].
    pub const POLL: (&str, i64) = ("ppoll", libc::SYS_ppoll);
    /// Name and number of the call of [`super::Selected`].
    pub const SELECT: (&str, i64) = ("pselect6", libc::SYS_pselect6);
    /// Name and number of the call of [`super::Registered`].
    pub const EPOLL: (&str, i64) = ("epoll_pwait", libc::SYS_epoll_pwait);
}
pub use call::{EPOLL, POLL, SELECT};

/// A timeout of zero, which the kernel leaves as it is (`poll_select_finish` in fs/select.c).
fn no_time() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: 0 }
}

/// Which of its descriptors can be read.
pub trait Question {
    /// Asks `n` times, without waiting.
    fn ask_repeatedly(&mut self, n: u64) -> Answers;
}

/// Descriptors listed for poll(2).
pub struct Polled(Vec<libc::pollfd>);

impl Polled {
    /// Lists the descriptors, to be asked whether they can be read.
    pub fn new(descriptors: &[OwnedFd]) -> Self {
        let entry = |file: &OwnedFd| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Self(descriptors.iter().map(entry).collect())
    }
}

impl Question for Polled {
    #[inline(always)]
    fn ask_repeatedly(&mut self, n: u64) -> Answers {
        let (at, count) = (self.0.as_mut_ptr() as usize, self.0.len());
        #[cfg(target_arch = "x86_64")]
        let arguments = [at, count, 0, 0, 0, 0];
        #[cfg(not(target_arch = "x86_64"))]
        let mut time = no_time();
        #[cfg(not(target_arch = "x86_64"))]
        let arguments = [at, count, &raw mut time as usize, 0, 0, 0];
        // SAFETY: OWN-BUFFER, OPEN.
        unsafe { RawCall::new(POLL.1, arguments) }.repeat(n)
    }
}

/// Descriptors in a set for select(2).
pub struct Selected {
    asked: [u64; 16],
    /// The copy that the kernel overwrites.
    answered: [u64; 16],
    words: usize,
    end: RawFd,
}

impl Selected {
    /// Puts the descriptors into a set, to be asked whether they can be read.
    ///
    /// # Errors
    /// [`Error::Missing`] if a descriptor is too high for a set.
    pub fn new(descriptors: &[OwnedFd]) -> Result<Self> {
        let mut set = Self { asked: [0; 16], answered: [0; 16], words: 0, end: 0 };
        for file in descriptors.iter().map(AsRawFd::as_raw_fd) {
            if file >= SELECT_LIMIT {
                return Err(Error::Missing(format!(
                    "descriptor {file} does not fit into a set of {SELECT_LIMIT}: start with fewer open files"
                )));
            }
            set.asked[file as usize / 64] |= 1 << (file % 64);
            set.end = set.end.max(file + 1);
        }
        set.words = (set.end as usize).div_ceil(64);
        Ok(set)
    }
}

impl Question for Selected {
    /// Copies the set before each call, which overwrites it.
    #[inline(always)]
    fn ask_repeatedly(&mut self, n: u64) -> Answers {
        let mut seen = Answers::default();
        for _ in 0..n {
            self.answered[..self.words].copy_from_slice(&self.asked[..self.words]);
            let mut time = no_time();
            let (set, time) = (self.answered.as_mut_ptr() as usize, &raw mut time as usize);
            // SAFETY: OWN-BUFFER: a set has room for the highest descriptor; OPEN. The timeout is zero both as a
            // `timeval` and as a `timespec`.
            let answer = unsafe { syscall6(SELECT.1, [self.end as usize, set, 0, 0, time, 0]) };
            seen = Answers { lowest: seen.lowest.min(answer), highest: seen.highest.max(answer) };
        }
        seen
    }
}

/// Descriptors registered with epoll(7).
pub struct Registered {
    file: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Registered {
    /// Registers the descriptors, to be asked whether they can be read.
    ///
    /// # Errors
    /// The refusal of `epoll_create1` or `epoll_ctl`; regular files cannot be registered.
    pub fn new(descriptors: &[OwnedFd]) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|errno| Error::from_case_errno("epoll_create1", errno))?;
        for waited in descriptors {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, waited.as_raw_fd() as u64);
            epoll.add(waited, event).map_err(|errno| Error::from_case_errno("epoll_ctl", errno))?;
        }
        Ok(Self { file: epoll.0, events: vec![libc::epoll_event { events: 0, u64: 0 }; 64] })
    }
}

impl Question for Registered {
    /// epoll_wait(2) for up to 64 events.
    #[inline(always)]
    fn ask_repeatedly(&mut self, n: u64) -> Answers {
        let (file, at) = (self.file.as_raw_fd() as usize, self.events.as_mut_ptr() as usize);
        // SAFETY: OWN-BUFFER, OPEN. The timeout is zero; a call that takes a signal mask gets none.
        unsafe { RawCall::new(EPOLL.1, [file, at, self.events.len(), 0, 0, 0]) }.repeat(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipes(count: usize) -> (Vec<OwnedFd>, Vec<OwnedFd>) {
        (0..count).map(|_| nix::unistd::pipe().expect("a pipe")).unzip()
    }

    #[test]
    fn each_question_finds_the_one_that_is_ready() {
        let (read, write) = pipes(20);
        let (mut polled, mut registered) = (Polled::new(&read), Registered::new(&read).expect("registered"));
        let mut selected = Selected::new(&read).expect("small numbers");
        for ready in 0..3 {
            let alike = Answers { lowest: ready, highest: ready };
            assert_eq!(
                [polled.ask_repeatedly(3), selected.ask_repeatedly(3), registered.ask_repeatedly(3)],
                [alike; 3]
            );
            nix::unistd::write(&write[19 - ready as usize], b"x").expect("written");
        }
    }

    #[test]
    fn a_regular_file_is_always_ready_and_cannot_be_registered() {
        let file = OwnedFd::from(tempfile::tempfile().expect("a file"));
        let files = [file];
        assert_eq!(Polled::new(&files).ask_repeatedly(1).lowest, 1);
        assert_eq!(Selected::new(&files).expect("a small number").ask_repeatedly(1).lowest, 1);
        assert!(Registered::new(&files).is_err());
    }
}
