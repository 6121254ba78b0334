//! What bytes are sent by, one message after another.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes a local of the calling function, or a vector that belongs to the
//!   value, for no more than its length.
//! * **UNTOUCHED**: without a copy the kernel may read a message until it says that it has done so. Its bytes are
//!   written when the value is made and never again, and before they go the kernel is asked, or the connection is
//!   closed, which only leaves pages in the kernel's hands that it holds by itself.
#![allow(unsafe_code)]

use super::message::{send, send_whole, write};
use super::{number, refused, set_option};
use crate::platform::arch::{syscall4, syscall6};
use crate::{Error, Result};
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

/// One end that sends messages of one length. Answers are bytes or negative error numbers.
pub trait Source {
    /// Sends one, whole.
    fn message(&mut self) -> i64;
    /// Waits for what the kernel still has to do with those that were sent.
    fn settle(&mut self) -> i64 {
        0
    }
    /// What a reader must know of how it went.
    fn remark(&self) -> Option<String> {
        None
    }
    /// The number of the descriptor by which they go.
    fn end(&self) -> RawFd;
}

/// From a buffer, by sendto(2).
pub struct Sent {
    end: OwnedFd,
    message: Vec<u8>,
}

impl Sent {
    /// Messages of so many bytes by this end.
    pub fn new(end: OwnedFd, bytes: usize) -> Self {
        Self { end, message: vec![1; bytes] }
    }
}

impl Source for Sent {
    #[inline(always)]
    fn message(&mut self) -> i64 {
        send_whole(number(&self.end), &self.message)
    }

    fn end(&self) -> RawFd {
        number(&self.end)
    }
}

/// From a buffer, by write(2), into a pipe.
pub struct Written(Sent);

impl Written {
    /// Messages of so many bytes by this end.
    pub fn new(end: OwnedFd, bytes: usize) -> Self {
        Self(Sent::new(end, bytes))
    }
}

impl Source for Written {
    #[inline(always)]
    fn message(&mut self) -> i64 {
        whole(self.0.message.len(), |from| write(number(&self.0.end), &self.0.message[from..]))
    }

    fn end(&self) -> RawFd {
        number(&self.0.end)
    }
}

/// Moves `bytes` by a call that may move a part of them.
#[inline(always)]
fn whole(bytes: usize, mut call: impl FnMut(usize) -> i64) -> i64 {
    let mut moved = 0;
    while moved < bytes {
        match call(moved) {
            0 => return -i64::from(libc::EPIPE),
            refused if refused < 0 => return refused,
            more => moved += more as usize,
        }
    }
    moved as i64
}

/// A file without a name that holds so many bytes, all of them in the page cache.
fn cached_file(directory: &Path, bytes: usize) -> Result<File> {
    let making = |e| Error::file(directory, "making a file in it", e);
    let mut file = tempfile::tempfile_in(directory).map_err(making)?;
    file.write_all(&vec![1; bytes]).map_err(making)?;
    Ok(file)
}

/// From a file in the page cache, by sendfile(2).
pub struct FromFile {
    end: OwnedFd,
    file: File,
    bytes: usize,
}

impl FromFile {
    /// Messages of so many bytes by this end; the file is made in this directory.
    pub fn new(end: OwnedFd, bytes: usize, directory: &Path) -> Result<Self> {
        Ok(Self { end, file: cached_file(directory, bytes)?, bytes })
    }
}

impl Source for FromFile {
    #[inline(always)]
    fn message(&mut self) -> i64 {
        let (end, file) = (number(&self.end) as usize, self.file.as_raw_fd() as usize);
        whole(self.bytes, |from| {
            let mut at = from as i64;
            // SAFETY: OWN-BUFFER: the offset is a local.
            unsafe { syscall4(libc::SYS_sendfile, end, file, &raw mut at as usize, self.bytes - from) }
        })
    }

    fn end(&self) -> RawFd {
        number(&self.end)
    }
}

/// From a file in the page cache through a pipe, by splice(2).
pub struct Spliced {
    end: OwnedFd,
    file: File,
    pipe: [OwnedFd; 2],
    bytes: usize,
    room: usize,
}

impl Spliced {
    /// Messages of so many bytes by this end; the file is made in this directory. The pipe is as large as is allowed
    /// without privilege.
    pub fn new(end: OwnedFd, bytes: usize, directory: &Path) -> Result<Self> {
        const LARGEST: i32 = 1 << 20;
        let (read, write) = nix::unistd::pipe().map_err(|e| refused("pipe2", e.into()))?;
        // A pipe that may not grow is used as it is.
        let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(LARGEST));
        let room =
            fcntl(&write, FcntlArg::F_GETPIPE_SZ).map_err(|e| Error::refused("fcntl F_GETPIPE_SZ", e))?;
        Ok(Self {
            end,
            file: cached_file(directory, bytes)?,
            pipe: [read, write],
            bytes,
            room: room as usize,
        })
    }
}

impl Source for Spliced {
    #[inline(always)]
    fn message(&mut self) -> i64 {
        let [read, write] = self.pipe.each_ref().map(number);
        let (end, file) = (number(&self.end), self.file.as_raw_fd());
        whole(self.bytes, |from| {
            let more = (self.bytes - from).min(self.room);
            let filled = splice(file, Some(from as i64), write, more);
            if filled <= 0 {
                filled
            } else {
                whole(filled as usize, |gone| splice(read, None, end, filled as usize - gone))
            }
        })
    }

    fn end(&self) -> RawFd {
        number(&self.end)
    }
}

#[inline(always)]
fn splice(from: RawFd, at: Option<i64>, to: RawFd, bytes: usize) -> i64 {
    let mut offset = at.unwrap_or(0);
    let at = if at.is_some() { &raw mut offset as usize } else { 0 };
    let arguments = [from as usize, at, to as usize, 0, bytes, libc::SPLICE_F_MOVE as usize];
    // SAFETY: OWN-BUFFER: the offset is a local, or none is given.
    unsafe { syscall6(libc::SYS_splice, arguments) }
}

/// From a buffer that the kernel reads where it lies, by `MSG_ZEROCOPY`.
pub struct ZeroCopy {
    end: OwnedFd,
    message: Vec<u8>,
    /// Calls that sent something, and those of them of which the kernel has said that it is done.
    sent: u64,
    done: u64,
    copied: bool,
}

/// So many calls may be unanswered before their answers are asked for.
const UNANSWERED: u64 = 64;

impl ZeroCopy {
    /// Messages of so many bytes by this TCP end.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel does not have it.
    pub fn new(end: OwnedFd, bytes: usize) -> Result<Self> {
        set_option(number(&end), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(|errno| {
            Error::Missing(format!("SO_ZEROCOPY: {}: it needs TCP and Linux 4.14", errno.desc()))
        })?;
        Ok(Self { end, message: vec![1; bytes], sent: 0, done: 0, copied: false })
    }

    /// Reads what the kernel has said so far. Its answers stand in the queue of errors, of which nobody can
    /// wait for but by poll(2).
    fn answers(&mut self) -> i64 {
        loop {
            match notice(number(&self.end)) {
                Ok(Some((calls, copied))) => {
                    self.done += calls;
                    self.copied |= copied;
                }
                Ok(None) => return 0,
                Err(refused) => return refused,
            }
        }
    }

    fn wait(&mut self) -> i64 {
        let mut asked = libc::pollfd { fd: number(&self.end), events: 0, revents: 0 };
        // SAFETY: OWN-BUFFER: one element. An error is told unasked.
        if unsafe { libc::poll(&raw mut asked, 1, -1) } < 0 {
            return -i64::from(nix::errno::Errno::last_raw());
        }
        if asked.revents & libc::POLLHUP != 0 { -i64::from(libc::EPIPE) } else { self.answers() }
    }
}

impl Source for ZeroCopy {
    fn message(&mut self) -> i64 {
        const FULL: i64 = -(libc::ENOBUFS as i64);
        let end = number(&self.end);
        let mut moved = 0;
        while moved < self.message.len() {
            // What waits for an answer is charged to the socket's option memory.
            if self.sent - self.done >= UNANSWERED {
                let answer = self.answers();
                if answer < 0 {
                    return answer;
                }
            }
            match send(end, &self.message[moved..], libc::MSG_ZEROCOPY) {
                FULL if self.sent > self.done => {
                    let answer = self.wait();
                    if answer < 0 {
                        return answer;
                    }
                }
                refused if refused < 0 => return refused,
                bytes => {
                    self.sent += 1;
                    moved += bytes as usize;
                }
            }
        }
        moved as i64
    }

    fn settle(&mut self) -> i64 {
        let mut answer = self.answers();
        while answer >= 0 && self.done < self.sent {
            answer = self.wait();
        }
        answer
    }

    fn remark(&self) -> Option<String> {
        let went = if self.copied {
            "the kernel copied after all, as it does on loopback"
        } else {
            "none was copied"
        };
        Some(format!("{} calls with MSG_ZEROCOPY, all answered: {went}", self.done))
    }

    fn end(&self) -> RawFd {
        number(&self.end)
    }
}

/// One answer: of how many calls, and whether the kernel copied after all.
fn notice(end: RawFd) -> std::result::Result<Option<(u64, bool)>, i64> {
    #[repr(C, align(8))]
    struct Room([u8; 128]);
    let mut room = Room([0; 128]);
    // SAFETY: plain numbers and pointers, for which zero is a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = room.0.as_mut_ptr().cast();
    header.msg_controllen = room.0.len() as _;
    // SAFETY: OWN-BUFFER: the room is a local, aligned as control messages must be.
    let come = unsafe { libc::recvmsg(end, &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if come < 0 {
        return match nix::errno::Errno::last_raw() {
            libc::EAGAIN => Ok(None),
            errno => Err(-i64::from(errno)),
        };
    }
    // SAFETY: OWN-BUFFER: the kernel has filled the header; the macros stay within what it says. The structure
    // behind a header of this kind is a `sock_extended_err`, which is plain numbers.
    let error = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        if first.is_null() {
            return Err(-i64::from(libc::EPROTO));
        }
        libc::CMSG_DATA(first).cast::<libc::sock_extended_err>().read_unaligned()
    };
    if error.ee_origin != OF_ZEROCOPY {
        return Err(-i64::from(i32::try_from(error.ee_errno).unwrap_or(libc::EPROTO).max(1)));
    }
    let calls = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
    Ok(Some((calls, error.ee_code & COPIED != 0)))
}

/// `SO_EE_ORIGIN_ZEROCOPY`.
const OF_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const COPIED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::Transport;
    use crate::kit::socket::message::{read, receive_whole};

    const BYTES: usize = 200_000;

    /// Another thread receives, since more goes than there is room for.
    fn arrives(make: impl Fn(OwnedFd) -> Box<dyn Source>) -> Option<String> {
        let [near, far] = Transport::Tcp.pair().expect("connected");
        let receiving = std::thread::spawn(move || {
            let mut come = vec![0; 3 * BYTES];
            let count = receive_whole(number(&far), &mut come);
            (count, come.iter().all(|byte| *byte == 1))
        });
        let mut source = make(near);
        for _ in 0..3 {
            assert_eq!(source.message(), BYTES as i64);
        }
        assert_eq!(source.settle(), 0);
        assert_eq!(receiving.join().expect("no panic"), (3 * BYTES as i64, true));
        source.remark()
    }

    #[test]
    fn what_every_source_sends_arrives() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        arrives(|end| Box::new(Sent::new(end, BYTES)));
        arrives(|end| Box::new(FromFile::new(end, BYTES, path).expect("made")));
        arrives(|end| Box::new(Spliced::new(end, BYTES, path).expect("made")));
        let remark = arrives(|end| Box::new(ZeroCopy::new(end, BYTES).expect("made")));
        assert!(remark.expect("said").contains("all answered"));
    }

    #[test]
    fn what_is_written_into_a_pipe_can_be_read() {
        let (out, end) = nix::unistd::pipe().expect("a pipe");
        let mut room = [0; 100];
        assert_eq!(Written::new(end, 100).message(), 100);
        assert_eq!((read(number(&out), &mut room), room), (100, [1; 100]));
    }
}
