//! One message, whole: a stream may take and give it in pieces, and then the rest follows.
//!
//! Every function answers how many bytes went, or a negative error number. The end of a stream, and an empty
//! datagram where one was awaited, are `EPIPE`.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes the slice that the function was given, for no more than its length.
#![allow(unsafe_code)]

use crate::platform::arch::{syscall4, syscall6};
use std::os::fd::RawFd;

/// A peer that has gone is an answer, and no signal that ends the process.
const QUIETLY: i32 = libc::MSG_NOSIGNAL;

/// sendto(2), once, without an address.
#[inline(always)]
pub fn send(end: RawFd, message: &[u8], flags: i32) -> i64 {
    let arguments =
        [end as usize, message.as_ptr() as usize, message.len(), (QUIETLY | flags) as usize, 0, 0];
    // SAFETY: OWN-BUFFER: it is read.
    unsafe { syscall6(libc::SYS_sendto, arguments) }
}

/// recvfrom(2), once, without an address.
#[inline(always)]
pub fn receive(end: RawFd, message: &mut [u8], flags: i32) -> i64 {
    let arguments = [end as usize, message.as_mut_ptr() as usize, message.len(), flags as usize, 0, 0];
    // SAFETY: OWN-BUFFER: it is written.
    unsafe { syscall6(libc::SYS_recvfrom, arguments) }
}

/// write(2), once, for what is no socket.
#[inline(always)]
pub fn write(end: RawFd, message: &[u8]) -> i64 {
    // SAFETY: OWN-BUFFER: it is read.
    unsafe { syscall4(libc::SYS_write, end as usize, message.as_ptr() as usize, message.len(), 0) }
}

/// read(2), once, for what is no socket.
#[inline(always)]
pub fn read(end: RawFd, message: &mut [u8]) -> i64 {
    // SAFETY: OWN-BUFFER: it is written.
    unsafe { syscall4(libc::SYS_read, end as usize, message.as_mut_ptr() as usize, message.len(), 0) }
}

/// Sends all of it, waiting for room.
#[inline(always)]
pub fn send_whole(end: RawFd, message: &[u8]) -> i64 {
    let mut sent = send(end, message, 0);
    while sent >= 0 && (sent as usize) < message.len() {
        let more = send(end, &message[sent as usize..], 0);
        sent = if more < 0 { more } else { sent + more };
    }
    sent
}

/// Waits until as many bytes have come as there is room for, or one datagram, which must be as long.
#[inline(always)]
pub fn receive_whole(end: RawFd, message: &mut [u8]) -> i64 {
    let mut come = receive(end, message, libc::MSG_WAITALL);
    while come > 0 && (come as usize) < message.len() {
        let more = receive(end, &mut message[come as usize..], libc::MSG_WAITALL);
        come = if more <= 0 { more } else { come + more };
    }
    if come == 0 { -i64::from(libc::EPIPE) } else { come }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::{Transport, number};

    #[test]
    fn a_message_arrives_whole_by_every_transport() {
        for transport in Transport::ALL {
            let ends = transport.pair().expect("connected");
            let [near, far] = ends.each_ref().map(number);
            let (message, mut come) = ([7u8; 1024], [0u8; 1024]);
            assert_eq!(send_whole(near, &message), 1024, "{transport:?}");
            assert_eq!(receive_whole(far, &mut come), 1024, "{transport:?}");
            assert_eq!(message, come);
        }
    }

    #[test]
    fn a_peer_that_has_gone_is_an_answer_and_no_signal() {
        for transport in [Transport::Tcp, Transport::UnixStream, Transport::UnixSeqpacket] {
            let [near, far] = transport.pair().expect("connected");
            drop(far);
            assert_eq!(receive_whole(number(&near), &mut [0; 8]), -i64::from(libc::EPIPE), "{transport:?}");
            let refused = (0..100).map(|_| send(number(&near), &[0; 8], 0)).find(|answer| *answer < 0);
            assert!(refused.is_some(), "{transport:?}");
        }
    }
}
