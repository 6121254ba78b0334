//! Interprocess communication: pipes, sockets, queues, semaphores and words of memory, by which one task passes a token
//! to another.
//!
//! A [`Channel`] carries tokens in one direction; the functions that open channels return one for each direction. Every
//! call returns a negative error number where it is refused or interrupted.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads or writes only a local variable, in its full length.
//! * **OWN-DESCRIPTOR**: the descriptor was opened here and is closed once, by its owner. On Linux a message queue is
//!   a descriptor.
#![allow(unsafe_code)]

mod semaphore;
mod shared_word;

use super::socket::Transport;
use crate::error::{Error, Result};
use crate::platform::arch::{syscall4, syscall6};
use crate::platform::plain_file::random_word;
use crate::platform::syscall;
use nix::sys::eventfd::{EfdFlags, EventFd};
pub use semaphore::{PosixSemaphore, Semaphore};
pub use shared_word::{Condition, Futex, PolledWord};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// One direction of communication, which carries one token at a time.
pub trait Channel: Send + Sync + 'static {
    /// Sends a token. Returns zero or more, or a negative error number.
    fn send(&self) -> i64;
    /// Waits for a token. Returns zero or more, or a negative error number.
    fn receive(&self) -> i64;
}

/// A channel there and a channel back.
pub type ChannelPair<L> = Result<[L; 2]>;

/// A channel that passes a byte through a pair of descriptors.
pub struct Bytes {
    read: OwnedFd,
    write: OwnedFd,
}

impl Channel for Bytes {
    #[inline(always)]
    fn send(&self) -> i64 {
        syscall::write_byte(self.write.as_raw_fd(), &1)
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        match syscall::read_byte(self.read.as_raw_fd(), &mut 0) {
            0 => -i64::from(libc::EPIPE), // end of file: no writer is left
            answer => answer,
        }
    }
}

impl Bytes {
    /// A pipe, in one direction.
    ///
    /// # Errors
    /// The kernel refuses it: too many open files.
    pub fn pipe() -> Result<Self> {
        let (read, write) = nix::unistd::pipe().map_err(|e| Error::from_errno("pipe", e))?;
        Ok(Self { read, write })
    }

    /// A pipe in each direction.
    ///
    /// # Errors
    /// The errors of [`Bytes::pipe`].
    pub fn pipe_pair(_: &Path) -> ChannelPair<Self> {
        Ok([Self::pipe()?, Self::pipe()?])
    }

    /// A named pipe in each direction, in this directory.
    ///
    /// # Errors
    /// The directory's file system or the kernel refuses them.
    pub fn fifo_pair(directory: &Path) -> ChannelPair<Self> {
        Ok([open_fifo(&directory.join("fifo-there"))?, open_fifo(&directory.join("fifo-back"))?])
    }

    /// A pair of Unix stream sockets.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn unix_stream_pair(_: &Path) -> ChannelPair<Self> {
        channels_over_sockets(Transport::UnixStream.connected_pair()?)
    }

    /// A pair of Unix datagram sockets.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn unix_datagram_pair(_: &Path) -> ChannelPair<Self> {
        channels_over_sockets(Transport::UnixDatagram.connected_pair()?)
    }
}

/// Makes and opens a named pipe, and removes its name at once; the open pipe remains.
fn open_fifo(path: &Path) -> Result<Bytes> {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).map_err(|e| Error::from_errno("mkfifo", e))?;
    // Opened for reading and writing, so that neither end waits for the other.
    let open = || File::options().read(true).write(true).open(path);
    let opened = open().and_then(|file| Ok(Bytes { read: file.try_clone()?.into(), write: file.into() }));
    let opened = opened.map_err(|e| Error::file(path, "opening a named pipe", e));
    std::fs::remove_file(path).map_err(|e| Error::file(path, "removing a named pipe", e))?;
    opened
}

/// A channel in each direction over one pair of sockets.
fn channels_over_sockets([ours, theirs]: [OwnedFd; 2]) -> ChannelPair<Bytes> {
    let copy = |end: &OwnedFd| {
        end.try_clone().map_err(|cause| Error::Kernel { call: "dup of a socket".into(), cause })
    };
    let there = Bytes { write: copy(&ours)?, read: copy(&theirs)? };
    Ok([there, Bytes { write: theirs, read: ours }])
}

/// eventfd(2): a counter of eight bytes.
pub struct Event(OwnedFd);

impl Event {
    /// A counter in each direction.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        let event = || match EventFd::from_flags(EfdFlags::EFD_CLOEXEC) {
            Ok(event) => Ok(Self(event.into())),
            Err(errno) => Err(Error::from_errno("eventfd", errno)),
        };
        Ok([event()?, event()?])
    }
}

impl Channel for Event {
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

/// A POSIX message queue, whose messages have one byte.
pub struct Queue(OwnedFd);

impl Queue {
    /// A queue in each direction.
    ///
    /// # Errors
    /// The kernel refuses a queue; the error names its limits.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        Ok([Self::new()?, Self::new()?])
    }

    /// Opens a queue and removes its name at once; the open queue remains.
    fn new() -> Result<Self> {
        const MOST_MESSAGES: libc::c_long = 4;
        let name = format!("/syscost-{}", random_word(12));
        let name = CString::new(name).map_err(|e| Error::Disproved(e.to_string()))?;
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut form: libc::mq_attr = unsafe { std::mem::zeroed() };
        form.mq_maxmsg = MOST_MESSAGES;
        form.mq_msgsize = 1;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the name ends in a zero byte; OWN-BUFFER, OWN-DESCRIPTOR.
        let descriptor = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut form) };
        if descriptor < 0 {
            return Err(Error::from_last_errno("mq_open (`ulimit -q`, /proc/sys/fs/mqueue/queues_max)"));
        }
        // SAFETY: the name ends in a zero byte.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        // SAFETY: OWN-DESCRIPTOR.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl Channel for Queue {
    #[inline(always)]
    fn send(&self) -> i64 {
        let byte = 1u8;
        let arguments = [self.0.as_raw_fd() as usize, &raw const byte as usize, 1, 0, 0, 0];
        // SAFETY: OWN-BUFFER: one byte is read.
        unsafe { syscall6(libc::SYS_mq_timedsend, arguments) }
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        let mut byte = 0u8;
        let arguments = [self.0.as_raw_fd() as usize, &raw mut byte as usize, 1, 0, 0, 0];
        // SAFETY: OWN-BUFFER: one byte is written.
        unsafe { syscall6(libc::SYS_mq_timedreceive, arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_carries<C: Channel>(pair: ChannelPair<C>) {
        for channel in pair.expect("opened") {
            for _ in 0..3 {
                assert!(channel.send() >= 0 && channel.receive() >= 0);
            }
        }
    }

    #[test]
    fn every_channel_delivers_what_is_sent() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert_carries(Bytes::pipe_pair(path));
        assert_carries(Bytes::fifo_pair(path));
        assert_carries(Bytes::unix_stream_pair(path));
        assert_carries(Bytes::unix_datagram_pair(path));
        assert_carries(Event::pair(path));
        assert_carries(Futex::private_pair(path));
        assert_carries(Futex::shared_pair(path));
        assert_carries(Condition::pair(path));
        assert_carries(Semaphore::pair(path));
        assert_carries(PosixSemaphore::pair(path));
        if let Err(error) = Queue::pair(path) {
            println!("no message queues here: {error}");
        } else {
            assert_carries(Queue::pair(path));
        }
        assert_eq!(std::fs::read_dir(path).expect("read").count(), 0, "a named pipe has lost its name");
    }

    #[test]
    fn receiving_without_a_writer_is_an_error() {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        drop(write);
        let write = std::fs::File::open("/dev/null").expect("opened").into();
        assert_eq!(Bytes { read, write }.receive(), -i64::from(libc::EPIPE));
    }
}
