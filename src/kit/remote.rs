//! The cases of the socket groups whose other end is a `syscost peer`, on another machine.
//!
//! Only the answers of the far end can be observed. Every answer is therefore checked, and after each batch the peer is asked
//! over another connection how much it received. A wrong count, or an unknown peer, is an error.

use super::socket::Transport::{self, Tcp, Udp};
use super::socket::{messages_per_iteration, size_text};
use crate::kit::contract::*;
use crate::kit::socket::dialogue::Timed;

mod live;

const PEER: Need = Need::new(|_| live::given());

/// The claim of every case.
const REACHED: Claim =
    Claim::Checked("the peer says at which address it was reached, of the family by which it was called");

/// One row of round trips.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    transport: Transport,
    bytes: u32,
    timed: Timed,
}

/// Bytes that `ping` sends by default.
const PING: u32 = 56;
/// Lengths by TCP and by UDP. A datagram begins with a secret of sixteen bytes; one that exceeds a packet is
/// fragmented.
const STREAMED: [u32; 4] = [1, PING, 1 << 10, 64 << 10];
const DATAGRAMS: [u32; 3] = [PING, 1 << 10, 16 << 10];
/// Message lengths of one stream, as over loopback: that of `iperf3`, shorter and longer ones.
const SENT: [usize; 12] =
    [1, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 8 << 20];
/// The message lengths of [`SENT`] that are measured at full scale only.
const BETWEEN: [usize; 5] = [1, 16, 256, 4 << 10, 256 << 10];
/// The number of streams, and the message length, of the case with several streams at a time.
const TOGETHER: (u32, usize) = (4, 128 << 10);

/// Round trips to the peer.
pub fn round_trip_cases() -> Vec<Case> {
    let row = |transport, timed| move |bytes: u32| RoundTrip { transport, bytes, timed };
    let streamed = STREAMED.map(row(Tcp, Timed::Together));
    let together = streamed.into_iter().chain(DATAGRAMS.map(row(Udp, Timed::Together)));
    let each = [Tcp, Udp].map(|transport| row(transport, Timed::Each)(PING));
    together.chain(each).map(round_trip_case).chain([echo_case()]).collect()
}

/// Streams of bytes to the peer.
pub fn bandwidth_cases() -> Vec<Case> {
    let (streams, long) = TOGETHER;
    let one = |bytes| {
        let case = bandwidth_case(1, bytes);
        if BETWEEN.contains(&bytes) { case.need(FULL_SCALE) } else { case }
    };
    SENT.into_iter().map(one).chain([bandwidth_case(streams, long)]).collect()
}

/// A message to the peer and its answer of one byte.
pub fn answer_case(bytes: u32) -> Case {
    let title = format!("TCP message of {bytes} bytes to the peer, reply of one");
    Case::new(format!("tcp-peer/{bytes}B"), title, set_up(move |_| live::answered(bytes)))
        .need(PEER)
        .claim(REACHED)
        .claim(Claim::Checked("every reply carried the number of its message, and the peer counted as many"))
}

/// Connections to the peer.
pub fn connection_cases() -> Vec<Case> {
    let parts = [
        ("connect/tcp-peer", "a connection to the peer, made", false),
        ("tear-down/tcp-peer-one-end", "a connection to the peer, closed at this end first", true),
    ];
    parts.into_iter().map(|(name, title, closes)| connection_case(name, title, closes)).collect()
}

/// Core cycles of a round trip on the wire, and in both machines' network layers.
const WIRE: f64 = 60_000.0;
const LAYERS: f64 = 40_000.0;

fn round_trip_case(row: RoundTrip) -> Case {
    const COPIED_A_CYCLE: f64 = 0.4; // ten gigabits a second
    let RoundTrip { transport, bytes, timed } = row;
    let each = timed == Timed::Each;
    let (name, size) = (transport.name(), size_text(bytes as usize));
    let how = if each { "-peer-each" } else { "-peer" };
    let title = format!("{size} to the peer and back by {}", transport.title());
    let set_up = set_up(move |_| live::round_trip(row));
    let case = Case::new(format!("{name}{how}/{size}"), title, set_up)
        .need(PEER)
        .claim(REACHED)
        .claim(Claim::Checked(
            "every answer had the length and the number of its message, and the peer counted as many",
        ))
        .predict(
            WIRE + 2.0 * f64::from(bytes) / COPIED_A_CYCLE,
            LAYERS,
            "two messages through both machines' layers, two interrupts, and the wire",
        );
    if each { case.one_by_one() } else { case }
}

fn echo_case() -> Case {
    let set_up = set_up(|_| live::echoes(PING as usize));
    let size = size_text(PING as usize);
    Case::new(format!("icmp-peer-each/{size}"), format!("ICMP echo of {size} by the peer's kernel"), set_up)
        .need(PEER)
        .claim(REACHED)
        .one_by_one()
        .claim(Claim::Checked("every reply had the identifier, the number and the bytes of its question"))
        .predict(WIRE, LAYERS / 2.0, "a packet there, one back, and no process at the far end")
}

fn bandwidth_case(streams: u32, bytes: usize) -> Case {
    let each = messages_per_iteration(bytes);
    let all = each * streams as usize;
    let (size, on) =
        (size_text(bytes), if streams == 1 { String::new() } else { format!("-{streams}-streams") });
    let title = format!("{all} messages of {size} to the peer through TCP, streams: {streams}");
    let set_up = set_up(move |_| live::bandwidth(streams, each, bytes));
    let case = Case::new(format!("tcp-peer{on}/{size}"), title, set_up).need(PEER).claim(REACHED);
    let case = if all == 1 { case } else { case.derived_figure("message", Rule::OfCost(1.0 / all as f64)) };
    let (wire, calls) = (2.5 * (all * bytes) as f64, 2_000.0 * all as f64);
    case.derived_figure("bandwidth", Rule::Bandwidth((all * bytes) as u64))
        .claim(Claim::Checked("the peer received every byte that was sent, by its answer and by its count"))
        .predict(wire, calls, "ten gigabits a second, and a call for every message")
}

fn connection_case(name: &str, title: &str, closes: bool) -> Case {
    let set_up = set_up(move |_| live::connection(closes));
    let (wire, layers) = if closes { (2_000.0, 10_000.0) } else { (WIRE, LAYERS) };
    Case::new(name, title, set_up)
        .need(PEER)
        .claim(REACHED)
        .one_by_one()
        .claim(Claim::Checked("every connection was greeted by the peer, and the peer counted as many"))
        .predict(wire, layers, "a packet there and one back; a close does not wait for the peer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_that_the_other_end_is_a_peer() {
        let names: Vec<_> = round_trip_cases().into_iter().map(|case| case.name).collect();
        assert_eq!(names[..2], ["tcp-peer/1B", "tcp-peer/56B"]);
        assert!(names.contains(&"udp-peer-each/56B".into()));
        let all = round_trip_cases().into_iter().chain(bandwidth_cases()).chain(connection_cases());
        assert!(all.into_iter().all(|case| case.name.contains("-peer")));
    }
}
