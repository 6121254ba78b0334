//! Connections that the peer takes, one after another.

use super::Far;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::kit::placement::patience;
use crate::kit::socket::connection::{Address, socket};
use crate::kit::socket::message::{receive_whole, send_whole};
use crate::kit::socket::refused;
use crate::peer::client::Way;
use crate::peer::control_protocol::{Open, SECRET_BYTES, Service};
use crate::{Error, Result};
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// Who connects.
struct Caller {
    far: Far,
    way: Way,
    address: Address,
    /// Whether the end of a connection is timed, and not its beginning.
    closes: bool,
}

/// One part of a connection's life.
pub(in super::super) fn connection(closes: bool) -> Result<Box<dyn Subject>> {
    let mut client = Far::call()?;
    let way = client.open(Open { service: Service::Greeter, bytes: 0, streams: 1 })?;
    client.ready()?;
    let SocketAddr::V4(to) = way.address else {
        return Err(Error::Missing("the peer's address is of IPv6: name it by one of IPv4".into()));
    };
    let address = Address::ipv4(*to.ip(), to.port());
    Ok(Box::new(Caller { far: Far::of(client)?, way, address, closes }))
}

/// Shows the secret and waits for the greeting.
fn greeted(end: RawFd, secret: &[u8; SECRET_BYTES]) -> i64 {
    let mut greeting = [0];
    match send_whole(end, secret).min(receive_whole(end, &mut greeting)) {
        answer if answer < 0 => answer,
        _ if greeting == [1] => 0,
        _ => -i64::from(libc::EBADMSG),
    }
}

impl Caller {
    /// One connection, from the socket to the close, of which one part is timed. A call that is refused is its answer.
    fn once(&self, clock: &Clock) -> std::result::Result<Ticks, i64> {
        let held = |answer: i64| if answer < 0 { Err(answer) } else { Ok(()) };
        let end = socket(&self.address)?;
        let mut answer = 0;
        if self.closes {
            held(end.connect(&self.address))?;
            held(greeted(end.number(), &self.way.secret))?;
            let closed = clock.time(|| answer = end.close());
            return held(answer).map(|()| closed);
        }
        let connected = clock.time(|| answer = end.connect(&self.address));
        held(answer)?;
        held(greeted(end.number(), &self.way.secret))?;
        // Where the end is not timed it leaves no port in TIME_WAIT.
        held(end.reset_on_close().min(end.close()))?;
        Ok(connected)
    }
}

impl Subject for Caller {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let this = &*self;
        let mut sum = Ticks(0);
        let ended = this.far.alarm.watch(patience(iterations), || {
            (0..iterations).try_for_each(|_| {
                sum += this.once(clock)?;
                Ok(())
            })
        });
        match ended {
            Ok(()) => self.far.got(iterations, iterations * SECRET_BYTES as u64).map(|()| sum),
            Err(answer) if answer == -i64::from(libc::EADDRNOTAVAIL) => {
                Err(refused("connect to the peer", std::io::Error::from_raw_os_error(libc::EADDRNOTAVAIL)))
            }
            Err(answer) => Err(self.far.refused(answer, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report { wire: Some(self.far.wire()), ..Report::default() }
    }
}
