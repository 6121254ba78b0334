//! Asking which of many descriptors are ready, without waiting: poll(2), select(2), epoll(7).
//!
//! A question is asked repeatedly. Each answer is the number of ready descriptors, or a negative error number.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads and writes memory that belongs to the value or the calling function, within its
//!   length.
//! * **OPEN**: the descriptors should stay open as long as the value; for a closed one the kernel only returns an error.
//! * **OWN-DESCRIPTOR**: fcntl(2) has just made the descriptor, and nothing else knows it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kit::socket::Transport;
use crate::kit::socket::endpoint::epoll_over;
use crate::platform::arch::{Answers, syscall6};
use crate::platform::syscall::{EPOLL_WAIT, POLL, RawCall, SELECT};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// One more than the highest descriptor that select(2) accepts.
pub const SELECT_LIMIT: RawFd = libc::FD_SETSIZE as RawFd;

/// A timeout of zero, so that a call does not wait.
fn zero_timeout() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: 0 }
}

/// A question to the kernel: how many of the value's descriptors can be read.
pub trait Question {
    /// Asks `n` times, without waiting. Returns the answers.
    fn ask_repeatedly(&mut self, n: u64) -> Answers;
}

/// Descriptors listed for poll(2).
pub struct Polled(Vec<libc::pollfd>);

impl Polled {
    /// Lists the descriptors, for questions whether they can be read.
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
        let mut time = zero_timeout();
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
    /// Puts the descriptors into a set, for questions whether they can be read.
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
            let mut time = zero_timeout();
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
    /// Registers the descriptors, for questions whether they can be read.
    ///
    /// # Errors
    /// The refusal of `epoll_create1` or `epoll_ctl`; regular files cannot be registered.
    pub fn new(descriptors: &[OwnedFd]) -> Result<Self> {
        Ok(Self {
            file: epoll_over(descriptors)?.0,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 64],
        })
    }
}

impl Question for Registered {
    /// epoll_wait(2) for up to 64 events.
    #[inline(always)]
    fn ask_repeatedly(&mut self, n: u64) -> Answers {
        let (file, at) = (self.file.as_raw_fd() as usize, self.events.as_mut_ptr() as usize);
        // SAFETY: OWN-BUFFER, OPEN. The timeout is zero; a call that takes a signal mask gets none.
        unsafe { RawCall::new(EPOLL_WAIT.1, [file, at, self.events.len(), 0, 0, 0]) }.repeat(n)
    }
}

/// The lowest number of the other ends. They are moved up so that the watched descriptors have the small numbers that
/// select(2) needs.
const OTHER_ENDS: i32 = 1_100;
/// The most descriptors that the measuring process has open for other purposes.
const SPARE: usize = 64;

/// The kind of the files to which the descriptors refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One regular file, opened many times. It is always ready.
    File,
    /// A pipe for each descriptor, with its other end open.
    Pipe,
    /// A TCP connection over loopback for each descriptor, with its other end open.
    Tcp,
}

/// The open descriptors. Dropping it closes them and restores the limit of open files.
pub struct Descriptors {
    /// The ends that are asked about.
    pub asked: Vec<OwnedFd>,
    others: Vec<OwnedFd>,
    _limit: FileLimit,
}

impl Descriptors {
    /// Opens `count` descriptors of a kind; the file is made in `directory`.
    ///
    /// # Errors
    /// [`Error::Missing`] if the limit of open files is too low, and what a call of the kernel refuses.
    pub fn new(kind: Kind, count: usize, directory: &Path) -> Result<Self> {
        let limit = FileLimit::raise_to(count + OTHER_ENDS as usize + SPARE)?;
        let mut all = Self { asked: Vec::new(), others: Vec::new(), _limit: limit };
        let path = directory.join("waited-for");
        if kind == Kind::File {
            File::create(&path).map_err(|e| Error::file(&path, "creating", e))?;
        }
        for _ in 0..count {
            let (asked, other) = match kind {
                Kind::File => {
                    let file = File::open(&path).map_err(|e| Error::file(&path, "opening", e))?;
                    all.asked.push(file.into());
                    continue;
                }
                Kind::Pipe => nix::unistd::pipe().map_err(|e| Error::from_case_errno("pipe2", e))?,
                Kind::Tcp => {
                    let [other, asked] = Transport::Tcp.connected_pair()?;
                    (asked, other)
                }
            };
            all.keep_both_ends(asked, &other)?;
        }
        Ok(all)
    }

    /// Keeps both ends, and moves the other one to a high number.
    fn keep_both_ends(&mut self, asked: OwnedFd, other: &OwnedFd) -> Result<()> {
        let moved = fcntl(other, FcntlArg::F_DUPFD_CLOEXEC(OTHER_ENDS))
            .map_err(|e| Error::from_errno("fcntl F_DUPFD_CLOEXEC", e))?;
        // SAFETY: OWN-DESCRIPTOR.
        self.others.push(unsafe { OwnedFd::from_raw_fd(moved) });
        self.asked.push(asked);
        Ok(())
    }

    /// Makes the last descriptor ready, permanently.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the byte cannot be written.
    pub fn make_last_ready(&self) -> Result<()> {
        let refused = |cause| Error::Kernel { call: "write of one byte".into(), cause };
        let Some(last) = self.others.last() else { return Ok(()) };
        let mut last = File::from(last.try_clone().map_err(refused)?);
        last.write_all(&[1]).map_err(refused)
    }
}

/// Raises the limit of open files if necessary. Dropping it restores the limit.
struct FileLimit {
    before: Option<(rlim_t, rlim_t)>,
}

impl FileLimit {
    fn raise_to(count: usize) -> Result<Self> {
        let count = count as rlim_t;
        let refused = |e| Error::from_errno("getrlimit RLIMIT_NOFILE", e);
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refused)?;
        if soft >= count {
            return Ok(Self { before: None });
        }
        if hard < count {
            return Err(Error::Missing(format!(
                "{count} descriptors are needed and a process may have {hard} (RLIMIT_NOFILE): raise `ulimit -Hn`"
            )));
        }
        let refused = |e| Error::from_errno("setrlimit RLIMIT_NOFILE", e);
        setrlimit(Resource::RLIMIT_NOFILE, count, hard).map_err(refused)?;
        Ok(Self { before: Some((soft, hard)) })
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        if let Some((soft, hard)) = self.before {
            // Lowering the limit again is always allowed.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::run_in_child_process; // the limit belongs to the process

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

    #[test]
    fn none_is_ready_and_then_the_last() {
        let directory = tempfile::tempdir().expect("a directory");
        run_in_child_process(|| {
            for kind in [Kind::Pipe, Kind::Tcp] {
                let all = Descriptors::new(kind, 500, directory.path()).expect("opened");
                assert_eq!(Polled::new(&all.asked).ask_repeatedly(1).lowest, 0);
                all.make_last_ready().expect("written");
                while Polled::new(&all.asked).ask_repeatedly(1).lowest == 0 {}
                assert_eq!(Polled::new(&all.asked[..499]).ask_repeatedly(1).lowest, 0);
                assert!(all.asked.iter().all(|file| file.as_raw_fd() < SELECT_LIMIT));
            }
            let files = Descriptors::new(Kind::File, 10, directory.path()).expect("opened");
            assert_eq!(Polled::new(&files.asked).ask_repeatedly(1).lowest, 10);
        });
    }

    #[test]
    fn the_limit_is_raised_for_a_while_or_the_case_is_missing_something() {
        run_in_child_process(|| {
            let limit = || getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
            let (_, hard) = limit();
            setrlimit(Resource::RLIMIT_NOFILE, 100, hard).expect("lowered");
            drop(Descriptors::new(Kind::Pipe, 200, Path::new("/")).expect("raised for a while"));
            assert_eq!(limit(), (100, hard));
            setrlimit(Resource::RLIMIT_NOFILE, 100, 100).expect("lowered");
            let Err(Error::Missing(sentence)) = Descriptors::new(Kind::Pipe, 200, Path::new("/")) else {
                panic!("there was no room")
            };
            assert!(sentence.contains("RLIMIT_NOFILE"));
        });
    }
}
