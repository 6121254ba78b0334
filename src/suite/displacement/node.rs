//! The network set-ups that `scripts/two-nodes` makes and tells of by a variable.

use crate::case::Place;
use crate::environment::Wire;
use std::net::IpAddr;
use std::path::PathBuf;

/// What the script says: `cpu=1 address=10.77.0.2 wire=300mbit peer=/proc/12/ns/net steered=/proc/13/ns/net`.
pub(super) const VARIABLE: &str = "SYSCOST_NODES";

/// Two nodes, and a loopback whose receive work is steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    /// The CPU to which this node's receive work is steered.
    pub(super) cpu: usize,
    /// The other node's address.
    pub(super) address: String,
    /// What both nodes may send, as `tc` writes it; `none` where nothing holds them back.
    rate: String,
    /// The other node's network namespace.
    pub(super) peer: PathBuf,
    /// A namespace of which the loopback is steered to `cpu`.
    pub(super) steered: PathBuf,
}

impl Nodes {
    /// As the environment says.
    pub(super) fn found() -> Result<Self, String> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::read(&text).ok_or_else(|| {
            "it needs network namespaces set up as nodes, and receive steering: run it by `scripts/two-nodes COMMAND`, \
             as root"
                .into()
        })
    }

    fn read(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut pairs = text.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        Some(Self {
            cpu: value("cpu")?.parse().ok()?,
            address: value("address")?.into(),
            rate: value("wire")?.into(),
            peer: value("peer")?.into(),
            steered: value("steered")?.into(),
        })
    }
}

impl Nodes {
    /// The way from this end of a connection to the node at its other end.
    pub(super) fn wire(&self, here: IpAddr, there: IpAddr) -> Wire {
        Wire::between_nodes(here, there, Some(self.rate.clone()).filter(|rate| rate != "none"))
    }
}

/// The nodes are there, and steered to where this process measures.
pub(super) fn steered_here(place: &Place) -> Result<(), String> {
    let nodes = Nodes::found()?;
    match place.cpus.here {
        Some(here) if here == nodes.cpu => Ok(()),
        here => Err(format!(
            "receive work is steered to CPU {} and this process measures on {}: say `scripts/two-nodes --cpu N` for \
             the one that is measured on",
            nodes.cpu,
            here.map_or("none".into(), |here| format!("CPU {here}"))
        )),
    }
}

/// The loopback of this namespace is not steered, as it is unless somebody has asked for it.
pub(super) fn not_steered(_: &Place) -> Result<(), String> {
    let path = "/sys/class/net/lo/queues/rx-0/rps_cpus";
    let mask = std::fs::read_to_string(path).unwrap_or_default();
    match mask.trim().chars().all(|c| c == '0' || c == ',') {
        true => Ok(()),
        false => {
            Err(format!("{path} is {}: receive work of the loopback is steered; write 0 there", mask.trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_says_is_read_and_what_it_does_not_say_is_missed() {
        let words =
            ["cpu=3", "address=10.77.0.2", "wire=8mbit", "peer=/proc/12/ns/net", "steered=/proc/13/ns/net"];
        let text = words.join(" ");
        let nodes = Nodes::read(&text).expect("all of it");
        assert_eq!((nodes.cpu, nodes.address.as_str()), (3, "10.77.0.2"));
        for word in words {
            assert_eq!(Nodes::read(&text.replace(word, "")), None, "{word}");
        }
        assert_eq!(Nodes::read(""), None);
    }

    #[test]
    fn the_rate_of_the_wire_goes_into_the_record() {
        let at = |rate: &str| {
            let text =
                format!("cpu=3 address=10.77.0.2 wire={rate} peer=/proc/12/ns/net steered=/proc/13/ns/net");
            let nodes = Nodes::read(&text).expect("all of it");
            nodes.wire([10, 77, 0, 1].into(), [10, 77, 0, 2].into())
        };
        assert_eq!(at("300mbit").rate.as_deref(), Some("300mbit"));
        assert_eq!(at("none").rate, None);
        assert_ne!(at("300mbit").key(), at("none").key());
    }
}
