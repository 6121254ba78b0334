//! The echo of ICMP by the peer's kernel: the same as `ping`, without a process at the far end.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Counts, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::partner_time_limit;
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
    let client = Session::call_peer()?;
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
            received if received >= 0 => {
                Err(super::explain_refusal(client, -i64::from(libc::EBADMSG), iterations))
            }
            refused => Err(super::explain_refusal(client, refused, iterations)),
        };
        alarm.run_with_limit(partner_time_limit(iterations), || {
            clock.time_each(iterations, ping, |_| Ok(()), |ping| ping.echo_once(), check)
        })
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
