//! Sockets: two ends that are connected, messages that go whole, and who waits how for them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | one message, sent and received whole by a descriptor |
//! | [`way`] | how an end waits: it blocks, asks epoll first, or asks again and again |
//! | [`ring`] | the same through `io_uring` |
//! | [`echo`] | the far end of a round trip |
//! | [`flow`] | the far end of a stream of bytes, which counts them |
//! | [`source`] | what bytes are sent by: write, sendfile, splice, without a copy |
//! | [`connection`] | listening, connecting, accepting, closing |
//! | [`icmp`] | the echo that the kernel itself answers |
//!
//! Nothing here asks where the other end is: what takes a descriptor takes one to another machine as well.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes a local of the calling function, for the length that it is told.
//! * **OWN-DESCRIPTOR**: a number that the kernel has just answered is nobody else's.
#![allow(unsafe_code)]

pub mod connection;
pub mod echo;
pub mod flow;
pub mod icmp;
pub mod message;
pub mod ring;
pub mod source;
pub mod way;

use crate::{Error, Result};
use nix::errno::Errno;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};

/// By what messages go.
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
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Tcp, Self::Udp, Self::UnixStream, Self::UnixDatagram, Self::UnixSeqpacket];

    /// Its name in an id.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::UnixStream => "unix-stream",
            Self::UnixDatagram => "unix-datagram",
            Self::UnixSeqpacket => "unix-seqpacket",
        }
    }

    /// Its name in a title.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::UnixStream => "a Unix stream",
            Self::UnixDatagram => "Unix datagrams",
            Self::UnixSeqpacket => "Unix packets in sequence",
        }
    }

    /// Whether messages have no bounds of their own.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Tcp | Self::UnixStream)
    }

    /// Whether it goes by IPv4, so that the other end may be another machine.
    pub fn is_inet(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }

    /// The longest message of these sizes: an IPv4 packet ends at 65535 bytes, its headers included.
    pub fn carries(self, bytes: usize) -> bool {
        const LONGEST_UDP: usize = 65_507;
        self != Self::Udp || bytes <= LONGEST_UDP
    }

    /// Two ends, connected to each other and to nobody else, on this machine.
    ///
    /// # Errors
    /// [`Error::Missing`] where 127.0.0.1 cannot be reached, or descriptors or ports are used up.
    pub fn pair(self) -> Result<[OwnedFd; 2]> {
        match self {
            Self::Tcp => tcp_pair(),
            Self::Udp => udp_pair(),
            Self::UnixStream => {
                let (near, far) = UnixStream::pair().map_err(|e| refused("socketpair of streams", e))?;
                Ok([near.into(), far.into()])
            }
            Self::UnixDatagram => {
                let (near, far) = UnixDatagram::pair().map_err(|e| refused("socketpair of datagrams", e))?;
                Ok([near.into(), far.into()])
            }
            Self::UnixSeqpacket => seqpacket_pair(),
        }
    }
}

fn tcp_pair() -> Result<[OwnedFd; 2]> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| refused("bind to 127.0.0.1", e))?;
    let address = listener.local_addr().map_err(|e| refused("getsockname", e))?;
    let near = TcpStream::connect(address).map_err(|e| refused("connect to 127.0.0.1", e))?;
    let (far, client) = listener.accept().map_err(|e| refused("accept", e))?;
    // The port is open to everybody on this machine.
    let ours = near.local_addr().map_err(|e| refused("getsockname", e))?;
    if ours != client {
        return Err(Error::Missing(format!("{client} connected to our port {address}: run again")));
    }
    for end in [&near, &far] {
        end.set_nodelay(true).map_err(|e| refused("setsockopt TCP_NODELAY", e))?;
    }
    Ok([near.into(), far.into()])
}

fn udp_pair() -> Result<[OwnedFd; 2]> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| refused("bind to 127.0.0.1", e));
    let (near, far) = (bind()?, bind()?);
    let address = |of: &UdpSocket| of.local_addr().map_err(|e| refused("getsockname", e));
    // From here on the kernel drops what comes from anybody else.
    near.connect(address(&far)?).map_err(|e| refused("connect of a UDP socket", e))?;
    far.connect(address(&near)?).map_err(|e| refused("connect of a UDP socket", e))?;
    Ok([near.into(), far.into()])
}

fn seqpacket_pair() -> Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: OWN-BUFFER: two numbers are written.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(refused("socketpair of packets", std::io::Error::last_os_error()));
    }
    // SAFETY: OWN-DESCRIPTOR.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// What the kernel refuses to a socket, in words that say what to do; what the machine lacks is a skip.
pub fn refused(call: &str, cause: std::io::Error) -> Error {
    let errno = Errno::from_raw(cause.raw_os_error().unwrap_or(libc::EIO));
    match advice(errno) {
        Some(advice) => Error::Missing(format!("{call}: {}: {advice}", errno.desc())),
        None => Error::refused_to_case(call, errno),
    }
}

fn advice(errno: Errno) -> Option<String> {
    Some(match errno {
        Errno::EADDRNOTAVAIL => ports_used_up(),
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
fn ports_used_up() -> String {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range: Vec<_> = range.split_whitespace().collect();
    format!(
        "no port is left between {}: they are in use, or rest in TIME_WAIT for 60 s after a connection; wait, or \
         widen net.ipv4.ip_local_port_range",
        range.join(" and ")
    )
}

/// Whether 127.0.0.1 answers, for a need: a network namespace is made with its loopback down.
pub fn loopback() -> std::result::Result<(), String> {
    Transport::Udp.pair().map(drop).map_err(|e| e.to_string())
}

/// Sets an option that is a number.
pub fn set_option(descriptor: RawFd, level: i32, name: i32, value: i32) -> std::result::Result<(), Errno> {
    let at = (&raw const value).cast();
    // SAFETY: OWN-BUFFER: a number is read.
    let answer = unsafe { libc::setsockopt(descriptor, level, name, at, size_of::<i32>() as u32) };
    if answer == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// Lets a TCP end wait until a packet is full, while others are on their way (RFC 896). To what is none it is nothing.
pub fn hold(end: RawFd) {
    let _ = set_option(end, libc::IPPROTO_TCP, libc::TCP_NODELAY, 0);
}

/// Makes a TCP end send what it still holds: at the end of a batch nothing comes that could fill its packet, and the
/// other end would be silent for 40 ms before it says that the last one has come.
#[inline(always)]
pub fn push(end: RawFd) {
    let _ = set_option(end, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
}

/// The addresses of an end, its own and the other one's, where it goes by IPv4.
pub fn addresses(end: &OwnedFd) -> Option<[std::net::SocketAddr; 2]> {
    // Both kinds ask the same two questions of a descriptor; none of them looks at its type.
    let end = TcpStream::from(end.try_clone().ok()?);
    Some([end.local_addr().ok()?, end.peer_addr().ok()?])
}

/// Whether two ends of this machine are each other's: where one goes from, the other goes to.
///
/// # Errors
/// A sentence with the addresses, where they are not.
pub fn are_connected(transport: Transport, ends: &[OwnedFd; 2]) -> Result<()> {
    if !transport.is_inet() {
        return Ok(()); // a pair has no other end from its making
    }
    let [near, far] = ends.each_ref().map(addresses);
    match (near, far) {
        (Some([ours, theirs]), Some([far, back])) if ours == back && theirs == far => Ok(()),
        (near, far) => Err(Error::Usage(format!(
            "the near end goes from and to {near:?} and the far end from and to {far:?}: they are not each other's"
        ))),
    }
}

/// Makes calls on this end answer `EAGAIN` where they would wait.
pub fn set_nonblocking(end: &OwnedFd) -> Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = fcntl(end, FcntlArg::F_GETFL).map_err(|e| Error::refused("fcntl F_GETFL", e))?;
    let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
    fcntl(end, FcntlArg::F_SETFL(flags)).map(drop).map_err(|e| Error::refused("fcntl F_SETFL", e))
}

/// The number by which hot loops name an end.
pub fn number(end: &OwnedFd) -> RawFd {
    end.as_raw_fd()
}

/// Whether there is something to receive before so much time has passed; a negative error number where that
/// cannot be asked.
pub fn has_come(end: RawFd, limit: std::time::Duration) -> std::result::Result<bool, i64> {
    let mut asked = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
    let limit =
        libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: OWN-BUFFER: one element is read and written, a time is read.
    match unsafe { libc::ppoll(&raw mut asked, 1, &raw const limit, std::ptr::null()) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => Err(-i64::from(Errno::last_raw())),
    }
}

/// socket(2).
///
/// # Errors
/// The error number.
pub fn open(domain: i32, kind: i32, protocol: i32) -> std::result::Result<OwnedFd, Errno> {
    // SAFETY: OWN-BUFFER: a question without memory.
    match unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) } {
        -1 => Err(Errno::last()),
        // SAFETY: OWN-DESCRIPTOR.
        made => Ok(unsafe { OwnedFd::from_raw_fd(made) }),
    }
}
