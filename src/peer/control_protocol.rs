//! What the two ends say to each other on the control: one JSON value a line, the client first.

use crate::environment::Station;
use serde::{Deserialize, Serialize};

/// The version of this conversation. It goes into every proof.
pub const VERSION: u32 = 1;

/// Where a peer listens unless it is told otherwise.
pub const PORT: u16 = 7470;

/// A line of who has proved nothing yet may be so long, bytes: a hello has a fifth of it.
pub const LONGEST_BEFORE: usize = 1 << 10;
/// Any other line: a fingerprint has a tenth of it.
pub const LONGEST: usize = 64 << 10;

/// How many bytes a data socket's secret has. It is what a stream begins with, and every datagram.
pub const SECRET_BYTES: usize = 16;

/// The largest message that is sent back as a whole, bytes.
pub const LARGEST_ECHO: u32 = 1 << 20;
/// The largest datagram, bytes: what fits into one packet of IPv4.
pub const LARGEST_DATAGRAM: u32 = 65_507;
/// The most data streams of a client at a time.
pub const MOST_STREAMS: u32 = 16;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Its first line.
    Hello(Hello),
    /// Its second: the client's [`proof`](super::proof), in hexadecimal digits.
    Proof(String),
    /// Serve this, and nothing else any longer.
    Open(Open),
    /// How much was served since it was opened.
    Count,
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its first line.
    Hello(Hello),
    /// No. It is the same word whatever was wrong, and the last one.
    Refused,
    /// The proof is accepted.
    Welcome(Box<Welcome>),
    /// The data sockets may come.
    Opened(Opened),
    /// All of them have come.
    Ready,
    /// So much was served.
    Counted(Counted),
    /// The server ends the conversation, and says why.
    Ended(String),
}

/// How a conversation begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's [`VERSION`].
    pub version: u32,
    /// Drawn for this conversation, in hexadecimal digits. Another version may have none.
    #[serde(default)]
    pub nonce: String,
}

/// What a client is told that has proved itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The server's proof, in hexadecimal digits.
    pub proof: String,
    /// The server's machine.
    pub station: Station,
}

/// What to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// What is done with what comes.
    pub service: Service,
    /// Size of a message, bytes; 0 for a sink and a greeter, which have none.
    pub bytes: u32,
    /// How many streams will come; 1 for datagrams and for a greeter.
    pub streams: u32,
}

/// What the server does with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Sends every message back when it has it whole.
    Echo,
    /// Sends every datagram back that begins with the secret.
    DatagramEcho,
    /// Takes batches: eight bytes that say how many follow, those, and it answers in eight bytes how many came.
    Sink,
    /// Takes connections one after another: the secret, a byte back, and the end.
    Greeter,
}

/// Where the data sockets are to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The port, at the address of the control.
    pub port: u16,
    /// What they begin with, in hexadecimal digits.
    pub secret: String,
}

/// How much was served, over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Messages, batches or connections.
    pub messages: u64,
    /// Bytes that came in them.
    pub bytes: u64,
}

impl Open {
    /// Why it cannot be served, if it cannot.
    pub fn complaint(&self) -> Option<String> {
        let Self { service, bytes, streams } = *self;
        let (least, largest, most) = match service {
            Service::Echo => (1, LARGEST_ECHO, MOST_STREAMS),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_served_is_told() {
        let open = |service, bytes, streams| Open { service, bytes, streams }.complaint();
        assert_eq!(open(Service::Echo, 1, 1), None);
        assert_eq!(open(Service::DatagramEcho, 56, 1), None);
        assert_eq!(open(Service::Sink, 0, 16), None);
        for (service, bytes, streams) in [
            (Service::Echo, 0, 1),
            (Service::Echo, LARGEST_ECHO + 1, 1),
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
}
