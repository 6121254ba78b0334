//! Two network namespaces with a pair of virtual interfaces between them, in which nobody else speaks. They go with
//! the children that live in them.

use super::{BATCH, COUNT, Counted, PAYLOAD, in_a_child, received, to_ourselves};
use crate::command::validate::worker::{Turn, Worker};
use crate::counters::Interface;
use crate::platform::namespace::{self, ip};
use crate::{Error, Result};
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

/// Whatever has not arrived by then will not.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// One end: its interface, its addresses.
struct End {
    name: &'static str,
    ip: &'static str,
    mac: &'static str,
}

const NEAR: End = End { name: "near", ip: "10.77.0.1", mac: "02:00:00:00:00:01" };
const FAR: End = End { name: "far", ip: "10.77.0.2", mac: "02:00:00:00:00:02" };
const PORT: u16 = 7777;

/// An exchange over `lo` of a namespace of its own.
pub(super) fn on_own_loopback() -> Result<Counted> {
    in_a_child(|| {
        apart()?;
        ip("link set lo up")?;
        to_ourselves()
    })
}

/// An exchange from one namespace to the other.
pub(super) fn run() -> Result<Counted> {
    in_a_child(|| {
        apart()?;
        let mut far = Worker::start(receive)?;
        let (near_mac, far_mac, pid) = (NEAR.mac, FAR.mac, far.pid());
        ip(&format!(
            "link add {} address {near_mac} type veth peer name {} address {far_mac} netns {pid}",
            NEAR.name, FAR.name
        ))?;
        set_up(&NEAR, &FAR)?;
        far.step()?;
        send(&mut far)
    })
}

/// Looks at its own end from here, and at the other by what its child tells.
fn send(far: &mut Worker) -> Result<Counted> {
    let refused = |e| Error::file("a socket of a virtual interface", "using", e);
    let socket = UdpSocket::bind((NEAR.ip, 0)).map_err(refused)?;
    socket.connect((FAR.ip, PORT)).map_err(refused)?;
    let near = Interface::open(NEAR.name)?;
    let before = Counted::look(&near, &near)?;
    let theirs = [far.step()?, far.step()?];
    let mut payload = 0;
    for _ in 0..COUNT / BATCH {
        for _ in 0..BATCH {
            socket.send(&[0x5a; PAYLOAD]).map_err(refused)?;
        }
        payload += far.step()?;
    }
    let sent = Counted::look(&near, &near)?.since(before, payload);
    Ok(Counted { packets_received: far.step()? - theirs[0], bytes_received: far.step()? - theirs[1], ..sent })
}

/// The far end's steps: there, set up, two counters, what came batch by batch, the counters again.
fn receive(turn: &mut Turn) {
    if apart().is_err() {
        return;
    }
    turn.done(0);
    if set_up(&FAR, &NEAR).is_err() {
        return;
    }
    let (Ok(socket), Ok(interface)) = (UdpSocket::bind((FAR.ip, PORT)), Interface::open(FAR.name)) else {
        return;
    };
    let _ = socket.set_read_timeout(Some(PATIENCE));
    turn.done(0);
    let counters = |turn: &mut Turn| {
        for reading in [interface.packets_received(), interface.bytes_received()] {
            turn.done(reading.map_or(u64::MAX, |reading| reading.value));
        }
    };
    counters(turn);
    for _ in 0..COUNT / BATCH {
        turn.done(received(&socket, BATCH).unwrap_or(0));
    }
    counters(turn);
}

/// In a namespace where nobody looks for routers and neighbours by himself.
fn apart() -> Result<()> {
    namespace::go_apart()?;
    for which in ["all", "default"] {
        // A kernel without IPv6 has no such file, and sends none of it.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    Ok(())
}

/// One end, which knows the other's address and need not ask for it.
fn set_up(own: &End, other: &End) -> Result<()> {
    ip(&format!("address add {}/24 dev {}", own.ip, own.name))?;
    ip(&format!("link set {} up", own.name))?;
    ip(&format!("neighbour add {} lladdr {} dev {} nud permanent", other.ip, other.mac, own.name))
}
