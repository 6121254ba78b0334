//! A stream of bytes that the peer takes.

use super::Far;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::kit::placement::patience;
use crate::kit::socket::message::{receive_whole, send_whole};
use crate::peer::control_protocol::{Open, Service};
use crate::{Error, Result};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The near ends of the streams.
struct Flow {
    far: Far,
    streams: Vec<TcpStream>,
    /// Their numbers, for the loop.
    ends: Vec<RawFd>,
    /// Messages of an iteration, by each of them.
    each: u64,
    message: Vec<u8>,
}

/// Messages of so many bytes, `each` of them an iteration by every stream.
pub(in super::super) fn bandwidth(streams: u32, each: usize, bytes: usize) -> Result<Box<dyn Subject>> {
    let mut client = Far::call()?;
    let streams = client.streams(Open { service: Service::Sink, bytes: 0, streams })?;
    let ends = streams.iter().map(AsRawFd::as_raw_fd).collect();
    let message = (0..bytes).map(|at| at as u8).collect();
    Ok(Box::new(Flow { far: Far::of(client)?, streams, ends, each: each as u64, message }))
}

/// Sends so many messages by each of these, in turn, and waits for the peer's word of how many bytes have come by
/// all of them: those, or a negative number.
#[inline(always)]
fn deliver(ends: &[RawFd], message: &[u8], n: u64) -> i64 {
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
        let mut come = [0; 8];
        match receive_whole(end, &mut come) {
            refused if refused < 0 => return refused,
            _ => sum += i64::from_le_bytes(come).clamp(0, i64::MAX >> 8),
        }
    }
    sum
}

/// Tells each how many bytes will come by it.
fn announce(ends: &[RawFd], bytes: u64) -> i64 {
    ends.iter().map(|&end| send_whole(end, &bytes.to_le_bytes())).min().unwrap_or(0)
}

impl Subject for Flow {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { far, streams, ends, each, message } = self;
        let messages = iterations * *each;
        let by_each = messages * message.len() as u64;
        let all = by_each * streams.len() as u64;
        let mut come = 0;
        // A slow wire may take seconds for what a fast one takes at once: a megabyte a second is patience enough.
        let limit = patience(iterations) + Duration::from_micros(all);
        let ticks = far.alarm.watch(limit, || {
            come = announce(ends, by_each);
            if come < 0 { Ticks(0) } else { clock.time(|| come = deliver(ends, message, messages)) }
        });
        if come < 0 {
            return Err(far.refused(come, iterations));
        }
        if come as u64 != all {
            let what =
                format!("it was sent {all} bytes and says that {come} came: it lies, or they were lost");
            return Err(Error::peer(far.client.name(), what));
        }
        far.got(streams.len() as u64, all).map(|()| ticks)
    }

    fn report(&self) -> Report {
        Report { wire: Some(self.far.wire()), ..Report::default() }
    }
}
