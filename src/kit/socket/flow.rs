//! The far end of a stream of bytes: it gets the number of bytes that will be sent, receives them, and returns their count.
//!
//! Announcement and count go over a second pair of sockets, the control. Each has eight bytes, in the same form for an end
//! on another machine. A stream loses no bytes. Datagrams may be lost, and the far end cannot know how many: the near end
//! therefore sends short datagrams with the number of the batch until the count arrives.

use super::transfer::{read, receive, receive_whole, send, send_whole};
use super::{data_arrives_within, raw_descriptor};
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

/// Bytes that the far end reads at once: as many as the usual tools do, and fewer than a second-level cache holds.
pub const ROOM_BYTES: usize = 128 << 10;
/// Length of the datagram that ends a batch. No other datagram has it.
pub const END_BYTES: usize = 8;

/// The kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// A stream of bytes: a socket.
    Stream,
    /// A stream of bytes that is no socket: a pipe.
    Pipe,
    /// Datagrams, some of which may be lost.
    Datagram,
}

/// The end that receives and counts.
pub struct Receiver {
    data: OwnedFd,
    control: OwnedFd,
    bounds: Bounds,
    room: Vec<u8>,
    batch: u64,
}

impl Receiver {
    /// Receives by `data`. Allocates here and never later.
    pub fn new(data: OwnedFd, control: OwnedFd, bounds: Bounds) -> Self {
        Self { data, control, bounds, room: vec![0; ROOM_BYTES], batch: 0 }
    }

    /// Receives one batch, first its announcement and then its bytes, and sends the count.
    /// Returns a negative error number if a call is refused.
    pub fn receive_batch(&mut self) -> i64 {
        let mut announced = [0; 8];
        let answer = receive_whole(raw_descriptor(&self.control), &mut announced);
        if answer < 0 {
            return answer;
        }
        self.batch += 1;
        let expected = u64::from_le_bytes(announced);
        let data = raw_descriptor(&self.data);
        let received = match self.bounds {
            Bounds::Stream => receive_stream(expected, || receive(data, &mut self.room, 0)),
            Bounds::Pipe => receive_stream(expected, || read(data, &mut self.room)),
            Bounds::Datagram => receive_datagrams(data, expected, self.batch, &mut self.room),
        };
        match received {
            Ok(bytes) => send_whole(raw_descriptor(&self.control), &bytes.to_le_bytes()),
            Err(refused) => refused,
        }
    }
}

/// Receives at least `expected` bytes; surplus bytes are counted.
#[inline(always)]
fn receive_stream(expected: u64, mut receive: impl FnMut() -> i64) -> Result<u64, i64> {
    let mut received = 0;
    while received < expected {
        match receive() {
            0 => return Err(-i64::from(libc::EPIPE)),
            refused if refused < 0 => return Err(refused),
            bytes => received += bytes as u64,
        }
    }
    Ok(received)
}

/// Receives until `expected` bytes, or the datagram that ends the batch, have arrived. Returns the bytes received.
fn receive_datagrams(data: RawFd, expected: u64, batch: u64, room: &mut [u8]) -> Result<u64, i64> {
    let mut received = 0;
    while received < expected {
        match receive(data, room, 0) {
            refused if refused < 0 => return Err(refused),
            END if room[..END_BYTES] == batch.to_le_bytes() => break,
            END => {} // late, from an earlier batch
            bytes => received += bytes as u64,
        }
    }
    Ok(received)
}

const END: i64 = END_BYTES as i64;

/// The near end of the control connection.
pub struct Control {
    end: OwnedFd,
    batch: u64,
}

impl Control {
    /// Over this end.
    pub fn new(end: OwnedFd) -> Self {
        Self { end, batch: 0 }
    }

    /// Announces the bytes of the next batch. Returns a negative error number where the call is refused.
    pub fn announce_batch(&mut self, bytes: u64) -> i64 {
        self.batch += 1;
        send_whole(raw_descriptor(&self.end), &bytes.to_le_bytes())
    }

    /// Waits for the far end's count. Returns bytes or a negative error number.
    #[inline(always)]
    pub fn receive_count(&self) -> i64 {
        let mut count = [0; 8];
        match receive_whole(raw_descriptor(&self.end), &mut count) {
            refused if refused < 0 => refused,
            _ => u64::from_le_bytes(count) as i64,
        }
    }

    /// The same for datagrams: sends the datagram that ends the batch over `data`, again and again until the count arrives.
    pub fn receive_datagram_count(&self, data: RawFd) -> i64 {
        loop {
            let sent = send(data, &self.batch.to_le_bytes(), 0);
            if sent < 0 && sent != -i64::from(libc::ENOBUFS) {
                return sent;
            }
            match data_arrives_within(raw_descriptor(&self.end), PAUSE) {
                Ok(false) => {}
                Ok(true) => return self.receive_count(),
                Err(refused) => return refused,
            }
        }
    }
}

/// Time between two datagrams that end a batch. One is not enough: it may be dropped at a full queue.
const PAUSE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::socket::Transport;

    fn ends(transport: Transport, bounds: Bounds) -> (OwnedFd, Control, Receiver) {
        let [near, far] = transport.connected_pair().expect("connected");
        let [ours, theirs] = Transport::UnixSeqpacket.connected_pair().expect("connected");
        (near, Control::new(ours), Receiver::new(far, theirs, bounds))
    }

    #[test]
    fn the_count_is_what_was_received() {
        let (near, mut control, mut receiver) = ends(Transport::Tcp, Bounds::Stream);
        for batch in [10, 5_000] {
            assert!(control.announce_batch(batch) > 0);
            assert_eq!(send_whole(raw_descriptor(&near), &vec![1; batch as usize]), batch as i64);
            assert!(receiver.receive_batch() > 0);
            assert_eq!(control.receive_count(), batch as i64);
        }
    }

    #[test]
    fn surplus_bytes_are_counted() {
        let (near, mut control, mut receiver) = ends(Transport::UnixStream, Bounds::Stream);
        control.announce_batch(10);
        send_whole(raw_descriptor(&near), &[1; 17]);
        assert!(receiver.receive_batch() > 0);
        assert_eq!(control.receive_count(), 17);
    }

    #[test]
    fn a_lost_datagram_is_not_waited_for() {
        let (near, mut control, mut receiver) = ends(Transport::Udp, Bounds::Datagram);
        for (batch, arriving) in [(3, 2), (2, 2)] {
            control.announce_batch(batch * 100);
            for _ in 0..arriving {
                send(raw_descriptor(&near), &[1; 100], 0);
            }
            let receiving = std::thread::spawn(move || (receiver.receive_batch(), receiver));
            assert_eq!(control.receive_datagram_count(raw_descriptor(&near)), arriving * 100);
            let (answer, back) = receiving.join().expect("no panic");
            assert!(answer > 0);
            receiver = back;
        }
    }

    #[test]
    fn a_closed_connection_ends_the_batch() {
        let (near, mut control, mut receiver) = ends(Transport::Tcp, Bounds::Stream);
        control.announce_batch(10);
        drop(near);
        assert_eq!(receiver.receive_batch(), -i64::from(libc::EPIPE));
    }
}
