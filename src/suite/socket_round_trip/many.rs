//! Round trips over many connections at once, which one loop of epoll serves.

use crate::kit::contract::*;
use crate::kit::kernel_call::errno_of;
use crate::kit::placement::{NOT_THE_MESSAGE, Placement};
use crate::kit::round_trip::{Exchange, both_left_cpu, partner_passed_tokens};
use crate::kit::socket::Transport;
use crate::kit::socket::endpoint::epoll_over;
use crate::kit::socket::transfer::{receive_whole, send_whole};
use crate::kit::socket::{LOOPBACK, raw_descriptor, size_text};
use crate::platform::partner::{Class, Kind, Partner};
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

/// Bytes of a message.
const MESSAGE: usize = 56;
/// A message over a connection.
pub type Message = [u8; MESSAGE];
/// The most events that one call of epoll_wait(2) returns.
const EVENTS: usize = 64;

pub(super) fn many_case<const COUNT: u64>(is_default: bool) -> Case {
    let count = COUNT as usize;
    let placement = Placement::Same;
    let size = size_text(MESSAGE);
    let case = Case::new(
        format!("tcp-connections-{count}-{}/{size}", placement.name()),
        format!(
            "{size} to and fro over each of {count} TCP connections, served by one epoll loop, {}",
            placement.title()
        ),
        set_up(move |place| connect(place, count, |message| message)),
    );
    let case = placement.add_needs(case).need(LOOPBACK);
    let case = if is_default { case } else { case.need(FULL_SCALE) };
    let why = "two messages through the layers of TCP for each connection, and two switches";
    case.elements(COUNT)
        .claim(Claim::Checked("every reply is the message of its connection and round"))
        .claim(Claim::Counted(both_left_cpu))
        .claim(Claim::Counted(partner_passed_tokens::<COUNT>))
        .predict(2_000.0, 15_000.0 * count as f64, why)
}

/// Opens `count` connections. The subject sends a message over each; the server answers it with `reply(message)`.
///
/// # Errors
/// The kernel refuses a connection or the server.
pub fn connect<F: Fn(Message) -> Message + Send + 'static>(
    place: &Place,
    count: usize,
    reply: F,
) -> Result<impl Subject + use<F>> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let [ours, theirs] = Transport::Tcp.connected_pair()?;
        near.push(ours);
        far.push(File::from(theirs));
    }
    let epoll = epoll_over(&far)?;
    let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
    let partner = Partner::start(Kind::Process, at, move || serve_events(&epoll, &far, &reply), || ())?;
    let mut round = 0;
    Exchange::new("tcp", vec![partner], count as u64, move || {
        round += 1;
        exchange_with_all(&near, round)
    })
}

/// Waits for events, and answers the message of each. Returns 0, or a negative error number. Allocates no memory.
fn serve_events(epoll: &Epoll, ends: &[File], reply: &impl Fn(Message) -> Message) -> i64 {
    let mut events = [EpollEvent::empty(); EVENTS];
    let count = match epoll.wait(&mut events, EpollTimeout::NONE) {
        Ok(count) => count,
        Err(errno) => return -i64::from(errno as i32),
    };
    for event in &events[..count] {
        if let Err(errno) = answer_message(&ends[event.data() as usize], reply) {
            return -i64::from(errno as i32);
        }
    }
    0
}

/// Answers one message by read(2) and write(2), which the kernel counts for each process.
fn answer_message(mut end: &File, reply: &impl Fn(Message) -> Message) -> nix::Result<()> {
    let mut message = [0; MESSAGE];
    end.read_exact(&mut message).and_then(|()| end.write_all(&reply(message))).map_err(errno_of)
}

/// Sends a message over each connection, then receives and checks each reply. Returns 0, or a negative error number.
fn exchange_with_all(ends: &[OwnedFd], round: u64) -> i64 {
    let message = |index: usize| {
        let mut message = [0x5a; MESSAGE];
        message[..8].copy_from_slice(&round.to_le_bytes());
        message[8..16].copy_from_slice(&(index as u64).to_le_bytes());
        message
    };
    for (index, end) in ends.iter().enumerate() {
        let sent = send_whole(raw_descriptor(end), &message(index));
        if sent < 0 {
            return sent;
        }
    }
    for (index, end) in ends.iter().enumerate() {
        let mut reply = [0; MESSAGE];
        let received = receive_whole(raw_descriptor(end), &mut reply);
        if received < 0 {
            return received;
        }
        if reply != message(index) {
            return NOT_THE_MESSAGE;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_another_round_is_rejected() {
        let [near, far] = Transport::Tcp.connected_pair().unwrap();
        assert_eq!(send_whole(raw_descriptor(&far), &[0; MESSAGE]), MESSAGE as i64);
        assert_eq!(exchange_with_all(&[near], 1), NOT_THE_MESSAGE);
    }
}
