//! Messages that the peer answers with one byte.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::kit::placement::partner_time_limit;
use crate::kit::socket::transfer::{receive_whole, send_whole};
use crate::peer::control_protocol::{Open, Service};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// The sending end.
struct PeerAnswer {
    session: Session,
    stream: TcpStream,
    message: Vec<u8>,
    /// Messages so far, modulo 256: what the next answer must carry.
    number: u8,
}

/// Messages of `bytes`.
pub(in super::super) fn answered(bytes: u32) -> Result<Box<dyn Subject>> {
    let mut client = Session::call_peer()?;
    let stream = client.open_streams(Open { service: Service::Reply, bytes, streams: 1 })?.remove(0);
    let message = vec![0x55; bytes as usize];
    Ok(Box::new(PeerAnswer { session: Session::new(client)?, stream, message, number: 0 }))
}

/// One message and its answer. Returns 0 or a negative error number. Allocates nothing.
#[inline(always)]
fn exchange_and_check(end: RawFd, message: &[u8], number: &mut u8) -> i64 {
    *number = number.wrapping_add(1);
    let mut answer = [0];
    match send_whole(end, message).min(receive_whole(end, &mut answer)) {
        refused if refused < 0 => refused,
        _ if answer == [*number] => 0,
        _ => -i64::from(libc::EBADMSG),
    }
}

impl Subject for PeerAnswer {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { session, stream, message, number } = self;
        let (end, mut answer) = (stream.as_raw_fd(), 0);
        let ticks = session.alarm.run_with_limit(partner_time_limit(iterations), || {
            clock.time(|| {
                for _ in 0..iterations {
                    answer = exchange_and_check(end, message, number);
                    if answer < 0 {
                        break;
                    }
                }
            })
        });
        if answer < 0 {
            return Err(session.explain_refusal(answer, iterations));
        }
        session.verify_count(iterations, iterations * message.len() as u64).map(|()| ticks)
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
