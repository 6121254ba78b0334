//! Two network namespaces with a pair of virtual interfaces between them, which no other process uses. They end with
//! the child processes that live in them.

use super::super::Functions;
use super::super::worker::{Turn, Worker};
use super::{
    BATCH, COUNT, Counted, PAYLOAD, count_in_child, counts_difference, exchange_on_lo, read_counts,
    receive_datagrams,
};
use crate::Interface;
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::namespace::{self, run_ip_commands};

/// A datagram that has not arrived within this time is lost.
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

/// An exchange over `lo` of a namespace of its own.
pub(super) fn exchange_on_own_loopback(by: &Functions) -> Result<Counted> {
    count_in_child(|| {
        enter_namespace()?;
        run_ip_commands("link set lo up")?;
        exchange_on_lo(by)
    })
}

/// An exchange from one namespace to the other.
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

/// Reads the counters of the near interface, and those of the far one through its child.
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

/// The steps of the far end: in its namespace, set up, two counters, the bytes of each batch, the counters again.
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

/// Enters a namespace of its own, without the router and neighbour discovery of IPv6.
fn enter_namespace() -> Result<()> {
    namespace::enter_new_namespace()?;
    for which in ["all", "default"] {
        // A kernel without IPv6 has no such file.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    Ok(())
}

/// Configures one end. The other's link address is set, so that no ARP request is counted.
fn configure_end(own: &End, other: &End) -> Result<()> {
    run_ip_commands(&format!("address add {}/24 dev {}", own.ip, own.name))?;
    run_ip_commands(&format!("link set {} up", own.name))?;
    run_ip_commands(&format!(
        "neighbour add {} lladdr {} dev {} nud permanent",
        other.ip, other.mac, own.name
    ))
}
