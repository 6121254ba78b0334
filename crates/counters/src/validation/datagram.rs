//! C4: 10 000 datagrams of 32 bytes (the paper's Table 2), over a pair of virtual interfaces and over `lo`.
//!
//! The pair connects two network namespaces that no other process uses. The namespaces end with the child processes in them.

use super::finding::Finding;
use super::worker::{Turn, Worker};
use super::{Functions, Setting};
use crate::Interface;
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::namespace::{self, run_ip_commands};

const COUNT: u64 = 10_000;
const PAYLOAD: usize = 32;
/// The number of datagrams between two receptions, which fit into the socket's buffer.
const BATCH: u64 = 100;
/// Bytes that `lo` counts for a datagram: payload and headers of UDP and IP. Ethernet counts 14 bytes more.
const ON_LO: u64 = PAYLOAD as u64 + 28;
const ON_WIRE: u64 = ON_LO + 14;
/// The number of tries on a shared `lo`, where other processes may send meanwhile.
const TRIES: usize = 5;

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = match exchange_over_veth(&setting.functions) {
        Ok(counted) => {
            let published = [("10000", "740000"), ("10000", "740000; 600000 on Windows")];
            exchange_findings("veth", counted, ON_WIRE, published)
        }
        Err(error) => {
            vec![Finding::not_judged("veth", format!("no pair of interfaces: {error}"))]
        }
    };
    findings.extend(run_on_loopback(setting)?);
    Ok(findings)
}

/// Counts of an interface: packets and bytes sent, packets and bytes received.
type Counts = [u64; 4];
/// The growth of these four counts over one exchange, and the payload bytes that the receiving socket delivered.
type Counted = [u64; 5];

fn read_counts(interface: &Interface, by: &Functions) -> Result<Counts> {
    let name = interface.name();
    let all = [by.packets_sent, by.bytes_sent, by.packets_received, by.bytes_received];
    let mut counts = Counts::default();
    for (count, function) in counts.iter_mut().zip(all) {
        *count = function(name)?.value;
    }
    Ok(counts)
}

fn counts_difference(before: Counts, after: Counts, payload: u64) -> Counted {
    std::array::from_fn(|at| after.get(at).map_or(payload, |after| after - before[at]))
}

fn exchange_findings(
    name: &str,
    counted: Counted,
    each: u64,
    [sent, received]: [(&str, &str); 2],
) -> Vec<Finding> {
    let expected = [
        ("packets sent", sent.0, COUNT),
        ("bytes sent", sent.1, COUNT * each),
        ("packets received", received.0, COUNT),
        ("bytes received", received.1, COUNT * each),
        ("payload delivered", "≥ 320000", COUNT * PAYLOAD as u64),
    ];
    let row = |((what, published, expected), found)| {
        Finding::exact_count(&format!("{name}, {what}"), published, expected, found)
    };
    expected.into_iter().zip(counted).map(row).collect()
}

/// Uses a network namespace of its own where one can be made. In a shared namespace it repeats until no other process sends.
fn run_on_loopback(setting: &Setting) -> Result<Vec<Finding>> {
    let (counted, alone) = match exchange_on_own_loopback(&setting.functions) {
        Ok(counted) => (counted, true),
        Err(_) => (exchange_on_shared_loopback(setting)?, false),
    };
    let rows =
        exchange_findings("lo", counted, ON_LO, [("", ""), ("", "600000 on Windows: no Ethernet header")]);
    let why = "other processes sent over `lo` meanwhile, in each of five tries";
    let disturbed = !alone && counted[0] > COUNT;
    Ok(rows.into_iter().map(|row| if disturbed { row.excuse_failure(why) } else { row }).collect())
}

fn exchange_on_shared_loopback(setting: &Setting) -> Result<Counted> {
    let mut last = Counted::default();
    for _ in 0..TRIES {
        last = exchange_on_lo(&setting.functions)?;
        if last[0] == COUNT || !(setting.tick)() {
            break;
        }
    }
    Ok(last)
}

/// Sends over `lo` and receives, in batches.
fn exchange_on_lo(by: &Functions) -> Result<Counted> {
    let refused = |e| Error::file("a socket on 127.0.0.1", "using", e);
    let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0"));
    let (sender, receiver) = (sender.map_err(refused)?, receiver.map_err(refused)?);
    receiver.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
    sender.connect(receiver.local_addr().map_err(refused)?).map_err(refused)?;
    let lo = Interface::open("lo")?;
    let before = read_counts(&lo, by)?;
    let mut payload = 0;
    for _ in 0..COUNT / BATCH {
        for _ in 0..BATCH {
            sender.send(&[0x5a; PAYLOAD]).map_err(refused)?;
        }
        payload += receive_datagrams(&receiver, BATCH).map_err(refused)?;
    }
    Ok(counts_difference(before, read_counts(&lo, by)?, payload))
}

/// Receives `count` datagrams, and returns the sum of their lengths, bytes.
fn receive_datagrams(socket: &UdpSocket, count: u64) -> std::io::Result<u64> {
    let mut buffer = [0; 2 * PAYLOAD];
    (0..count).map(|_| socket.recv(&mut buffer).map(|length| length as u64)).sum()
}

/// Runs `body` in a child process and returns its counts.
fn count_in_child(body: impl FnOnce() -> Result<Counted>) -> Result<Counted> {
    let mut worker = Worker::start(|turn| {
        turn.report_and_wait(0);
        match body() {
            Ok(counted) => counted.into_iter().for_each(|number| turn.report_and_wait(number)),
            // No count is that large, so it stands for an error. The reason is not sent.
            Err(_) => turn.report_and_wait(u64::MAX),
        }
    })?;
    let first = worker.run_step()?;
    if first == u64::MAX {
        return Err(Error::Missing("two network namespaces cannot be made and joined here".into()));
    }
    let mut numbers = [first, 0, 0, 0, 0];
    for number in &mut numbers[1..] {
        *number = worker.run_step()?;
    }
    Ok(numbers)
}

/// The time after which a datagram that has not arrived counts as lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// One end of the pair: interface and addresses.
struct End {
    name: &'static str,
    ip: &'static str,
    mac: &'static str,
}

const NEAR: End = End { name: "near", ip: "10.77.0.1", mac: "02:00:00:00:00:01" };
const FAR: End = End { name: "far", ip: "10.77.0.2", mac: "02:00:00:00:00:02" };
const PORT: u16 = 7777;

/// Makes an exchange over `lo` in a namespace of its own.
pub(super) fn exchange_on_own_loopback(by: &Functions) -> Result<Counted> {
    count_in_child(|| {
        enter_namespace()?;
        run_ip_commands("link set lo up")?;
        exchange_on_lo(by)
    })
}

/// Makes an exchange from one namespace to the other.
pub(super) fn exchange_over_veth(by: &Functions) -> Result<Counted> {
    count_in_child(|| {
        enter_namespace()?;
        let mut far = Worker::start(|turn| serve_far_end(turn, by))?;
        let (near_mac, far_mac, pid) = (NEAR.mac, FAR.mac, far.pid());
        run_ip_commands(&format!(
            "link add {} address {near_mac} type veth peer name {} address {far_mac} netns {pid}",
            NEAR.name, FAR.name
        ))?;
        configure_end(&NEAR, &FAR)?;
        far.run_step()?;
        send_datagrams(&mut far, by)
    })
}

/// Sends the datagrams. Reads the counters of the near interface directly, and those of the far one through its child.
fn send_datagrams(far: &mut Worker, by: &Functions) -> Result<Counted> {
    let refused = |e| Error::file("a socket of a virtual interface", "using", e);
    let socket = UdpSocket::bind((NEAR.ip, 0)).map_err(refused)?;
    socket.connect((FAR.ip, PORT)).map_err(refused)?;
    let near = Interface::open(NEAR.name)?;
    let before = read_counts(&near, by)?;
    let far_before = [far.run_step()?, far.run_step()?];
    let mut payload = 0;
    for _ in 0..COUNT / BATCH {
        for _ in 0..BATCH {
            socket.send(&[0x5a; PAYLOAD]).map_err(refused)?;
        }
        payload += far.run_step()?;
    }
    let [packets, bytes, ..] = counts_difference(before, read_counts(&near, by)?, payload);
    let [there, bytes_there] = [far.run_step()? - far_before[0], far.run_step()? - far_before[1]];
    Ok([packets, bytes, there, bytes_there, payload])
}

/// The steps of the far end: enter a namespace, configure the interface, read its counters, receive each batch, read the
/// counters again.
fn serve_far_end(turn: &mut Turn, by: &Functions) {
    if enter_namespace().is_err() {
        return;
    }
    turn.report_and_wait(0);
    if configure_end(&FAR, &NEAR).is_err() {
        return;
    }
    let (Ok(socket), Ok(interface)) = (UdpSocket::bind((FAR.ip, PORT)), Interface::open(FAR.name)) else {
        return;
    };
    let _ = socket.set_read_timeout(Some(PATIENCE));
    turn.report_and_wait(0);
    let counters = |turn: &mut Turn| {
        for reading in [(by.packets_received)(FAR.name), interface.bytes_received()] {
            turn.report_and_wait(reading.map_or(u64::MAX, |reading| reading.value));
        }
    };
    counters(turn);
    for _ in 0..COUNT / BATCH {
        turn.report_and_wait(receive_datagrams(&socket, BATCH).unwrap_or(0));
    }
    counters(turn);
}

/// Enters a new namespace, with the router and neighbour discovery of IPv6 switched off.
fn enter_namespace() -> Result<()> {
    namespace::enter_new_namespace()?;
    for which in ["all", "default"] {
        // A kernel without IPv6 has no such file.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    Ok(())
}

/// Configures one end. It also sets the other end's link address, so that no ARP request is counted.
fn configure_end(own: &End, other: &End) -> Result<()> {
    run_ip_commands(&format!("address add {}/24 dev {}", own.ip, own.name))?;
    run_ip_commands(&format!("link set {} up", own.name))?;
    run_ip_commands(&format!(
        "neighbour add {} lladdr {} dev {} nud permanent",
        other.ip, other.mac, own.name
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn one_percent_more_packets_fail_and_so_does_twice_the_number() {
        let straight: Counted = [COUNT, COUNT * ON_LO, COUNT, COUNT * ON_LO, COUNT * PAYLOAD as u64];
        let failed = |counted: Counted| {
            let rows = exchange_findings("lo", counted, ON_LO, [("", ""); 2]);
            rows.iter().map(|row| row.verdict == Verdict::Failed).collect::<Vec<_>>()
        };
        assert_eq!(failed(straight), [false; 5]);
        for (at, percent) in [(0, 200), (2, 200), (0, 101), (2, 101), (4, 99)] {
            let mut bent = straight;
            bent[at] = bent[at] * percent / 100;
            let only: Vec<_> = (0..5).map(|row| row == at).collect();
            assert_eq!(failed(bent), only);
        }
    }
}
