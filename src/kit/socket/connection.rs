//! Listening, connecting, accepting and closing: one system call each.
//!
//! Every call returns an end, zero, or a negative error number.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes memory of the value or of the calling function, within its length.
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner, and is closed once, by the
//!   value that holds it.
#![allow(unsafe_code)]

use super::{own_and_peer_addresses, set_option, socket_error};
use crate::error::{Error, Result};
use crate::platform::arch::{syscall1, syscall4};
use nix::errno::Errno;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// An address in the kernel's form.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Address {
    fn empty() -> Self {
        // SAFETY: plain numbers, for which zero is a valid value.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Self { storage, length: size_of::<libc::sockaddr_storage>() as u32 }
    }

    /// An IPv4 address and a port. With port 0 the kernel chooses one.
    pub fn ipv4(ip: Ipv4Addr, port: u16) -> Self {
        Self::from_socket_addr((ip, port).into())
    }

    /// An address of IPv4 or IPv6, with its port.
    pub fn from_socket_addr(at: SocketAddr) -> Self {
        let mut address = Self::empty();
        let to = &raw mut address.storage;
        // SAFETY: OWN-BUFFER: the storage is as large as any address, and aligned for each.
        address.length = unsafe {
            match at {
                SocketAddr::V4(at) => {
                    let to = to.cast::<libc::sockaddr_in>();
                    (*to).sin_family = libc::AF_INET as u16;
                    (*to).sin_port = at.port().to_be();
                    (*to).sin_addr.s_addr = u32::from(*at.ip()).to_be();
                    size_of::<libc::sockaddr_in>() as u32
                }
                SocketAddr::V6(at) => {
                    let to = to.cast::<libc::sockaddr_in6>();
                    (*to).sin6_family = libc::AF_INET6 as u16;
                    (*to).sin6_port = at.port().to_be();
                    (*to).sin6_addr.s6_addr = at.ip().octets();
                    (*to).sin6_scope_id = at.scope_id();
                    size_of::<libc::sockaddr_in6>() as u32
                }
            }
        };
        address
    }

    /// A Unix address for which the kernel chooses an abstract name.
    fn unnamed() -> Self {
        let mut address = Self::empty();
        address.storage.ss_family = libc::AF_UNIX as u16;
        address.length = size_of::<libc::sa_family_t>() as u32;
        address
    }

    fn pointer(&self) -> usize {
        &raw const self.storage as usize
    }
}

/// A socket that is or will be one end of a connection. Dropping it closes the socket.
#[derive(Debug)]
pub struct End(OwnedFd);

/// A stream socket of the family of this address.
///
/// # Errors
/// The negative error number.
#[inline(always)]
pub fn open_stream_socket(to: &Address) -> std::result::Result<End, i64> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: OWN-BUFFER: the call takes no memory.
    end_from_answer(unsafe { syscall4(libc::SYS_socket, to.storage.ss_family as usize, kind as usize, 0, 0) })
}

/// accept4(2), without the client's address.
///
/// # Errors
/// The negative error number.
#[inline(always)]
pub fn accept(listener: RawFd) -> std::result::Result<End, i64> {
    // SAFETY: OWN-BUFFER: no address is asked for.
    end_from_answer(unsafe {
        syscall4(libc::SYS_accept4, listener as usize, 0, 0, libc::SOCK_CLOEXEC as usize)
    })
}

/// The end whose descriptor a call has returned, or the negative error number.
#[inline(always)]
fn end_from_answer(answer: i64) -> std::result::Result<End, i64> {
    // SAFETY: OWN-DESCRIPTOR.
    if answer < 0 { Err(answer) } else { Ok(End(unsafe { OwnedFd::from_raw_fd(answer as RawFd) })) }
}

impl End {
    /// connect(2).
    #[inline(always)]
    pub fn connect(&self, to: &Address) -> i64 {
        // SAFETY: OWN-BUFFER.
        unsafe {
            syscall4(libc::SYS_connect, self.raw_descriptor() as usize, to.pointer(), to.length as usize, 0)
        }
    }

    /// The descriptor.
    #[inline(always)]
    pub fn raw_descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// close(2), with its result.
    #[inline(always)]
    pub fn close(self) -> i64 {
        let number = self.0.into_raw_fd();
        // SAFETY: OWN-DESCRIPTOR.
        unsafe { syscall1(libc::SYS_close, number as usize) }
    }

    /// Makes a close of this end reset the connection (`SO_LINGER` of zero): unsent data is lost, and nothing rests in
    /// TIME_WAIT.
    pub fn reset_on_close(&self) -> i64 {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let (at, length) = ((&raw const linger).cast(), size_of::<libc::linger>() as u32);
        // SAFETY: OWN-BUFFER: a local variable is read.
        let answer =
            unsafe { libc::setsockopt(self.raw_descriptor(), libc::SOL_SOCKET, libc::SO_LINGER, at, length) };
        if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
    }

    /// Binds this end to an address; the port is chosen when it connects.
    pub fn bind_to(&self, ip: Ipv4Addr) -> i64 {
        const IP_BIND_ADDRESS_NO_PORT: i32 = 24;
        if let Err(errno) = set_option(self.raw_descriptor(), libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) {
            return -i64::from(errno as i32);
        }
        let from = Address::ipv4(ip, 0);
        // SAFETY: OWN-BUFFER.
        unsafe {
            syscall4(libc::SYS_bind, self.raw_descriptor() as usize, from.pointer(), from.length as usize, 0)
        }
    }

    /// The addresses of an IPv4 end: its own and the other end's.
    pub fn own_and_peer_addresses(&self) -> Option<[SocketAddr; 2]> {
        own_and_peer_addresses(&self.0)
    }

    /// The id of the process at the other end of a Unix connection (`SO_PEERCRED`, unix(7)): for an accepted end the
    /// process that connected, for a connected end the process that listens.
    pub fn peer_process_id(&self) -> Option<u32> {
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut credentials: libc::ucred = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::ucred>() as u32;
        let at = (&raw mut credentials).cast();
        // SAFETY: OWN-BUFFER.
        let answer = unsafe {
            libc::getsockopt(self.raw_descriptor(), libc::SOL_SOCKET, libc::SO_PEERCRED, at, &raw mut length)
        };
        if answer == 0 { u32::try_from(credentials.pid).ok() } else { None }
    }

    /// Whether the kernel reports this end's TCP connection as established (`TCP_INFO`).
    pub fn is_established(&self) -> bool {
        const ESTABLISHED: u8 = 1;
        // SAFETY: plain numbers, for which zero is a valid value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as u32;
        let at = (&raw mut info).cast();
        // SAFETY: OWN-BUFFER.
        let answer = unsafe {
            libc::getsockopt(self.raw_descriptor(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length)
        };
        answer == 0 && info.tcpi_state == ESTABLISHED
    }
}

fn query_own_address(end: &End) -> Result<Address> {
    let mut address = Address::empty();
    let at = (&raw mut address.storage).cast();
    // SAFETY: OWN-BUFFER.
    let answer = unsafe { libc::getsockname(end.raw_descriptor(), at, &raw mut address.length) };
    if answer == 0 { Ok(address) } else { Err(Error::from_last_errno("getsockname")) }
}

/// One socket that listens on an address, or several that share it by `SO_REUSEPORT`.
pub struct Listeners {
    sockets: Vec<End>,
    address: Address,
}

/// The address family of listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// TCP on 127.0.0.1; the kernel chooses the port.
    Tcp,
    /// A Unix stream; the kernel chooses the name.
    Unix,
}

impl Listeners {
    /// One socket with a backlog of `queue` connections.
    ///
    /// # Errors
    /// [`Error::Missing`] for what the machine lacks; any other refusal of the kernel.
    pub fn open_one(family: Family, queue: u32) -> Result<Self> {
        let address = match family {
            Family::Tcp => Address::ipv4(Ipv4Addr::LOCALHOST, 0),
            Family::Unix => Address::unnamed(),
        };
        let (socket, address) = open_listener(&address, queue, false)?;
        Ok(Self { sockets: vec![socket], address })
    }

    /// `count` sockets of one TCP port. The kernel picks one for each connection, by its addresses and ports.
    ///
    /// # Errors
    /// The errors of [`Listeners::open_one`].
    pub fn open_sharing(count: usize, queue: u32) -> Result<Self> {
        let (first, address) = open_listener(&Address::ipv4(Ipv4Addr::LOCALHOST, 0), queue, true)?;
        let others = (1..count).map(|_| open_listener(&address, queue, true).map(|(socket, _)| socket));
        let sockets = std::iter::once(Ok(first)).chain(others).collect::<Result<_>>()?;
        Ok(Self { sockets, address })
    }

    /// The address that they listen on.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The descriptor of the first.
    pub fn first_descriptor(&self) -> RawFd {
        self.sockets[0].raw_descriptor()
    }

    /// The descriptor of the socket at which a connection waits; `None` where none waits.
    ///
    /// # Errors
    /// The kernel refuses the call.
    pub fn find_waiting(&self) -> Result<Option<RawFd>> {
        let entry =
            |socket: &End| libc::pollfd { fd: socket.raw_descriptor(), events: libc::POLLIN, revents: 0 };
        let mut asked: Vec<_> = self.sockets.iter().map(entry).collect();
        // SAFETY: OWN-BUFFER: the vector has this many elements.
        if unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) } < 0 {
            return Err(Error::from_last_errno("poll of listeners"));
        }
        Ok(asked.iter().find(|of| of.revents != 0).map(|of| of.fd))
    }
}

/// Opens a socket that listens at this address with a backlog of `queue`. Returns it and the address that it has.
fn open_listener(at: &Address, queue: u32, shares: bool) -> Result<(End, Address)> {
    let raised = |call: &str| socket_error(call, std::io::Error::last_os_error());
    let made = open_stream_socket(at).map_err(|answer| error_from_answer("socket", answer))?;
    let end = made.raw_descriptor();
    if shares {
        set_option(end, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
            .map_err(|e| Error::from_case_errno("setsockopt SO_REUSEPORT", e))?;
    }
    // SAFETY: OWN-BUFFER.
    if unsafe { libc::bind(end, (&raw const at.storage).cast(), at.length) } != 0 {
        return Err(raised("bind of a listener"));
    }
    // SAFETY: OWN-BUFFER: the call takes no memory.
    if unsafe { libc::listen(end, queue as i32) } != 0 {
        return Err(raised("listen"));
    }
    let address = query_own_address(&made)?;
    Ok((made, address))
}

/// connect(2) of a datagram socket: it sends to this address, and receives from no other.
///
/// # Errors
/// [`Error::Missing`] for what the machine lacks; any other refusal of the kernel.
pub fn connect_datagram(of: &OwnedFd, to: &Address) -> Result<()> {
    // SAFETY: OWN-BUFFER.
    let answer =
        unsafe { syscall4(libc::SYS_connect, of.as_raw_fd() as usize, to.pointer(), to.length as usize, 0) };
    check_granted("connect", answer)
}

/// Checks that the answer of a call on a socket is no error.
///
/// # Errors
/// The error of [`error_from_answer`] for a negative answer.
pub fn check_granted(call: &str, answer: i64) -> Result<()> {
    if answer < 0 { Err(error_from_answer(call, answer)) } else { Ok(()) }
}

/// The error for the negative error number of a call; see [`socket_error`].
pub fn error_from_answer(call: &str, answer: i64) -> Error {
    socket_error(call, std::io::Error::from_raw_os_error(i32::try_from(-answer).unwrap_or(libc::EIO)))
}

/// The longest backlog of a listener (`net.core.somaxconn`); a longer one is cut to this.
pub fn max_backlog() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

/// TCP connections of this network namespace in TIME_WAIT.
pub fn count_time_wait() -> Option<u64> {
    parse_time_wait(&std::fs::read_to_string("/proc/self/net/sockstat").ok()?)
}

/// The number behind `tw` in the line `TCP:` of this text (/proc/net/sockstat).
fn parse_time_wait(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests;
