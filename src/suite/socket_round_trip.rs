//! # What is timed
//! One message there and one of the same length back between the measuring process and another: by TCP and UDP over
//! 127.0.0.1, a Unix stream, Unix datagrams, Unix packets in sequence. The parameter is the length: 1 byte, the 56 of
//! `ping`, up to 64 KiB. Both ends wait in the call that receives; with `epoll` in epoll_wait(2), after which
//! they receive without waiting; with `spin` they receive without waiting until something has come; with `io-uring` one
//! call submits the sending and the receiving and waits for both. `each` times every round trip by itself.
//! `icmp-each` is an echo that the kernel answers, as `ping` asks for it. With `peer` the other end is that of a
//! `syscost peer`, on another machine.
//!
//! # What is not
//! Opening, connecting, the partner's start and its greeting. The number that every message carries and the look at the
//! one that comes back are timed: two or three nanoseconds.
//!
//! # How we know
//! Every answer must be as long as the message and carry its number; after each batch the last one is compared byte
//! for byte. The partner says its process number before the first message, and it must be the one that was started;
//! of TCP and UDP, each end's address must be the other's destination. The kernel's accounts of both ends are read: on
//! one CPU each must have left it once a round trip, across CPUs each must have gone to sleep, and with `spin` neither
//! may. Neither may be seen on another CPU than its own. The control is all four transfers in one process; `spin` has
//! none, since its two ends work at the same time. Of a peer nothing is seen but its answers: it is asked after each
//! batch, by another connection, how many messages and bytes it got, which must be those that were sent; its machine
//! and both interfaces are in the record.
//!
//! # What fools it
//! Loopback is no network: the sender itself carries the packet up to the receiver's queue, no interrupt and no card
//! take part, and packets hold 64 KiB. What wakes whom where: see `ping_pong`. `SO_BUSY_POLL` polls a card's queue, which
//! loopback does not have, so that it would be the same as `tcp-cross-cpu`; `spin` is what a program can do itself. TCP
//! sends at once (`TCP_NODELAY`). A firewall, a filter of packets (`tcpdump`) and traffic control on `lo` are paid for by
//! every packet. To a peer all that is between counts: the interrupt moderation of both cards, a switch, and where the
//! far kernel puts the peer's thread (`taskset -c N syscost peer`). A peer on this machine shares its CPUs. A message of 64 KiB through TCP comes in pieces, and its receiver may be woken for more than one.
//!
//! # Reading the number
//! `switch` and `hand-over` below the table are half of what the round trip costs beyond its control, as in `ping_pong`;
//! what is left is two messages sent and received. `ping` waits a second between two echoes, in which every cache
//! grows cold, and prints several times `icmp-each`; flooding, it prints less, since its clock stops where the kernel
//! has the reply, and not where the process that waits for it has. Peers: `sockperf ping-pong`,
//! netperf's `TCP_RR` and `UDP_RR`.
//!
//! # Source
//! CSE 221 project report (4.05 µs by TCP over loopback with 56 bytes, where `ping` took 23 µs); lmbench's `lat_tcp`,
//! `lat_udp` and `lat_unix`; RFC 1071; tcp(7), udp(7), unix(7), icmp(7), io_uring(7).

use crate::Result;
use crate::case::need::FULL_SCALE;
use crate::case::{Case, Claim, Group, Need, Place, Rule, SetUp, Subject};
use crate::clock::Delta;
use crate::kit::crowd::all_stayed;
use crate::kit::message_size::{LOOPBACK, length};
use crate::kit::placement::Placement::{self, Awake, Cross, Same};
use crate::kit::remote;
use crate::kit::socket::Transport::{self, Tcp, Udp, UnixStream};
use crate::kit::socket::are_connected;
use crate::kit::socket::echo::Echo;
use crate::kit::socket::ring::{self, Ring};
use crate::kit::socket::way::{Blocking, Readiness, Spinning, Way};
use crate::kit::token::{both_left, both_slept};
use crate::platform::partner::{Class, Kind, Partner};
use std::os::fd::OwnedFd;

mod conversation;
mod ping;

pub(super) use conversation::{Conversation, Timed};

/// The group.
pub const GROUP: Group = Group {
    name: "socket_round_trip",
    manual: include_str!("socket_round_trip.rs"),
    version: 1,
    cases,
    fits: &[],
};

/// How both ends wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Blocking,
    Epoll,
    Spin,
    IoUring,
}
use Waiting::{Epoll, IoUring, Spin};

impl Waiting {
    /// Its part of an id. Blocking is what everybody does, and has none.
    fn name(self) -> &'static str {
        match self {
            Self::Blocking => "",
            Epoll => "-epoll",
            Spin => "-spin",
            IoUring => "-io-uring",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Blocking => "",
            Epoll => ", epoll_wait before each receipt",
            Spin => ", received without waiting until something has come",
            IoUring => ", by io_uring",
        }
    }
}

/// One row before it is a case.
#[derive(Clone, Copy)]
struct Row {
    transport: Transport,
    waiting: Waiting,
    placement: Placement,
    bytes: usize,
    timed: Timed,
}

/// `ping` sends so many unless it is told otherwise.
const PING: usize = 56;
/// Lengths on one CPU, and across.
const LENGTHS: [usize; 6] = [1, PING, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
const FEW: [usize; 3] = [PING, 1 << 10, 64 << 10];
/// Both ends' transfers by one process: so much goes into the queues while nobody receives.
const QUEUED: usize = 4 << 10;

fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    let mut add = |waiting, placement, bytes: &[usize], transports: &[Transport], timed| {
        for &transport in transports {
            let carried = bytes.iter().filter(|&&bytes| transport.carries(bytes));
            rows.extend(carried.map(|&bytes| Row { transport, waiting, placement, bytes, timed }));
        }
    };
    let all = &Transport::ALL;
    let three = &[Tcp, Udp, UnixStream];
    add(Waiting::Blocking, Same, &LENGTHS, all, Timed::Together);
    add(Waiting::Blocking, Cross, &FEW, all, Timed::Together);
    add(Waiting::Blocking, Awake, &[PING], three, Timed::Together);
    for waiting in [Epoll, IoUring] {
        add(waiting, Same, &[PING], all, Timed::Together);
        add(waiting, Cross, &[PING], three, Timed::Together);
    }
    add(Spin, Cross, &[PING, 1 << 10], all, Timed::Together);
    for placement in [Same, Cross] {
        add(Waiting::Blocking, placement, &[PING], three, Timed::Each);
    }
    let mut cases: Vec<_> = rows.into_iter().map(case).collect();
    cases.push(ping::case(PING));
    cases.extend(remote::round_trips());
    cases
}

/// What is measured where there are minutes and not an hour.
fn is_of_every_run(row: &Row) -> bool {
    let Row { transport, waiting, placement, bytes, timed } = *row;
    match (waiting, placement) {
        (Waiting::Blocking, Same) if timed == Timed::Together => match transport {
            Tcp => bytes != 4 << 10,
            Udp => [1, PING, 16 << 10].contains(&bytes),
            UnixStream => [PING, 64 << 10].contains(&bytes),
            _ => bytes == PING,
        },
        (Waiting::Blocking, _) if timed == Timed::Each => transport != UnixStream,
        (_, Same) => transport == Tcp,
        (Epoll | IoUring, _) => false,
        _ => bytes == PING && [Tcp, Udp].contains(&transport),
    }
}

fn case(row: Row) -> Case {
    let Row { transport, waiting, placement, bytes, timed } = row;
    let each = if timed == Timed::Each { "-each" } else { "" };
    let (name, size) = (transport.name(), length(bytes));
    let id = format!("{name}{}{each}-{}/{size}", waiting.name(), placement.name());
    let title =
        format!("{size} to and fro by {}, {}{}", transport.words(), placement.words(), waiting.words());
    let case = placement.needed(Case::new(id, title, set_up(row)));
    let case = if transport.is_inet() { case.need(LOOPBACK) } else { case };
    let case = if waiting == IoUring { case.need(IO_URING) } else { case };
    let case = if is_of_every_run(&row) { case } else { case.need(FULL_SCALE) };
    let case = case
        .claim(Claim::Checked(
            "every answer had the length and the number of its message, from the process that was started",
        ))
        .claim(regime(waiting, placement));
    let case = if timed == Timed::Each { case.one_by_one() } else { beyond_transfers(case, row) };
    let (hardware, software, why) = expected(&row);
    case.predict(hardware, software, why)
}

/// Two ends that both poll work at the same time, and are faster than one process that does the work of both: there
/// is nothing to take off. A long message does not fit into the queue.
fn has_control(row: &Row) -> bool {
    row.timed == Timed::Together && row.waiting != Spin && row.bytes <= QUEUED
}

/// The control, and what follows from it.
fn beyond_transfers(case: Case, row: Row) -> Case {
    if !has_control(&row) {
        return case;
    }
    let derived = if row.placement == Same { "switch" } else { "hand-over" };
    case.control_set_up(transfers(row)).claim(Claim::AboveControl).derive(derived, Rule::OfNet(0.5))
}

/// What the kernel's accounts must show of both ends.
fn regime(waiting: Waiting, placement: Placement) -> Claim {
    match (waiting, placement) {
        (Spin, _) => Claim::Counted(neither_slept),
        (_, Same) => Claim::Counted(both_left),
        _ => Claim::Regime(both_slept),
    }
}

const IO_URING: Need = Need::new(|_| ring::offered());

/// Core cycles of the hardware and of the software, and why: two switches, and without a control what both ends do
/// for two messages.
fn expected(row: &Row) -> (f64, f64, &'static str) {
    const COPIED_A_CYCLE: f64 = 8.0;
    let (hardware, software) = match row.placement {
        Same => (2_000.0, 3_400.0),
        Cross if row.waiting == Spin => (600.0, 0.0),
        Cross => (60_000.0, 10_000.0),
        Awake => (8_000.0, 8_000.0),
    };
    if has_control(row) {
        return (hardware, software, "two sleeps, wake-ups and switches, or two CPUs that wake");
    }
    let layers = match row.transport {
        Tcp => 13_000.0,
        Udp => 10_000.0,
        _ => 4_000.0,
    };
    let copies = 4.0 * row.bytes as f64 / COPIED_A_CYCLE;
    let why = "two messages through the layers, four copies, and two switches or two CPUs that wake";
    (hardware + copies, software + layers, why)
}

fn set_up(row: Row) -> SetUp {
    Box::new(move |place: &Place| match row.waiting {
        Waiting::Blocking => local(row, Blocking::new, place),
        Epoll => local(row, Readiness::new, place),
        Spin => local(row, Spinning::new, place),
        IoUring => local(row, Ring::new, place),
    })
}

/// How an end is made of a descriptor.
type Make<W> = fn(OwnedFd) -> Result<W>;

/// A conversation with a partner on this machine.
fn local<W: Way>(row: Row, make: Make<W>, place: &Place) -> Result<Box<dyn Subject>> {
    let ends = row.transport.pair()?;
    are_connected(row.transport, &ends)?;
    let [near, far] = ends;
    let mut echo = Echo::new(make(far)?, row.bytes);
    let at = (row.placement.cpu(place)?, Class::Ordinary);
    let mut partners = vec![Partner::start(Kind::Process, at, move || echo.step(), || ())?];
    partners.extend(row.placement.spinners(place)?);
    let mut conversation = Conversation::new(row.transport.name(), make(near)?, row.bytes, row.timed)?;
    conversation.with(partners)?;
    Ok(Box::new(conversation))
}

/// The control: all transfers of a round trip, by one process.
fn transfers(row: Row) -> SetUp {
    Box::new(move |_: &Place| match row.waiting {
        Waiting::Blocking => conversation::alone(row.transport, Blocking::new, row.bytes),
        Epoll => conversation::alone(row.transport, Readiness::new, row.bytes),
        Spin => Err(crate::Error::Usage("two ends that poll have no control".into())),
        IoUring => conversation::alone(row.transport, Ring::new, row.bytes),
    })
}

/// Who asks until something has come never waits. One switch in twenty is somebody else's doing.
fn neither_slept(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const MOST: f64 = 0.05;
    let stayed = all_stayed(delta, iterations)?;
    let own = delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_voluntary);
    let share = own.max(partner) as f64 / iterations.max(20) as f64;
    let seen = format!("the measuring end slept {own} times and its partner {partner} times in {iterations}");
    if share > MOST { Err(format!("{seen}: that was no polling")) } else { Ok(format!("{seen}; {stayed}")) }
}

#[cfg(test)]
mod tests;
