//! Messages between processes: one JSON value on each line of a stream, with limits of length and time. The other end is not
//! trusted: an invalid line is quoted in the error, without terminal control characters.

use crate::platform::inert;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Characters of an invalid line that a sentence quotes.
const QUOTED_CHARACTERS: usize = 100;

/// Why no message was received. The text continues a sentence that begins with the name of the other end.
#[derive(Debug, thiserror::Error)]
pub enum NoMessage {
    /// No whole line arrived in time.
    #[error("it does not answer")]
    Late,
    /// The other end closed the stream.
    #[error("it closed the connection")]
    Closed,
    /// The line has more than this number of bytes.
    #[error("it sent a line of more than {0} bytes")]
    Long(usize),
    /// The line is not a message, or not one that the protocol allows at this point. Holds its beginning, safe to show on a
    /// terminal.
    #[error("it sent `{0}`, where the protocol has another message")]
    Invalid(String),
    /// Another descriptor that was waited for can be read.
    #[error("something else came first")]
    Woken,
    /// The stream failed.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
}

impl NoMessage {
    /// A message that was not expected at this time.
    pub fn unexpected(message: &impl Debug) -> Self {
        Self::invalid(&format!("{message:?}"))
    }

    fn invalid(line: &str) -> Self {
        Self::Invalid(inert::neutralize_line(line.trim_end(), QUOTED_CHARACTERS))
    }
}

impl From<io::Error> for NoMessage {
    fn from(cause: io::Error) -> Self {
        match cause.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Broken(cause),
        }
    }
}

/// Sends a message.
///
/// # Errors
/// The other end has closed the stream, or does not read in time.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&to_line(message))
}

/// A message as a line.
pub fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have no map with other keys than texts");
    line.push(b'\n');
    line
}

/// The bytes that were read from a stream and do not form a complete message yet.
pub struct Lines {
    held: Vec<u8>,
    /// Number of leading bytes of `held` that are known to hold no end of a line.
    searched: usize,
    longest: usize,
}

impl Lines {
    /// A reader of lines of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { held: Vec::new(), searched: 0, longest }
    }

    /// Receives the next message. If its line is late, the beginning is kept for the next call. Input on any descriptor of
    /// `beside` ends the wait.
    ///
    /// # Errors
    /// No message arrives before the instant `until`.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        from: impl Read + AsFd + Copy,
        until: Instant,
        beside: &[BorrowedFd<'_>],
    ) -> Result<T, NoMessage> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(message);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoMessage::Late);
            }
            if wait_for_input(from.as_fd(), beside, left)? {
                self.read_once(from)?;
            }
        }
    }

    /// Reads once from the stream.
    ///
    /// # Errors
    /// The stream has ended or failed, or has no data yet.
    pub fn read_once(&mut self, mut from: impl Read) -> Result<(), NoMessage> {
        let mut chunk = [0; 16 << 10];
        // The longest line and one byte for its newline.
        let room = chunk.len().min(self.longest + 1 - self.held.len().min(self.longest));
        match from.read(&mut chunk[..room]) {
            Ok(0) => return Err(NoMessage::Closed),
            Ok(length) => self.held.extend_from_slice(&chunk[..length]),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause.into()),
        }
        Ok(())
    }

    /// The message of the next whole line, if there is one.
    ///
    /// # Errors
    /// The line is too long, or is not a message of this type. The line is discarded.
    pub fn take_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, NoMessage> {
        let end = self.held[self.searched..].iter().position(|&byte| byte == b'\n');
        let Some(end) = end.map(|at| self.searched + at) else {
            self.searched = self.held.len();
            if self.searched <= self.longest {
                return Ok(None);
            }
            *self = Self::new(self.longest);
            return Err(NoMessage::Long(self.longest));
        };
        self.searched = 0;
        let line: Vec<u8> = self.held.drain(..=end).collect();
        let beginning =
            || String::from_utf8_lossy(&line[..line.len().min(8 * QUOTED_CHARACTERS)]).into_owned();
        parse_value(&line).map(Some).map_err(|_| NoMessage::invalid(&beginning()))
    }
}

/// Parses JSON. Returns the value, or the error and the path of the field at fault, such as `groups[0].cases[3].title`. Both
/// files and messages are parsed by this function, because the generated code for each type is large.
pub fn parse_value<T: DeserializeOwned>(text: &[u8]) -> Result<T, (serde_json::Error, String)> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        (error.into_inner(), field)
    })?;
    json.end().map(|()| value).map_err(|error| (error, String::new()))
}

/// Waits for input for at most `limit`. Returns whether the stream can be read.
fn wait_for_input(
    stream: BorrowedFd<'_>,
    beside: &[BorrowedFd<'_>],
    limit: Duration,
) -> Result<bool, NoMessage> {
    let descriptors = [&[stream][..], beside].concat();
    let mut sources: Vec<_> = descriptors.iter().map(|&one| PollFd::new(one, PollFlags::POLLIN)).collect();
    // Rounded up to a millisecond: a timeout of zero would turn the caller's loop into a busy wait.
    let timeout = PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut sources, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(io::Error::from(errno).into()),
    }
    let has_input = |source: &PollFd<'_>| source.any() != Some(false);
    if !has_input(&sources[0]) && sources[1..].iter().any(has_input) {
        return Err(NoMessage::Woken);
    }
    Ok(has_input(&sources[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn received(bytes: &[u8], longest: usize) -> Result<Option<u32>, NoMessage> {
        let mut lines = Lines::new(longest);
        let mut from = bytes;
        while !from.is_empty() {
            lines.read_once(&mut from)?;
            if let Some(value) = lines.take_message()? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn pipe() -> (File, File) {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        (read.into(), write.into())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(30)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_line_of_the_longest_length_is_received_and_a_longer_one_is_refused() {
        assert!(matches!(received(b"123\n", 3), Ok(Some(123))));
        assert!(matches!(received(b"1234\n", 3), Err(NoMessage::Long(3))));
        assert!(matches!(received(&vec![b'1'; 100_000], 3_000), Err(NoMessage::Long(_))));
        assert!(matches!(received(b"12", 3), Ok(None)));
        assert!(matches!(received(b"{\n", 3), Err(NoMessage::Invalid(_))));
        assert!(matches!(received(b"\xff\n", 3), Err(NoMessage::Invalid(_))));
        assert!(matches!(received(&[&[b' '; 50_000][..], b"7\n"].concat(), 60_000), Ok(Some(7))));
    }

    #[test]
    fn an_invalid_line_is_quoted_without_terminal_control_characters() {
        let line = format!("\u{1b}[2J\u{202e}{}\r\n", "x".repeat(1_000));
        let error_text = received(line.as_bytes(), 2_000).expect_err("no number").to_string();
        assert!(
            error_text.starts_with("it sent `\u{fffd}[2J\u{fffd}xxx") && error_text.len() < 200,
            "{error_text}"
        );
        let error_text = NoMessage::unexpected(&("a".repeat(1_000), "\u{202e}")).to_string();
        assert!(error_text.starts_with("it sent `(\"aaa") && error_text.len() < 200, "{error_text}");
    }

    #[test]
    fn lines_of_one_chunk_are_received_one_by_one() {
        let mut lines = Lines::new(10);
        lines.read_once(&b"1\nx\n2\n3"[..]).unwrap();
        assert_eq!(lines.take_message().unwrap(), Some(1));
        assert!(lines.take_message::<u32>().is_err(), "and what is invalid is dropped");
        assert_eq!([lines.take_message().unwrap(), lines.take_message().unwrap()], [Some(2), None]);
    }

    #[test]
    fn a_late_line_is_completed_later_and_a_line_without_an_end_is_no_message() {
        let (read, write) = pipe();
        let mut lines = Lines::new(10);
        (&write).write_all(b"4").unwrap();
        assert!(matches!(lines.receive::<u32>(&read, soon(), &[]), Err(NoMessage::Late)));
        (&write).write_all(b"2\n").unwrap();
        assert_eq!(lines.receive::<u32>(&read, far(), &[]).unwrap(), 42);
        (&write).write_all(b"43").unwrap();
        drop(write);
        assert!(matches!(lines.receive::<u32>(&read, far(), &[]), Err(NoMessage::Closed)));
    }

    #[test]
    fn input_on_another_descriptor_ends_the_wait() {
        let [(read, write), (beside, beside_writer)] = [pipe(), pipe()];
        let mut lines = Lines::new(10);
        (&beside_writer).write_all(b"!").unwrap();
        let woken = lines.receive::<u32>(&read, far(), &[beside.as_fd()]);
        assert!(matches!(woken, Err(NoMessage::Woken)));
        (&write).write_all(b"42\n").unwrap();
        assert_eq!(lines.receive::<u32>(&read, far(), &[beside.as_fd()]).unwrap(), 42, "it is first");
    }
}
