//! The server of `syscost peer`. It serves one client, the one that started it.
//!
//! Each data socket has a thread (`service`, `data`), so that a measured message is answered by a thread that waits in one call.

mod data;
mod service;
mod threshold;

use super::control_protocol::{
    Answer, Ask, Counted, GLANCE, Hello, LONGEST, LONGEST_SESSION, LONGEST_SILENCE, Open, Service, VERSION,
    Welcome,
};
use super::station::describe_this_machine;
use crate::json_line::{Lines, NoMessage, send};
use service::{Opening, Serving};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use threshold::wait_until_readable;

/// The addresses at which the first stream is accepted, in order of trial. `::` accepts both families, unless the kernel has no
/// IPv6.
const ANYWHERE: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
];
/// The service of the first stream, which shows the client's address and carries no data.
const MEETING: Open = Open { service: Service::Sink, bytes: 0, streams: 1 };

/// The reason for which the server ends a session; `None` where the control has ended or failed.
type Farewell = Option<String>;

/// A sentence if the client sent an invalid or too long line; `None` if the control ended or failed.
fn farewell(why: NoMessage) -> Farewell {
    let is_other_protocol = matches!(why, NoMessage::Long(_) | NoMessage::Invalid(_));
    is_other_protocol.then(|| "that is no sentence of the protocol".into())
}

/// Serves the client that writes its requests to `input` and reads the answers from `output`, until `input` ends or a limit is
/// reached.
pub fn serve(input: File, output: File) {
    let mut session = Session { input, output, lines: Lines::new(LONGEST) };
    if let Err(Some(sentence)) = session.serve_client() {
        // Fails if the client has closed the control meanwhile.
        let _ = session.send(&Answer::Ended(sentence));
    }
}

struct Session {
    input: File,
    output: File,
    lines: Lines,
}

impl Session {
    fn send(&self, answer: &Answer) -> Result<(), Farewell> {
        send(&self.output, answer).map_err(|cause| farewell(cause.into()))
    }

    fn serve_client(&mut self) -> Result<(), Farewell> {
        self.send(&Answer::Hello(Hello { version: VERSION }))?;
        let met = self.open_service(&ANYWHERE, None, MEETING)?;
        let (own, client) = met.route.ok_or_else(|| Some("the first stream has closed".to_owned()))?;
        let (own, client) = (data_address(own), client.ip().to_canonical());
        let station = describe_this_machine(own.ip(), client);
        self.send(&Answer::Welcome(Box::new(Welcome { station, reached: own })))?;
        self.serve_requests(own, client, met)
    }

    fn serve_requests(
        &mut self,
        own: SocketAddr,
        client: IpAddr,
        mut serving: Serving,
    ) -> Result<(), Farewell> {
        let began = Instant::now();
        let (mut active, mut counted) = (began, Counted::default());
        loop {
            match self.lines.receive(&self.input, Instant::now() + GLANCE, &[]) {
                Ok(Ask::Open(asked)) => {
                    // The previous service ends before the next begins.
                    drop(std::mem::take(&mut serving));
                    serving = self.open_service(&[own], Some(client), asked)?;
                    active = Instant::now();
                }
                Ok(Ask::Count) => {
                    self.send(&Answer::Counted(serving.total_counts()))?;
                    active = Instant::now();
                }
                Err(NoMessage::Late) => {}
                Err(why) => return Err(farewell(why)),
            }
            if std::mem::replace(&mut counted, serving.total_counts()) != counted {
                active = Instant::now();
            }
            if let Some(sentence) = exceeded_limit(began.elapsed(), active.elapsed()) {
                return Err(Some(sentence));
            }
        }
    }

    /// Opens a service at one of these addresses, and waits for its streams. If the client sends a line meanwhile, or closes the
    /// control, it has given the service up.
    fn open_service(
        &self,
        at: &[SocketAddr],
        client: Option<IpAddr>,
        asked: Open,
    ) -> Result<Serving, Farewell> {
        if let Some(complaint) = asked.invalid_reason() {
            return Err(Some(complaint));
        }
        let said = |error: crate::error::Error| Some(error.to_string());
        let opening = Opening::open_port(at, client, asked).map_err(said)?;
        let told = opening.port_and_secret().map_err(|cause| Some(cause.to_string()))?;
        self.send(&Answer::Opened(told))?;
        let is_given_up = || wait_until_readable(std::iter::once(self.input.as_fd()), Duration::ZERO)[0];
        let serving = opening.start_serving(is_given_up).map_err(said)?;
        self.send(&Answer::Ready)?;
        Ok(serving)
    }
}

/// The address for data sockets: the local address of the first stream, with any port.
fn data_address(own: SocketAddr) -> SocketAddr {
    let mut address = own;
    address.set_port(0);
    // An IPv6 address is kept whole, because a link-local one includes its interface; an IPv4 address has none.
    if own.ip().to_canonical().is_ipv4() {
        address.set_ip(own.ip().to_canonical());
    }
    address
}

/// A sentence on the limit that a session has reached, or `None`. `total` is its age, `silent` the time without a request or data.
fn exceeded_limit(total: Duration, silent: Duration) -> Option<String> {
    if total > LONGEST_SESSION {
        return Some(format!("{} s are what it gives one client", LONGEST_SESSION.as_secs()));
    }
    (silent > LONGEST_SILENCE)
        .then(|| format!("nothing was asked or sent for {} s", LONGEST_SILENCE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reached_limit_is_described_in_a_sentence() {
        let (long, short) = (LONGEST_SESSION + GLANCE, LONGEST_SILENCE);
        assert_eq!(exceeded_limit(LONGEST_SESSION, short), None);
        assert!(exceeded_limit(long, short).unwrap().contains("gives one client"));
        assert!(
            exceeded_limit(short, short + GLANCE).unwrap().contains("nothing was asked or sent for 60 s")
        );
    }

    #[test]
    fn an_address_for_data_is_of_its_own_family_and_on_its_own_link() {
        let at = |text: &str| data_address(text.parse().unwrap()).to_string();
        assert_eq!(at("[::ffff:10.0.0.2]:7"), "10.0.0.2:0");
        assert_eq!(at("10.0.0.2:7"), "10.0.0.2:0");
        assert_eq!(at("[fe80::1%2]:7"), "[fe80::1%2]:0");
    }
}
