//! How an end of a conversation waits for the next message.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel writes into a local of the calling function, for the length that it is told.
//! * **OWN-DESCRIPTOR**: a number that the kernel has just answered is nobody else's.
#![allow(unsafe_code)]

use super::message::{receive, receive_whole, send, send_whole};
use super::{number, set_nonblocking};
use crate::platform::arch::syscall6;
use crate::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Empty answers after which nobody answers any more: some seconds of them.
const MOST_POLLS: u32 = 1 << 23;

/// One end of a conversation: whole messages, one after another. Answers are bytes or negative error numbers.
pub trait Way: Send + 'static {
    /// Sends a message whole.
    fn send(&mut self, message: &[u8]) -> i64;
    /// Waits for a message as long as the slice.
    fn receive(&mut self, message: &mut [u8]) -> i64;
    /// Sends one and waits for the next.
    #[inline(always)]
    fn turn(&mut self, message: &[u8], next: &mut [u8]) -> i64 {
        match self.send(message) {
            refused if refused < 0 => refused,
            _ => self.receive(next),
        }
    }
}

/// It sleeps in the call that receives.
pub struct Blocking(OwnedFd);

impl Blocking {
    /// Over this end.
    pub fn new(end: OwnedFd) -> Result<Self> {
        Ok(Self(end))
    }
}

impl Way for Blocking {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        send_whole(number(&self.0), message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        receive_whole(number(&self.0), message)
    }
}

/// It never sleeps: it asks until there is something.
pub struct Spinning(OwnedFd);

impl Spinning {
    /// Over this end, which is not waited on from here on.
    pub fn new(end: OwnedFd) -> Result<Self> {
        set_nonblocking(&end)?;
        Ok(Self(end))
    }
}

impl Way for Spinning {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        pieces(message.len(), || 0, |from| send(number(&self.0), &message[from..], 0))
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        pieces(message.len(), || 0, |from| receive(number(&self.0), &mut message[from..], 0))
    }
}

/// It sleeps in epoll_wait(2), as a server of many connections does, and then receives.
pub struct Readiness {
    end: OwnedFd,
    epoll: OwnedFd,
}

impl Readiness {
    /// Over this end, which is not waited on by itself from here on.
    pub fn new(end: OwnedFd) -> Result<Self> {
        set_nonblocking(&end)?;
        // SAFETY: OWN-BUFFER: a question without memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(Error::last_os("epoll_create1"));
        }
        // SAFETY: OWN-DESCRIPTOR.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (of, what) = (epoll.as_raw_fd(), number(&end));
        // SAFETY: OWN-BUFFER: a local is read.
        if unsafe { libc::epoll_ctl(of, libc::EPOLL_CTL_ADD, what, &raw mut event) } != 0 {
            return Err(Error::last_os("epoll_ctl"));
        }
        Ok(Self { end, epoll })
    }
}

impl Way for Readiness {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> i64 {
        // Room comes by itself while the other end reads; a loop of EAGAIN is bounded as a spinning end's is.
        pieces(message.len(), || 0, |from| send(number(&self.end), &message[from..], 0))
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> i64 {
        let epoll = self.epoll.as_raw_fd();
        let end = number(&self.end);
        pieces(message.len(), || wait(epoll), |from| receive(end, &mut message[from..], 0))
    }
}

/// epoll_wait(2) for one event, for as long as it takes.
#[inline(always)]
fn wait(epoll: RawFd) -> i64 {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let arguments = [epoll as usize, &raw mut event as usize, 1, usize::MAX, 0, 8];
    // SAFETY: OWN-BUFFER: room for one event. A time of minus one is none; the mask of signals is none.
    unsafe { syscall6(libc::SYS_epoll_pwait, arguments) }
}

/// Moves `all` bytes by a call that may move a part of them, or none yet; before each call, `ready` is waited for.
#[inline(always)]
fn pieces(all: usize, mut ready: impl FnMut() -> i64, mut call: impl FnMut(usize) -> i64) -> i64 {
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

    fn carries<W: Way>(make: fn(OwnedFd) -> Result<W>) {
        for transport in Transport::ALL {
            let [near, far] = transport.pair().expect("connected");
            let (mut near, mut far) = (make(near).expect("made"), make(far).expect("made"));
            let mut come = [0; 56];
            for byte in [1, 2] {
                assert_eq!(near.send(&[byte; 56]), 56, "{transport:?}");
                assert_eq!(far.receive(&mut come), 56, "{transport:?}");
                assert_eq!(come, [byte; 56]);
            }
        }
    }

    #[test]
    fn whoever_waits_how_gets_what_was_sent() {
        carries(Blocking::new);
        carries(Spinning::new);
        carries(Readiness::new);
    }

    #[test]
    fn pieces_follow_one_another_until_all_have_come() {
        let mut answers = vec![3, -i64::from(libc::EAGAIN), 5];
        assert_eq!(pieces(8, || 0, |_| answers.remove(0)), 8);
        assert_eq!(pieces(8, || 0, |_| 0), -i64::from(libc::EPIPE), "the end of the stream");
        assert_eq!(pieces(8, || -4, |_| 8), -4, "the wait was interrupted");
    }
}
