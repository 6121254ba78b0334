//! The streams of a side's process: requests, responses, and its standard error.

use crate::error::{Error, Result};
use crate::platform::{inert, signal};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use syscost_engine::json_line::{Lines, NoMessage, send};
use syscost_engine::pair::Request;

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
    lines: Lines,
    remarks: Remarks,
}

impl Connection {
    /// A connection of the side's standard input, output and error, or of what takes their place.
    ///
    /// # Errors
    /// The kernel refuses to read the last without waiting.
    pub fn new(requests: OwnedFd, responses: OwnedFd, remarks: OwnedFd) -> Result<Self> {
        let remarks = Remarks::from_pipe(remarks.into())?;
        let lines = Lines::new(LONGEST_LINE);
        Ok(Self { requests: Some(requests.into()), responses: responses.into(), lines, remarks })
    }

    /// Sends a request, without waiting for the response. False if the other end is closed.
    pub fn send_request(&mut self, request: &Request) -> bool {
        self.requests.as_ref().is_some_and(|requests| send(requests, request).is_ok())
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

    /// Receives the next message. Meanwhile the standard error is read.
    ///
    /// # Errors
    /// None comes within this time, or a signal does.
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> std::result::Result<T, NoMessage> {
        let (until, bell) = (Instant::now() + patience, signal::bell_descriptor());
        while signal::pending().is_none() {
            let error = self.remarks.pipe.as_ref().map(AsFd::as_fd);
            let beside: Vec<_> = bell.into_iter().chain(error).collect();
            match self.lines.receive(&self.responses, until, &beside) {
                Err(NoMessage::Woken) => self.remarks.read(),
                received => return received,
            }
        }
        Err(NoMessage::Woken)
    }
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
        let text = inert::neutralize_line(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTED);
        if text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}
