//! Sockets: pairs of connected ends, whole messages, and the ways to wait for them.
//!
//! | module | contents |
//! |---|---|
//! | [`transfer`] | sending and receiving by a descriptor, once or a whole message |
//! | [`endpoint`] | an end that waits by blocking, by epoll, or by polling |
//! | [`io_ring`] | an end that uses `io_uring` |
//! | [`dialogue`] | both ends of a round trip |
//! | [`flow`] | the far end of a stream of bytes, which counts them |
//! | [`source`] | the sending end of a stream: write, sendfile, splice, without a copy |
//! | [`connection`] | listening, connecting, accepting, closing |
//! | [`icmp`] | the echo that the kernel answers |
//!
//! Except for the pairs, a descriptor may belong to a connection to another machine.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes a local variable of the calling function, within its length.
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner.
#![allow(unsafe_code)]

use crate::kit::contract::*;
use crate::kit::kernel_call::errno_of;
use nix::errno::Errno;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
pub mod connection;
pub mod dialogue;
pub mod endpoint;
pub mod flow;
pub mod icmp;
pub mod io_ring;
pub mod source;
pub mod transfer;

/// The protocol of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP over IPv4, with `TCP_NODELAY`.
    Tcp,
    /// UDP over IPv4.
    Udp,
    /// A Unix stream.
    UnixStream,
    /// Unix datagrams.
    UnixDatagram,
    /// Unix packets in sequence.
    UnixSeqpacket,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 5] =
        [Self::Tcp, Self::Udp, Self::UnixStream, Self::UnixDatagram, Self::UnixSeqpacket];

    /// The name in ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::UnixStream => "unix-stream",
            Self::UnixDatagram => "unix-datagram",
            Self::UnixSeqpacket => "unix-seqpacket",
        }
    }

    /// The name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::UnixStream => "a Unix stream",
            Self::UnixDatagram => "Unix datagrams",
            Self::UnixSeqpacket => "Unix packets in sequence",
        }
    }

    /// Whether it is a protocol of IPv4.
    pub fn is_inet(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }

    /// Whether it can carry a message of this length: an IPv4 packet has at most 65535 bytes, headers included.
    pub fn can_carry(self, bytes: usize) -> bool {
        const LONGEST_UDP: usize = 65_507;
        self != Self::Udp || bytes <= LONGEST_UDP
    }

    /// Two ends on this machine, connected to each other.
    ///
    /// # Errors
    /// [`Error::Missing`] where 127.0.0.1 cannot be reached, or descriptors or ports are used up; [`Error::Disproved`] if an
    /// end is connected to a third socket.
    pub fn connected_pair(self) -> Result<[OwnedFd; 2]> {
        let ends = match self {
            Self::Tcp => tcp_pair(),
            Self::Udp => udp_pair(),
            Self::UnixStream => return unix_pair(libc::SOCK_STREAM, "socketpair of streams"),
            Self::UnixDatagram => return unix_pair(libc::SOCK_DGRAM, "socketpair of datagrams"),
            Self::UnixSeqpacket => return unix_pair(libc::SOCK_SEQPACKET, "socketpair of packets"),
        }?;
        verify_connected(&ends).map(|()| ends)
    }
}

/// Two TCP sockets on 127.0.0.1 that are connected to each other, with `TCP_NODELAY`.
fn tcp_pair() -> Result<[OwnedFd; 2]> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| socket_error("bind to 127.0.0.1", e))?;
    let address = listener.local_addr().map_err(|e| socket_error("getsockname", e))?;
    let near = TcpStream::connect(address).map_err(|e| socket_error("connect to 127.0.0.1", e))?;
    let (far, client) = listener.accept().map_err(|e| socket_error("accept", e))?;
    // Any process of this machine could connect to the port.
    let ours = near.local_addr().map_err(|e| socket_error("getsockname", e))?;
    if ours != client {
        return Err(Error::Missing(format!("{client} connected to our port {address}: run again")));
    }
    for end in [&near, &far] {
        end.set_nodelay(true).map_err(|e| socket_error("setsockopt TCP_NODELAY", e))?;
    }
    Ok([near.into(), far.into()])
}

/// Two UDP sockets on 127.0.0.1 that are connected to each other.
fn udp_pair() -> Result<[OwnedFd; 2]> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| socket_error("bind to 127.0.0.1", e));
    let (near, far) = (bind()?, bind()?);
    let address = |of: &UdpSocket| of.local_addr().map_err(|e| socket_error("getsockname", e));
    // From here on the kernel drops datagrams from any other address.
    near.connect(address(&far)?).map_err(|e| socket_error("connect of a UDP socket", e))?;
    far.connect(address(&near)?).map_err(|e| socket_error("connect of a UDP socket", e))?;
    Ok([near.into(), far.into()])
}

/// Two Unix sockets of a kind, by `call`.
fn unix_pair(kind: i32, call: &str) -> Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    let kind = kind | libc::SOCK_CLOEXEC;
    // SAFETY: OWN-BUFFER: two numbers are written.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(socket_error(call, std::io::Error::last_os_error()));
    }
    // SAFETY: OWN-DESCRIPTOR.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// The error for a call on a socket that the kernel refuses: [`Error::Missing`], with advice, where the machine lacks
/// something.
pub fn socket_error(call: &str, cause: std::io::Error) -> Error {
    let errno = errno_of(cause);
    match errno_advice(call, errno) {
        Some(advice) => Error::Missing(format!("{call}: {}: {advice}", errno.desc())),
        None => Error::from_case_errno(call, errno),
    }
}

/// What the machine lacks when a call on a socket fails with this error, and the remedy; `None` for any other error.
fn errno_advice(call: &str, errno: Errno) -> Option<String> {
    Some(match errno {
        // bind(2) returns this for an address that no interface has, connect(2) also if no port is left (ip(7)).
        Errno::EADDRNOTAVAIL if call.starts_with("bind") => {
            "no interface here has that address: add it (`ip address add 127.0.0.1/8 dev lo` for 127.0.0.1)"
                .into()
        }
        Errno::EADDRNOTAVAIL | Errno::EADDRINUSE => ports_used_up_sentence(),
        Errno::ENETUNREACH | Errno::ENETDOWN | Errno::EHOSTUNREACH => {
            "there is no way to that address here: bring the interface up (`ip link set lo up` for 127.0.0.1)"
                .into()
        }
        Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT => "this kernel has no such sockets".into(),
        Errno::EMFILE => "this process may open no more files: raise `ulimit -n`".into(),
        Errno::ENFILE => "this machine may open no more files: raise fs.file-max".into(),
        Errno::ENOBUFS | Errno::ENOMEM => {
            "the kernel has no memory for it: raise net.core.optmem_max, or free some".into()
        }
        _ => return None,
    })
}

/// The sentence for an address of which no port is left.
fn ports_used_up_sentence() -> String {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range: Vec<_> = range.split_whitespace().collect();
    format!(
        "no port is left between {}: they are in use, or rest in TIME_WAIT for 60 s after a connection; wait, or \
         widen net.ipv4.ip_local_port_range",
        range.join(" and ")
    )
}

/// setsockopt(2) of an option that is a number.
///
/// # Errors
/// The error number.
pub fn set_option(descriptor: RawFd, level: i32, name: i32, value: i32) -> std::result::Result<(), Errno> {
    let at = (&raw const value).cast();
    // SAFETY: OWN-BUFFER: one number is read.
    let answer = unsafe { libc::setsockopt(descriptor, level, name, at, size_of::<i32>() as u32) };
    if answer == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// getsockopt(2) of an option that is a number.
///
/// # Errors
/// The error number.
pub fn get_option(descriptor: RawFd, level: i32, name: i32) -> std::result::Result<i32, Errno> {
    let (mut value, mut length) = (0, size_of::<i32>() as u32);
    let at = (&raw mut value).cast();
    // SAFETY: OWN-BUFFER: one number is written.
    let answer = unsafe { libc::getsockopt(descriptor, level, name, at, &raw mut length) };
    if answer == 0 { Ok(value) } else { Err(Errno::last()) }
}

/// Lets a TCP end fill its packets while others are in flight (RFC 896). Has no effect on an end that is not TCP.
pub fn enable_nagle(end: RawFd) {
    let _ = set_option(end, libc::IPPROTO_TCP, libc::TCP_NODELAY, 0);
}

/// Makes a TCP end send what it still holds. At the end of a batch no further data fills the packet, and the other end
/// would delay its acknowledgement by 40 ms.
#[inline(always)]
pub fn flush_held_data(end: RawFd) {
    let _ = set_option(end, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
}

/// The addresses of an IPv4 end: its own and the other end's.
pub fn own_and_peer_addresses(end: &OwnedFd) -> Option<[std::net::SocketAddr; 2]> {
    // The two calls are the same for TCP and UDP; neither checks the type of the descriptor.
    let end = TcpStream::from(end.try_clone().ok()?);
    Some([end.local_addr().ok()?, end.peer_addr().ok()?])
}

/// Checks that two ends of IPv4 are connected to each other: each one's address is the other's destination. Unix sockets need no
/// check, since socketpair(2) connects them.
///
/// # Errors
/// [`Error::Disproved`] with the addresses, if the ends are not connected to each other.
pub fn verify_connected(ends: &[OwnedFd; 2]) -> Result<()> {
    let [near, far] = ends.each_ref().map(own_and_peer_addresses);
    match (near, far) {
        (Some([ours, theirs]), Some([far, back])) if ours == back && theirs == far => Ok(()),
        (near, far) => Err(Error::Disproved(format!(
            "the near end goes from and to {near:?} and the far end from and to {far:?}: they are not each other's"
        ))),
    }
}

/// Makes calls on this end return `EAGAIN` where they would block.
///
/// # Errors
/// The kernel refuses the call.
pub fn set_nonblocking(end: &OwnedFd) -> Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = fcntl(end, FcntlArg::F_GETFL).map_err(|e| Error::from_errno("fcntl F_GETFL", e))?;
    let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
    fcntl(end, FcntlArg::F_SETFL(flags)).map(drop).map_err(|e| Error::from_errno("fcntl F_SETFL", e))
}

/// The descriptor's number, for timed loops.
pub fn raw_descriptor(end: &OwnedFd) -> RawFd {
    end.as_raw_fd()
}

/// Whether data arrives within `limit`.
///
/// # Errors
/// The negative error number of ppoll(2).
pub fn data_arrives_within(end: RawFd, limit: std::time::Duration) -> std::result::Result<bool, i64> {
    let mut polled = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
    let limit =
        libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: OWN-BUFFER: one element is read and written, and a time is read.
    match unsafe { libc::ppoll(&raw mut polled, 1, &raw const limit, std::ptr::null()) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => Err(-i64::from(Errno::last_raw())),
    }
}

/// socket(2).
///
/// # Errors
/// The error number.
pub fn open_socket(domain: i32, kind: i32, protocol: i32) -> std::result::Result<OwnedFd, Errno> {
    // SAFETY: OWN-BUFFER: the call takes no memory.
    match unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) } {
        -1 => Err(Errno::last()),
        // SAFETY: OWN-DESCRIPTOR.
        made => Ok(unsafe { OwnedFd::from_raw_fd(made) }),
    }
}

/// The need that 127.0.0.1 can be reached: in a new network namespace the loopback interface is down.
pub const LOOPBACK: Need =
    Need::new(|_| Transport::Udp.connected_pair().map(drop).map_err(|e| e.to_string()));

/// A length as ids spell it: in the largest unit that divides it.
pub fn size_text(bytes: usize) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.iter().find(|(shift, _)| bytes % (1 << shift) == 0);
    fitting.map_or_else(|| format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Bytes of an iteration: enough that waking the receiver costs little in comparison.
const ITERATION_BYTES: usize = 1 << 20;
/// The most messages in an iteration, so that it takes no longer than a millisecond.
const MOST_MESSAGES: usize = 1024;

/// The number of messages of this length in an iteration.
pub fn messages_per_iteration(bytes: usize) -> usize {
    (ITERATION_BYTES / bytes).clamp(1, MOST_MESSAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_address_is_distinguished_from_used_up_ports() {
        let said = |call, errno: Errno| socket_error(call, errno.into()).to_string();
        assert!(said("bind to 127.0.0.1", Errno::EADDRNOTAVAIL).contains("ip address add"));
        assert!(said("bind to 127.0.0.1", Errno::EADDRINUSE).contains("no port is left"));
        assert!(said("connect to 127.0.0.1", Errno::EADDRNOTAVAIL).contains("no port is left"));
    }
}
