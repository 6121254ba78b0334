//! Ways by which one task hands a token to another and waits for one: pipes, sockets, queues, semaphores, words
//! of memory.
//!
//! A [`Line`] carries tokens in one direction; who opens gets two, there and back. Every call answers a negative
//! error number where it is refused or interrupted.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads or writes only the local that it is given, in its full length.
//! * **OWN-QUEUE**: the descriptor was opened here and is closed once, by its owner.
#![allow(unsafe_code)]

mod queue;
mod semaphore;
mod word;

pub use queue::Queue;
pub use semaphore::Semaphore;
pub use word::{Condition, Futex, Toggle};

use crate::platform::arch::syscall4;
use crate::platform::syscall;
use crate::{Error, Result};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

/// One direction.
pub trait Line: Send + Sync + 'static {
    /// Hands over a token.
    fn send(&self) -> i64;
    /// Waits for a token.
    fn receive(&self) -> i64;
}

/// There and back.
pub type Both<L> = Result<[L; 2]>;

/// Bytes through descriptors.
pub struct Bytes {
    read: OwnedFd,
    write: OwnedFd,
}

impl Line for Bytes {
    #[inline(always)]
    fn send(&self) -> i64 {
        syscall::write_byte(self.write.as_raw_fd(), &1)
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        match syscall::read_byte(self.read.as_raw_fd(), &mut 0) {
            0 => -i64::from(libc::EPIPE), // the end of the file: there is nobody any more
            answer => answer,
        }
    }
}

impl Bytes {
    /// A pipe, in one direction.
    pub fn pipe() -> Result<Self> {
        let (read, write) = nix::unistd::pipe().map_err(|e| Error::refused("pipe (`ulimit -n`)", e))?;
        Ok(Self { read, write })
    }

    /// A pipe in each direction.
    pub fn pipes(_: &Path) -> Both<Self> {
        Ok([Self::pipe()?, Self::pipe()?])
    }

    /// A named pipe in each direction, in this directory.
    pub fn fifos(directory: &Path) -> Both<Self> {
        Ok([fifo(&directory.join("fifo-there"))?, fifo(&directory.join("fifo-back"))?])
    }

    /// A pair of Unix stream sockets.
    pub fn streams(_: &Path) -> Both<Self> {
        crossed(UnixStream::pair(), "socketpair of streams")
    }

    /// A pair of Unix datagram sockets.
    pub fn datagrams(_: &Path) -> Both<Self> {
        crossed(UnixDatagram::pair(), "socketpair of datagrams")
    }
}

/// The name goes at once; what was opened by it stays.
fn fifo(path: &Path) -> Result<Bytes> {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).map_err(|e| Error::refused("mkfifo", e))?;
    // Opened for both, so that neither opening waits for the other.
    let open = || File::options().read(true).write(true).open(path);
    let opened = open().and_then(|file| Ok(Bytes { read: file.try_clone()?.into(), write: file.into() }));
    let opened = opened.map_err(|e| Error::file(path, "opening a named pipe", e));
    std::fs::remove_file(path).map_err(|e| Error::file(path, "removing a named pipe", e))?;
    opened
}

/// What one end writes the other reads.
fn crossed<S: Into<OwnedFd>>(pair: std::io::Result<(S, S)>, call: &str) -> Both<Bytes> {
    let refused = |cause| Error::Kernel { call: call.into(), cause };
    let (ours, theirs) = pair.map_err(refused)?;
    let (ours, theirs) = (ours.into(), theirs.into());
    let there =
        Bytes { write: ours.try_clone().map_err(refused)?, read: theirs.try_clone().map_err(refused)? };
    Ok([there, Bytes { write: theirs, read: ours }])
}

/// A counter of events, of eight bytes.
pub struct Event(OwnedFd);

impl Event {
    /// A counter in each direction.
    pub fn both(_: &Path) -> Both<Self> {
        let event = || {
            // SAFETY: `eventfd` has no precondition; OWN-QUEUE.
            let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
            if descriptor < 0 {
                return Err(Error::last_os("eventfd"));
            }
            // SAFETY: OWN-QUEUE.
            Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
        };
        Ok([event()?, event()?])
    }
}

impl Line for Event {
    #[inline(always)]
    fn send(&self) -> i64 {
        let one = 1u64;
        // SAFETY: OWN-BUFFER: eight bytes are read.
        unsafe { syscall4(libc::SYS_write, self.0.as_raw_fd() as usize, &raw const one as usize, 8, 0) }
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        let mut count = 0u64;
        // SAFETY: OWN-BUFFER: eight bytes are written.
        unsafe { syscall4(libc::SYS_read, self.0.as_raw_fd() as usize, &raw mut count as usize, 8, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carries<L: Line>(both: Both<L>) {
        for line in both.expect("opened") {
            for _ in 0..3 {
                assert!(line.send() >= 0 && line.receive() >= 0);
            }
        }
    }

    #[test]
    fn what_is_sent_arrives_by_every_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        carries(Bytes::pipes(path));
        carries(Bytes::fifos(path));
        carries(Bytes::streams(path));
        carries(Bytes::datagrams(path));
        carries(Event::both(path));
        carries(Futex::private(path));
        carries(Futex::shared(path));
        carries(Condition::both(path));
        carries(Semaphore::both(path));
        if let Err(error) = Queue::both(path) {
            println!("no message queues here: {error}");
        } else {
            carries(Queue::both(path));
        }
        assert_eq!(std::fs::read_dir(path).expect("read").count(), 0, "a named pipe has lost its name");
    }

    #[test]
    fn a_line_that_nobody_writes_any_more_has_ended() {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        drop(write);
        let write = std::fs::File::open("/dev/null").expect("opened").into();
        assert_eq!(Bytes { read, write }.receive(), -i64::from(libc::EPIPE));
    }
}
