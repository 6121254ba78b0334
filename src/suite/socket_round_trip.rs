//! # What is timed
//! One message to another process and one of that length back: by TCP and UDP over 127.0.0.1, a Unix stream, Unix
//! datagrams, Unix packets in sequence. The parameter is the length: 1 byte, the 56 of `ping`, up to 64 KiB. Both ends
//! wait in the call that receives; with `epoll` in epoll_wait(2), after which they receive without waiting; with `spin`
//! they poll until data has arrived; with `io-uring` one call submits the send and the receive and waits for both.
//! `each` times every round trip by itself. `at-1000-a-second` sends at this rate, and times from the moment at which each
//! message is due. In `tcp-connections-100` a message makes a round trip over each of 100 connections, which one loop of
//! epoll serves. `http` requests a page of 1 KiB from a web server of the suite: with `keep-alive` all over one connection, with
//! `connection` each over a new one. `udp-batch-one-process` sends and receives 32 messages, by `sendmmsg` and `recvmmsg` or
//! one by one. `one-process` has both ends in the measuring process, without a context switch, as in the CSE 221
//! report. `icmp-each` is an echo that the kernel answers, the same as `ping` sends. With `peer` the other end is a
//! `syscost peer`, on another machine.
//!
//! # What is not
//! Opening, connecting, the partner's start and its greeting. Writing the number into every message and checking the
//! number in the reply are timed: two or three nanoseconds.
//!
//! # How we know
//! Every answer must be as long as the message and carry its number; a page must be whole, begin with the number of its request, and
//! name the process that was started. After each batch the last answer is compared byte
//! for byte. The partner sends its process id before the first message, and it must be the one that was started; for
//! TCP and UDP, each end's address must be the other's destination. The kernel's accounts of both ends are read: on
//! one CPU each must have left it once a round trip, across CPUs each must have slept, and with `spin` neither may.
//! Neither may be seen on a CPU other than its own. The control is all four transfers in one process; `spin` has
//! no control, since its two ends work at the same time. Of a peer only the answers can be seen: after each batch it
//! reports, over another connection, the messages and bytes that it received, which must equal those that were sent; its
//! machine and both interfaces are in the record.
//!
//! # What fools it
//! Loopback is no network: the sender itself carries the packet up to the receiver's queue, without an interrupt or a
//! card, and packets hold 64 KiB. Wake-ups and CPUs: see `ping_pong`. `SO_BUSY_POLL` polls a card's queue, which
//! loopback does not have, so that it would be the same as `tcp-cross-cpu`; `spin` is what a program can do itself.
//! TCP sends at once (`TCP_NODELAY`). A firewall, a packet filter (`tcpdump`) and traffic control on `lo` add to
//! every packet. To a peer everything on the way counts: the interrupt moderation of both cards, a switch, and where
//! the far kernel puts the peer's thread (`--peer-command 'ssh HOST taskset -c N syscost peer'`). A peer on this machine shares its CPUs. A
//! message of 64 KiB through TCP arrives in pieces, and its receiver may be woken for more than one.
//!
//! # Reading the number
//! `switch` and `hand-over` below the table are half of what the round trip costs beyond its control, as in
//! `ping_pong`; the rest is two messages sent and received. `ping` waits a second between two echoes, in which every
//! cache grows cold, and prints several times `icmp-each`; when it floods, it prints less, since its clock stops when
//! the kernel has the reply, and not when the waiting process has it. Other tools: `sockperf ping-pong`, netperf's
//! `TCP_RR` and `UDP_RR`. lmbench's `lat_unix` calls read(2) and write(2) in one long loop; ours calls sendto(2) and recvfrom(2),
//! numbers and checks every message, and resets the predictor before each sample. Compare its figure with `typical`.
//!
//! # Source
//! lmbench's `lat_http`, `wrk`, `uperf`, and sockperf's `under-load`; sendmmsg(2);
//! CSE 221 project report (4.05 µs by TCP over loopback with 56 bytes, where `ping` took 23 µs); lmbench's `lat_tcp`,
//! `lat_udp` and `lat_unix`; RFC 1071; tcp(7), udp(7), unix(7), icmp(7), io_uring(7).

use crate::kit::contract::*;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::Placement::{self, Awake, Cross, Same};
use crate::kit::remote;
use crate::kit::round_trip::{both_left_cpu, both_slept};
use crate::kit::socket::Transport::{self, Tcp, Udp, UnixStream};
use crate::kit::socket::dialogue::Echo;
use crate::kit::socket::dialogue::Timed;
use crate::kit::socket::endpoint::{Blocking, Endpoint, Epoll, Spinning};
use crate::kit::socket::io_ring::{self, IoRing};
use crate::kit::socket::{LOOPBACK, size_text};
use crate::platform::partner::{Class, Kind, Partner};
use std::os::fd::OwnedFd;

pub mod conversation;
pub mod http;
pub mod many;
pub mod operation_batch;

use conversation::Conversation;

pub const GROUP: Group = Group::new("socket_round_trip", include_str!("socket_round_trip.rs"), cases)
    .version(2)
    .curves(&[
        by_message_curve("socket_round_trip/tcp-same-cpu/", "TCP, one CPU"),
        by_message_curve("socket_round_trip/udp-same-cpu/", "UDP, one CPU"),
        by_message_curve("socket_round_trip/unix-stream-same-cpu/", "unix stream, one CPU"),
        by_message_curve("socket_round_trip/tcp-peer/", "TCP to a peer"),
    ])
    .headlines(&[Headline::new(46, "tcp-same-cpu/56B", "TCP round trip, 56 bytes").as_answer()]);

/// A curve of the round trip over the length of the message.
const fn by_message_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the message")).with_chart("round trip")
}

/// How both ends wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Block,
    Poll,
    Spin,
    IoUring,
}
use Waiting::{Block, IoUring, Poll, Spin};

impl Waiting {
    /// The part of an id, which is empty for blocking, the usual way.
    fn name(self) -> &'static str {
        match self {
            Block => "",
            Poll => "-epoll",
            Spin => "-spin",
            IoUring => "-io-uring",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Block => "",
            Poll => ", epoll_wait before each receipt",
            Spin => ", received without waiting until something has come",
            IoUring => ", by io_uring",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy)]
struct Row {
    transport: Transport,
    waiting: Waiting,
    placement: Placement,
    bytes: usize,
    timed: Timed,
}

/// Bytes that `ping` sends by default.
const PING: usize = 56;
/// Message lengths for the cases on one CPU and across CPUs, bytes.
const LENGTHS: [usize; 6] = [1, PING, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
const FEW: [usize; 3] = [PING, 1 << 10, 64 << 10];
/// The rates of the cases that send at a fixed rate, messages a second.
const RATES: [u32; 2] = [1_000, 10_000];
/// The longest message that has a control, bytes: the socket queue must hold it until the single process receives it.
const QUEUED: usize = 4 << 10;

fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    let mut add = |waiting, placement, bytes: &[usize], transports: &[Transport], timed| {
        for &transport in transports {
            let carried = bytes.iter().filter(|&&bytes| transport.can_carry(bytes));
            rows.extend(carried.map(|&bytes| Row { transport, waiting, placement, bytes, timed }));
        }
    };
    let all = &Transport::ALL;
    let three = &[Tcp, Udp, UnixStream];
    add(Block, Same, &LENGTHS, all, Timed::Together);
    add(Block, Cross, &FEW, all, Timed::Together);
    add(Block, Awake, &[PING], three, Timed::Together);
    for waiting in [Poll, IoUring] {
        add(waiting, Same, &[PING], all, Timed::Together);
        add(waiting, Cross, &[PING], three, Timed::Together);
    }
    add(Spin, Cross, &[PING, 1 << 10], all, Timed::Together);
    for placement in [Same, Cross] {
        add(Block, placement, &[PING], three, Timed::Each);
    }
    for rate in RATES {
        add(Block, Cross, &[PING], &[Tcp, Udp], Timed::AtRate(rate));
    }
    let mut cases: Vec<_> = rows.into_iter().map(row_case).collect();
    cases.extend(http::http_cases());
    cases.extend([many::many_case::<10>(false), many::many_case::<100>(true)]);
    cases.extend(operation_batch::batch_cases());
    cases.push(conversation::one_process_case(PING));
    cases.push(conversation::icmp_echo_case(PING));
    cases.extend(remote::round_trip_cases());
    cases
}

/// Whether a row is measured at default scale.
fn is_default_scale(row: &Row) -> bool {
    let Row { transport, waiting, placement, bytes, timed } = *row;
    match (waiting, placement) {
        (Block, Same) if timed == Timed::Together => match transport {
            Tcp => bytes != 4 << 10,
            Udp => [1, PING, 16 << 10].contains(&bytes),
            UnixStream => [PING, 64 << 10].contains(&bytes),
            _ => bytes == PING,
        },
        (Block, _) if timed == Timed::Each => transport != UnixStream,
        (Block, _) if timed != Timed::Together => false,
        (_, Same) => transport == Tcp,
        (Poll | IoUring, _) => false,
        _ => bytes == PING && [Tcp, Udp].contains(&transport),
    }
}

fn row_case(row: Row) -> Case {
    let Row { transport, waiting, placement, bytes, timed } = row;
    let each = match timed {
        Timed::Together => String::new(),
        Timed::Each => "-each".into(),
        Timed::AtRate(rate) => format!("-at-{rate}-a-second"),
    };
    let rate =
        if let Timed::AtRate(rate) = timed { format!(", {rate} times a second,") } else { String::new() };
    let (name, size) = (transport.name(), size_text(bytes));
    let id = format!("{name}{}{each}-{}/{size}", waiting.name(), placement.name());
    let title =
        format!("{size} to and fro{rate} by {}, {}{}", transport.title(), placement.title(), waiting.title());
    let case = placement.add_needs(Case::new(id, title, conversation_set_up(row)));
    let case = if transport.is_inet() { case.need(LOOPBACK) } else { case };
    let case = if waiting == IoUring { case.need(IO_URING) } else { case };
    let case = if is_default_scale(&row) { case } else { case.need(FULL_SCALE) };
    let case = case
        .claim(Claim::Checked(
            "every answer had the length and the number of its message, from the process that was started",
        ))
        .claim(sleep_claim(waiting, placement));
    let case = if timed == Timed::Together { with_transfer_control(case, row) } else { case.one_by_one() };
    let (hardware, software, why) = expected_cycles(&row);
    case.predict(hardware, software, why)
}

/// Whether a row has a control. Ends that poll have none: they work at the same time, faster than one process that does the work
/// of both. A long message has none, because it does not fit into the queue.
fn has_control(row: &Row) -> bool {
    row.timed == Timed::Together && row.waiting != Spin && row.bytes <= QUEUED
}

/// Adds the control, and the figure (`switch` or `hand-over`) that is computed from it.
fn with_transfer_control(case: Case, row: Row) -> Case {
    if !has_control(&row) {
        return case;
    }
    let derived = if row.placement == Same { "switch" } else { "hand-over" };
    case.control_set_up(transfer_control(row))
        .claim(Claim::AboveControl)
        .derived_figure(derived, Rule::OfNet(0.5))
}

/// The claim about the kernel's accounts of both ends.
fn sleep_claim(waiting: Waiting, placement: Placement) -> Claim {
    match (waiting, placement) {
        (Spin, _) => Claim::AtMost(claim_neither_slept),
        (_, Same) => Claim::Counted(both_left_cpu),
        _ => Claim::Regime(both_slept),
    }
}

const IO_URING: Need = Need::new(|_| io_ring::check_ring_allowed());

/// Predicted core cycles of two messages through the layers of TCP and IP.
const TCP_LAYERS: f64 = 13_000.0;

/// Predicted core cycles of hardware and of software, and the reason: two switches and, for a case without a control, the
/// transfer of two messages.
fn expected_cycles(row: &Row) -> (f64, f64, &'static str) {
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
        Tcp => TCP_LAYERS,
        Udp => 10_000.0,
        _ => 4_000.0,
    };
    let copies = 4.0 * row.bytes as f64 / COPIED_A_CYCLE;
    let why = "two messages through the layers, four copies, and two switches or two CPUs that wake";
    (hardware + copies, software + layers, why)
}

fn conversation_set_up(row: Row) -> SetUp {
    set_up(move |place| match row.waiting {
        Block => local_conversation(row, Blocking::new, place),
        Poll => local_conversation(row, Epoll::new, place),
        Spin => local_conversation(row, Spinning::new, place),
        IoUring => local_conversation(row, IoRing::new, place),
    })
}

/// Makes an endpoint of a descriptor.
type Make<E> = fn(OwnedFd) -> Result<E>;

/// A conversation with a partner on this machine.
fn local_conversation<E: Endpoint>(row: Row, make: Make<E>, place: &Place) -> Result<Box<dyn Subject>> {
    let [near, far] = row.transport.connected_pair()?;
    let mut echo = Echo::new(make(far)?, row.bytes);
    let at = (row.placement.partner_cpu(place)?, Class::Ordinary);
    let mut partners = vec![Partner::start(Kind::Process, at, move || echo.answer_message(), || ())?];
    partners.extend(row.placement.start_spinners(place)?);
    let exchange = (row.bytes, row.timed);
    Ok(Box::new(Conversation::await_greeting(row.transport.name(), make(near)?, exchange, partners)?))
}

/// The control: all transfers of a round trip, in one process.
fn transfer_control(row: Row) -> SetUp {
    set_up(move |_| match row.waiting {
        Block => conversation::single_process_control(row.transport, Blocking::new, row.bytes),
        Poll => conversation::single_process_control(row.transport, Epoll::new, row.bytes),
        Spin => Err(Error::Disproved("two ends that poll have no control".into())),
        IoUring => conversation::single_process_control(row.transport, IoRing::new, row.bytes),
    })
}

/// Whether an end slept in at most one exchange of twenty, as other tasks may cause.
fn are_few_sleeps(slept: u64, iterations: u64) -> bool {
    const MOST: f64 = 0.05;
    slept as f64 / iterations.max(20) as f64 <= MOST
}

/// The claim that neither end slept.
fn claim_neither_slept(delta: &Delta, iterations: u64) -> Judged {
    let stayed = all_partners_stayed(delta, iterations)?;
    let own = delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_voluntary);
    let seen = format!("the measuring end slept {own} times and its partner {partner} times in {iterations}");
    ensure(are_few_sleeps(own.max(partner), iterations), || format!("{seen}: that was no polling"))
        .map(|()| format!("{seen}; {stayed}"))
}

#[cfg(test)]
mod tests;
