//! Many open descriptors of one kind, of which none is ready to be read, or only the last.
//!
//! # Invariants
//!
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kit::socket::Transport;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

/// Lowest number of the other ends, so that the descriptors that are asked about keep small numbers, which select(2)
/// needs.
const OTHER_ENDS: i32 = 1_100;
/// Descriptors that the measuring process has open for other purposes, at most.
const SPARE: usize = 64;

/// What the descriptors refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One regular file, opened many times. It is always ready.
    File,
    /// A pipe each, with its other end open.
    Pipe,
    /// A TCP connection each over loopback, with its other end open.
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
        match kind {
            Kind::File => all.open_file(count, &directory.join("waited-for"))?,
            Kind::Pipe => all.open_pipes(count)?,
            Kind::Tcp => all.open_connections(count)?,
        }
        Ok(all)
    }

    fn open_file(&mut self, count: usize, path: &Path) -> Result<()> {
        File::create(path).map_err(|e| Error::file(path, "creating", e))?;
        for _ in 0..count {
            self.asked.push(File::open(path).map_err(|e| Error::file(path, "opening", e))?.into());
        }
        Ok(())
    }

    fn open_pipes(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (read, write) = nix::unistd::pipe().map_err(|e| Error::from_case_errno("pipe2", e))?;
            self.keep_both_ends(read, &write)?;
        }
        Ok(())
    }

    fn open_connections(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let [other, asked] = Transport::Tcp.connected_pair()?;
            self.keep_both_ends(asked, &other)?;
        }
        Ok(())
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
            // Lowering what was raised is always allowed.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation_poll::{Polled, Question, SELECT_LIMIT};
    use super::*;
    use crate::platform::testing::run_in_child_process; // the limit belongs to the process
    use std::os::fd::AsRawFd;

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
