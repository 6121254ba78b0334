//! Sources of a stream of messages: sendto, write, sendfile, splice, and `MSG_ZEROCOPY`.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes a local variable of the calling function, or a vector that belongs to
//!   the value, within its length.
//! * **UNTOUCHED**: without a copy the kernel may read a message until its notification comes. The message is written
//!   when the value is made and never again. Before it is freed, either all notifications have come or the connection
//!   is closed, after which the kernel uses only pages on which it holds a reference.
#![allow(unsafe_code)]

use super::transfer::{send, send_whole, write};
use super::{raw_descriptor, set_option, socket_error};
use crate::error::{Error, Result, ensure};
use crate::platform::arch::{syscall4, syscall6};
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

/// The sending end of messages of one length. Calls return bytes or negative error numbers.
pub trait Source {
    /// Sends one whole message by this end.
    fn send_message(&mut self, end: RawFd) -> i64;
    /// Waits until the kernel no longer uses the messages that were sent by it.
    fn wait_until_released(&mut self, _: RawFd) -> i64 {
        0
    }
    /// A sentence for the evidence, if there is one.
    fn evidence_sentence(&self) -> Option<String> {
        None
    }
}

/// From a buffer, by sendto(2).
pub struct Sent(Vec<u8>);

impl Sent {
    /// Messages of `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self(vec![1; bytes])
    }
}

impl Source for Sent {
    #[inline(always)]
    fn send_message(&mut self, end: RawFd) -> i64 {
        send_whole(end, &self.0)
    }
}

/// From a buffer, by write(2), into a pipe.
pub struct Written(pub Sent);

impl Source for Written {
    #[inline(always)]
    fn send_message(&mut self, end: RawFd) -> i64 {
        move_whole(self.0.0.len(), |from| write(end, &self.0.0[from..]))
    }
}

/// Moves `bytes` bytes by repeated calls, each of which moves some of them. Returns `bytes` or a negative error number.
#[inline(always)]
fn move_whole(bytes: usize, mut call: impl FnMut(usize) -> i64) -> i64 {
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

/// An unnamed file of `bytes` bytes, all of them in the page cache.
fn cached_file(directory: &Path, bytes: usize) -> Result<File> {
    let making = |e| Error::file(directory, "making a file in it", e);
    let mut file = tempfile::tempfile_in(directory).map_err(making)?;
    file.write_all(&vec![1; bytes]).map_err(making)?;
    Ok(file)
}

/// From a file in the page cache, by sendfile(2).
pub struct FromFile {
    file: File,
    bytes: usize,
}

impl FromFile {
    /// Messages of `bytes`; the file is made in this directory.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(bytes: usize, directory: &Path) -> Result<Self> {
        Ok(Self { file: cached_file(directory, bytes)?, bytes })
    }
}

impl Source for FromFile {
    #[inline(always)]
    fn send_message(&mut self, end: RawFd) -> i64 {
        let (end, file) = (end as usize, self.file.as_raw_fd() as usize);
        move_whole(self.bytes, |from| {
            let mut at = from as i64;
            // SAFETY: OWN-BUFFER: the offset is a local variable.
            unsafe { syscall4(libc::SYS_sendfile, end, file, &raw mut at as usize, self.bytes - from) }
        })
    }
}

/// From a file in the page cache through a pipe, by splice(2).
pub struct Spliced {
    file: File,
    pipe: [OwnedFd; 2],
    bytes: usize,
    capacity: usize,
}

impl Spliced {
    /// Messages of `bytes`; the file is made in this directory. The pipe is as large as is allowed without
    /// privilege.
    ///
    /// # Errors
    /// The file or the pipe cannot be made.
    pub fn new(bytes: usize, directory: &Path) -> Result<Self> {
        const LARGEST: i32 = 1 << 20;
        let (read, write) = nix::unistd::pipe().map_err(|e| socket_error("pipe2", e.into()))?;
        // A pipe that may not grow keeps its size.
        let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(LARGEST));
        let capacity =
            fcntl(&write, FcntlArg::F_GETPIPE_SZ).map_err(|e| Error::from_errno("fcntl F_GETPIPE_SZ", e))?;
        let (file, pipe) = (cached_file(directory, bytes)?, [read, write]);
        Ok(Self { file, pipe, bytes, capacity: capacity as usize })
    }
}

impl Source for Spliced {
    #[inline(always)]
    fn send_message(&mut self, end: RawFd) -> i64 {
        let [read, write] = self.pipe.each_ref().map(raw_descriptor);
        let file = self.file.as_raw_fd();
        move_whole(self.bytes, |from| {
            let more = (self.bytes - from).min(self.capacity);
            let filled = splice(file, Some(from as i64), write, more);
            if filled <= 0 {
                filled
            } else {
                move_whole(filled as usize, |moved| splice(read, None, end, filled as usize - moved))
            }
        })
    }
}

/// splice(2), from offset `at` of a file or, with `None`, from a pipe. Returns the bytes moved or a negative error number.
#[inline(always)]
fn splice(from: RawFd, at: Option<i64>, to: RawFd, bytes: usize) -> i64 {
    let mut offset = at.unwrap_or(0);
    let at = if at.is_some() { &raw mut offset as usize } else { 0 };
    let arguments = [from as usize, at, to as usize, 0, bytes, libc::SPLICE_F_MOVE as usize];
    // SAFETY: OWN-BUFFER: the offset is a local variable, or none is given.
    unsafe { syscall6(libc::SYS_splice, arguments) }
}

/// From a buffer that the kernel reads in place, by `MSG_ZEROCOPY`.
pub struct ZeroCopy {
    message: Vec<u8>,
    /// Calls that sent data.
    sent: u64,
    /// Calls whose notification has arrived.
    done: u64,
    copied: bool,
}

/// When this many calls lack a notification, the notifications are read.
const UNANSWERED: u64 = 64;

impl ZeroCopy {
    /// Switches `SO_ZEROCOPY` on at this TCP end, for messages of `bytes`.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel does not have it.
    pub fn new(end: &OwnedFd, bytes: usize) -> Result<Self> {
        set_option(raw_descriptor(end), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(|errno| {
            Error::Missing(format!("SO_ZEROCOPY: {}: it needs TCP and Linux 4.14", errno.desc()))
        })?;
        Ok(Self { message: vec![1; bytes], sent: 0, done: 0, copied: false })
    }

    /// Reads the notifications that have come, from the socket's error queue. Only poll(2) can wait for them.
    fn read_notifications(&mut self, end: RawFd) -> i64 {
        loop {
            match read_notification(end) {
                Ok(Some((calls, copied))) => {
                    self.done += calls;
                    self.copied |= copied;
                }
                Ok(None) => return 0,
                Err(refused) => return refused,
            }
        }
    }

    /// Waits until a notification has arrived, and reads it. Returns 0 or a negative error number.
    fn wait_for_notification(&mut self, end: RawFd) -> i64 {
        let mut asked = libc::pollfd { fd: end, events: 0, revents: 0 };
        // SAFETY: OWN-BUFFER: one element. POLLERR is always reported.
        if unsafe { libc::poll(&raw mut asked, 1, -1) } < 0 {
            return -i64::from(nix::errno::Errno::last_raw());
        }
        if asked.revents & libc::POLLHUP != 0 {
            -i64::from(libc::EPIPE)
        } else {
            self.read_notifications(end)
        }
    }
}

impl Source for ZeroCopy {
    fn send_message(&mut self, end: RawFd) -> i64 {
        const FULL: i64 = -(libc::ENOBUFS as i64);
        let mut moved = 0;
        while moved < self.message.len() {
            // Outstanding notifications are charged to the socket's option memory.
            if self.sent - self.done >= UNANSWERED {
                let answer = self.read_notifications(end);
                if answer < 0 {
                    return answer;
                }
            }
            match send(end, &self.message[moved..], libc::MSG_ZEROCOPY) {
                FULL if self.sent > self.done => {
                    let answer = self.wait_for_notification(end);
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

    fn wait_until_released(&mut self, end: RawFd) -> i64 {
        let mut answer = self.read_notifications(end);
        while answer >= 0 && self.done < self.sent {
            answer = self.wait_for_notification(end);
        }
        answer
    }

    fn evidence_sentence(&self) -> Option<String> {
        let went = if self.copied {
            "the kernel copied after all, as it does on loopback"
        } else {
            "none was copied"
        };
        Some(format!("{} calls with MSG_ZEROCOPY, all answered: {went}", self.done))
    }
}

/// Reads one notification: the number of calls that it covers, and whether the kernel copied after all. `None` if none has arrived.
fn read_notification(end: RawFd) -> std::result::Result<Option<(u64, bool)>, i64> {
    #[repr(C, align(8))]
    struct Buffer([u8; 128]);
    let mut buffer = Buffer([0; 128]);
    // SAFETY: plain numbers and pointers, for which zero is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = buffer.0.as_mut_ptr().cast();
    header.msg_controllen = buffer.0.len() as _;
    // SAFETY: OWN-BUFFER: the buffer is a local variable, aligned as control messages must be.
    let received = unsafe { libc::recvmsg(end, &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if received < 0 {
        return match nix::errno::Errno::last_raw() {
            libc::EAGAIN => Ok(None),
            errno => Err(-i64::from(errno)),
        };
    }
    // SAFETY: OWN-BUFFER: the kernel has filled the header, and the macros stay within its lengths. The structure
    // behind a header of this kind is a `sock_extended_err`, which is plain numbers.
    let error = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        ensure(!first.is_null(), || -i64::from(libc::EPROTO))?;
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
    use crate::kit::socket::transfer::{read, receive_whole};

    const BYTES: usize = 200_000;

    /// Another thread receives, since more is sent than the buffers hold.
    fn assert_arrives(make: impl Fn(&OwnedFd) -> Box<dyn Source>) -> Option<String> {
        let [near, far] = Transport::Tcp.connected_pair().expect("connected");
        let receiving = std::thread::spawn(move || {
            let mut received = vec![0; 3 * BYTES];
            let count = receive_whole(raw_descriptor(&far), &mut received);
            (count, received.iter().all(|byte| *byte == 1))
        });
        let (mut source, end) = (make(&near), raw_descriptor(&near));
        for _ in 0..3 {
            assert_eq!(source.send_message(end), BYTES as i64);
        }
        assert_eq!(source.wait_until_released(end), 0);
        assert_eq!(receiving.join().expect("no panic"), (3 * BYTES as i64, true));
        source.evidence_sentence()
    }

    #[test]
    fn every_source_delivers_its_messages() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert_arrives(|_| Box::new(Sent::new(BYTES)));
        assert_arrives(|_| Box::new(FromFile::new(BYTES, path).expect("made")));
        assert_arrives(|_| Box::new(Spliced::new(BYTES, path).expect("made")));
        let remark = assert_arrives(|end| Box::new(ZeroCopy::new(end, BYTES).expect("made")));
        assert!(remark.expect("said").contains("all answered"));
    }

    #[test]
    fn what_is_written_into_a_pipe_can_be_read() {
        let (out, end) = nix::unistd::pipe().expect("a pipe");
        let mut received = [0; 100];
        assert_eq!(Written(Sent::new(100)).send_message(raw_descriptor(&end)), 100);
        assert_eq!((read(raw_descriptor(&out), &mut received), received), (100, [1; 100]));
    }
}
