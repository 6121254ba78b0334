//! Messages that the peer sends back.

use super::Far;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::kit::placement::patience;
use crate::kit::socket::way::{Blocking, Way};
use crate::peer::control_protocol::{Open, SECRET_BYTES, Service};
use crate::{Error, Result};
use std::os::fd::OwnedFd;

/// The near end of a conversation with a peer.
struct Conversation<W> {
    far: Far,
    way: W,
    message: Vec<u8>,
    reply: Vec<u8>,
    /// Where in the message its number stands: behind the secret, if it begins with one.
    at: usize,
    number: u64,
    each: bool,
    /// Whether a message may be lost without anybody's fault.
    may_lose: bool,
}

/// What an answer that is not the message is told by.
const NOT_THE_MESSAGE: i64 = -(libc::EBADMSG as i64);

/// Over a stream.
pub(super) fn streamed(bytes: u32, each: bool) -> Result<Box<dyn Subject>> {
    let mut client = Far::call()?;
    let stream = client.streams(Open { service: Service::Echo, bytes, streams: 1 })?.remove(0);
    let way = Blocking::new(OwnedFd::from(stream))?;
    let (message, reply) = (filled(bytes), vec![0; bytes as usize]);
    let far = Far::of(client)?;
    Ok(Box::new(Conversation { far, way, message, reply, at: 0, number: 1, each, may_lose: false }))
}

/// By datagrams, each of which begins with the secret.
pub(super) fn datagrams(bytes: u32, each: bool) -> Result<Box<dyn Subject>> {
    let mut client = Far::call()?;
    let (socket, way) = client.datagrams(Open { service: Service::DatagramEcho, bytes, streams: 1 })?;
    let mut message = filled(bytes);
    message[..SECRET_BYTES].copy_from_slice(&way.secret);
    let reply = vec![0; bytes as usize];
    let way = Blocking::new(OwnedFd::from(socket))?;
    let far = Far::of(client)?;
    Ok(Box::new(Conversation { far, way, message, reply, at: SECRET_BYTES, number: 1, each, may_lose: true }))
}

fn filled(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| at as u8 ^ 0x5a).collect()
}

/// So many round trips, one after another.
#[inline(always)]
fn converse(
    way: &mut impl Way,
    (message, reply): (&mut [u8], &mut [u8]),
    at: usize,
    number: &mut u64,
    n: u64,
) -> i64 {
    for _ in 0..n {
        mark(&mut message[at..], *number);
        *number += 1;
        let come = way.turn(message, reply);
        if come < 0 {
            return come;
        }
        if come as usize != message.len() || !begin_alike(&message[at..], &reply[at..]) {
            return NOT_THE_MESSAGE;
        }
    }
    0
}

/// Numbers a message; of a short one only the number's end fits.
#[inline(always)]
fn mark(message: &mut [u8], number: u64) {
    match message.first_chunk_mut() {
        Some(start) => *start = number.to_le_bytes(),
        None => message.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, of)| *byte = of),
    }
}

#[inline(always)]
fn begin_alike(message: &[u8], reply: &[u8]) -> bool {
    match (message.first_chunk::<8>(), reply.first_chunk::<8>()) {
        (Some(sent), Some(come)) => sent == come,
        _ => message == reply,
    }
}

impl<W: Way> Subject for Conversation<W> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { far, way, message, reply, at, number, each, .. } = self;
        let (mut answer, mut sum) = (0, Ticks(0));
        far.alarm.watch(patience(iterations), || {
            let (brackets, inside) = if *each { (iterations, 1) } else { (1, iterations) };
            for _ in 0..brackets {
                sum += clock.time(|| answer = converse(way, (message, reply), *at, number, inside));
                if answer != 0 {
                    break;
                }
            }
        });
        // All of the last one, since of the others the beginning was compared.
        if answer == 0 && reply != message {
            answer = NOT_THE_MESSAGE;
        }
        match answer {
            0 => far.got(iterations, iterations * message.len() as u64).map(|()| sum),
            _ if self.may_lose && answer == -i64::from(libc::EINTR) => {
                let error = far.refused(answer, iterations);
                Err(Error::Disturbed(format!("{error}; or a datagram was lost on the way")))
            }
            _ => Err(far.refused(answer, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report { wire: Some(self.far.wire()), ..Report::default() }
    }
}
