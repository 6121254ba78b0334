//! The networks between the sender of a message and its server.

use super::two_nodes::{self, Nodes};
use crate::case::Need;
use crate::environment::Wire;
use crate::error::{Error, Result};
use crate::platform::namespace;
use std::net::{TcpListener, TcpStream};
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
            Self::Loopback => two_nodes::check_loopback_not_steered,
            Self::Steered | Self::Nodes => two_nodes::check_steered_here,
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
            Self::Loopback => connect_in_namespaces("127.0.0.1", |f| f(), |f| f()),
            Self::Steered => {
                let there = nodes()?.steered;
                connect_in_namespaces(
                    "127.0.0.1",
                    |f| namespace::run_in_namespace(&there, f),
                    |f| namespace::run_in_namespace(&there, f),
                )
            }
            Self::Nodes => {
                let nodes = nodes()?;
                connect_in_namespaces(
                    &nodes.address,
                    |f| namespace::run_in_namespace(&nodes.peer, f),
                    |f| f(),
                )
            }
        }
    }

    /// The wire under a connection of the sender, where the path is more than a loopback.
    pub(super) fn wire(self, near: &TcpStream) -> Option<Wire> {
        let nodes = Nodes::from_environment().ok().filter(|_| self == Self::Nodes)?;
        Some(nodes.wire_between(near.local_addr().ok()?.ip(), near.peer_addr().ok()?.ip()))
    }
}

/// Makes a socket in the namespace of its caller.
type Make<'a, T> = &'a dyn Fn() -> Result<T>;

/// Listens in the namespace of `there` and connects from that of `here`, both ends with `TCP_NODELAY`.
fn connect_in_namespaces(
    address: &str,
    there: impl Fn(Make<'_, TcpListener>) -> Result<TcpListener>,
    here: impl Fn(Make<'_, TcpStream>) -> Result<TcpStream>,
) -> Result<[TcpStream; 2]> {
    let refused =
        |call: &'static str| move |cause| Error::Kernel { call: format!("{call} ({address})"), cause };
    let listener = there(&|| TcpListener::bind((address, 0)).map_err(refused("listening for TCP")))?;
    let to = listener.local_addr().map_err(refused("naming a socket"))?;
    let near = here(&|| TcpStream::connect_timeout(&to, PATIENCE).map_err(refused("connecting by TCP")))?;
    let (far, _) = listener.accept().map_err(refused("accepting TCP"))?;
    for end in [&near, &far] {
        end.set_nodelay(true).map_err(refused("setting TCP_NODELAY"))?;
    }
    near.set_read_timeout(Some(PATIENCE)).map_err(refused("setting SO_RCVTIMEO"))?;
    Ok([near, far])
}
