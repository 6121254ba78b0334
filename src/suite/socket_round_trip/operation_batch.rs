//! Sends and receives many datagrams by one call each (sendmmsg(2), recvmmsg(2)), and for comparison by one call for each datagram.
//!
//! # Invariants
//!
//! * **OWN-ARRAY**: the headers point to the parts, and the parts into the bytes, of the same value. The three vectors never grow
//!   after they were made, so the addresses stay valid when the value is moved.
#![allow(unsafe_code)]

use super::TCP_LAYERS;
use crate::kit::contract::*;
use crate::kit::placement::explain_refusal;
use crate::kit::socket::Transport::Udp;
use crate::kit::socket::transfer::{receive, send};
use crate::kit::socket::{LOOPBACK, raw_descriptor};
use crate::platform::arch::syscall6;
use std::os::fd::RawFd;

/// An array of messages of the same length, contiguous in memory.
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

    /// The bytes of all messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of message number `at`.
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

/// The number of messages in a batch. The queue of a receiver holds all of them.
pub const MESSAGES: usize = 32;
const BYTES: usize = 56;

/// Sends all messages of one array and receives them into the other. Returns the number that was received, or a negative error
/// number.
pub type Pass = fn([RawFd; 2], &mut MessageArray, &mut MessageArray) -> i64;

pub(super) fn batch_cases() -> Vec<Case> {
    let calls = vec![("sendmmsg", libc::SYS_sendmmsg), ("recvmmsg", libc::SYS_recvmmsg)];
    vec![
        batch_case("mmsg", "a call", pass_at_once).claim(Claim::Enters(calls)),
        batch_case("single", "32 calls", pass_one_by_one).need(FULL_SCALE),
    ]
}

fn batch_case(name: &str, by: &str, pass: Pass) -> Case {
    let title = format!("{MESSAGES} datagrams of {BYTES} B sent and received by {by} each, in one process");
    let why = "a message through the layers of UDP, by a fraction of a call each";
    Case::new(format!("udp-batch-one-process/{name}"), title, batch_set_up(pass))
        .need(LOOPBACK)
        .elements(MESSAGES as u64)
        .claim(Claim::Checked("every message of every batch was received, in the order of their numbers"))
        .claim(Claim::Linear)
        .predict(0.0, MESSAGES as f64 * TCP_LAYERS / 4.0, why)
}

/// The set-up of batches in one process. `pass` sends and receives a batch.
pub fn batch_set_up(pass: Pass) -> SetUp {
    set_up(move |_| {
        let ends = Udp.connected_pair()?;
        let (mut sent, mut received) =
            (MessageArray::new(MESSAGES, BYTES), MessageArray::new(MESSAGES, BYTES));
        let mut batch = 0u32;
        Ok(move |n: u64, clock: &Clock| {
            let descriptors = ends.each_ref().map(raw_descriptor);
            let (mut answer, mut wrong) = (0, 0u64);
            let ticks = clock.time(|| {
                for _ in 0..n {
                    batch = batch.wrapping_add(1);
                    (0..MESSAGES).for_each(|at| write_number(sent.message(at), batch, at));
                    answer = pass(descriptors, &mut sent, &mut received);
                    if answer < 0 {
                        break;
                    }
                    wrong += u64::from(answer != MESSAGES as i64 || sent.bytes() != received.bytes());
                }
            });
            match (answer < 0, wrong) {
                (true, _) => Err(explain_refusal("udp in one process", answer, &mut [], n)),
                (_, 0) => Ok(ticks),
                _ => Err(Error::Disproved(format!(
                    "{wrong} of {n} batches were not received as they were sent"
                ))),
            }
        })
    })
}

fn write_number(message: &mut [u8], batch: u32, at: usize) {
    message[..4].copy_from_slice(&batch.to_le_bytes());
    message[4..8].copy_from_slice(&(at as u32).to_le_bytes());
}

#[inline(always)]
fn pass_at_once([near, far]: [RawFd; 2], sent: &mut MessageArray, received: &mut MessageArray) -> i64 {
    match sent.send_all(near) {
        all if all == MESSAGES as i64 => received.receive_all(far),
        few => few,
    }
}

#[inline(always)]
fn pass_one_by_one([near, far]: [RawFd; 2], sent: &mut MessageArray, received: &mut MessageArray) -> i64 {
    let mut lowest = (0..MESSAGES).map(|at| send(near, sent.message(at), 0)).min().unwrap_or(0);
    lowest = lowest.min((0..MESSAGES).map(|at| receive(far, received.message(at), 0)).min().unwrap_or(0));
    if lowest < 0 { lowest } else { MESSAGES as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_arrives_unchanged_after_it_was_moved() {
        let ends = Udp.connected_pair().unwrap();
        let [near, far] = ends.each_ref().map(raw_descriptor);
        let mut sent = Box::new(MessageArray::new(4, 8));
        (0..4).for_each(|at| sent.message(at).fill(at as u8 + 1));
        let mut received = MessageArray::new(4, 8);
        assert_eq!((sent.send_all(near), received.receive_all(far)), (4, 4));
        assert_eq!(sent.bytes(), received.bytes());
    }
}
