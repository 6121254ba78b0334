//! The far end of a stream of bytes: it is told how many will come, receives them, and says how many have come.
//!
//! What is told and said goes by a second pair of sockets, the control: eight bytes each, so that it is the same
//! for an end on another machine. A stream has no bounds and nothing of it is lost. Of datagrams the far end
//! cannot know how many were lost: the near end sends short ones, with the number of the batch, until it is
//! answered.

use super::message::{read, receive, receive_whole, send, send_whole};
use super::{has_come, number};
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

/// What the far end reads at once from a stream: as much as the usual tools do, and less than a second-level cache.
pub const ROOM_BYTES: usize = 128 << 10;
/// The length of a datagram that ends a batch. No other has it.
pub const END_BYTES: usize = 8;

/// What the bytes come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// A stream of bytes: a socket.
    Stream,
    /// A stream of bytes that is no socket: a pipe.
    Pipe,
    /// Datagrams, of which some may be lost.
    Datagram,
}

/// Who receives and counts.
pub struct Receiver {
    data: OwnedFd,
    control: OwnedFd,
    bounds: Bounds,
    room: Vec<u8>,
    batch: u64,
}

impl Receiver {
    /// Of what comes by `data`. Nothing is allocated afterwards.
    pub fn new(data: OwnedFd, control: OwnedFd, bounds: Bounds) -> Self {
        Self { data, control, bounds, room: vec![0; ROOM_BYTES], batch: 0 }
    }

    /// One batch: how many bytes will come, those bytes, and the answer; or a negative error number.
    pub fn step(&mut self) -> i64 {
        let mut told = [0; 8];
        let answer = receive_whole(number(&self.control), &mut told);
        if answer < 0 {
            return answer;
        }
        self.batch += 1;
        let expected = u64::from_le_bytes(told);
        let data = number(&self.data);
        let come = match self.bounds {
            Bounds::Stream => whole(expected, || receive(data, &mut self.room, 0)),
            Bounds::Pipe => whole(expected, || read(data, &mut self.room)),
            Bounds::Datagram => datagrams(data, expected, self.batch, &mut self.room),
        };
        match come {
            Ok(bytes) => send_whole(number(&self.control), &bytes.to_le_bytes()),
            Err(refused) => refused,
        }
    }
}

/// Receives until so many bytes have come; one that is too many is counted too.
#[inline(always)]
fn whole(expected: u64, mut receive: impl FnMut() -> i64) -> Result<u64, i64> {
    let mut come = 0;
    while come < expected {
        match receive() {
            0 => return Err(-i64::from(libc::EPIPE)),
            refused if refused < 0 => return Err(refused),
            bytes => come += bytes as u64,
        }
    }
    Ok(come)
}

/// Receives until so many bytes have come, or the batch is said to have ended.
fn datagrams(data: RawFd, expected: u64, batch: u64, room: &mut [u8]) -> Result<u64, i64> {
    let mut come = 0;
    while come < expected {
        match receive(data, room, 0) {
            refused if refused < 0 => return Err(refused),
            END if room[..END_BYTES] == batch.to_le_bytes() => break,
            END => {} // one of an earlier batch that came late
            bytes => come += bytes as u64,
        }
    }
    Ok(come)
}

const END: i64 = END_BYTES as i64;

/// The near end's part of the control.
pub struct Control {
    end: OwnedFd,
    batch: u64,
}

impl Control {
    /// Over this end.
    pub fn new(end: OwnedFd) -> Self {
        Self { end, batch: 0 }
    }

    /// Says how many bytes will come in the next batch.
    pub fn expect(&mut self, bytes: u64) -> i64 {
        self.batch += 1;
        send_whole(number(&self.end), &bytes.to_le_bytes())
    }

    /// Waits for the far end's count: so many bytes have come, or a negative error number.
    #[inline(always)]
    pub fn count(&self) -> i64 {
        let mut said = [0; 8];
        match receive_whole(number(&self.end), &mut said) {
            refused if refused < 0 => refused,
            _ => u64::from_le_bytes(said) as i64,
        }
    }

    /// The same of datagrams: says by `data` that the batch has ended until the count comes.
    pub fn count_of_datagrams(&self, data: RawFd) -> i64 {
        loop {
            let sent = send(data, &self.batch.to_le_bytes(), 0);
            if sent < 0 && sent != -i64::from(libc::ENOBUFS) {
                return sent;
            }
            match has_come(number(&self.end), PAUSE) {
                Ok(false) => {}
                Ok(true) => return self.count(),
                Err(refused) => return refused,
            }
        }
    }
}

/// Between two datagrams that end a batch: the first of them may find a full queue.
const PAUSE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::Transport;

    fn ends(transport: Transport, bounds: Bounds) -> (OwnedFd, Control, Receiver) {
        let [near, far] = transport.pair().expect("connected");
        let [ours, theirs] = Transport::UnixSeqpacket.pair().expect("connected");
        (near, Control::new(ours), Receiver::new(far, theirs, bounds))
    }

    #[test]
    fn the_count_is_what_has_come() {
        let (near, mut control, mut receiver) = ends(Transport::Tcp, Bounds::Stream);
        for batch in [10, 5_000] {
            assert!(control.expect(batch) > 0);
            assert_eq!(send_whole(number(&near), &vec![1; batch as usize]), batch as i64);
            assert!(receiver.step() > 0);
            assert_eq!(control.count(), batch as i64);
        }
    }

    #[test]
    fn what_was_not_announced_is_counted() {
        let (near, mut control, mut receiver) = ends(Transport::UnixStream, Bounds::Stream);
        control.expect(10);
        send_whole(number(&near), &[1; 17]);
        assert!(receiver.step() > 0);
        assert_eq!(control.count(), 17);
    }

    #[test]
    fn a_datagram_that_was_lost_is_not_waited_for() {
        let (near, mut control, mut receiver) = ends(Transport::Udp, Bounds::Datagram);
        for (batch, come) in [(3, 2), (2, 2)] {
            control.expect(batch * 100);
            for _ in 0..come {
                send(number(&near), &[1; 100], 0);
            }
            let receiving = std::thread::spawn(move || (receiver.step(), receiver));
            assert_eq!(control.count_of_datagrams(number(&near)), come * 100);
            let (answer, back) = receiving.join().expect("no panic");
            assert!(answer > 0);
            receiver = back;
        }
    }

    #[test]
    fn a_sender_that_has_gone_ends_the_batch() {
        let (near, mut control, mut receiver) = ends(Transport::Tcp, Bounds::Stream);
        control.expect(10);
        drop(near);
        assert_eq!(receiver.step(), -i64::from(libc::EPIPE));
    }
}
