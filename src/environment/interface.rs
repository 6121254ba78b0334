//! The network interface between two machines, and the machine at its other end.

use super::Fingerprint;
use crate::platform::interface::{Asker, addresses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An interface: what a round trip over it depends on. What the kernel does not tell is `None` or left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Name of its driver; `loopback` where nothing is driven.
    pub driver: Option<String>,
    /// The longest packet, bytes.
    pub mtu: Option<u32>,
    /// Speed of the link, Mb/s.
    pub speed_mbps: Option<u32>,
    /// Which offloads are on.
    pub offloads: BTreeMap<String, bool>,
}

impl Interface {
    /// The one by which packets go from this local address to that one. What is addressed to oneself stays in
    /// the loopback interface, whichever address it was given.
    pub fn between(here: IpAddr, there: IpAddr) -> Option<Self> {
        let known = addresses();
        let of = |wanted: IpAddr| known.iter().find(|(_, address)| *address == wanted);
        let is_own = there.is_loopback() || of(there).is_some();
        let name = match is_own {
            true => known.iter().find(|(_, address)| address.is_loopback()).map_or("lo", |(name, _)| name),
            false => &of(here)?.0,
        };
        Some(Self::named(name, is_own))
    }

    fn named(name: &str, is_loop: bool) -> Self {
        let asker = Asker::new().ok();
        let ask = |question: fn(&Asker, &str) -> Option<u32>| question(asker.as_ref()?, name);
        let offloads = asker.as_ref().map(|asker| asker.offloads(name)).unwrap_or_default();
        Self {
            name: name.to_owned(),
            driver: match is_loop {
                true => Some("loopback".to_owned()),
                false => asker.as_ref().and_then(|asker| asker.driver(name)),
            },
            mtu: ask(Asker::mtu),
            speed_mbps: ask(Asker::speed_mbps),
            offloads: offloads.into_iter().map(|(offload, on)| (offload.to_owned(), on)).collect(),
        }
    }
}

/// A machine at one end of a wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Station {
    /// Tells it from others without naming it: a keyed hash of the number that its installation has.
    pub identity: String,
    /// What it is.
    pub fingerprint: Fingerprint,
    /// The interface that the wire leaves it by.
    pub interface: Option<Interface>,
}

/// The way from this machine to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wire {
    /// The interface that it leaves this machine by.
    pub near: Option<Interface>,
    /// The machine at its other end.
    pub far: Station,
    /// What both ends may send, as `tc` writes it, where a queue before the interface is known to hold them back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

impl Wire {
    /// Between two network namespaces of this machine that stand for nodes, each with an end of a virtual Ethernet.
    pub fn between_nodes(here: IpAddr, there: IpAddr, rate: Option<String>) -> Self {
        let near = Interface::between(here, there);
        let identity = "a second node of this machine".to_owned();
        let far = Station { identity, interface: near.clone(), ..Station::default() };
        Self { near, far, rate }
    }

    /// What must be the same of two wires, so that numbers over the one say something about numbers over the other:
    /// the far end, and how fast it can be reached.
    pub fn key(&self) -> String {
        let held_back = self.rate.as_ref().map(|rate| format!(" at {rate}"));
        self.far.key() + &held_back.unwrap_or_default()
    }
}

impl Station {
    /// What must be the same of two far ends, so that numbers against the one say something about numbers
    /// against the other: the machine, and what drives the way to it.
    pub fn key(&self) -> String {
        let driver = self.interface.as_ref().and_then(|interface| interface.driver.as_deref());
        format!("{} by {}", self.identity, driver.unwrap_or("an unknown driver"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_addressed_to_oneself_goes_by_the_loop() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let found = Interface::between(local, local).unwrap();
        assert_eq!(found.driver.as_deref(), Some("loopback"));
        for (_, own) in addresses() {
            let found = Interface::between(own, own).unwrap();
            assert_eq!(found.driver.as_deref(), Some("loopback"), "{own}");
        }
    }

    #[test]
    fn an_address_that_nobody_has_is_on_no_interface() {
        let [here, there] = ["240.0.0.1", "240.0.0.2"].map(|address| address.parse().unwrap());
        assert_eq!(Interface::between(here, there), None);
    }

    #[test]
    fn another_way_to_the_same_machine_is_another_far_end() {
        let by = |driver: &str| Station {
            identity: "x".into(),
            interface: Some(Interface { driver: Some(driver.into()), ..Interface::default() }),
            ..Station::default()
        };
        assert_ne!(by("veth").key(), by("loopback").key());
        assert_eq!(by("veth").key(), by("veth").key());
    }

    #[test]
    fn another_rate_is_another_wire() {
        let at = |rate: Option<&str>| Wire { rate: rate.map(String::from), ..Wire::default() }.key();
        let [fast, slow, free] = [Some("300mbit"), Some("8mbit"), None].map(at);
        assert!(fast != slow && slow != free && free == Station::default().key(), "{fast}, {slow}, {free}");
    }
}
