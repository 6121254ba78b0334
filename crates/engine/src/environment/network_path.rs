//! The way over a network to another machine: the interface at each end, and the machine at the far end.

use super::Fingerprint;
use crate::platform::interface::{InterfaceQuery, addresses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Properties of an interface on which the cost of a round trip depends. Properties that the kernel does not report are
/// `None` or left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Name of the interface, such as `eth0`.
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
    /// The interface through which packets go from the local address `here` to `there`. Packets to any address of this
    /// machine stay in the loopback interface. `None` if no interface has the address `here`.
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
    /// A keyed hash of the machine id, which distinguishes the machine from others without naming it.
    pub identity: String,
    /// Fingerprint of the machine.
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
    /// The rate to which a queue limits both ends, if known, as `tc` writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The address at which the far end says that it was reached; the port is meaningless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<SocketAddr>,
}

impl Wire {
    /// The path between two network namespaces of this machine that act as nodes, each with one end of a virtual Ethernet.
    pub fn between_nodes(here: IpAddr, there: IpAddr, rate: Option<String>) -> Self {
        let near = Interface::between_addresses(here, there);
        let identity = "a second node of this machine, beyond a bridge".to_owned();
        let far = Station { identity, interface: near.clone(), ..Station::default() };
        Self { near, far, rate, reached: None }
    }

    /// A text of the properties that two paths must share for their numbers to be comparable: the far end, the rate
    /// limit, and whether packets are IPv6.
    pub fn comparison_key(&self) -> String {
        let held_back = self.rate.as_ref().map(|rate| format!(" at {rate}"));
        let by = if self.is_ipv6() { " over IPv6" } else { "" };
        self.far.comparison_key() + &held_back.unwrap_or_default() + by
    }

    /// Whether packets are IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.reached.is_some_and(|reached| reached.ip().to_canonical().is_ipv6())
    }

    /// A sentence with the protocol and the address by which the peer was reached. `None` if the peer did not report
    /// the address.
    pub fn describe_route(&self) -> Option<String> {
        let by = if self.is_ipv6() { "IPv6" } else { "IPv4" };
        self.reached
            .map(|reached| format!("over {by}: the peer says that it was reached at {}", reached.ip()))
    }
}

impl Station {
    /// A text of the properties that two far ends must share for their numbers to be comparable: the machine, and the
    /// driver of its interface.
    pub fn comparison_key(&self) -> String {
        let driver = self.interface.as_ref().and_then(|interface| interface.driver.as_deref());
        format!("{} by {}", self.identity, driver.unwrap_or("an unknown driver"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_to_an_own_address_use_the_loopback_interface() {
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
    fn another_driver_to_the_same_machine_gives_another_comparison_key() {
        let by = |driver: &str| Station {
            identity: "x".into(),
            interface: Some(Interface { driver: Some(driver.into()), ..Interface::default() }),
            ..Station::default()
        };
        assert_ne!(by("veth").comparison_key(), by("loopback").comparison_key());
        assert_eq!(by("veth").comparison_key(), by("veth").comparison_key());
    }

    #[test]
    fn another_rate_gives_another_comparison_key() {
        let at =
            |rate: Option<&str>| Wire { rate: rate.map(String::from), ..Wire::default() }.comparison_key();
        let [fast, slow, free] = [Some("300mbit"), Some("8mbit"), None].map(at);
        assert!(
            fast != slow && slow != free && free == Station::default().comparison_key(),
            "{fast}, {slow}, {free}"
        );
    }
}
