//! One end of the control connection.

use crate::json_line::{Lines, NoMessage, send};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A stream of messages, with limits of the length of a line and of the time for which the other end may leave it unread.
pub struct Talk {
    stream: TcpStream,
    lines: Lines,
}

impl Talk {
    /// Uses `stream` after the bytes that were read from it, with a time limit for writing.
    ///
    /// # Errors
    /// The socket cannot be configured.
    pub fn from_stream(stream: TcpStream, lines: Lines, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, lines })
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

    /// Sends a message.
    ///
    /// # Errors
    /// The other end does not read in time, or the connection has broken.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), NoMessage> {
        Ok(send(&self.stream, message)?)
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// None arrives within `patience`.
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T, NoMessage> {
        self.lines.receive(&self.stream, Instant::now() + patience, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn a_drip_is_late_and_a_closed_connection_stays_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let short = Duration::from_millis(30);
        let mut talk = Talk::from_stream(listener.accept().unwrap().0, Lines::new(10), short).unwrap();
        far.write_all(b"4").unwrap();
        assert!(matches!(talk.receive::<u32>(short), Err(NoMessage::Late)));
        far.write_all(b"2\n").unwrap();
        assert_eq!(talk.receive::<u32>(Duration::from_secs(5)).unwrap(), 42);
        assert!(!talk.is_closed());
        drop(far);
        assert!(matches!(talk.receive::<u32>(Duration::from_secs(5)), Err(NoMessage::Closed)));
        assert!(talk.is_closed());
        assert!(matches!(talk.receive::<u32>(short), Err(NoMessage::Closed)));
    }
}
