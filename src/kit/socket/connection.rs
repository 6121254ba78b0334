//! Listening, connecting, accepting and closing, one call each.
//!
//! Every call answers an end, zero, or a negative error number.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes an address that lives in the value or in the calling function, for
//!   the length that goes with it.
//! * **OWN-DESCRIPTOR**: a number that the kernel has just answered is nobody else's; it is closed once, by the value
//!   that holds it.
#![allow(unsafe_code)]

use super::{refused, set_option};
use crate::platform::arch::{syscall1, syscall4};
use crate::{Error, Result};
use nix::errno::Errno;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The address of a listener, as the kernel takes it.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Address {
    fn empty() -> Self {
        // SAFETY: plain numbers, for which zero is a value.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Self { storage, length: size_of::<libc::sockaddr_storage>() as u32 }
    }

    /// Of an IPv4 address and a port. Port 0 asks the kernel to choose one.
    pub fn ipv4(ip: Ipv4Addr, port: u16) -> Self {
        let mut address = Self::empty();
        let at = (&raw mut address.storage).cast::<libc::sockaddr_in>();
        // SAFETY: OWN-BUFFER: the storage is larger than any address, and aligned for each.
        unsafe {
            (*at).sin_family = libc::AF_INET as u16;
            (*at).sin_port = port.to_be();
            (*at).sin_addr.s_addr = u32::from(ip).to_be();
        }
        address.length = size_of::<libc::sockaddr_in>() as u32;
        address
    }

    /// A Unix address that asks the kernel to choose a name, which is in no directory.
    fn unnamed() -> Self {
        let mut address = Self::empty();
        address.storage.ss_family = libc::AF_UNIX as u16;
        address.length = size_of::<libc::sa_family_t>() as u32;
        address
    }

    /// The address and port, if it is of IPv4.
    pub fn port(&self) -> Option<SocketAddr> {
        if i32::from(self.storage.ss_family) != libc::AF_INET {
            return None;
        }
        // SAFETY: OWN-BUFFER: the family says what the storage holds.
        let address = unsafe { (&raw const self.storage).cast::<libc::sockaddr_in>().read() };
        let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
        Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
    }

    fn pointer(&self) -> usize {
        &raw const self.storage as usize
    }
}

/// Of which of its ends an address is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its own.
    Own,
    /// The other one's.
    Other,
}

/// A socket that is or will be one end of a connection. It is closed when this value goes.
#[derive(Debug)]
pub struct End(RawFd);

/// A socket for a connection to an address like this one.
///
/// # Errors
/// The negative error number.
#[inline(always)]
pub fn socket(to: &Address) -> std::result::Result<End, i64> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: OWN-BUFFER: a question without memory.
    end(unsafe { syscall4(libc::SYS_socket, to.storage.ss_family as usize, kind as usize, 0, 0) })
}

/// accept4(2), without asking who it is.
///
/// # Errors
/// The negative error number.
#[inline(always)]
pub fn accept(listener: RawFd) -> std::result::Result<End, i64> {
    // SAFETY: OWN-BUFFER: no address is asked for.
    end(unsafe { syscall4(libc::SYS_accept4, listener as usize, 0, 0, libc::SOCK_CLOEXEC as usize) })
}

#[inline(always)]
fn end(answer: i64) -> std::result::Result<End, i64> {
    if answer < 0 { Err(answer) } else { Ok(End(answer as RawFd)) }
}

impl End {
    /// connect(2).
    #[inline(always)]
    pub fn connect(&self, to: &Address) -> i64 {
        // SAFETY: OWN-BUFFER.
        unsafe { syscall4(libc::SYS_connect, self.0 as usize, to.pointer(), to.length as usize, 0) }
    }

    /// The number by which its messages go.
    pub fn number(&self) -> RawFd {
        self.0
    }

    /// close(2), with its answer.
    #[inline(always)]
    pub fn close(self) -> i64 {
        let number = self.0;
        std::mem::forget(self);
        // SAFETY: OWN-DESCRIPTOR.
        unsafe { syscall1(libc::SYS_close, number as usize) }
    }

    /// From here on closing this end resets the connection: what was not sent is lost, and nothing rests in
    /// TIME_WAIT.
    pub fn reset_on_close(&self) -> i64 {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let (at, length) = ((&raw const linger).cast(), size_of::<libc::linger>() as u32);
        // SAFETY: OWN-BUFFER: a local is read.
        let answer = unsafe { libc::setsockopt(self.0, libc::SOL_SOCKET, libc::SO_LINGER, at, length) };
        if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
    }

    /// From here on this end goes from that address, by a port that is chosen when it connects.
    pub fn go_from(&self, ip: Ipv4Addr) -> i64 {
        const IP_BIND_ADDRESS_NO_PORT: i32 = 24;
        if let Err(errno) = set_option(self.0, libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) {
            return -i64::from(errno as i32);
        }
        let from = Address::ipv4(ip, 0);
        // SAFETY: OWN-BUFFER.
        unsafe { syscall4(libc::SYS_bind, self.0 as usize, from.pointer(), from.length as usize, 0) }
    }

    /// An address of its connection.
    pub fn address(&self, side: Side) -> Result<Address> {
        address(self.0, side)
    }

    /// The process at the other end of a Unix connection, by the kernel's own account (`SO_PEERCRED`, unix(7)): of an
    /// accepted end who connected, of a connected one who listens.
    pub fn other_process(&self) -> Option<u32> {
        // SAFETY: plain numbers, for which zero is a value.
        let mut who: libc::ucred = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::ucred>() as u32;
        let at = (&raw mut who).cast();
        // SAFETY: OWN-BUFFER.
        let answer =
            unsafe { libc::getsockopt(self.0, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &raw mut length) };
        if answer == 0 { u32::try_from(who.pid).ok() } else { None }
    }

    /// Whether it is connected by TCP, by the kernel's own account.
    pub fn is_established(&self) -> bool {
        const ESTABLISHED: u8 = 1;
        // SAFETY: plain numbers, for which zero is a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as u32;
        let at = (&raw mut info).cast();
        // SAFETY: OWN-BUFFER.
        let answer =
            unsafe { libc::getsockopt(self.0, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length) };
        answer == 0 && info.tcpi_state == ESTABLISHED
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: OWN-DESCRIPTOR. Nobody is left to hear the answer.
        unsafe { libc::close(self.0) };
    }
}

fn address(end: RawFd, side: Side) -> Result<Address> {
    let mut address = Address::empty();
    let at = (&raw mut address.storage).cast();
    let ask = if side == Side::Own { libc::getsockname } else { libc::getpeername };
    // SAFETY: OWN-BUFFER.
    let answer = unsafe { ask(end, at, &raw mut address.length) };
    if answer == 0 { Ok(address) } else { Err(Error::last_os("getsockname or getpeername")) }
}

/// Sockets that listen on one address: one, or several that share it by `SO_REUSEPORT`.
pub struct Listeners {
    sockets: Vec<End>,
    address: Address,
}

/// What is listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// TCP on 127.0.0.1, a port that the kernel chooses.
    Tcp,
    /// A Unix stream, a name that the kernel chooses.
    Unix,
}

impl Listeners {
    /// One socket, with room for so many connections that are not accepted yet.
    pub fn one(family: Family, queue: u32) -> Result<Self> {
        let address = match family {
            Family::Tcp => Address::ipv4(Ipv4Addr::LOCALHOST, 0),
            Family::Unix => Address::unnamed(),
        };
        let (socket, address) = listen(&address, queue, false)?;
        Ok(Self { sockets: vec![socket], address })
    }

    /// So many sockets of one TCP port. The kernel picks one for each connection, by its addresses and ports.
    pub fn sharing(count: usize, queue: u32) -> Result<Self> {
        let (first, address) = listen(&Address::ipv4(Ipv4Addr::LOCALHOST, 0), queue, true)?;
        let others = (1..count).map(|_| listen(&address, queue, true).map(|(socket, _)| socket));
        let sockets = std::iter::once(Ok(first)).chain(others).collect::<Result<_>>()?;
        Ok(Self { sockets, address })
    }

    /// Where they listen.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The number of the first.
    pub fn first(&self) -> RawFd {
        self.sockets[0].0
    }

    /// The number of the one at which a connection waits, and `None` where none has come.
    pub fn waiting(&self) -> Result<Option<RawFd>> {
        let entry = |socket: &End| libc::pollfd { fd: socket.0, events: libc::POLLIN, revents: 0 };
        let mut asked: Vec<_> = self.sockets.iter().map(entry).collect();
        // SAFETY: OWN-BUFFER: as many elements as the vector has.
        if unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) } < 0 {
            return Err(Error::last_os("poll of listeners"));
        }
        Ok(asked.iter().find(|of| of.revents != 0).map(|of| of.fd))
    }
}

fn listen(at: &Address, queue: u32, shares: bool) -> Result<(End, Address)> {
    let raised = |call: &str| refused(call, std::io::Error::last_os_error());
    let made = socket(at).map_err(|answer| failed("socket", answer))?;
    let end = made.0;
    if shares {
        set_option(end, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
            .map_err(|e| Error::refused_to_case("setsockopt SO_REUSEPORT", e))?;
    }
    // SAFETY: OWN-BUFFER.
    if unsafe { libc::bind(end, (&raw const at.storage).cast(), at.length) } != 0 {
        return Err(raised("bind of a listener"));
    }
    // SAFETY: OWN-BUFFER: a question without memory.
    if unsafe { libc::listen(end, queue as i32) } != 0 {
        return Err(raised("listen"));
    }
    let address = made.address(Side::Own)?;
    Ok((made, address))
}

/// Directs what is sent by this descriptor to one address, and hears nobody else.
pub fn direct(of: &OwnedFd, to: &Address) -> Result<()> {
    // SAFETY: OWN-BUFFER.
    match unsafe { syscall4(libc::SYS_connect, of.as_raw_fd() as usize, to.pointer(), to.length as usize, 0) }
    {
        0 => Ok(()),
        answer => Err(failed("connect", answer)),
    }
}

/// What a call's negative answer means, in words that say what to do.
pub fn failed(call: &str, answer: i64) -> Error {
    refused(call, std::io::Error::from_raw_os_error(i32::try_from(-answer).unwrap_or(libc::EIO)))
}

/// The longest queue of connections that are not accepted yet; a listener that asks for more gets so many.
pub fn longest_queue() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

/// TCP connections of this network namespace that rest in TIME_WAIT.
pub fn resting() -> Option<u64> {
    resting_in(&std::fs::read_to_string("/proc/self/net/sockstat").ok()?)
}

fn resting_in(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(listeners: &Listeners) -> [End; 2] {
        let client = socket(listeners.address()).expect("a socket");
        assert_eq!(client.connect(listeners.address()), 0);
        let at = listeners.waiting().expect("asked").expect("one waits");
        [client, accept(at).expect("accepted")]
    }

    #[test]
    fn who_is_accepted_is_who_connected() {
        for listeners in [Listeners::one(Family::Tcp, 8), Listeners::sharing(16, 8)] {
            let listeners = listeners.expect("listening");
            for _ in 0..20 {
                let [client, server] = connected(&listeners);
                let port = |end: &End, side| end.address(side).expect("asked").port().expect("of IPv4");
                assert_eq!(port(&client, Side::Own), port(&server, Side::Other));
                assert_eq!(port(&client, Side::Other), listeners.address().port().expect("of IPv4"));
                assert!(client.is_established() && server.is_established());
                assert_eq!((client.reset_on_close(), client.close(), server.close()), (0, 0, 0));
            }
        }
    }

    #[test]
    fn a_unix_listener_has_a_name_in_no_directory_and_knows_who_comes() {
        let listeners = Listeners::one(Family::Unix, 8).expect("listening");
        let [client, server] = connected(&listeners);
        let own = Some(std::process::id());
        assert_eq!((client.other_process(), server.other_process()), (own, own));
        assert_eq!((client.close(), server.close()), (0, 0));
        assert_eq!(listeners.address().port(), None);
    }

    #[test]
    fn an_end_goes_from_the_address_that_it_is_told() {
        let listeners = Listeners::one(Family::Tcp, 8).expect("listening");
        let client = socket(listeners.address()).expect("a socket");
        let from = Ipv4Addr::new(127, 0, 0, 9);
        assert_eq!((client.go_from(from), client.connect(listeners.address())), (0, 0));
        let own = client.address(Side::Own).expect("asked").port();
        assert_eq!(own.map(|address| address.ip()), Some(from.into()));
    }

    #[test]
    fn the_kernels_count_of_resting_connections_is_read() {
        let text = "sockets: used 20\nTCP: inuse 4 orphan 0 tw 1234 alloc 5 mem 0\nUDP: inuse 1 mem 0\n";
        assert_eq!(resting_in(text), Some(1234));
        assert_eq!(resting_in("TCP: inuse 4\n"), None);
    }
}
