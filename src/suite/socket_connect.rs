//! # What is timed
//! The calls of a connection, each by itself: of TCP over 127.0.0.1 or of a Unix stream, in one process; `connect`
//! alone, `accept` alone, of one waiting connection or of the first of a hundred, `set-up` (connect and accept
//! together), `tear-down` (the close of both ends, in the order that the id says; `one-end`, the server's close alone).
//! `reuseport-16` is 16 listeners that share the port by `SO_REUSEPORT`, of which the kernel picks one. `whole` is a
//! connection from socket(2) to the second close, in a plain loop. With `peer` the server is a `syscost peer`, on
//! another machine, and the client's own calls are timed.
//!
//! # What is not
//! In all cases but `whole`: making the socket, and every call that the id does not name; the calls that prove the
//! connection. A connection whose end is not timed is reset (`SO_LINGER` of zero), so that it leaves nothing behind.
//!
//! # How we know
//! After every set-up the client's own address must be the one that the server's end is connected to, and the kernel
//! must report both ends as established; for a Unix stream, whose clients have no address, both ends must be this
//! process's (`SO_PEERCRED`). Before a case of TCP, thirty connections that are closed as the case does it must
//! appear in the kernel's count of TIME_WAIT, or with `reset` must not. After each batch no unaccepted connection may
//! be left. A peer greets every connection that shows its secret, and must report their number.
//!
//! # What fools it
//! On loopback the whole handshake happens inside the client's `connect`: it pays for the server's kernel too, no
//! packet waits, and no task sleeps. The end that closes first keeps the connection in TIME_WAIT for 60 s. If that
//! is the client, its port is unusable for that destination meanwhile: there are some 28,000 ports, and the search for a
//! free one takes longer the fewer are left. `client-first` then continues from 127.0.0.2 and so forth, which is in the
//! evidence; the kernel may also reuse a port in TIME_WAIT after a second (`tcp_tw_reuse`). Above `tcp_max_tw_buckets`
//! connections are forgotten at once. A listener whose queue is full drops connections, and the client tries again
//! after a second: here it is never full. SYN cookies, a firewall that tracks connections, and a packet filter add
//! their part.
//!
//! # Reading the number
//! `set-up` and `tear-down` are the usual terms for the two ends of a connection. `tear-down/one-end` is a close that
//! sends one packet and does not wait; the second close of a connection sends another packet. A server that sees
//! thousands of connections a second pays for `whole`; its `rate` is the most that one CPU can do with both ends on
//! it.
//!
//! # Source
//! CSE 221 project report (9.5 µs from connect to accept, 7.7 µs for the server's close, over loopback); lmbench's
//! `lat_connect`; netperf's `TCP_CC`; RFC 793 and RFC 7323; tcp(7), socket(7), ip(7).

use crate::kit::contract::*;
use crate::kit::remote;
use crate::kit::socket::LOOPBACK;
use crate::kit::socket::connection::{Family, max_backlog};
use Ending::{ClientFirst, Reset, ServerFirst};
use Part::{Accept, Connect, OneEnd, SetUpBoth, TearDown};

mod connection_part;

use connection_part::{SinglePart, whole_connections};

pub const GROUP: Group = Group::new("socket_connect", include_str!("socket_connect.rs"), cases).headlines(&[
    Headline::new(50, "set-up/tcp", "TCP connection set up"),
    Headline::new(51, "tear-down/tcp-one-end", "TCP connection closed, one end"),
]);

/// The timed part of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Connect,
    /// Accepting the first of this number of waiting connections.
    Accept(usize),
    SetUpBoth,
    TearDown,
    OneEnd,
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    ServerFirst,
    ClientFirst,
    Reset,
}

impl Ending {
    fn name(self) -> &'static str {
        match self {
            ServerFirst => "server-first",
            ClientFirst => "client-first",
            Reset => "reset",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    part: Part,
    family: Family,
    ending: Ending,
    /// The number of listeners that share the port; 0 for a single listener.
    sharing: usize,
}

/// A listener's backlog.
const QUEUE: u32 = 128;
/// Connections that wait in `accept/tcp-queue-100`.
const WAITING: usize = 100;
const LISTENERS: usize = 16;

fn cases() -> Vec<Case> {
    let row = |part, family, ending| Row { part, family, ending, sharing: 0 };
    let tcp = |part, ending| row(part, Family::Tcp, ending);
    let mut cases = vec![
        single_part_case("connect/tcp", tcp(Connect, Reset)),
        single_part_case("connect/tcp-reuseport-1", Row { sharing: 1, ..tcp(Connect, Reset) })
            .need(FULL_SCALE),
        single_part_case("connect/tcp-reuseport-16", Row { sharing: LISTENERS, ..tcp(Connect, Reset) }),
        single_part_case("connect/unix-stream", row(Connect, Family::Unix, ServerFirst)).need(FULL_SCALE),
        single_part_case("accept/tcp", tcp(Accept(1), Reset)),
        single_part_case("accept/tcp-queue-100", tcp(Accept(WAITING), Reset)),
        single_part_case("set-up/tcp", tcp(SetUpBoth, Reset)),
        single_part_case("set-up/unix-stream", row(SetUpBoth, Family::Unix, ServerFirst)),
        single_part_case("tear-down/tcp-one-end", tcp(OneEnd, ServerFirst)),
        single_part_case("tear-down/tcp-server-first", tcp(TearDown, ServerFirst)),
        single_part_case("tear-down/tcp-client-first", tcp(TearDown, ClientFirst)),
        single_part_case("tear-down/tcp-reset", tcp(TearDown, Reset)),
        single_part_case("tear-down/unix-stream", row(TearDown, Family::Unix, ServerFirst)),
    ];
    for ending in [ServerFirst, Reset] {
        cases.push(whole_connection_case("tcp", Family::Tcp, ending));
    }
    cases.push(whole_connection_case("unix-stream", Family::Unix, ServerFirst).need(FULL_SCALE));
    cases.extend(remote::connection_cases());
    cases
}

/// The need that the kernel allows the backlog of `accept/tcp-queue-100`.
const LONG_QUEUE: Need = Need::new(|_| match max_backlog() {
    Some(longest) if longest < QUEUE => Err(format!(
        "a listener's queue may hold {longest} connections and {QUEUE} are needed: raise net.core.somaxconn"
    )),
    _ => Ok(()),
});

fn with_family_needs(case: Case, family: Family) -> Case {
    let case = case.need(LONG_QUEUE);
    if family == Family::Tcp { case.need(LOOPBACK) } else { case }
}

/// A case of one part of a connection, timed by itself.
fn single_part_case(name: &str, row: Row) -> Case {
    let case = Case::new(name, case_title(&row), set_up(move |_| SinglePart::new(row))).one_by_one();
    let (hardware, software, why) = expected_cycles(&row);
    let case = with_family_needs(case, row.family).predict(hardware, software, why);
    match row.family {
        Family::Tcp => {
            case.claim(Claim::Checked(
                "the accepted end is the one that had connected, and both ends were established",
            ))
            .claim(Claim::Checked("thirty that were closed so before left as many in TIME_WAIT as they must"))
        }
        Family::Unix => case.claim(Claim::Checked("both ends of each connection were this process's")),
    }
}

fn case_title(row: &Row) -> String {
    let family = if row.family == Family::Tcp { "TCP" } else { "Unix stream" };
    match row.part {
        Connect if row.sharing > 0 => {
            format!("connect by {family} to {} listeners of one port, accept not included", row.sharing)
        }
        Connect => format!("connect by {family} to a listener, accept not included"),
        Accept(1) => format!("accept of a {family} connection that waits"),
        Accept(count) => format!("accept of the first of {count} {family} connections that wait"),
        SetUpBoth => format!("connect and accept of a {family} connection"),
        OneEnd => format!("close of the server's end of a {family} connection, the first of the two"),
        TearDown => format!("close of both ends of a {family} connection, {}", row.ending.name()),
    }
}

/// Predicted core cycles of hardware and software for a part, and why.
fn expected_cycles(row: &Row) -> (f64, f64, &'static str) {
    let tcp = row.family == Family::Tcp;
    match row.part {
        Connect if tcp => (2_000.0, 25_000.0, "a port found, three packets, a socket made for the server"),
        Connect => (500.0, 5_000.0, "a socket and a descriptor made for the server"),
        Accept(_) => (500.0, 2_500.0, "one taken from the queue, a file and a descriptor made for it"),
        SetUpBoth if tcp => (2_500.0, 27_500.0, "a port found, three packets, two sockets, a file"),
        SetUpBoth => (1_000.0, 7_500.0, "a socket, a file and a descriptor made for the server"),
        OneEnd => (1_000.0, 8_000.0, "a packet sent and answered, a file given back"),
        TearDown if !tcp => (1_000.0, 4_000.0, "two files and two sockets given back"),
        TearDown if row.ending == Reset => (1_500.0, 9_000.0, "one packet, two files and sockets given back"),
        TearDown => (2_000.0, 16_000.0, "four packets, two files given back, a rest in TIME_WAIT"),
    }
}

/// A case of whole connections, in a plain loop.
fn whole_connection_case(name: &str, family: Family, ending: Ending) -> Case {
    let set_up = set_up(move |_| whole_connections(family, ending));
    let (ended, with) = match (family, ending) {
        (Family::Tcp, Reset) => ("-reset", "both ends closed, by a reset"),
        _ => ("", "both ends closed, the server's first"),
    };
    let title = format!("a connection by {name} made, accepted, {with}");
    let cycles = if family == Family::Tcp { 50_000.0 } else { 17_000.0 };
    with_family_needs(Case::new(format!("whole/{name}{ended}"), title, set_up), family)
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Linear)
        .claim(Claim::Checked("as many were accepted as had connected, and none was left over"))
        .predict(5_000.0, cycles, "two sockets and two files made and given back, and the packets between")
}

#[cfg(test)]
mod tests;
