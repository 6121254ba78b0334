//! The networks between the sender of a message and its server, and the set-up that `scripts/two-nodes` makes and describes in an
//! environment variable.

use crate::environment::Wire;
use crate::kit::contract::*;
use crate::platform::namespace;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Time without a reply after which the server counts as hung or without a CPU.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A network between sender and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkPath {
    /// The loopback. Receive work is done where it arises: on the sender's CPU.
    Loopback,
    /// A loopback whose receive work for both ends is steered to the measuring CPU.
    Steered,
    /// Ethernet between two namespaces. The receive work of each is done on its own CPU.
    Nodes,
}

impl NetworkPath {
    /// The first part of an id.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Steered => "steered",
            Self::Nodes => "nodes",
        }
    }

    /// The last part of a title.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Loopback => "by the loopback",
            Self::Steered => "by a loopback steered to this CPU",
            Self::Nodes => "between two nodes",
        }
    }

    pub(super) fn need(self) -> Need {
        Need::new(match self {
            Self::Loopback => check_loopback_not_steered,
            Self::Steered | Self::Nodes => check_steered_here,
        })
    }

    /// Predicted core cycles of hardware and software for a message of `bytes`, and why.
    pub(super) fn expected_cycles(self, bytes: usize) -> (f64, f64, &'static str) {
        let frames = bytes.div_ceil(1448) as f64;
        match self {
            Self::Loopback => {
                (12_000.0, 60_000.0, "both directions of TCP, a sleep, a wake-up by another CPU")
            }
            Self::Steered => (16_000.0, 60_000.0, "the same, and the interrupts of steering"),
            Self::Nodes => (
                14_000.0 + 4_000.0 * frames,
                30_000.0 + 40_000.0 * frames,
                "TCP once, a frame each 1448 bytes, interrupts for the acknowledgements and the reply",
            ),
        }
    }

    /// A TCP connection over this path: the sender's end and the server's.
    ///
    /// # Errors
    /// [`Error::Missing`] without the nodes of `scripts/two-nodes`; a call that the kernel refuses.
    pub(super) fn connect(self) -> Result<[TcpStream; 2]> {
        let nodes = || Nodes::from_environment().map_err(Error::Missing);
        match self {
            Self::Loopback => connect_within("127.0.0.1", None, None),
            Self::Steered => {
                let there = nodes()?.steered;
                connect_within("127.0.0.1", Some(&there), Some(&there))
            }
            Self::Nodes => {
                let nodes = nodes()?;
                connect_within(&nodes.address, Some(&nodes.peer), None)
            }
        }
    }

    /// The wire under a connection of the sender; `None` if the path is a loopback.
    pub(super) fn wire(self, near: &TcpStream) -> Option<Wire> {
        let nodes = Nodes::from_environment().ok().filter(|_| self == Self::Nodes)?;
        Some(nodes.wire_between(near.local_addr().ok()?.ip(), near.peer_addr().ok()?.ip()))
    }
}

/// Runs `make` in the network namespace of this file, if there is one.
fn within<T>(namespace: Option<&PathBuf>, make: impl FnOnce() -> Result<T>) -> Result<T> {
    match namespace {
        Some(namespace) => namespace::run_in_namespace(namespace, make),
        None => make(),
    }
}

/// Listens in the namespace `there` and connects from `here`, both ends with `TCP_NODELAY`.
fn connect_within(address: &str, there: Option<&PathBuf>, here: Option<&PathBuf>) -> Result<[TcpStream; 2]> {
    let refused =
        |call: &'static str| move |cause| Error::Kernel { call: format!("{call} ({address})"), cause };
    let listener = within(there, || TcpListener::bind((address, 0)).map_err(refused("listening for TCP")))?;
    let to = listener.local_addr().map_err(refused("naming a socket"))?;
    let connect = || TcpStream::connect_timeout(&to, PATIENCE).map_err(refused("connecting by TCP"));
    let near = within(here, connect)?;
    let (far, _) = listener.accept().map_err(refused("accepting TCP"))?;
    for end in [&near, &far] {
        end.set_nodelay(true).map_err(refused("setting TCP_NODELAY"))?;
    }
    near.set_read_timeout(Some(PATIENCE)).map_err(refused("setting SO_RCVTIMEO"))?;
    Ok([near, far])
}

/// The environment variable that describes the nodes, with a value such as
/// `cpu=1 address=10.77.0.2 wire=300mbit peer=/proc/12/ns/net steered=/proc/13/ns/net`.
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
    pub(super) fn from_environment() -> std::result::Result<Self, String> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::read(&text).ok_or_else(|| {
            "it needs network namespaces set up as nodes, and receive steering: run it by `scripts/two-nodes COMMAND`, \
             as root"
                .into()
        })
    }

    /// Parses a value of [`VARIABLE`]; `None` if a key is missing or has no valid value.
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
pub(super) fn check_steered_here(place: &Place) -> std::result::Result<(), String> {
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
pub(super) fn check_loopback_not_steered(_: &Place) -> std::result::Result<(), String> {
    let path = "/sys/class/net/lo/queues/rx-0/rps_cpus";
    let mask = std::fs::read_to_string(path).unwrap_or_default();
    ensure(mask.trim().chars().all(|c| c == '0' || c == ','), || {
        format!("{path} is {}: receive work of the loopback is steered; write 0 there", mask.trim())
    })
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
