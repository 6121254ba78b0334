//! The measuring end of what a peer serves.
//!
//! # Errors
//! Every function that makes a subject: the peer does not answer, or refuses the service.

mod peer_answer;
mod peer_connection;
mod peer_ping;
mod peer_round_trip;
mod peer_stream;

use super::{RoundTrip, Tcp, Udp};
use crate::case::{Report, Subject};
use crate::error::{Error, Result};
use crate::kit::alarm::Alarm;
use crate::kit::placement::partner_time_limit;
use crate::peer::client::{Client, Given};
use crate::peer::control_protocol::Counted;

pub(super) use peer_answer::answered;
pub(super) use peer_connection::connection;
pub(super) use peer_ping::echoes;
pub(super) use peer_stream::bandwidth;

/// Whether this process was given a peer.
///
/// # Errors
/// A sentence that says how to name one.
pub(super) fn given() -> std::result::Result<(), String> {
    named_peer().map(drop)
}

fn named_peer() -> std::result::Result<Given, String> {
    Given::from_environment().ok_or_else(|| {
        "no peer is named: start `syscost peer` on the other machine, and name it by `--peer HOST:PORT` or \
         SYSCOST_PEER"
            .to_owned()
    })
}

/// Round trips of one row.
pub(super) fn round_trip(row: RoundTrip) -> Result<Box<dyn Subject>> {
    match row.transport {
        Tcp => peer_round_trip::stream_round_trips(row.bytes, row.timed),
        Udp => peer_round_trip::datagram_round_trips(row.bytes, row.timed),
    }
}

/// A connection to a peer that serves one thing, and what the peer had counted when it was last asked.
struct Session {
    client: Client,
    counted: Counted,
    alarm: Alarm,
}

impl Session {
    fn call_peer() -> Result<Client> {
        Client::connect(&named_peer().map_err(Error::Missing)?)
    }

    fn new(client: Client) -> Result<Self> {
        Ok(Self { client, counted: Counted::default(), alarm: Alarm::new()? })
    }

    /// Compares messages and bytes sent since the last call with the peer's count.
    fn verify_count(&mut self, messages: u64, bytes: u64) -> Result<()> {
        let now = self.client.request_counts()?;
        let grown = |now: u64, before: u64| now.checked_sub(before);
        let more = (grown(now.messages, self.counted.messages), grown(now.bytes, self.counted.bytes));
        self.counted = now;
        match more {
            (Some(m), Some(b)) if (m, b) == (messages, bytes) => Ok(()),
            (m, b) => Err(Error::peer(
                self.client.name(),
                format!(
                    "it was sent {messages} messages of {bytes} bytes and says that it got {} of {}: it miscounts",
                    m.map_or("fewer than before".into(), |m| m.to_string()),
                    b.map_or("fewer than before".into(), |b| b.to_string()),
                ),
            )),
        }
    }

    fn explain_refusal(&mut self, answer: i64, iterations: u64) -> Error {
        explain_refusal(&mut self.client, answer, iterations)
    }

    /// The way to the peer, also in words.
    fn report(&self) -> Report {
        let wire = self.client.wire().clone();
        Report {
            evidence: wire.describe_route().into_iter().collect(),
            wire: Some(wire),
            ..Report::default()
        }
    }
}

/// The error behind a negative answer in the timed loop.
fn explain_refusal(client: &mut Client, answer: i64, iterations: u64) -> Error {
    let errno = i32::try_from(-answer).unwrap_or(0);
    let happened = match errno {
        libc::EINTR | libc::ETIMEDOUT | libc::EAGAIN => {
            format!("it has not answered for {} s", partner_time_limit(iterations).as_secs())
        }
        libc::EBADMSG => "it answered something else than it was sent".into(),
        libc::EPIPE | libc::ECONNRESET => "it closed the connection".into(),
        _ => nix::errno::Errno::from_raw(errno).desc().into(),
    };
    client.connection_error(&happened)
}
