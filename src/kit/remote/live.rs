//! The measuring end of the services of a peer.
//!
//! # Errors
//! Every function that makes a subject fails if the peer does not answer, or refuses the service.

use super::RoundTrip;
use crate::kit::contract::*;
use crate::kit::kernel_call::time_until_refused;
use crate::kit::placement::{NOT_THE_MESSAGE, partner_time_limit};
use crate::kit::socket::Transport;
use crate::kit::socket::connection::{Address, error_from_answer, open_stream_socket};
use crate::kit::socket::dialogue::Dialogue;
use crate::kit::socket::endpoint::Blocking;
use crate::kit::socket::icmp::Ping;
use crate::kit::socket::transfer::{receive_whole, send_whole};
use crate::kit::watchdog::Alarm;
use crate::peer::client::{Client, Given, Way};
use crate::peer::control_protocol::{Counted, Open, SECRET_BYTES, Service};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Whether this process was given a peer.
///
/// # Errors
/// A sentence that says how to name a peer.
pub(super) fn given() -> std::result::Result<(), String> {
    named_peer().map(drop)
}

/// The peer that this process was given, or a sentence that says how to name one.
fn named_peer() -> std::result::Result<Given, String> {
    Given::from_environment().ok_or_else(|| {
        "no peer is named: install syscost on another machine, and name that by `--peer HOST` or SYSCOST_PEER"
            .to_owned()
    })
}

/// The result of a call, or its negative error number.
type Answered<T> = std::result::Result<T, i64>;

/// A connection to a peer for one service, and the counts that the peer returned last.
struct Session {
    client: Client,
    counted: Counted,
    alarm: Alarm,
}

impl Session {
    /// Connects to the peer. `open` requests the service, and `time` runs and times a batch of iterations.
    fn subject<T: 'static>(
        open: impl FnOnce(&mut Client) -> Result<T>,
        time: impl FnMut(&mut T, &mut Self, u64, &Clock) -> Result<Ticks> + 'static,
    ) -> Result<Box<dyn Subject>> {
        let mut client = Client::connect(&named_peer().map_err(Error::Missing)?)?;
        let opened = open(&mut client)?;
        let session = Self { client, counted: Counted::default(), alarm: Alarm::new()? };
        Ok(Box::new(Served { session, opened, time }))
    }

    /// Runs `f`, which waits for the peer in each of `iterations`, under a time limit. Its error number ends the case.
    fn within_limit<T>(&mut self, iterations: u64, f: impl FnOnce() -> Answered<T>) -> Result<T> {
        let ended = self.alarm.run_with_limit(partner_time_limit(iterations), f);
        ended.map_err(|answer| explain_refusal(&mut self.client, answer, iterations))
    }

    /// Compares messages and bytes sent since the last call with the peer's count.
    fn verify_count(&mut self, messages: u64, bytes: u64) -> Result<()> {
        let now = self.client.request_counts()?;
        let grown = |now: u64, before: u64| now.checked_sub(before);
        let more = (grown(now.messages, self.counted.messages), grown(now.bytes, self.counted.bytes));
        self.counted = now;
        match more {
            (Some(m), Some(b)) if (m, b) == (messages, bytes) => Ok(()),
            (m, b) => Err(Error::peer(
                self.client.name(),
                format!(
                    "it was sent {messages} messages of {bytes} bytes and says that it got {} of {}: it miscounts",
                    m.map_or("fewer than before".into(), |m| m.to_string()),
                    b.map_or("fewer than before".into(), |b| b.to_string()),
                ),
            )),
        }
    }

    /// The route to the peer, as data and as a sentence.
    fn report(&self) -> Report {
        let wire = self.client.wire().clone();
        let evidence = wire.describe_route().into_iter().collect();
        Report { evidence, wire: Some(wire), ..Report::default() }
    }
}

/// A subject: the session, what `open` has returned, and the function that times a batch.
struct Served<T, F> {
    session: Session,
    opened: T,
    time: F,
}

impl<T, F: FnMut(&mut T, &mut Session, u64, &Clock) -> Result<Ticks>> Subject for Served<T, F> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        (self.time)(&mut self.opened, &mut self.session, iterations, clock)
    }

    fn report(&self) -> Report {
        self.session.report()
    }
}

/// The error behind a negative answer in the timed loop.
fn explain_refusal(client: &mut Client, answer: i64, iterations: u64) -> Error {
    let errno = i32::try_from(-answer).unwrap_or(0);
    let happened = match errno {
        libc::EINTR | libc::ETIMEDOUT | libc::EAGAIN => {
            format!("it has not answered for {} s", partner_time_limit(iterations).as_secs())
        }
        libc::EBADMSG => "it answered something else than it was sent".into(),
        libc::EPIPE | libc::ECONNRESET => "it closed the connection".into(),
        _ => nix::errno::Errno::from_raw(errno).desc().into(),
    };
    client.connection_error(&happened)
}

/// Turns a negative error number of a call into `Err`.
fn unrefused(answer: i64) -> Answered<()> {
    if answer < 0 { Err(answer) } else { Ok(()) }
}

/// Round trips of one row, by a stream or by datagrams, each of which begins with the secret.
pub(super) fn round_trip(row: RoundTrip) -> Result<Box<dyn Subject>> {
    let bytes = row.bytes;
    if row.transport == Transport::Tcp {
        return Session::subject(
            |client| {
                let stream =
                    client.open_streams(Open { service: Service::Echo, bytes, streams: 1 })?.remove(0);
                Ok(Dialogue::new(Blocking::new(OwnedFd::from(stream))?, bytes as usize, &[]))
            },
            move |dialogue, session, n, clock| time_round_trips(row, dialogue, session, n, clock),
        );
    }
    Session::subject(
        |client| {
            let (socket, way) =
                client.open_datagrams(Open { service: Service::DatagramEcho, bytes, streams: 1 })?;
            let endpoint = Blocking::new(OwnedFd::from(socket))?;
            Ok(Dialogue::<_, SECRET_BYTES>::new(endpoint, bytes as usize, &way.secret))
        },
        move |dialogue, session, n, clock| time_round_trips(row, dialogue, session, n, clock),
    )
}

/// Times the round trips of a batch, and compares the peer's count with what was sent.
fn time_round_trips<const AT: usize>(
    row: RoundTrip,
    dialogue: &mut Dialogue<Blocking, AT>,
    session: &mut Session,
    iterations: u64,
    clock: &Clock,
) -> Result<Ticks> {
    let mut lost = false;
    let ended = session.within_limit(iterations, || {
        let ended = dialogue.time_round_trips(iterations, row.timed, clock);
        lost = ended == Err(-i64::from(libc::EINTR)) && row.transport == Transport::Udp;
        ended
    });
    match ended {
        Ok(ticks) => session.verify_count(iterations, iterations * u64::from(row.bytes)).map(|()| ticks),
        Err(error) if lost => Err(Error::Disturbed(format!("{error}; or a datagram was lost on the way"))),
        Err(error) => Err(error),
    }
}

/// Messages of `bytes`, which the peer answers with one byte: the number of the message, modulo 256.
pub(super) fn answered(bytes: u32) -> Result<Box<dyn Subject>> {
    let (message, mut number) = (vec![0x55; bytes as usize], 0);
    Session::subject(
        |client| Ok(client.open_streams(Open { service: Service::Reply, bytes, streams: 1 })?.remove(0)),
        move |stream, session, iterations, clock| {
            let end = stream.as_raw_fd();
            let timed = || {
                let once = || exchange_and_check(end, &message, &mut number);
                let (ticks, refused) = time_until_refused(iterations, clock, once);
                unrefused(refused).map(|()| ticks)
            };
            let ticks = session.within_limit(iterations, timed)?;
            session.verify_count(iterations, iterations * message.len() as u64).map(|()| ticks)
        },
    )
}

/// Sends one message and checks its answer. Returns 0 or a negative error number. Allocates nothing.
#[inline(always)]
fn exchange_and_check(end: RawFd, message: &[u8], number: &mut u8) -> i64 {
    *number = number.wrapping_add(1);
    let mut answer = [0];
    match send_whole(end, message).min(receive_whole(end, &mut answer)) {
        refused if refused < 0 => refused,
        _ if answer == [*number] => 0,
        _ => NOT_THE_MESSAGE,
    }
}

/// Echoes of `bytes` by the peer's kernel: the same as `ping`, without a process at the far end.
///
/// # Errors
/// The peer does not answer; no socket for ICMP is allowed.
pub(super) fn echoes(bytes: usize) -> Result<Box<dyn Subject>> {
    Session::subject(
        |client| Ping::new(client.address(), bytes),
        move |ping, session, iterations, clock| {
            let Session { client, alarm, .. } = session;
            let check = |_: &mut Ping, answer| match answer {
                received if received == bytes as i64 => Ok(Counts::Yes),
                interrupted if interrupted == -i64::from(libc::EINTR) => {
                    let what = "its kernel has not answered an echo: it may be set to ignore them, or a firewall is between";
                    Err(Error::peer(client.name(), what))
                }
                refused if refused < 0 => Err(explain_refusal(client, refused, iterations)),
                _ => Err(explain_refusal(client, NOT_THE_MESSAGE, iterations)),
            };
            alarm.run_with_limit(partner_time_limit(iterations), || {
                clock.time_each(iterations, ping, |_| Ok(()), |ping| ping.echo_once(), check)
            })
        },
    )
}

/// Connections that the peer accepts one after another, of which connect(2) is timed, or close(2) where `closes`.
pub(super) fn connection(closes: bool) -> Result<Box<dyn Subject>> {
    Session::subject(
        |client| {
            let way = client.open_service(Open { service: Service::Greeter, bytes: 0, streams: 1 })?;
            client.wait_until_ready()?;
            Ok((Address::from_socket_addr(way.address), way))
        },
        move |(address, way), session, iterations, clock| {
            let ended = session.within_limit(iterations, || {
                match (0..iterations).map(|_| time_connection(closes, address, way, clock)).sum() {
                    Err(answer) if answer == -i64::from(libc::EADDRNOTAVAIL) => {
                        Ok(Err(error_from_answer("connect to the peer", answer)))
                    }
                    ended => ended.map(Ok),
                }
            });
            let ticks = ended??;
            session.verify_count(iterations, iterations * SECRET_BYTES as u64).map(|()| ticks)
        },
    )
}

/// Makes one connection, from socket(2) to close(2), and times one of its calls. Returns the time or the negative error number.
fn time_connection(closes: bool, address: &Address, way: &Way, clock: &Clock) -> Answered<Ticks> {
    let end = open_stream_socket(address)?;
    let mut answer = 0;
    if closes {
        unrefused(end.connect(address))?;
        unrefused(exchange_greeting(end.raw_descriptor(), &way.secret))?;
        let closed = clock.time(|| answer = end.close());
        return unrefused(answer).map(|()| closed);
    }
    let connected = clock.time(|| answer = end.connect(address));
    unrefused(answer)?;
    unrefused(exchange_greeting(end.raw_descriptor(), &way.secret))?;
    // A close(2) that is not timed resets the connection, which leaves no port in TIME_WAIT.
    unrefused(end.reset_on_close().min(end.close()))?;
    Ok(connected)
}

/// Sends the secret and waits for the greeting. Returns 0 or a negative error number.
fn exchange_greeting(end: RawFd, secret: &[u8; SECRET_BYTES]) -> i64 {
    let mut greeting = [0];
    match send_whole(end, secret).min(receive_whole(end, &mut greeting)) {
        answer if answer < 0 => answer,
        _ if greeting == [1] => 0,
        _ => NOT_THE_MESSAGE,
    }
}

/// Messages of `bytes`, which the peer receives and counts. Every stream sends `each` messages in an iteration.
pub(super) fn bandwidth(streams: u32, each: usize, bytes: usize) -> Result<Box<dyn Subject>> {
    let message: Vec<_> = (0..bytes).map(|at| at as u8).collect();
    Session::subject(
        |client| client.open_streams(Open { service: Service::Sink, bytes: 0, streams }),
        move |streams, session, iterations, clock| {
            let ends: Vec<_> = streams.iter().map(AsRawFd::as_raw_fd).collect();
            let messages = iterations * each as u64;
            let by_each = messages * message.len() as u64;
            let all = by_each * ends.len() as u64;
            let mut received = 0;
            // A slow network may take seconds: at least a megabyte a second is expected.
            let limit = partner_time_limit(iterations) + Duration::from_micros(all);
            let ticks = session.alarm.run_with_limit(limit, || {
                received = announce_bytes(&ends, by_each);
                if received < 0 {
                    Ticks(0)
                } else {
                    clock.time(|| received = send_and_count(&ends, &message, messages))
                }
            });
            ensure(received >= 0, || explain_refusal(&mut session.client, received, iterations))?;
            if received as u64 != all {
                let what = format!(
                    "it was sent {all} bytes and says that {received} came: it lies, or they were lost"
                );
                return Err(Error::peer(session.client.name(), what));
            }
            session.verify_count(ends.len() as u64, all).map(|()| ticks)
        },
    )
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

/// Tells the peer over each end how many bytes will follow. Returns a negative error number if a call is refused.
fn announce_bytes(ends: &[RawFd], bytes: u64) -> i64 {
    ends.iter().map(|&end| send_whole(end, &bytes.to_le_bytes())).min().unwrap_or(0)
}
