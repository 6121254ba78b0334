//! Connections that the peer accepts, one after another.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::kit::placement::partner_time_limit;
use crate::kit::socket::connection::{Address, error_from_answer, open_stream_socket};
use crate::kit::socket::transfer::{receive_whole, send_whole};
use crate::peer::client::Way;
use crate::peer::control_protocol::{Open, SECRET_BYTES, Service};
use std::os::fd::RawFd;

/// The client's end.
struct PeerConnection {
    session: Session,
    way: Way,
    address: Address,
    /// Whether close(2) is timed, and not connect(2).
    closes: bool,
}

/// Connections of which connect(2) is timed, or close(2) where `closes`.
pub(in super::super) fn connection(closes: bool) -> Result<Box<dyn Subject>> {
    let mut client = Session::call_peer()?;
    let way = client.open_service(Open { service: Service::Greeter, bytes: 0, streams: 1 })?;
    client.wait_until_ready()?;
    let address = Address::from_socket_addr(way.address);
    Ok(Box::new(PeerConnection { session: Session::new(client)?, way, address, closes }))
}

/// Sends the secret and waits for the greeting. Returns 0 or a negative error number.
fn exchange_greeting(end: RawFd, secret: &[u8; SECRET_BYTES]) -> i64 {
    let mut greeting = [0];
    match send_whole(end, secret).min(receive_whole(end, &mut greeting)) {
        answer if answer < 0 => answer,
        _ if greeting == [1] => 0,
        _ => -i64::from(libc::EBADMSG),
    }
}

impl PeerConnection {
    /// One connection from socket(2) to close(2), of which one call is timed; or the negative error number.
    fn time_connection(&self, clock: &Clock) -> std::result::Result<Ticks, i64> {
        let unrefused = |answer: i64| if answer < 0 { Err(answer) } else { Ok(()) };
        let end = open_stream_socket(&self.address)?;
        let mut answer = 0;
        if self.closes {
            unrefused(end.connect(&self.address))?;
            unrefused(exchange_greeting(end.raw_descriptor(), &self.way.secret))?;
            let closed = clock.time(|| answer = end.close());
            return unrefused(answer).map(|()| closed);
        }
        let connected = clock.time(|| answer = end.connect(&self.address));
        unrefused(answer)?;
        unrefused(exchange_greeting(end.raw_descriptor(), &self.way.secret))?;
        // Where close(2) is not timed it leaves no port in TIME_WAIT.
        unrefused(end.reset_on_close().min(end.close()))?;
        Ok(connected)
    }
}

impl Subject for PeerConnection {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let this = &*self;
        let mut sum = Ticks(0);
        let ended = this.session.alarm.run_with_limit(partner_time_limit(iterations), || {
            (0..iterations).try_for_each(|_| {
                sum += this.time_connection(clock)?;
                Ok(())
            })
        });
        match ended {
            Ok(()) => self.session.verify_count(iterations, iterations * SECRET_BYTES as u64).map(|()| sum),
            Err(answer) if answer == -i64::from(libc::EADDRNOTAVAIL) => {
                Err(error_from_answer("connect to the peer", answer))
            }
            Err(answer) => Err(self.session.explain_refusal(answer, iterations)),
        }
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
