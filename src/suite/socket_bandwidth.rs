//! # What is timed
//! A stream of messages to a process on another CPU. The time is that from the first call that sends until the receiver
//! has confirmed all bytes. The parameter is the length of a message, 1 byte to 8 MiB: through TCP and UDP over
//! 127.0.0.1, a Unix stream, a pipe; through TCP from a file in the page cache by `sendfile`, the same by `splice`
//! through a pipe, and from a buffer by `MSG_ZEROCOPY`. An iteration is 1 MiB, but never more than 1024 messages, and
//! at least one. `N-streams` sends one message by each of N connections in turn, each with a receiver of its own.
//! `tcp-same-cpu` has the receiver on the measuring CPU. The buffers of a TCP connection on this machine have a fixed
//! size, 208 KiB as programs ask for it, which the kernel doubles; with `autotuned` the kernel sizes them. With `peer`
//! the receiver is a `syscost peer`, on another machine; there TCP sends at once (`TCP_NODELAY`), so that a batch's
//! last packet is not held back.
//!
//! # What is not
//! Connecting, starting the receiver, and announcing the bytes of a batch. Every batch includes one answer of the
//! receiver, which adds to the intercept of the fitted line and not to its slope.
//!
//! # How we know
//! The receiver counts what it receives and returns the sum: for a stream it must be what was sent. UDP loses some
//! datagrams; these are sent again until the receiver has as many bytes as the batch, so that an iteration is always
//! the same number of bytes received, and the evidence says how many datagrams were sent for them. No partner may be
//! seen on a CPU other than its own. Without a copy, the kernel must have confirmed all calls. A peer is asked for
//! its count a second time, over another connection.
//!
//! # What fools it
//! Loopback is memory: a copy into the kernel and one out of it, on two CPUs that share a cache or do not. The
//! receiver reads up to 128 KiB at once into a buffer that stays in its cache, and does not look at the bytes; a
//! program that reads them is slower. TCP waits a little to fill its packets (RFC 896; no `TCP_NODELAY` until the end of a
//! batch), so that small messages travel together and their cost is that of the call. On loopback the kernel copies
//! in spite of `MSG_ZEROCOPY` when the same machine receives the bytes, and the evidence says so. All messages are sent
//! from the same buffer, which stays in the cache if it fits. UDP has no flow control: the slower the receiver, the more
//! datagrams are lost and sent again. An idle receiver must be woken: a stream that it drains faster than it is filled pays for
//! that again and again, and so does a pipe of 64 KiB whose every message fills it.
//!
//! Where the kernel sizes TCP's buffers (`tcp_rmem`, receive buffer autotuning), each connection ends with another size:
//! of ten in a row on Linux 6.18 seven stayed below 2 MiB, one grew to 25 MiB, and on one CPU the bytes of the second cost
//! 0.7 times those of the first, because more of them are received at each switch. Two connections are then two
//! different operations, so that pairs of processes could not show whether a kernel is slower. With fixed buffers eight pairs do.
//!
//! # Reading the number
//! `bandwidth` below the table is the bytes a second that the receiver got; `message` is the cost of one message. With
//! growing length the series rises until the copy, and not the call, dominates. `iperf3` has messages of 128 KiB;
//! STREAM's copy on one CPU is about the most that a copy into the kernel and one out of it can reach. N streams of
//! one sender share its CPU: on loopback they cannot be faster than one, on a network of several queues they are.
//!
//! # Source
//! CSE 221 project report (peak bandwidth against the size of the message, over loopback near its memory's 15 GB/s);
//! lmbench's `bw_tcp`, `bw_unix` and `bw_pipe`; netperf's `TCP_STREAM` and `UDP_STREAM`; iperf3; sendfile(2),
//! splice(2), and MSG_ZEROCOPY in the kernel's networking documentation.

use crate::kit::contract::*;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::Placement::{self, Cross, Same};
use crate::kit::remote;
use crate::kit::socket::flow::{Bounds, Control, Receiver};
use crate::kit::socket::source::{FromFile, Sent, Source, Spliced, Written, ZeroCopy};
use crate::kit::socket::{LOOPBACK, messages_per_iteration, size_text};
use crate::kit::socket::{Transport, get_option, raw_descriptor, set_option, socket_error};
use crate::platform::partner::{Class, Kind, Partner};
use libc::{SO_RCVBUF, SO_SNDBUF, SOL_SOCKET};
use std::os::fd::OwnedFd;

mod stream_sender;

use stream_sender::{Connection, StreamSender};

pub const GROUP: Group = Group::new("socket_bandwidth", include_str!("socket_bandwidth.rs"), cases)
    .version(2)
    .curves(&[
        bandwidth_curve("socket_bandwidth/pipe/", "pipe"),
        bandwidth_curve("socket_bandwidth/unix-stream/", "unix stream"),
        bandwidth_curve("socket_bandwidth/tcp/", "TCP"),
        bandwidth_curve("socket_bandwidth/udp/", "UDP"),
        bandwidth_curve("socket_bandwidth/tcp-peer/", "TCP to a peer"),
        bandwidth_curve("socket_bandwidth/sendfile/", "sendfile"),
        bandwidth_curve("socket_bandwidth/splice/", "splice"),
        bandwidth_curve("socket_bandwidth/zerocopy/", "zero copy"),
    ])
    .headlines(&[Headline::new(48, "tcp/128KiB", "TCP to another CPU").with_figure("bandwidth")]);

/// A curve of the bandwidth over the length of a message.
const fn bandwidth_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the message")).with_figure("bandwidth")
}

/// The connection, and the call that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    Tcp,
    /// TCP whose buffers the kernel sizes.
    Autotuned,
    Udp,
    UnixStream,
    Pipe,
    SendFile,
    Splice,
    ZeroCopy,
}
use Medium::{Autotuned, Pipe, SendFile, Splice, Tcp, Udp, UnixStream};

impl Medium {
    fn name(self) -> &'static str {
        self.name_and_title().0
    }

    /// The name in ids, and words for a title.
    fn name_and_title(self) -> (&'static str, &'static str) {
        match self {
            Tcp => ("tcp", "TCP"),
            Autotuned => ("tcp-autotuned", "TCP with buffers of the kernel's choice"),
            Udp => ("udp", "UDP, all received"),
            UnixStream => ("unix-stream", "a Unix stream"),
            Pipe => ("pipe", "a pipe"),
            SendFile => ("sendfile", "TCP by sendfile from a cached file"),
            Splice => ("splice", "TCP by splice from a cached file"),
            Self::ZeroCopy => ("zerocopy", "TCP by MSG_ZEROCOPY"),
        }
    }

    fn message_bounds(self) -> Bounds {
        match self {
            Udp => Bounds::Datagram,
            Pipe => Bounds::Pipe,
            _ => Bounds::Stream,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy)]
struct Row {
    medium: Medium,
    placement: Placement,
    streams: usize,
    bytes: usize,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The message length of `iperf3`.
const USUAL: usize = 128 * KIB;
/// Bytes of a TCP connection's send buffer and of its receive buffer: the most that every process may request by default
/// (`net.core.wmem_max`, `net.core.rmem_max`). The kernel doubles the number, to include its own structures.
const BUFFER: i32 = 212_992;
const SMALL: [usize; 5] = [1, 16, 64, 256, KIB];
const MIDDLE: [usize; 2] = [4 * KIB, 16 * KIB];
const LARGE: [usize; 5] = [64 * KIB, USUAL, 256 * KIB, MIB, 8 * MIB];

fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    let mut add = |medium, lengths: &[&[usize]]| {
        let row = |bytes| Row { medium, placement: Cross, streams: 1, bytes };
        rows.extend(lengths.concat().into_iter().map(row));
    };
    add(Tcp, &[&SMALL, &MIDDLE, &LARGE]);
    add(Udp, &[&SMALL, &MIDDLE, &[32 * KIB]]);
    add(UnixStream, &[&SMALL, &MIDDLE, &LARGE]);
    add(Pipe, &[&SMALL, &MIDDLE, &LARGE]);
    for medium in [SendFile, Splice, Medium::ZeroCopy] {
        add(medium, &[&MIDDLE, &LARGE]);
    }
    let usual = |medium, placement, streams| Row { medium, placement, streams, bytes: USUAL };
    rows.push(usual(Tcp, Same, 1));
    rows.extend([Cross, Same].map(|placement| usual(Autotuned, placement, 1)));
    rows.extend([2, 4, 8].map(|streams| usual(Tcp, Cross, streams)));
    rows.into_iter().map(row_case).chain(remote::bandwidth_cases()).collect()
}

/// Whether a row is measured at default scale.
fn is_default_scale(row: &Row) -> bool {
    match row.medium {
        Tcp if row.streams > 1 => row.streams < 8,
        Tcp => [1, 64, KIB, 16 * KIB, USUAL, MIB, 8 * MIB].contains(&row.bytes),
        Udp => [KIB, 16 * KIB].contains(&row.bytes),
        UnixStream | Pipe => [KIB, 64 * KIB].contains(&row.bytes),
        Autotuned => false,
        _ => row.bytes == 64 * KIB,
    }
}

fn row_case(row: Row) -> Case {
    let Row { medium, placement, streams, bytes } = row;
    let each = messages_per_iteration(bytes);
    let (on, also) = match (placement, streams) {
        (Same, _) => ("-same-cpu".into(), ", receiver on the same CPU".into()),
        (_, 1) => (String::new(), String::new()),
        (_, n) => (format!("-{n}-streams"), format!(", {n} streams of one sender")),
    };
    let all = each * streams;
    let title = format!("{all} messages of {} through {}{also}", size_text(bytes), medium.name_and_title().1);
    let case = Case::new(
        format!("{}{on}/{}", medium.name(), size_text(bytes)),
        title,
        set_up(move |place| start_sender(row, place)),
    );
    let case = placement.add_needs(case);
    let case = if matches!(medium, UnixStream | Pipe) { case } else { case.need(LOOPBACK) };
    let case = if is_default_scale(&row) { case } else { case.need(FULL_SCALE) };
    // Receivers that share a CPU wait for one another. That is part of the case and not a disturbance.
    let case = if streams > 1 { case.own_tasks(OwnTasks::Elsewhere) } else { case };
    let case = if all == 1 { case } else { case.derived_figure("message", Rule::OfCost(1.0 / all as f64)) };
    let (hardware, software, why) = expected_cycles(&row);
    case.derived_figure("bandwidth", Rule::Bandwidth((all * bytes) as u64))
        .claim(Claim::Checked(
            "the receiver has counted as many bytes as were sent, or as were asked for by UDP",
        ))
        .claim(Claim::Counted(all_partners_stayed))
        .predict(hardware, software, why)
}

/// Predicted core cycles of hardware and software for an iteration, and why.
fn expected_cycles(row: &Row) -> (f64, f64, &'static str) {
    const COPIED_A_CYCLE: f64 = 4.0;
    let all = (messages_per_iteration(row.bytes) * row.streams) as f64;
    let call = match row.medium {
        Tcp | Autotuned | SendFile | Splice | Medium::ZeroCopy => 900.0,
        Udp => 4_000.0,
        UnixStream => 1_800.0,
        Pipe => 700.0,
    };
    // On one CPU the two sides do not overlap.
    let sides = if row.placement == Same { 2.0 } else { 1.0 };
    let why = "the slower side's copy of all bytes, and a call and its packet's way for every message";
    (sides * all * row.bytes as f64 / COPIED_A_CYCLE, sides * all * call, why)
}

fn start_sender(row: Row, place: &Place) -> Result<StreamSender> {
    let all = (0..row.streams).map(|at| open_connection(&row, at, place)).collect::<Result<Vec<_>>>()?;
    let (connections, partners) = all.into_iter().unzip();
    let messages = (messages_per_iteration(row.bytes), row.bytes);
    StreamSender::new(row.medium.name(), connections, messages, partners)
}

/// Opens connection number `at` and starts its receiver. The receivers are spread over the other CPUs in turn.
fn open_connection(row: &Row, at: usize, place: &Place) -> Result<(Connection, Partner)> {
    let [near, far] = connected_ends(row.medium)?;
    let buffers = has_fixed_buffers(row.medium).then(|| fix_buffers(&near, &far)).transpose()?;
    let [ours, theirs] = Transport::UnixSeqpacket.connected_pair()?;
    let mut receiver = Receiver::new(far, theirs, row.medium.message_bounds());
    let others = &place.cpus.others;
    let cpu = match row.placement {
        Same => Same.partner_cpu(place)?,
        other if others.is_empty() => other.partner_cpu(place)?,
        _ => others[at % others.len()],
    };
    let partner =
        Partner::start(Kind::Process, (cpu, Class::Ordinary), move || receiver.receive_batch(), || ())?;
    let (source, control, bounds) =
        (source(row, &near, place)?, Control::new(ours), row.medium.message_bounds());
    Ok((Connection { end: near, source, control, bounds, buffers }, partner))
}

fn source(row: &Row, near: &OwnedFd, place: &Place) -> Result<Box<dyn Source>> {
    Ok(match row.medium {
        Tcp | Autotuned | Udp | UnixStream => Box::new(Sent::new(row.bytes)),
        Pipe => Box::new(Written(Sent::new(row.bytes))),
        SendFile => Box::new(FromFile::new(row.bytes, &place.scratch)?),
        Splice => Box::new(Spliced::new(row.bytes, &place.scratch)?),
        Medium::ZeroCopy => Box::new(ZeroCopy::new(near, row.bytes)?),
    })
}

const fn has_fixed_buffers(medium: Medium) -> bool {
    matches!(medium, Tcp | SendFile | Splice | Medium::ZeroCopy)
}

/// Sets both buffers of a connection to [`BUFFER`] bytes, after which the kernel no longer resizes them. Returns a sentence with
/// the sizes that the kernel chose, for the evidence.
///
/// # Errors
/// The kernel refuses.
fn fix_buffers(near: &OwnedFd, far: &OwnedFd) -> Result<String> {
    let fixed = |end: &OwnedFd, name| {
        set_option(raw_descriptor(end), SOL_SOCKET, name, BUFFER)?;
        get_option(raw_descriptor(end), SOL_SOCKET, name)
    };
    let sent = fixed(near, SO_SNDBUF).map_err(|errno| Error::from_errno("setsockopt SO_SNDBUF", errno))?;
    let received = fixed(far, SO_RCVBUF).map_err(|errno| Error::from_errno("setsockopt SO_RCVBUF", errno))?;
    let [sent, received] = [sent, received].map(|bytes| bytes >> 10);
    Ok(format!("buffers of {sent} KiB to send and {received} KiB to receive"))
}

/// The end that sends and the end that receives.
fn connected_ends(medium: Medium) -> Result<[OwnedFd; 2]> {
    match medium {
        Pipe => match nix::unistd::pipe() {
            Ok((read, write)) => Ok([write, read]),
            Err(errno) => Err(socket_error("pipe2", errno.into())),
        },
        Udp => Transport::Udp.connected_pair(),
        UnixStream => Transport::UnixStream.connected_pair(),
        _ => Transport::Tcp.connected_pair(),
    }
}

#[cfg(test)]
mod tests;
