//! One end of a connection, and how it waits for the next message: blocking, spinning or by epoll.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads or writes a local variable of the calling function, within its length.
#![allow(unsafe_code)]

use super::transfer::{receive, receive_whole, send, send_whole};
use super::{raw_descriptor, set_nonblocking};
use crate::error::{Error, Result};
use crate::platform::arch::syscall6;
use nix::sys::epoll::{self, EpollCreateFlags, EpollEvent, EpollFlags};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// Polls without data after which the other end counts as hung; they take some seconds.
const MOST_POLLS: u32 = 1 << 23;

/// One end, which sends and receives whole messages. Every call returns bytes or a negative error number.
pub trait Endpoint: Send + 'static {
    /// Sends a message whole.
    fn send(&mut self, message: &[u8]) -> i64;
    /// Waits for a message as long as the slice.
    fn receive(&mut self, message: &mut [u8]) -> i64;
    /// Sends a message and waits for the next one.
    #[inline(always)]
    fn exchange(&mut self, message: &[u8], next: &mut [u8]) -> i64 {
        match self.send(message) {
            refused if refused < 0 => refused,
            _ => self.receive(next),
        }
    }
}

/// Sleeps in the call that receives.
pub struct Blocking(OwnedFd);

impl Blocking {
    /// Over this end.
    ///
    /// # Errors
    /// None; the type is that of the other endpoints.
    pub fn new(end: OwnedFd) -> Result<Self> {
        Ok(Self(end))
    }
}

impl Endpoint for Blocking {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        send_whole(raw_descriptor(&self.0), message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        receive_whole(raw_descriptor(&self.0), message)
    }
}

/// Never sleeps: it polls until data has arrived.
pub struct Spinning(OwnedFd);

impl Spinning {
    /// Over this end, which becomes nonblocking.
    ///
    /// # Errors
    /// The kernel refuses a call.
    pub fn new(end: OwnedFd) -> Result<Self> {
        set_nonblocking(&end)?;
        Ok(Self(end))
    }
}

impl Endpoint for Spinning {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        move_whole(message.len(), || 0, |from| send(raw_descriptor(&self.0), &message[from..], 0))
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        move_whole(message.len(), || 0, |from| receive(raw_descriptor(&self.0), &mut message[from..], 0))
    }
}

/// Sleeps in epoll_wait(2), as a server of many connections does, and then receives.
pub struct Epoll {
    end: OwnedFd,
    epoll: OwnedFd,
}

impl Epoll {
    /// Over this end, which becomes nonblocking.
    ///
    /// # Errors
    /// The kernel refuses a call.
    pub fn new(end: OwnedFd) -> Result<Self> {
        set_nonblocking(&end)?;
        let epoll = epoll_over(std::slice::from_ref(&end))?.0;
        Ok(Self { end, epoll })
    }
}

/// An instance of epoll(7) that waits until one of these ends can be received from. An event has the index of its end.
///
/// # Errors
/// The refusal of `epoll_create1` or `epoll_ctl`; regular files cannot be registered.
pub fn epoll_over<F: AsFd>(ends: &[F]) -> Result<epoll::Epoll> {
    let refused = |call: &'static str| move |errno| Error::from_case_errno(call, errno);
    let epoll = epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused("epoll_create1"))?;
    for (index, end) in (0..).zip(ends) {
        epoll.add(end, EpollEvent::new(EpollFlags::EPOLLIN, index)).map_err(refused("epoll_ctl"))?;
    }
    Ok(epoll)
}

impl Endpoint for Epoll {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        // The buffer drains while the other end reads; the loop over EAGAIN is bounded as for a spinning end.
        move_whole(message.len(), || 0, |from| send(raw_descriptor(&self.end), &message[from..], 0))
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        let epoll = self.epoll.as_raw_fd();
        let end = raw_descriptor(&self.end);
        move_whole(message.len(), || wait_for_event(epoll), |from| receive(end, &mut message[from..], 0))
    }
}

/// epoll_wait(2) for one event, without a time-out.
#[inline(always)]
fn wait_for_event(epoll: RawFd) -> i64 {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let arguments = [epoll as usize, &raw mut event as usize, 1, usize::MAX, 0, 8];
    // SAFETY: OWN-BUFFER: one event is written. -1 stands for no time-out, and there is no signal mask.
    unsafe { syscall6(libc::SYS_epoll_pwait, arguments) }
}

/// Moves `all` bytes by repeated calls, each of which may move some bytes or none. `ready` runs before each call.
/// Returns the bytes moved or a negative error number.
#[inline(always)]
fn move_whole(all: usize, mut ready: impl FnMut() -> i64, mut call: impl FnMut(usize) -> i64) -> i64 {
    const AGAIN: i64 = -(libc::EAGAIN as i64);
    let (mut moved, mut polls) = (0, 0);
    loop {
        let waited = ready();
        if waited < 0 {
            return waited;
        }
        match call(moved) {
            0 => return -i64::from(libc::EPIPE),
            AGAIN if polls < MOST_POLLS => polls += 1,
            AGAIN => return -i64::from(libc::ETIMEDOUT),
            refused if refused < 0 => return refused,
            bytes => {
                moved += bytes as usize;
                if moved >= all {
                    return moved as i64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::Transport;

    fn assert_carries<E: Endpoint>(make: fn(OwnedFd) -> Result<E>) {
        for transport in Transport::ALL {
            let [near, far] = transport.connected_pair().expect("connected");
            let (mut near, mut far) = (make(near).expect("made"), make(far).expect("made"));
            let mut received = [0; 56];
            for byte in [1, 2] {
                assert_eq!(near.send(&[byte; 56]), 56, "{transport:?}");
                assert_eq!(far.receive(&mut received), 56, "{transport:?}");
                assert_eq!(received, [byte; 56]);
            }
        }
    }

    #[test]
    fn every_endpoint_receives_what_was_sent() {
        assert_carries(Blocking::new);
        assert_carries(Spinning::new);
        assert_carries(Epoll::new);
    }

    #[test]
    fn pieces_are_moved_until_all_have_arrived() {
        let mut answers = vec![3, -i64::from(libc::EAGAIN), 5];
        assert_eq!(move_whole(8, || 0, |_| answers.remove(0)), 8);
        assert_eq!(move_whole(8, || 0, |_| 0), -i64::from(libc::EPIPE), "the end of the stream");
        assert_eq!(move_whole(8, || -4, |_| 8), -4, "the wait was interrupted");
    }
}
