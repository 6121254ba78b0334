//! The near end of what a peer serves.

mod connection;
mod flow;
mod message;
mod ping;

use super::{RoundTrip, Tcp, Udp};
use crate::case::Subject;
use crate::environment::Wire;
use crate::kit::alarm::Alarm;
use crate::kit::placement::patience;
use crate::peer::client::{Client, Given};
use crate::peer::control_protocol::Counted;
use crate::{Error, Result};

pub(super) use connection::connection;
pub(super) use flow::bandwidth;
pub(super) use ping::echoes;

/// Which peer this process was given.
pub(super) fn given() -> std::result::Result<(), String> {
    peer().map(drop)
}

fn peer() -> std::result::Result<Given, String> {
    Given::of_process().ok_or_else(|| {
        "no peer is named: start `syscost peer` on the other machine, and name it by `--peer HOST:PORT` or \
         SYSCOST_PEER"
            .to_owned()
    })
}

pub(super) fn round_trip(row: RoundTrip) -> Result<Box<dyn Subject>> {
    match row.transport {
        Tcp => message::streamed(row.bytes, row.each),
        Udp => message::datagrams(row.bytes, row.each),
    }
}

/// A peer that serves one thing, and what it had counted of it.
struct Far {
    client: Client,
    counted: Counted,
    alarm: Alarm,
}

impl Far {
    fn call() -> Result<Client> {
        Client::call(&peer().map_err(Error::Missing)?)
    }

    fn of(client: Client) -> Result<Self> {
        Ok(Self { client, counted: Counted::default(), alarm: Alarm::new()? })
    }

    /// Asks the peer whether it got what it was sent since it was asked last: messages and bytes.
    fn got(&mut self, messages: u64, bytes: u64) -> Result<()> {
        let now = self.client.count()?;
        let of = |now: u64, before: u64| now.checked_sub(before);
        let more = (of(now.messages, self.counted.messages), of(now.bytes, self.counted.bytes));
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

    /// Why a call in the timed loop was refused, cut short, or answered wrongly.
    fn refused(&mut self, answer: i64, iterations: u64) -> Error {
        let errno = i32::try_from(-answer).unwrap_or(0);
        let happened = match errno {
            libc::EINTR | libc::ETIMEDOUT | libc::EAGAIN => {
                format!("it has not answered for {} s", patience(iterations).as_secs())
            }
            libc::EBADMSG => "it answered something else than it was sent".into(),
            libc::EPIPE | libc::ECONNRESET => "it closed the connection".into(),
            _ => nix::errno::Errno::from_raw(errno).desc().into(),
        };
        self.client.trouble(&happened)
    }

    fn wire(&self) -> Wire {
        self.client.wire().clone()
    }
}
