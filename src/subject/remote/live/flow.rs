//! A stream of bytes that the peer takes.

use super::Far;
use crate::environment::Wire;
use crate::instrument::{Clock, Ticks};
use crate::machine::socket::message::{receive_whole, send_whole};
use crate::peer::protocol::{Open, Service};
use crate::subject::Subject;
use crate::subject::placement::patience;
use crate::{Error, Result};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// The near end of the stream.
struct Flow {
    far: Far,
    stream: TcpStream,
    message: Vec<u8>,
}

/// Messages of so many bytes.
pub(in super::super) fn bandwidth(bytes: usize) -> Result<Box<dyn Subject>> {
    let mut client = Far::call()?;
    let stream = client.streams(Open { service: Service::Sink, bytes: 0, streams: 1 })?.remove(0);
    let message = (0..bytes).map(|at| at as u8).collect();
    Ok(Box::new(Flow { far: Far::of(client)?, stream, message }))
}

/// Sends so many messages, and waits for the peer's word of how many bytes have come: those, or a negative number.
#[inline(always)]
fn deliver(end: RawFd, message: &[u8], n: u64) -> i64 {
    for _ in 0..n {
        let sent = send_whole(end, message);
        if sent < 0 {
            return sent;
        }
    }
    let mut come = [0; 8];
    match receive_whole(end, &mut come) {
        refused if refused < 0 => refused,
        _ => i64::from_le_bytes(come),
    }
}

impl Subject for Flow {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { far, stream, message } = self;
        let (end, all) = (stream.as_raw_fd(), iterations * message.len() as u64);
        let mut come = 0;
        // A slow wire may take seconds for what a fast one takes at once: a megabyte a second is patience enough.
        let limit = patience(iterations) + std::time::Duration::from_micros(all);
        let ticks = far.alarm.watch(limit, || {
            come = send_whole(end, &all.to_le_bytes());
            if come < 0 { Ticks(0) } else { clock.time(|| come = deliver(end, message, iterations)) }
        });
        if come < 0 {
            return Err(far.refused(come, iterations));
        }
        if come as u64 != all {
            let what =
                format!("it was sent {all} bytes and says that {come} came: it lies, or they were lost");
            return Err(Error::peer(far.client.name(), what));
        }
        far.got(1, all).map(|()| ticks)
    }

    fn wire(&self) -> Option<Wire> {
        Some(self.far.wire())
    }
}
