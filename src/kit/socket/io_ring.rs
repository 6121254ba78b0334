//! An endpoint over `io_uring`: one system call sends a message and waits for the next.
//!
//! # Invariants
//!
//! * **IN-FLIGHT**: an operation points to slices that the function was given. Each of its operations completes
//!   before the function returns; where the wait is interrupted, the operations are cancelled and waited for again.
//! * **CAPACITY**: the ring holds more entries than are ever submitted together.
#![allow(unsafe_code)]

use super::endpoint::Endpoint;
use super::raw_descriptor;
use crate::error::Result;
use crate::kit::kernel_call::io_uring_refusal;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, opcode, squeue};
use std::os::fd::OwnedFd;

const ENTRIES: u32 = 8;
/// A stream may move a message in pieces: the kernel then moves the rest without another call.
const WHOLE: i32 = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
/// The user data of the two operations.
const SEND: u64 = 0;
const RECEIVE: u64 = 1;

/// The endpoint. Its ring is made by the task that uses it first, since only the task that made a ring may submit to it.
pub struct IoRing {
    end: OwnedFd,
    ring: Option<IoUring>,
}

/// A ring that does its work only when its own task enters the kernel (Linux 6.1).
fn build_ring() -> std::io::Result<IoUring> {
    IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(ENTRIES)
}

/// Whether the kernel allows this process such a ring.
///
/// # Errors
/// A sentence that says what to allow.
pub fn check_ring_allowed() -> std::result::Result<(), String> {
    let advice = |cause: std::io::Error| match cause.raw_os_error() {
        Some(libc::EINVAL) => {
            "this kernel's io_uring cannot defer its work to its own task: it needs Linux 6.1".into()
        }
        _ => io_uring_refusal(&cause),
    };
    build_ring().map(drop).map_err(advice)
}

impl IoRing {
    /// Over this end.
    ///
    /// # Errors
    /// None; the type is that of the other endpoints.
    pub fn new(end: OwnedFd) -> Result<Self> {
        Ok(Self { end, ring: None })
    }

    /// Submits the operations and waits until all have completed. Returns the results of sending and of receiving.
    #[inline(always)]
    fn submit_operations(&mut self, operations: &[squeue::Entry]) -> std::result::Result<[i64; 2], i64> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(build_ring().map_err(|cause| negative_errno(&cause))?),
        };
        // SAFETY: IN-FLIGHT, CAPACITY.
        if unsafe { ring.submission().push_multiple(operations) }.is_err() {
            return Err(-i64::from(libc::EBUSY));
        }
        // A call that has submitted operations returns their number, even where its wait was interrupted.
        let waited = ring.submit_and_wait(operations.len());
        let (mut answers, mut completed) = ([0; 2], 0);
        for completion in ring.completion() {
            answers[completion.user_data() as usize & 1] = i64::from(completion.result());
            completed += 1;
        }
        if completed == operations.len() {
            return Ok(answers);
        }
        cancel_running(ring, operations.len() - completed);
        Err(waited.map_or_else(|cause| negative_errno(&cause), |_| -i64::from(libc::EINTR)))
    }

    fn send_entry(&self, message: &[u8]) -> squeue::Entry {
        let (at, bytes) = (message.as_ptr(), message.len() as u32);
        opcode::Send::new(Fd(raw_descriptor(&self.end)), at, bytes).flags(WHOLE).build().user_data(SEND)
    }

    fn receive_entry(&self, message: &mut [u8]) -> squeue::Entry {
        let (at, bytes) = (message.as_mut_ptr(), message.len() as u32);
        opcode::Recv::new(Fd(raw_descriptor(&self.end)), at, bytes)
            .flags(libc::MSG_WAITALL)
            .build()
            .user_data(RECEIVE)
    }
}

impl Endpoint for IoRing {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        match self.submit_operations(&[self.send_entry(message)]) {
            Ok([sent, _]) | Err(sent) => sent,
        }
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        match self.submit_operations(&[self.receive_entry(message)]) {
            Ok([_, received]) => end_as_error(received),
            Err(refused) => refused,
        }
    }

    /// One call submits both operations; the second is linked to the first.
    #[inline(always)]
    fn exchange(&mut self, message: &[u8], next: &mut [u8]) -> i64 {
        let sending = self.send_entry(message).flags(squeue::Flags::IO_LINK);
        match self.submit_operations(&[sending, self.receive_entry(next)]) {
            Ok([sent, _]) if sent < 0 => sent,
            Ok([_, received]) => end_as_error(received),
            Err(refused) => refused,
        }
    }
}

/// The bytes received, or `EPIPE` as a negative number at the end of the stream.
fn end_as_error(received: i64) -> i64 {
    if received == 0 { -i64::from(libc::EPIPE) } else { received }
}

fn negative_errno(cause: &std::io::Error) -> i64 {
    -i64::from(cause.raw_os_error().unwrap_or(libc::EIO))
}

/// Cancels the `running` operations and waits for the completion of each. Both calls may be interrupted, and are then
/// repeated.
fn cancel_running(ring: &mut IoUring, mut running: usize) {
    while running > 0 {
        // An operation that the call does not find has completed.
        let _ = ring.submitter().register_sync_cancel(None, CancelBuilder::any());
        let _ = ring.submit_and_wait(1);
        running -= ring.completion().count().min(running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::Transport;
    use crate::kit::watchdog::Alarm;
    use crate::platform::testing::print_skipped;
    use std::time::Duration;

    #[test]
    fn an_exchange_sends_and_waits() {
        if let Err(sentence) = check_ring_allowed() {
            print_skipped(&sentence.to_string());
            return;
        }
        for transport in Transport::ALL {
            let [near, far] = transport.connected_pair().expect("connected");
            let echo = std::thread::spawn(move || {
                let mut far = IoRing::new(far).expect("made");
                let mut received = [0; 56];
                (0..3).all(|_| far.receive(&mut received) == 56 && far.send(&received) == 56)
            });
            let mut near = IoRing::new(near).expect("made");
            for byte in 1..=3 {
                let mut reply = [0; 56];
                assert_eq!(near.exchange(&[byte; 56], &mut reply), 56, "{transport:?}");
                assert_eq!(reply, [byte; 56]);
            }
            assert!(echo.join().expect("no panic"));
        }
    }

    #[test]
    fn an_interrupted_wait_leaves_nothing_in_flight() {
        if let Err(why) = check_ring_allowed() {
            return crate::platform::testing::print_skipped(&why.to_string());
        }
        let [near, far] = Transport::UnixStream.connected_pair().expect("connected");
        let (mut near, mut reply) = (IoRing::new(near).expect("made"), [0; 8]);
        let mut alarm = Alarm::new().expect("an alarm");
        let answer = alarm.run_with_limit(Duration::from_millis(20), || near.exchange(&[1; 8], &mut reply));
        assert_eq!(answer, -i64::from(libc::EINTR));
        crate::kit::socket::transfer::send(raw_descriptor(&far), &[9; 8], 0);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(reply, [0; 8], "no operation writes there any more");
        assert_eq!(near.receive(&mut reply), 8);
        assert_eq!(reply, [9; 8]);
    }
}
