//! Sockets that are waited for together and never block, and the admission of the data streams of one client. Streams from
//! other addresses or with another secret are refused; a silent one does not delay others, since all are polled together.

use super::super::control_protocol::{DATA_PATIENCE, GLANCE, MOST_AT_DOOR};
use super::super::proof::{Secret, is_same_secret};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Result};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// A listener and the streams that have not sent their secret yet.
pub(super) struct Threshold {
    listener: TcpListener,
    client: IpAddr,
    secret: Secret,
    guests: Vec<Guest>,
}

struct Guest {
    stream: TcpStream,
    since: Instant,
    shown: Secret,
    came: usize,
}

impl Threshold {
    /// Admits streams from one address that begin with a secret. The listener must be non-blocking.
    pub(super) fn new(listener: TcpListener, (client, secret): (IpAddr, Secret)) -> Self {
        Self { listener, client, secret, guests: Vec::new() }
    }

    /// Waits for a short time and returns the streams that have sent the secret, in blocking mode.
    ///
    /// # Errors
    /// The listener has failed.
    pub(super) fn admit_streams(&mut self) -> Result<Vec<TcpStream>> {
        let sockets = std::iter::once(self.listener.as_fd());
        let sockets = sockets.chain(self.guests.iter().map(|guest| guest.stream.as_fd()));
        let spoke = wait_until_readable(sockets, GLANCE);
        if spoke[0] {
            self.accept_guests()?;
        }
        let mut admitted = Vec::new();
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.check_secret(self.secret) {
                Some(true) if guest.stream.set_nonblocking(false).is_ok() => admitted.push(guest.stream),
                None if guest.since.elapsed() < DATA_PATIENCE => self.guests.push(guest),
                _ => {}
            }
        }
        Ok(admitted)
    }

    /// Accepts streams from the client's address. If there are too many the oldest is dropped: a client sends its
    /// secret at once.
    fn accept_guests(&mut self) -> Result<()> {
        let Self { listener, client, guests, .. } = self;
        let ran_out = accept_all(listener, MOST_AT_DOOR, |stream, from| {
            if from.ip() == *client && stream.set_nonblocking(true).is_ok() {
                guests.push(Guest { stream, since: Instant::now(), shown: Secret::default(), came: 0 });
            }
        })?;
        let surplus = guests.len().saturating_sub(MOST_AT_DOOR);
        guests.drain(..surplus);
        if ran_out {
            // Frees a descriptor for the next stream.
            guests.drain(..guests.len().min(1));
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Guest {
    /// Reads the secret, and nothing after it; once it is complete, whether it is right.
    fn check_secret(&mut self, secret: Secret) -> Option<bool> {
        while self.came < self.shown.len() {
            match self.stream.read(&mut self.shown[self.came..]) {
                Ok(0) => return Some(false),
                Ok(more) => self.came += more,
                Err(error) if is_retryable(&error) => return None,
                Err(_) => return Some(false),
            }
        }
        Some(is_same_secret(self.shown, secret))
    }
}

/// How long a listener waits after descriptors or memory ran out: a connection that is left in its queue would else
/// wake it again at once.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// Waits until one of `sockets` is readable or `patience` has passed. Returns for each whether it is readable.
pub(super) fn wait_until_readable<'a>(
    sockets: impl Iterator<Item = BorrowedFd<'a>>,
    patience: Duration,
) -> Vec<bool> {
    let mut polled: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    // The caller looks for a signal that interrupted it.
    let _ = poll(&mut polled, timeout);
    polled.iter().map(|one| one.any().unwrap_or(false)).collect()
}

/// Whether a failed read or write may be tried again.
pub(super) fn is_retryable(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Accepts the connections that wait, at most `most`; whether descriptors or memory ran out.
///
/// # Errors
/// The socket no longer listens.
pub(super) fn accept_all(
    listener: &TcpListener,
    most: usize,
    mut take: impl FnMut(TcpStream, SocketAddr),
) -> std::io::Result<bool> {
    for _ in 0..most {
        match listener.accept() {
            Ok((stream, from)) => take(stream, from),
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => Ok(true),
                    Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => Err(error),
                    // None is left, or the next one was closed meanwhile.
                    _ => Ok(false),
                };
            }
        }
    }
    Ok(false)
}
