//! The echo of ICMP by the peer's kernel: the same as `ping`, without a process at the far end.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Counts, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::patience;
use crate::kit::socket::icmp::Ping;

/// Echo requests to the peer's kernel.
struct PeerPing {
    session: Session,
    ping: Ping,
    bytes: i64,
}

/// Echoes of `bytes`.
///
/// # Errors
/// The peer does not answer; no socket for ICMP is allowed.
pub(in super::super) fn echoes(bytes: usize) -> Result<Box<dyn Subject>> {
    let client = Session::call()?;
    let ping = Ping::new(client.address(), bytes)?;
    Ok(Box::new(PeerPing { session: Session::new(client)?, ping, bytes: bytes as i64 }))
}

impl Subject for PeerPing {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Session { client, alarm, .. } = &mut self.session;
        let (ping, bytes) = (&mut self.ping, self.bytes);
        let check = |_: &mut Ping, answer| match answer {
            received if received == bytes => Ok(Counts::Yes),
            interrupted if interrupted == -i64::from(libc::EINTR) => {
                let what = "its kernel has not answered an echo: it may be set to ignore them, or a firewall is between";
                Err(Error::peer(client.name(), what))
            }
            received if received >= 0 => Err(super::refused(client, -i64::from(libc::EBADMSG), iterations)),
            refused => Err(super::refused(client, refused, iterations)),
        };
        alarm.watch(patience(iterations), || {
            clock.each(iterations, ping, |_| Ok(()), |ping| ping.echo(), check)
        })
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
