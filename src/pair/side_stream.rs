//! The two streams of a side's process, one JSON value per line, each awaited with a timeout.

use super::protocol::Request;
use crate::error::{Error, Result};
use crate::platform::signal;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longest possible response, bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes kept from the end of a side's standard error.
const KEPT: usize = 4096;
/// Bytes of them that a sentence quotes.
const QUOTED: usize = 400;

/// The driver's ends of a side's streams.
pub struct Connection {
    requests: Option<File>,
    responses: File,
    /// Bytes read and not yet returned.
    held: Vec<u8>,
    remarks: Remarks,
}

impl Connection {
    /// A connection of the side's standard input, output and error, or of what takes their place.
    ///
    /// # Errors
    /// The kernel refuses to read the last without waiting.
    pub fn new(requests: OwnedFd, responses: OwnedFd, remarks: OwnedFd) -> Result<Self> {
        let remarks = Remarks::from_pipe(remarks.into())?;
        Ok(Self { requests: Some(requests.into()), responses: responses.into(), held: Vec::new(), remarks })
    }

    /// Sends a request, without waiting for the response. False if the other end is closed.
    pub fn send_request(&mut self, request: &Request) -> bool {
        let Ok(mut line) = serde_json::to_vec(request) else { return false };
        line.push(b'\n');
        self.requests.as_mut().is_some_and(|requests| requests.write_all(&line).is_ok())
    }

    /// Closes the side's input.
    pub fn close_input(&mut self) {
        self.requests = None;
    }

    /// The end of its standard error, as part of a sentence.
    pub fn last_output(&mut self) -> String {
        self.remarks.read();
        self.remarks.quoted_end()
    }

    /// The same of what was read so far.
    pub fn quoted_output(&self) -> String {
        self.remarks.quoted_end()
    }

    /// The end of its standard error as it is.
    pub fn last_error_bytes(&mut self) -> &[u8] {
        self.remarks.read();
        &self.remarks.end
    }

    /// The next line.
    pub fn next(&mut self, patience: Duration) -> Received {
        let until = Instant::now() + patience;
        loop {
            if let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let line = std::mem::replace(&mut self.held, rest);
                return Received::Line(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.held.len() > LONGEST_LINE {
                return Received::TooMuch;
            }
            if signal::pending().is_some() {
                return Received::Interrupted;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Received::Nothing;
            }
            if let Err(end) = self.read_within(left.min(Duration::from_millis(200))) {
                return end;
            }
        }
    }

    /// Reads what arrives within this time.
    fn read_within(&mut self, time: Duration) -> std::result::Result<(), Received> {
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
        let mut waiting = vec![PollFd::new(self.responses.as_fd(), PollFlags::POLLIN)];
        let remarks = self.remarks.pipe.as_ref();
        waiting.extend(remarks.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        match poll(&mut waiting, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(Received::End),
        }
        let is_answered = waiting[0].any() != Some(false);
        self.remarks.read();
        if !is_answered {
            return Ok(());
        }
        let mut buffer = [0; 4096];
        match self.responses.read(&mut buffer) {
            Ok(0) | Err(_) => Err(Received::End),
            Ok(length) => {
                self.held.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }
}

/// The result of waiting for a line.
pub enum Received {
    /// A line, without its end.
    Line(String),
    /// The stream has ended.
    End,
    /// Nothing came within the time.
    Nothing,
    /// A line without end.
    TooMuch,
    /// A signal came.
    Interrupted,
}

/// A side's standard error. It is read to the end again and again, so that the side never waits for a full pipe, and only
/// its last words are kept: a file would hold everything, and could fill the disk.
struct Remarks {
    /// `None` once the side has closed it.
    pipe: Option<File>,
    /// The last bytes, at most [`KEPT`].
    end: Vec<u8>,
}

impl Remarks {
    fn from_pipe(pipe: File) -> Result<Self> {
        let refused = |errno| Error::from_errno("fcntl O_NONBLOCK of a side's standard error", errno);
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(refused)?;
        Ok(Self { pipe: Some(pipe), end: Vec::new() })
    }

    /// Reads what has arrived, up to the capacity of a pipe.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 64 << 10];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.end.extend_from_slice(&buffer[..length]);
                self.end.drain(..self.end.len().saturating_sub(KEPT));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }

    /// The end of it, as part of a sentence.
    fn quoted_end(&self) -> String {
        let text = String::from_utf8_lossy(&self.end[self.end.len().saturating_sub(QUOTED)..]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}
