//! The network set-up that `scripts/two-nodes` makes and describes in an environment variable.

use crate::case::Place;
use crate::environment::Wire;
use std::net::IpAddr;
use std::path::PathBuf;

/// The variable, whose value reads `cpu=1 address=10.77.0.2 wire=300mbit peer=/proc/12/ns/net steered=/proc/13/ns/net`.
const VARIABLE: &str = "SYSCOST_NODES";

/// Two network namespaces as nodes, and a third whose loopback is steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    /// The CPU to which this node's receive work is steered.
    pub(super) cpu: usize,
    /// The other node's address.
    pub(super) address: String,
    /// The rate limit of both nodes, as `tc` writes it; `none` without one.
    rate: String,
    /// The file of the other node's network namespace.
    pub(super) peer: PathBuf,
    /// The file of the namespace whose loopback is steered to `cpu`.
    pub(super) steered: PathBuf,
}

impl Nodes {
    /// Reads [`VARIABLE`].
    ///
    /// # Errors
    /// A sentence that names the script.
    pub(super) fn from_environment() -> Result<Self, String> {
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

    /// The wire between the addresses of a connection's two ends.
    pub(super) fn wire_between(&self, here: IpAddr, there: IpAddr) -> Wire {
        Wire::between_nodes(here, there, Some(self.rate.clone()).filter(|rate| rate != "none"))
    }
}

/// Checks that the nodes are set up and that their receive work is steered to the CPU that this process measures
/// on.
///
/// # Errors
/// A sentence that says what to do.
pub(super) fn check_steered_here(place: &Place) -> Result<(), String> {
    let nodes = Nodes::from_environment()?;
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

/// Checks that the receive work of the loopback is not steered; not steering is the kernel's default.
///
/// # Errors
/// A sentence that says what to do.
pub(super) fn check_loopback_not_steered(_: &Place) -> Result<(), String> {
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
    fn a_variable_that_lacks_a_key_is_refused() {
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
            nodes.wire_between([10, 77, 0, 1].into(), [10, 77, 0, 2].into())
        };
        assert_eq!(at("300mbit").rate.as_deref(), Some("300mbit"));
        assert_eq!(at("none").rate, None);
        assert_ne!(at("300mbit").comparison_key(), at("none").comparison_key());
    }
}
