//! Datagrams that one call sends or receives: sendmmsg(2), recvmmsg(2).
//!
//! # Invariants
//!
//! * **OWN-ARRAY**: the headers point to the parts, and the parts into the bytes, of the same value. None of the three vectors grows
//!   after it was made, so that the addresses hold when the value is moved.
#![allow(unsafe_code)]

use crate::platform::arch::syscall6;
use std::os::fd::RawFd;

/// Messages of one length, side by side.
pub struct MessageArray {
    bytes: Vec<u8>,
    length: usize,
    _parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl MessageArray {
    /// `count` messages of this length, of zeros.
    pub fn new(count: usize, length: usize) -> Self {
        let mut bytes = vec![0; count * length];
        let part = |chunk: &mut [u8]| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: length };
        let mut parts: Vec<_> = bytes.chunks_exact_mut(length).map(part).collect();
        let header = |part: &mut libc::iovec| {
            // SAFETY: plain numbers and pointers, for which zero is a valid value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header
        };
        let headers = parts.iter_mut().map(header).collect();
        Self { bytes, length, _parts: parts, headers }
    }

    /// All messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// One message.
    pub fn message(&mut self, at: usize) -> &mut [u8] {
        &mut self.bytes[at * self.length..][..self.length]
    }

    /// sendmmsg(2). Returns the number of messages that were sent, or a negative error number.
    #[inline(always)]
    pub fn send_all(&mut self, end: RawFd) -> i64 {
        self.call(libc::SYS_sendmmsg, end)
    }

    /// recvmmsg(2), without a time-out. Returns the number of messages that were received, or a negative error number.
    #[inline(always)]
    pub fn receive_all(&mut self, end: RawFd) -> i64 {
        self.call(libc::SYS_recvmmsg, end)
    }

    #[inline(always)]
    fn call(&mut self, number: libc::c_long, end: RawFd) -> i64 {
        let arguments = [end as usize, self.headers.as_mut_ptr() as usize, self.headers.len(), 0, 0, 0];
        // SAFETY: OWN-ARRAY.
        unsafe { syscall6(number, arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::{Transport, raw_descriptor};

    #[test]
    fn an_array_arrives_as_it_was_sent_wherever_it_lies() {
        let ends = Transport::Udp.connected_pair().unwrap();
        let [near, far] = ends.each_ref().map(raw_descriptor);
        let mut sent = Box::new(MessageArray::new(4, 8));
        (0..4).for_each(|at| sent.message(at).fill(at as u8 + 1));
        let mut received = MessageArray::new(4, 8);
        assert_eq!((sent.send_all(near), received.receive_all(far)), (4, 4));
        assert_eq!(sent.bytes(), received.bytes());
    }
}
