//! The messages of the control, one JSON value on each line, and the limits of a server. The server sends the first line.

use crate::environment::Station;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// The version of the protocol. 2: the welcome says at which address the peer was reached, and messages may be answered with one byte.
/// 3: the control is the standard input and output of the peer.
pub const VERSION: u32 = 3;

/// The longest line, bytes: ten times a fingerprint.
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
    /// Opens a service and ends the previous one.
    Open(Open),
    /// Requests the counts of the service.
    Count,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The first line. After it the server opens a data port and accepts a first stream from any address.
    Hello(Hello),
    /// The last line before the first request: the server has accepted the first stream and so knows the addresses of both ends.
    Welcome(Box<Welcome>),
    /// The data port is open.
    Opened(Opened),
    /// All data sockets are connected.
    Ready,
    /// The counts of the service.
    Counted(Counted),
    /// The server ends the conversation, for this reason.
    Ended(String),
}

/// The content of the first line. Another version may add fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The [`VERSION`] of the server.
    pub version: u32,
}

/// The two ends, as the server sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The machine of the server.
    pub station: Station,
    /// The address at which the client has reached it; its port means nothing.
    pub reached: SocketAddr,
}

/// A requested service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The kind of service.
    pub service: Service,
    /// Size of a message, bytes; 0 for a sink and a greeter.
    pub bytes: u32,
    /// The number of data streams; 1 for datagrams and for a greeter.
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
    /// Sends back each datagram that begins with the secret.
    DatagramEcho,
    /// Receives batches, each a length of eight bytes and then that number of bytes. Answers each batch with the length.
    Sink,
    /// Accepts connections one after another: it receives the secret, answers with one byte, and waits for the end.
    Greeter,
}

/// The data port of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The port number.
    pub port: u16,
    /// The secret with which data sockets must begin.
    pub secret: [u8; SECRET_BYTES],
}

/// The counts of a service over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Messages, batches or connections.
    pub messages: u64,
    /// Bytes that the server has received.
    pub bytes: u64,
}

impl Open {
    /// The reason why the request is invalid, or `None` if it is valid.
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

/// Time limit for the first answer of the server, which covers a login or the start of a command in a container.
pub const START_PATIENCE: Duration = Duration::from_secs(20);
/// The most data streams that may be waiting for their secret. One more evicts the oldest.
pub const MOST_AT_DOOR: usize = 64;
/// Time limit for a data socket to connect and to send its secret.
pub const DATA_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for all data streams of a service to connect. The client may try several addresses for the first stream.
pub const MEETING_PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for a client to read data, and for the server to answer a request.
pub const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Period at which the server checks whether a session has reached a limit.
pub const GLANCE: Duration = Duration::from_millis(200);
/// The longest session: longer than the longest case at full scale.
pub const LONGEST_SESSION: Duration = Duration::from_secs(3600);
/// The longest time without a request or data. After it the server drops the client, whose machine may have lost its network.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// Stack of a server thread, bytes: its buffers are on the heap.
pub const STACK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_request_has_a_reason() {
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
        assert_eq!(hello, Hello { version: 7 });
    }
}
