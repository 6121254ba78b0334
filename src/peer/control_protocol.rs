//! The control connection: its messages, one JSON value on each line, the client first; one end of it; and the limits of a
//! server, for each client and for all.

use crate::environment::Station;
use crate::json_line::{Lines, NoMessage, send};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The version of the protocol, which is part of every proof. 2: the welcome says at which address the peer was reached, and messages may be answered with one byte.
pub const VERSION: u32 = 2;

/// The longest line before authentication, bytes: five times a hello.
pub const LONGEST_BEFORE: usize = 1 << 10;
/// The longest line after it, bytes: ten times a fingerprint.
pub const LONGEST: usize = 64 << 10;

/// Size of the secret with which each data stream and each datagram begins, bytes.
pub const SECRET_BYTES: usize = 16;

/// The largest message of an echo, bytes.
pub const LARGEST_ECHO: u32 = 1 << 20;
/// The largest datagram, bytes: the limit of IPv4.
pub const LARGEST_DATAGRAM: u32 = 65_507;
/// The most simultaneous data streams of a client.
pub const MOST_STREAMS: u32 = 16;

/// A request of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Its first line.
    Hello(Hello),
    /// Its second line: the client's proof, in hexadecimal digits.
    Proof(String),
    /// Opens a service and ends the previous one.
    Open(Open),
    /// Requests the counts of the service.
    Count,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its first line.
    Hello(Hello),
    /// Authentication has failed; the reason is not sent. It is the last line.
    Refused,
    /// Authentication has succeeded.
    Welcome(Box<Welcome>),
    /// The data port is open.
    Opened(Opened),
    /// All data sockets are connected.
    Ready,
    /// The counts of the service.
    Counted(Counted),
    /// The server ends the connection, for this reason.
    Ended(String),
}

/// The first line of either end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// The nonce of this conversation, in hexadecimal digits. Another version may have none.
    #[serde(default)]
    pub nonce: String,
}

/// The answer to a client that has authenticated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The server's proof, in hexadecimal digits.
    pub proof: String,
    /// The machine of the server.
    pub station: Station,
    /// The address at which the client has reached it.
    pub reached: SocketAddr,
}

/// A requested service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The kind of service.
    pub service: Service,
    /// Size of a message, bytes; 0 for a sink and a greeter.
    pub bytes: u32,
    /// Data streams; 1 for datagrams and for a greeter.
    pub streams: u32,
}

/// The kinds of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Sends each complete message back.
    Echo,
    /// Answers each complete message with one byte: its number, counted from 1, modulo 256.
    Reply,
    /// Sends each datagram back that begins with the secret.
    DatagramEcho,
    /// Receives batches: a length of eight bytes and as many bytes; it answers with the length.
    Sink,
    /// Accepts connections one after another: it receives the secret, answers with one byte, and waits for the end.
    Greeter,
}

/// The data port of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Its port, at the address of the control.
    pub port: u16,
    /// The secret, in hexadecimal digits.
    pub secret: String,
}

/// The counts of a service over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Messages, batches or connections.
    pub messages: u64,
    /// Received bytes.
    pub bytes: u64,
}

impl Open {
    /// Why the request is invalid, if it is.
    pub fn invalid_reason(&self) -> Option<String> {
        let Self { service, bytes, streams } = *self;
        let (least, largest, most) = match service {
            Service::Echo | Service::Reply => (1, LARGEST_ECHO, MOST_STREAMS),
            Service::DatagramEcho => (SECRET_BYTES as u32, LARGEST_DATAGRAM, 1),
            Service::Sink => (0, 0, MOST_STREAMS),
            Service::Greeter => (0, 0, 1),
        };
        if !(least..=largest).contains(&bytes) {
            return Some(format!(
                "messages of {bytes} bytes: {service:?} takes those of {least} to {largest}"
            ));
        }
        (!(1..=most).contains(&streams)).then(|| format!("{streams} streams: {service:?} takes 1 to {most}"))
    }
}

/// Connections that wait for authentication. One more evicts the oldest of the address with most of them.
pub const MOST_WAITING: usize = 256;
/// Time for a connection to authenticate.
pub const PROOF_PATIENCE: Duration = Duration::from_secs(5);
/// Data streams that wait for their secret. One more evicts the oldest.
pub const MOST_AT_DOOR: usize = 64;
/// Time for a data socket to connect and to send its secret.
pub const DATA_PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a client may leave data unread.
pub const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Period of the tests whether a server should end and whether a session has reached a limit.
pub const GLANCE: Duration = Duration::from_millis(200);
/// Stack of a server thread, bytes: its buffers are on the heap.
pub const STACK: usize = 256 << 10;

/// Limits that the user can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Simultaneous clients.
    pub clients: usize,
    /// Bytes from one client.
    pub bytes: u64,
    /// Duration of a session.
    pub time: Duration,
    /// Duration without a request or data.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 4, bytes: 1 << 40, time: Duration::from_secs(3600), idle: Duration::from_secs(60) }
    }
}

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
    fn what_cannot_be_served_is_told() {
        let open = |service, bytes, streams| Open { service, bytes, streams }.invalid_reason();
        assert_eq!(open(Service::Echo, 1, 1), None);
        assert_eq!(open(Service::DatagramEcho, 56, 1), None);
        assert_eq!(open(Service::Sink, 0, 16), None);
        for (service, bytes, streams) in [
            (Service::Echo, 0, 1),
            (Service::Echo, LARGEST_ECHO + 1, 1),
            (Service::Reply, 0, 1),
            (Service::Echo, 1, 0),
            (Service::Echo, 1, 17),
            (Service::DatagramEcho, 15, 1),
            (Service::DatagramEcho, 56, 2),
            (Service::Greeter, 0, 2),
        ] {
            assert!(open(service, bytes, streams).is_some(), "{service:?} {bytes} {streams}");
        }
    }

    #[test]
    fn a_hello_of_another_version_is_understood_as_far_as_its_version() {
        let line = r#"{"hello":{"version":7,"greeting":"x"}}"#;
        let Answer::Hello(hello) = serde_json::from_str(line).unwrap() else { panic!("no hello") };
        assert_eq!(hello, Hello { version: 7, nonce: String::new() });
    }

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
