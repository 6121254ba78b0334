//! Streams of bytes that the peer receives and counts.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::partner_time_limit;
use crate::kit::socket::transfer::{receive_whole, send_whole};
use crate::peer::control_protocol::{Open, Service};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The sending ends.
struct PeerStream {
    session: Session,
    streams: Vec<TcpStream>,
    /// Their descriptors, for the timed loop.
    ends: Vec<RawFd>,
    /// Messages of an iteration by each stream.
    each: u64,
    message: Vec<u8>,
}

/// Messages of `bytes`, `each` of them an iteration by every stream.
pub(in super::super) fn bandwidth(streams: u32, each: usize, bytes: usize) -> Result<Box<dyn Subject>> {
    let mut client = Session::call_peer()?;
    let streams = client.open_streams(Open { service: Service::Sink, bytes: 0, streams })?;
    let ends = streams.iter().map(AsRawFd::as_raw_fd).collect();
    let message = (0..bytes).map(|at| at as u8).collect();
    Ok(Box::new(PeerStream { session: Session::new(client)?, streams, ends, each: each as u64, message }))
}

/// Sends `n` messages by each end in turn, then waits for the peer's counts. Returns the bytes that it received by all
/// ends, or a negative error number.
#[inline(always)]
fn send_and_count(ends: &[RawFd], message: &[u8], n: u64) -> i64 {
    for _ in 0..n {
        for &end in ends {
            let sent = send_whole(end, message);
            if sent < 0 {
                return sent;
            }
        }
    }
    let mut sum = 0;
    for &end in ends {
        let mut count = [0; 8];
        match receive_whole(end, &mut count) {
            refused if refused < 0 => return refused,
            _ => sum += i64::from_le_bytes(count).clamp(0, i64::MAX >> 8),
        }
    }
    sum
}

/// Tells the peer by each end how many bytes will follow.
fn announce_bytes(ends: &[RawFd], bytes: u64) -> i64 {
    ends.iter().map(|&end| send_whole(end, &bytes.to_le_bytes())).min().unwrap_or(0)
}

impl Subject for PeerStream {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { session, streams, ends, each, message } = self;
        let messages = iterations * *each;
        let by_each = messages * message.len() as u64;
        let all = by_each * streams.len() as u64;
        let mut received = 0;
        // A slow network may take seconds: at least a megabyte a second is expected.
        let limit = partner_time_limit(iterations) + Duration::from_micros(all);
        let ticks = session.alarm.run_with_limit(limit, || {
            received = announce_bytes(ends, by_each);
            if received < 0 {
                Ticks(0)
            } else {
                clock.time(|| received = send_and_count(ends, message, messages))
            }
        });
        if received < 0 {
            return Err(session.explain_refusal(received, iterations));
        }
        if received as u64 != all {
            let what =
                format!("it was sent {all} bytes and says that {received} came: it lies, or they were lost");
            return Err(Error::peer(session.client.name(), what));
        }
        session.verify_count(streams.len() as u64, all).map(|()| ticks)
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
