//! Lines of JSON over a stream, with limits of length and time. Lines that are too long, too late or invalid are
//! different errors.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The error if no line was received. Its text continues a sentence that begins with the peer's name.
#[derive(Debug, thiserror::Error)]
pub enum Silence {
    /// No line arrived in time.
    #[error("it does not answer")]
    Late,
    /// The other end closed the connection.
    #[error("it closed the connection")]
    Closed,
    /// The line is too long.
    #[error("it sent a line that is too long for the protocol")]
    Long,
    /// The line is no message of the protocol.
    #[error("it does not speak the protocol of `syscost peer`")]
    Garbled,
    /// The socket failed.
    #[error("the connection broke: {0}")]
    Refused(std::io::Error),
}

impl From<std::io::Error> for Silence {
    fn from(cause: std::io::Error) -> Self {
        match cause.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Refused(cause),
        }
    }
}

/// A buffer for an incomplete line.
pub struct Lines {
    buffer: Vec<u8>,
    longest: usize,
}

impl Lines {
    /// For lines of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { buffer: Vec::new(), longest }
    }

    /// Reads once from the stream.
    ///
    /// # Errors
    /// The stream has ended or failed, or has no data yet.
    pub fn read_once(&mut self, mut from: impl Read) -> Result<(), Silence> {
        let mut chunk = [0; 1024];
        // One byte more than the longest line, for its end.
        let room = chunk.len().min(self.longest + 1 - self.buffer.len().min(self.longest));
        match from.read(&mut chunk[..room])? {
            0 => Err(Silence::Closed),
            came => {
                self.buffer.extend_from_slice(&chunk[..came]);
                Ok(())
            }
        }
    }

    /// The next complete line, if there is one.
    ///
    /// # Errors
    /// The line is too long or invalid.
    pub fn take_value<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Silence> {
        match self.buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let value = serde_json::from_slice(&line[..end]);
                value.map(Some).map_err(|_| Silence::Garbled)
            }
            None if self.buffer.len() > self.longest => Err(Silence::Long),
            None => Ok(None),
        }
    }
}

/// A value as a line.
pub fn to_line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(value).expect("messages of the protocol have no map with other keys than texts");
    line.push(b'\n');
    line
}

/// One end of the control connection.
pub struct Talk {
    stream: TcpStream,
    lines: Lines,
}

impl Talk {
    /// Uses `stream` for lines of at most `longest` bytes, with a time limit for writing.
    ///
    /// # Errors
    /// The socket cannot be configured.
    pub fn from_stream(stream: TcpStream, longest: usize, patience: Duration) -> std::io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, lines: Lines::new(longest) })
    }

    /// Continues with a partly filled buffer and another limit of length.
    ///
    /// # Errors
    /// The socket cannot be configured.
    pub fn resume(
        stream: TcpStream,
        lines: Lines,
        longest: usize,
        patience: Duration,
    ) -> std::io::Result<Self> {
        let talk = Self::from_stream(stream, longest, patience)?;
        Ok(Self { lines: Lines { longest, ..lines }, ..talk })
    }

    /// The stream.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether the other end has closed the connection, tested without waiting.
    pub fn is_closed(&self) -> bool {
        let now = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_open = match now {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        !is_open || self.stream.set_nonblocking(false).is_err()
    }

    /// Sends a value.
    ///
    /// # Errors
    /// The other end does not read in time, or the connection has broken.
    pub fn send_value<T: Serialize>(&mut self, value: &T) -> Result<(), Silence> {
        Ok(self.stream.write_all(&to_line(value))?)
    }

    /// Receives the next value. The beginning of a late line is kept for the next call.
    ///
    /// # Errors
    /// No valid line arrives within `patience`.
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T, Silence> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(value) = self.lines.take_value()? {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence::Late);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.lines.read_once(&self.stream) {
                Err(Silence::Refused(cause)) if cause.kind() == ErrorKind::Interrupted => {}
                other => other?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn received(bytes: &[u8], longest: usize) -> Result<Option<u32>, Silence> {
        let mut lines = Lines::new(longest);
        let mut from = bytes;
        while !from.is_empty() {
            lines.read_once(&mut from)?;
            if let Some(value) = lines.take_value()? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_line_of_the_longest_length_is_heard_and_a_longer_one_is_not_kept() {
        assert!(matches!(received(b"123\n", 3), Ok(Some(123))));
        assert!(matches!(received(b"1234\n", 3), Err(Silence::Long)));
        assert!(matches!(received(&vec![b'1'; 100_000], 3_000), Err(Silence::Long)));
        assert!(matches!(received(b"12", 3), Ok(None)));
        assert!(matches!(received(b"{\n", 3), Err(Silence::Garbled)));
        assert!(matches!(received(b"\xff\n", 3), Err(Silence::Garbled)));
    }

    #[test]
    fn lines_that_come_together_are_heard_one_by_one() {
        let mut lines = Lines::new(10);
        lines.read_once(&b"1\n2\n3"[..]).unwrap();
        assert_eq!(
            [lines.take_value().unwrap(), lines.take_value().unwrap(), lines.take_value().unwrap()],
            [Some(1), Some(2), None]
        );
    }

    #[test]
    fn a_drip_is_late_and_what_came_of_it_is_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let short = Duration::from_millis(30);
        let mut talk = Talk::from_stream(listener.accept().unwrap().0, 10, short).unwrap();
        far.write_all(b"4").unwrap();
        assert!(matches!(talk.receive::<u32>(short), Err(Silence::Late)));
        far.write_all(b"2\n").unwrap();
        assert_eq!(talk.receive::<u32>(Duration::from_secs(5)).unwrap(), 42);
        assert!(!talk.is_closed());
        drop(far);
        assert!(matches!(talk.receive::<u32>(short), Err(Silence::Closed)) && talk.is_closed());
        assert!(matches!(talk.receive::<u32>(short), Err(Silence::Closed)));
    }
}
