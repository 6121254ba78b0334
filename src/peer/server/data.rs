//! What is done with what comes on the data sockets. Each of these runs on a thread of its own until its client
//! ends it, is cut off, or the conversation that it belongs to ends.

use super::super::secret::{Secret, same};
use super::super::service_limit::{DATA_PATIENCE, GLANCE};
use super::nonblocking::is_pause;
use super::threshold::Threshold;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// A stream is taken in pieces of this size, bytes.
const PIECE: usize = 128 << 10;

/// What one thread has served. Only that thread writes, so that counting costs it no locked operation.
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
    pub(super) fn told(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire))
    }
}

/// Sends every message of `size` bytes back.
pub(super) fn echo(mut stream: &TcpStream, size: usize, tally: &Tally) -> Result<()> {
    let mut message = vec![0; size];
    loop {
        stream.read_exact(&mut message)?;
        // Before the answer, so that who has it and asks is told of it.
        tally.add(1, size);
        stream.write_all(&message)?;
    }
}

/// Takes batches, and answers how many bytes each of them had.
pub(super) fn sink(mut stream: &TcpStream, tally: &Tally) -> Result<()> {
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

/// Sends datagrams back to `client`: those alone that begin with the secret, and none longer than it came.
pub(super) fn datagrams(
    socket: &UdpSocket,
    (client, secret): (IpAddr, Secret),
    tally: &Tally,
    ended: &AtomicBool,
) -> Result<()> {
    let mut packet = vec![0; 1 << 16];
    let begins = |packet: &[u8]| packet.first_chunk().is_some_and(|first| same(*first, secret));
    socket.set_read_timeout(Some(GLANCE))?;
    while !ended.load(Ordering::SeqCst) {
        match socket.recv_from(&mut packet) {
            Ok((came, from)) if from.ip() == client && begins(&packet[..came]) => {
                // From here on the kernel takes none of anybody else.
                socket.connect(from)?;
                tally.add(1, came);
                socket.send(&packet[..came])?;
                break;
            }
            Err(error) if !is_pause(&error) => return Err(error),
            _ => {}
        }
    }
    socket.set_read_timeout(None)?;
    while !ended.load(Ordering::SeqCst) {
        match socket.recv(&mut packet) {
            Ok(came) if begins(&packet[..came]) => {
                tally.add(1, came);
                // What the way back has no room for is lost, as datagrams are.
                let _ = socket.send(&packet[..came]);
            }
            // A datagram of ours that nobody took any more is answered here.
            Err(error) if !is_pause(&error) && error.kind() != ErrorKind::ConnectionRefused => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Takes connections one after another.
pub(super) fn greet(mut threshold: Threshold, tally: &Tally, ended: &AtomicBool) -> Result<()> {
    while !ended.load(Ordering::SeqCst) {
        for stream in threshold.admitted()? {
            // Who breaks off is no reason not to greet the next.
            let _ = greeting(&stream, tally, ended);
        }
    }
    Ok(())
}

/// A byte back for the secret, and then the end, which is the client's to make: it is waited for, but not for long.
fn greeting(mut stream: &TcpStream, tally: &Tally, ended: &AtomicBool) -> Result<()> {
    tally.add(1, size_of::<Secret>());
    stream.write_all(&[1])?;
    let deadline = Instant::now() + DATA_PATIENCE;
    stream.set_read_timeout(Some(GLANCE))?;
    while Instant::now() < deadline && !ended.load(Ordering::SeqCst) {
        match stream.read(&mut [0]) {
            Err(error) if is_pause(&error) => {}
            // The end, or something that is none: it is over either way.
            _ => break,
        }
    }
    Ok(())
}
