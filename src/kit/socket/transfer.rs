//! Sending and receiving by a descriptor: once, or until a message is whole, since a stream may move it in pieces.
//!
//! Every function returns the bytes moved, or a negative error number. For the functions that receive a whole message,
//! the end of a stream and an empty datagram are `EPIPE`.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes the slice that the function was given, within its length.
#![allow(unsafe_code)]

use crate::platform::arch::{syscall4, syscall6};
use std::os::fd::RawFd;

/// With this flag a send on a closed connection returns an error number and raises no SIGPIPE.
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;

/// sendto(2), once, without an address.
#[inline(always)]
pub fn send(end: RawFd, message: &[u8], flags: i32) -> i64 {
    let arguments =
        [end as usize, message.as_ptr() as usize, message.len(), (NO_SIGNAL | flags) as usize, 0, 0];
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

/// write(2), once, for a descriptor that is no socket.
#[inline(always)]
pub fn write(end: RawFd, message: &[u8]) -> i64 {
    // SAFETY: OWN-BUFFER: it is read.
    unsafe { syscall4(libc::SYS_write, end as usize, message.as_ptr() as usize, message.len(), 0) }
}

/// read(2), once, for a descriptor that is no socket.
#[inline(always)]
pub fn read(end: RawFd, message: &mut [u8]) -> i64 {
    // SAFETY: OWN-BUFFER: it is written.
    unsafe { syscall4(libc::SYS_read, end as usize, message.as_mut_ptr() as usize, message.len(), 0) }
}

/// Sends the whole message, and waits where the buffer is full.
#[inline(always)]
pub fn send_whole(end: RawFd, message: &[u8]) -> i64 {
    let mut sent = send(end, message, 0);
    while sent >= 0 && (sent as usize) < message.len() {
        let more = send(end, &message[sent as usize..], 0);
        sent = if more < 0 { more } else { sent + more };
    }
    sent
}

/// Receives until the slice is full, or one datagram.
#[inline(always)]
pub fn receive_whole(end: RawFd, message: &mut [u8]) -> i64 {
    let mut received = receive(end, message, libc::MSG_WAITALL);
    while received > 0 && (received as usize) < message.len() {
        let more = receive(end, &mut message[received as usize..], libc::MSG_WAITALL);
        received = if more <= 0 { more } else { received + more };
    }
    if received == 0 { -i64::from(libc::EPIPE) } else { received }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::{Transport, raw_descriptor};

    #[test]
    fn a_message_arrives_whole_by_every_transport() {
        for transport in Transport::ALL {
            let ends = transport.connected_pair().expect("connected");
            let [near, far] = ends.each_ref().map(raw_descriptor);
            let (message, mut received) = ([7u8; 1024], [0u8; 1024]);
            assert_eq!(send_whole(near, &message), 1024, "{transport:?}");
            assert_eq!(receive_whole(far, &mut received), 1024, "{transport:?}");
            assert_eq!(message, received);
        }
    }

    #[test]
    fn a_closed_connection_is_an_error_number_and_no_signal() {
        for transport in [Transport::Tcp, Transport::UnixStream, Transport::UnixSeqpacket] {
            let [near, far] = transport.connected_pair().expect("connected");
            drop(far);
            assert_eq!(
                receive_whole(raw_descriptor(&near), &mut [0; 8]),
                -i64::from(libc::EPIPE),
                "{transport:?}"
            );
            let refused =
                (0..100).map(|_| send(raw_descriptor(&near), &[0; 8], 0)).find(|answer| *answer < 0);
            assert!(refused.is_some(), "{transport:?}");
        }
    }
}
