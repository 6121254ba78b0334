//! Messages that the peer sends back.

use super::Session;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::partner_time_limit;
use crate::kit::socket::dialogue::{Dialogue, Timed};
use crate::kit::socket::endpoint::{Blocking, Endpoint};
use crate::peer::control_protocol::{Open, SECRET_BYTES, Service};
use std::os::fd::OwnedFd;

/// The measuring end of round trips to a peer.
struct PeerRoundTrip<E, const AT: usize> {
    session: Session,
    dialogue: Dialogue<E, AT>,
    /// The length of a message.
    bytes: u32,
    timed: Timed,
    /// Whether the network may lose a message.
    may_lose: bool,
}

/// Round trips over a stream.
pub(super) fn stream_round_trips(bytes: u32, timed: Timed) -> Result<Box<dyn Subject>> {
    let mut client = Session::call_peer()?;
    let stream = client.open_streams(Open { service: Service::Echo, bytes, streams: 1 })?.remove(0);
    let dialogue = Dialogue::new(Blocking::new(OwnedFd::from(stream))?, bytes as usize, &[]);
    Ok(Box::new(PeerRoundTrip { session: Session::new(client)?, dialogue, bytes, timed, may_lose: false }))
}

/// Round trips by datagrams, each of which begins with the secret.
pub(super) fn datagram_round_trips(bytes: u32, timed: Timed) -> Result<Box<dyn Subject>> {
    let mut client = Session::call_peer()?;
    let (socket, way) = client.open_datagrams(Open { service: Service::DatagramEcho, bytes, streams: 1 })?;
    let endpoint = Blocking::new(OwnedFd::from(socket))?;
    let dialogue = Dialogue::<_, SECRET_BYTES>::new(endpoint, bytes as usize, &way.secret);
    Ok(Box::new(PeerRoundTrip { session: Session::new(client)?, dialogue, bytes, timed, may_lose: true }))
}

impl<E: Endpoint, const AT: usize> Subject for PeerRoundTrip<E, AT> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { session, dialogue, bytes, timed, may_lose } = self;
        let ended = session.alarm.run_with_limit(partner_time_limit(iterations), || {
            dialogue.time_round_trips(iterations, *timed, clock)
        });
        match ended {
            Ok(ticks) => session.verify_count(iterations, iterations * u64::from(*bytes)).map(|()| ticks),
            Err(answer) if *may_lose && answer == -i64::from(libc::EINTR) => {
                let error = session.explain_refusal(answer, iterations);
                Err(Error::Disturbed(format!("{error}; or a datagram was lost on the way")))
            }
            Err(answer) => Err(session.explain_refusal(answer, iterations)),
        }
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}
