//! The way over a network to another machine: the interface at each end, and the machine at the far end.

use super::Fingerprint;
use crate::platform::interface::{InterfaceQuery, addresses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Properties of an interface on which the cost of a round trip depends. Those that the kernel does not tell are `None`
/// or left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Name of its driver; `loopback` where packets stay in this machine.
    pub driver: Option<String>,
    /// The longest packet that it sends, bytes.
    pub mtu: Option<u32>,
    /// Speed of the link, Mb/s.
    pub speed_mbps: Option<u32>,
    /// Offloads, and whether they are on.
    pub offloads: BTreeMap<String, bool>,
}

impl Interface {
    /// The interface by which packets go from this local address to that one. Packets to any address of this machine
    /// stay in the loopback interface.
    pub fn between_addresses(here: IpAddr, there: IpAddr) -> Option<Self> {
        let known = addresses();
        let find_interface = |wanted: IpAddr| known.iter().find(|(_, address)| *address == wanted);
        let is_own = there.is_loopback() || find_interface(there).is_some();
        let name = if is_own {
            known.iter().find(|(_, address)| address.is_loopback()).map_or("lo", |(name, _)| name)
        } else {
            &find_interface(here)?.0
        };
        Some(Self::read_by_name(name, is_own))
    }

    fn read_by_name(name: &str, is_loop: bool) -> Self {
        let query = InterfaceQuery::new().ok();
        let ask = |question: fn(&InterfaceQuery, &str) -> Option<u32>| question(query.as_ref()?, name);
        let offloads = query.as_ref().map(|query| query.offload_states(name)).unwrap_or_default();
        Self {
            name: name.to_owned(),
            driver: if is_loop {
                Some("loopback".to_owned())
            } else {
                query.as_ref().and_then(|query| query.driver_name(name))
            },
            mtu: ask(InterfaceQuery::mtu),
            speed_mbps: ask(InterfaceQuery::speed_mbps),
            offloads: offloads.into_iter().map(|(offload, on)| (offload.to_owned(), on)).collect(),
        }
    }
}

/// A machine at one end of a network path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Station {
    /// Distinguishes it from other machines without naming it: a keyed hash of its machine id.
    pub identity: String,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The interface towards the other machine.
    pub interface: Option<Interface>,
}

/// The network path from this machine to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wire {
    /// The interface of this machine.
    pub near: Option<Interface>,
    /// The other machine.
    pub far: Station,
    /// The rate to which a queue is known to limit both ends, as `tc` writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The address at which the far end says that it was reached; its port means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<SocketAddr>,
}

impl Wire {
    /// Between two network namespaces of this machine that represent nodes, each with one end of a virtual Ethernet.
    pub fn between_nodes(here: IpAddr, there: IpAddr, rate: Option<String>) -> Self {
        let near = Interface::between_addresses(here, there);
        let identity = "a second node of this machine, beyond a bridge".to_owned();
        let far = Station { identity, interface: near.clone(), ..Station::default() };
        Self { near, far, rate, reached: None }
    }

    /// The properties that must be equal for numbers over two paths to be comparable: the far end, the limit of the
    /// rate, and whether they are of IPv6.
    pub fn comparison_key(&self) -> String {
        let held_back = self.rate.as_ref().map(|rate| format!(" at {rate}"));
        let by = if self.is_ipv6() { " over IPv6" } else { "" };
        self.far.comparison_key() + &held_back.unwrap_or_default() + by
    }

    /// Whether packets are of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.reached.is_some_and(|reached| reached.ip().to_canonical().is_ipv6())
    }

    /// A sentence: by which protocol and at which address the peer was reached. `None` if the peer did not report
    /// it.
    pub fn describe_route(&self) -> Option<String> {
        let by = if self.is_ipv6() { "IPv6" } else { "IPv4" };
        self.reached
            .map(|reached| format!("over {by}: the peer says that it was reached at {}", reached.ip()))
    }
}

impl Station {
    /// The properties that must be equal for numbers against two far ends to be comparable: the machine, and the driver
    /// of its interface.
    pub fn comparison_key(&self) -> String {
        let driver = self.interface.as_ref().and_then(|interface| interface.driver.as_deref());
        format!("{} by {}", self.identity, driver.unwrap_or("an unknown driver"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_to_an_own_address_go_by_the_loop() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let found = Interface::between_addresses(local, local).unwrap();
        assert_eq!(found.driver.as_deref(), Some("loopback"));
        for (_, own) in addresses() {
            let found = Interface::between_addresses(own, own).unwrap();
            assert_eq!(found.driver.as_deref(), Some("loopback"), "{own}");
        }
    }

    #[test]
    fn an_address_of_no_interface_has_no_path() {
        let [here, there] = ["240.0.0.1", "240.0.0.2"].map(|address| address.parse().unwrap());
        assert_eq!(Interface::between_addresses(here, there), None);
    }

    #[test]
    fn another_way_to_the_same_machine_is_another_far_end() {
        let by = |driver: &str| Station {
            identity: "x".into(),
            interface: Some(Interface { driver: Some(driver.into()), ..Interface::default() }),
            ..Station::default()
        };
        assert_ne!(by("veth").comparison_key(), by("loopback").comparison_key());
        assert_eq!(by("veth").comparison_key(), by("veth").comparison_key());
    }

    #[test]
    fn another_rate_is_another_wire() {
        let at =
            |rate: Option<&str>| Wire { rate: rate.map(String::from), ..Wire::default() }.comparison_key();
        let [fast, slow, free] = [Some("300mbit"), Some("8mbit"), None].map(at);
        assert!(
            fast != slow && slow != free && free == Station::default().comparison_key(),
            "{fast}, {slow}, {free}"
        );
    }
}
