//! The echo of ICMP, which the kernel at the other end answers: what `ping` times.
//!
//! A ping socket needs a group within `net.ipv4.ping_group_range`; the alternative is a raw socket, which needs a
//! privilege.

use super::connection::Address;
use super::transfer::{receive, send};
use super::{raw_descriptor, set_option};
use crate::error::{Error, Result};
use crate::platform::plain_file::random_bits;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

const HEADER_BYTES: usize = 8;
/// The longest IPv4 header: a raw socket receives it too.
const MOST_IP_BYTES: usize = 60;

/// The message types of an echo request and its reply in one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageTypes {
    request: u8,
    reply: u8,
}
const IPV4: MessageTypes = MessageTypes { request: 8, reply: 0 };
/// RFC 4443. Even a raw IPv6 socket receives packets without the network header, and the kernel computes their checksum.
const IPV6: MessageTypes = MessageTypes { request: 128, reply: 129 };

/// Echo requests to one address.
pub struct Ping {
    end: OwnedFd,
    types: MessageTypes,
    is_raw: bool,
    identifier: u16,
    sequence: u16,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Ping {
    /// Requests with `bytes` bytes after the header.
    ///
    /// # Errors
    /// [`Error::Missing`] where neither kind of socket is allowed.
    pub fn new(mut to: SocketAddr, bytes: usize) -> Result<Self> {
        to.set_ip(to.ip().to_canonical());
        // Port 0: ICMP uses only the address.
        to.set_port(0);
        let types = if to.is_ipv4() { IPV4 } else { IPV6 };
        let (end, is_raw) = open_icmp_socket(types)?;
        super::connection::connect_datagram(&end, &Address::from_socket_addr(to))?;
        // A raw socket receives the replies to all processes and needs an identifier; the kernel sets that of a ping socket.
        let identifier = random_bits() as u16;
        let request = vec![0x5a; HEADER_BYTES + bytes];
        let reply = vec![0; MOST_IP_BYTES + HEADER_BYTES + bytes];
        Ok(Self { end, types, is_raw, identifier, sequence: 0, request, reply })
    }

    /// Sends a request and waits for its reply. Returns the number of bytes after the header, or a negative error number.
    #[inline(always)]
    pub fn echo_once(&mut self) -> i64 {
        self.sequence = self.sequence.wrapping_add(1);
        write_request(&mut self.request, self.types.request, (self.identifier, self.sequence));
        let sent = send(raw_descriptor(&self.end), &self.request, 0);
        if sent < 0 {
            return sent;
        }
        loop {
            let received = receive(raw_descriptor(&self.end), &mut self.reply, 0);
            if received < 0 {
                return received;
            }
            let reply = &self.reply[..received as usize];
            if let Some(bytes) = self.reply_bytes(reply) {
                return bytes;
            }
        }
    }

    /// Discards the packets that wait to be received. Replies to other processes fill a raw socket between two batches, and then the kernel
    /// drops the reply to the next request.
    pub fn discard_waiting(&mut self) {
        while receive(raw_descriptor(&self.end), &mut self.reply, libc::MSG_DONTWAIT) >= 0 {}
    }

    /// The number of bytes after the header, if this is the reply to the last request.
    #[inline(always)]
    fn reply_bytes(&self, packet: &[u8]) -> Option<i64> {
        let header =
            if self.is_raw && self.types == IPV4 { 4 * usize::from(packet.first()? & 15) } else { 0 };
        let reply = packet.get(header..)?;
        let word = |at: usize| Some(u16::from_be_bytes([*reply.get(at)?, *reply.get(at + 1)?]));
        let ours = !self.is_raw || word(4)? == self.identifier;
        let same = reply.get(HEADER_BYTES..)? == &self.request[HEADER_BYTES..];
        let answers = *reply.first()? == self.types.reply && ours && word(6)? == self.sequence && same;
        answers.then_some((reply.len() - HEADER_BYTES) as i64)
    }
}

/// Opens a ping socket or, if it is not allowed, a raw socket. Returns the socket, and whether it is raw.
fn open_icmp_socket(types: MessageTypes) -> Result<(OwnedFd, bool)> {
    let (family, protocol) = match types {
        IPV4 => (libc::AF_INET, libc::IPPROTO_ICMP),
        _ => (libc::AF_INET6, libc::IPPROTO_ICMPV6),
    };
    if let Ok(end) = super::open_socket(family, libc::SOCK_DGRAM, protocol) {
        return Ok((end, false));
    }
    let Ok(end) = super::open_socket(family, libc::SOCK_RAW, protocol) else {
        return Err(Error::Missing(
            "neither a ping socket nor a raw one is allowed: put a group of this user into \
             net.ipv4.ping_group_range, or run as root"
                .into(),
        ));
    };
    if types == IPV6 {
        // On loopback this socket receives its own requests too; `echo_once` skips them.
        return Ok((end, true));
    }
    // The filter's bits are the types to drop: all but replies. On loopback a raw socket receives its own requests too.
    const SOL_RAW: i32 = 255;
    const ICMP_FILTER: i32 = 1;
    set_option(raw_descriptor(&end), SOL_RAW, ICMP_FILTER, !(1 << IPV4.reply))
        .map_err(|e| Error::from_errno("setsockopt ICMP_FILTER", e))?;
    Ok((end, true))
}

/// Writes the header of an echo request, checksum included.
fn write_request(packet: &mut [u8], request: u8, (identifier, sequence): (u16, u16)) {
    packet[..HEADER_BYTES].fill(0);
    packet[0] = request;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071).
fn checksum(packet: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let sum: u32 = packet.chunks(2).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::value_or_skip;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The example of RFC 1071.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let mut packet = [0x5a; 64];
        write_request(&mut packet, IPV4.request, (77, 1));
        assert_eq!(checksum(&packet), 0, "a packet with its sum adds up to nothing");
    }

    #[test]
    fn every_request_gets_its_own_reply() {
        for local in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let Some(mut ping) = value_or_skip(Ping::new((local, 0).into(), 56)) else { continue };
            assert!((0..5).all(|_| ping.echo_once() == 56), "{local}");
        }
    }

    #[test]
    fn its_own_reply_arrives_after_replies_to_others_are_discarded() {
        let ping = || value_or_skip(Ping::new((Ipv4Addr::LOCALHOST, 0).into(), 56));
        let (Some(mut one), Some(mut other)) = (ping(), ping()) else { return };
        assert!((0..5_000).all(|_| other.echo_once() == 56));
        one.discard_waiting();
        assert_eq!(one.echo_once(), 56);
    }
}
