//! C4: 10 000 datagrams of 32 bytes (the paper's Table 2), over a pair of virtual interfaces and over `lo`.

mod virtual_link;

use super::Setting;
use super::finding::Finding;
use super::worker::Worker;
use crate::counters::Interface;
use crate::error::{Error, Result};
use std::net::UdpSocket;

const COUNT: u64 = 10_000;
const PAYLOAD: usize = 32;
/// Datagrams between two receptions: few enough for the socket's buffer.
const BATCH: u64 = 100;
/// Bytes that `lo` counts for a datagram: payload and headers of UDP and IP. Ethernet counts 14 more.
const ON_LO: u64 = PAYLOAD as u64 + 28;
const ON_WIRE: u64 = ON_LO + 14;
/// Repetitions on a shared `lo`, where other processes may send meanwhile.
const TRIES: usize = 5;

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = match virtual_link::run() {
        Ok(counted) => {
            let published = [("10000", "740000"), ("10000", "740000; 600000 on Windows")];
            rows("veth", &counted, ON_WIRE, published)
        }
        Err(error) => {
            vec![Finding::not_judged("veth", format!("{error}: the pair of interfaces takes root and `ip`"))]
        }
    };
    findings.extend(loopback(setting)?);
    Ok(findings)
}

/// Differences of the counters over one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    packets_sent: u64,
    bytes_sent: u64,
    packets_received: u64,
    bytes_received: u64,
    /// Bytes of payload that the receiving socket delivered.
    payload: u64,
}

impl Counted {
    fn read(sender: &Interface, receiver: &Interface) -> Result<Self> {
        Ok(Self {
            packets_sent: sender.packets_sent()?.value,
            bytes_sent: sender.bytes_sent()?.value,
            packets_received: receiver.packets_received()?.value,
            bytes_received: receiver.bytes_received()?.value,
            payload: 0,
        })
    }

    fn since(self, before: Self, payload: u64) -> Self {
        Self {
            packets_sent: self.packets_sent - before.packets_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            packets_received: self.packets_received - before.packets_received,
            bytes_received: self.bytes_received - before.bytes_received,
            payload,
        }
    }

    /// As numbers that a child can send.
    fn numbers(self) -> [u64; 5] {
        [self.packets_sent, self.bytes_sent, self.packets_received, self.bytes_received, self.payload]
    }

    fn of([packets_sent, bytes_sent, packets_received, bytes_received, payload]: [u64; 5]) -> Self {
        Self { packets_sent, bytes_sent, packets_received, bytes_received, payload }
    }
}

fn rows(name: &str, counted: &Counted, each: u64, [sent, received]: [(&str, &str); 2]) -> Vec<Finding> {
    let row = |what: &str, published: &str, expected: u64, found: u64| {
        Finding::exact(&format!("{name}, {what}"), published, expected, found)
    };
    vec![
        row("packets sent", sent.0, COUNT, counted.packets_sent),
        row("bytes sent", sent.1, COUNT * each, counted.bytes_sent),
        row("packets received", received.0, COUNT, counted.packets_received),
        row("bytes received", received.1, COUNT * each, counted.bytes_received),
        row("payload delivered", "≥ 320000", COUNT * PAYLOAD as u64, counted.payload),
    ]
}

/// Uses a network namespace of its own where one can be made. In a shared one it repeats until no other process sends.
fn loopback(setting: &Setting) -> Result<Vec<Finding>> {
    let (counted, alone) = match virtual_link::on_own_loopback() {
        Ok(counted) => (counted, true),
        Err(_) => (on_shared_loopback(setting)?, false),
    };
    let rows = rows("lo", &counted, ON_LO, [("", ""), ("", "600000 on Windows: no Ethernet header")]);
    let why = "other processes sent over `lo` meanwhile, in each of five tries";
    let disturbed = !alone && counted.packets_sent > COUNT;
    Ok(rows.into_iter().map(|row| if disturbed { row.excused(why) } else { row }).collect())
}

fn on_shared_loopback(setting: &Setting) -> Result<Counted> {
    let mut last = Counted::default();
    for _ in 0..TRIES {
        last = exchange_on_lo()?;
        if last.packets_sent == COUNT || !(setting.tick)() {
            break;
        }
    }
    Ok(last)
}

/// Sends over `lo` and receives, in batches.
fn exchange_on_lo() -> Result<Counted> {
    let refused = |e| Error::file("a socket on 127.0.0.1", "using", e);
    let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0"));
    let (sender, receiver) = (sender.map_err(refused)?, receiver.map_err(refused)?);
    receiver.set_read_timeout(Some(virtual_link::PATIENCE)).map_err(refused)?;
    sender.connect(receiver.local_addr().map_err(refused)?).map_err(refused)?;
    let lo = Interface::open("lo")?;
    let before = Counted::read(&lo, &lo)?;
    let mut payload = 0;
    for _ in 0..COUNT / BATCH {
        for _ in 0..BATCH {
            sender.send(&[0x5a; PAYLOAD]).map_err(refused)?;
        }
        payload += received(&receiver, BATCH).map_err(refused)?;
    }
    Ok(Counted::read(&lo, &lo)?.since(before, payload))
}

/// Receives `count` datagrams; the sum of their lengths, bytes.
fn received(socket: &UdpSocket, count: u64) -> std::io::Result<u64> {
    let mut buffer = [0; 2 * PAYLOAD];
    (0..count).map(|_| socket.recv(&mut buffer).map(|length| length as u64)).sum()
}

/// Runs `body` in a child and returns its counts.
fn in_a_child(body: impl FnOnce() -> Result<Counted>) -> Result<Counted> {
    let mut worker = Worker::start(|turn| {
        turn.done(0);
        match body() {
            Ok(counted) => counted.numbers().into_iter().for_each(|number| turn.done(number)),
            // No count is that large. The reason is not sent.
            Err(_) => turn.done(u64::MAX),
        }
    })?;
    let first = worker.step()?;
    if first == u64::MAX {
        return Err(Error::Missing("two network namespaces cannot be made and joined here".into()));
    }
    let mut numbers = [first, 0, 0, 0, 0];
    for number in &mut numbers[1..] {
        *number = worker.step()?;
    }
    Ok(Counted::of(numbers))
}
