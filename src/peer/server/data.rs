//! The services on data sockets. Each runs on a thread of its own until its client closes the socket or the session
//! ends.

use super::super::control_protocol::{DATA_PATIENCE, GLANCE};
use super::super::secret::{Secret, is_same_secret};
use super::threshold::{Admission, Threshold, is_retryable};
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Buffer size of a sink, bytes.
const PIECE: usize = 128 << 10;

/// Counts of one thread. Only that thread writes them, so that no atomic read-modify-write is needed.
#[derive(Default)]
pub(super) struct Tally {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    fn add(&self, messages: u64, bytes: usize) {
        let more = |count: &AtomicU64, by| count.store(count.load(Ordering::Relaxed) + by, Ordering::Release);
        more(&self.messages, messages);
        more(&self.bytes, bytes as u64);
    }

    /// Messages and bytes.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire))
    }
}

/// Answers each message of `size` bytes: with itself `IN_FULL`, or with one byte, its number modulo 256.
pub(super) fn serve_messages<const IN_FULL: bool>(
    mut stream: &TcpStream,
    size: usize,
    tally: &Tally,
) -> Result<()> {
    let (mut message, mut number) = (vec![0; size], 0u8);
    loop {
        stream.read_exact(&mut message)?;
        number = number.wrapping_add(1);
        // Counted first, so that a client with the answer finds it in the counts.
        tally.add(1, size);
        stream.write_all(if IN_FULL { &message } else { std::slice::from_ref(&number) })?;
    }
}

/// Receives batches, and answers each with its length.
pub(super) fn serve_sink(mut stream: &TcpStream, tally: &Tally) -> Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let mut told = [0; 8];
        stream.read_exact(&mut told)?;
        let mut left = u64::from_le_bytes(told);
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            match stream.read(&mut piece[..room])? {
                0 => return Ok(()),
                came => {
                    tally.add(0, came);
                    left -= came as u64;
                }
            }
        }
        tally.add(1, 0);
        stream.write_all(&told)?;
    }
}

/// Sends back the client's datagrams that begin with the secret, each at its full length.
pub(super) fn serve_datagrams(
    socket: &UdpSocket,
    admission: Admission,
    tally: &Tally,
    ended: &AtomicBool,
) -> Result<()> {
    let mut packet = vec![0; 1 << 16];
    let begins =
        |packet: &[u8]| packet.first_chunk().is_some_and(|first| is_same_secret(*first, admission.secret));
    socket.set_read_timeout(Some(GLANCE))?;
    while !ended.load(Ordering::SeqCst) {
        match socket.recv_from(&mut packet) {
            Ok((came, from)) if admission.allows_address(from) && begins(&packet[..came]) => {
                // From here on the kernel drops datagrams of other senders.
                socket.connect(from)?;
                tally.add(1, came);
                socket.send(&packet[..came])?;
                break;
            }
            Err(error) if !is_retryable(&error) => return Err(error),
            _ => {}
        }
    }
    socket.set_read_timeout(None)?;
    while !ended.load(Ordering::SeqCst) {
        match socket.recv(&mut packet) {
            Ok(came) if begins(&packet[..came]) => {
                tally.add(1, came);
                // A full send buffer loses the datagram.
                let _ = socket.send(&packet[..came]);
            }
            // ECONNREFUSED reports an earlier datagram of ours to a socket that was closed.
            Err(error) if !is_retryable(&error) && error.kind() != ErrorKind::ConnectionRefused => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Greets connections one after another.
pub(super) fn serve_greeter(mut threshold: Threshold, tally: &Tally, ended: &AtomicBool) -> Result<()> {
    while !ended.load(Ordering::SeqCst) {
        for stream in threshold.admit_streams()? {
            // A broken connection does not affect the next.
            let _ = greet_connection(&stream, tally, ended);
        }
    }
    Ok(())
}

/// Answers the secret with one byte and waits, for a limited time, until the client closes the connection.
fn greet_connection(mut stream: &TcpStream, tally: &Tally, ended: &AtomicBool) -> Result<()> {
    tally.add(1, size_of::<Secret>());
    stream.write_all(&[1])?;
    let deadline = Instant::now() + DATA_PATIENCE;
    stream.set_read_timeout(Some(GLANCE))?;
    while Instant::now() < deadline && !ended.load(Ordering::SeqCst) {
        match stream.read(&mut [0]) {
            Err(error) if is_retryable(&error) => {}
            // The end of the stream, or unexpected data.
            _ => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn a_message_is_answered_by_its_number_and_not_before_it_is_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let tally = Tally::default();
        std::thread::scope(|scope| {
            scope.spawn(|| serve_messages::<false>(&far, 3000, &tally));
            for number in (1..=255).chain([0, 1]) {
                let mut answer = [0];
                near.write_all(&[7; 2999]).unwrap();
                if number == 255 {
                    near.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                    assert!(near.read(&mut answer).is_err(), "the message lacks a byte");
                    near.set_read_timeout(None).unwrap();
                }
                near.write_all(&[7]).unwrap();
                near.read_exact(&mut answer).unwrap();
                assert_eq!(answer, [number]);
            }
            near.shutdown(std::net::Shutdown::Both).unwrap();
        });
        assert_eq!(tally.totals(), (257, 257 * 3000));
    }
}
