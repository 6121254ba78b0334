//! The admission of the data sockets of one client. Streams from other addresses or with another secret are refused; a
//! silent one does not delay others, since all are polled together and none blocks.

use super::super::control_protocol::{DATA_PATIENCE, GLANCE, MOST_AT_DOOR};
use super::super::secret::{Secret, is_same_secret};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Result};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Pause of a listener after descriptors or memory ran out. Without it, a connection that is left in the queue would wake
/// the listener again at once.
const PAUSE: Duration = Duration::from_millis(10);

/// Which data sockets are admitted.
#[derive(Clone, Copy)]
pub(super) struct Admission {
    /// The address from which data sockets must connect; `None` for any.
    pub(super) client: Option<IpAddr>,
    /// The secret with which they must begin.
    pub(super) secret: Secret,
}

impl Admission {
    /// Whether a data socket may come from this address.
    pub(super) fn allows_address(&self, from: SocketAddr) -> bool {
        self.client.is_none_or(|client| from.ip() == client)
    }
}

/// A listener and the streams that have not sent their secret yet.
pub(super) struct Threshold {
    listener: TcpListener,
    admission: Admission,
    guests: Vec<Guest>,
}

struct Guest {
    stream: TcpStream,
    since: Instant,
    shown: Secret,
    came: usize,
}

impl Threshold {
    /// Admits streams of this listener, which must be non-blocking.
    pub(super) fn new(listener: TcpListener, admission: Admission) -> Self {
        Self { listener, admission, guests: Vec::new() }
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
            match guest.check_secret(self.admission.secret) {
                Some(true) if guest.stream.set_nonblocking(false).is_ok() => admitted.push(guest.stream),
                None if guest.since.elapsed() < DATA_PATIENCE => self.guests.push(guest),
                _ => {}
            }
        }
        Ok(admitted)
    }

    /// Accepts the waiting streams. If there are too many, drops the oldest, since the real client sends its secret at once.
    fn accept_guests(&mut self) -> Result<()> {
        for _ in 0..MOST_AT_DOOR {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if self.admission.allows_address(from) && stream.set_nonblocking(true).is_ok() {
                        let shown = Secret::default();
                        self.guests.push(Guest { stream, since: Instant::now(), shown, came: 0 });
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // Frees a descriptor for the next stream.
                        self.guests.drain(..self.guests.len().min(1));
                        std::thread::sleep(PAUSE);
                        break;
                    }
                    Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => return Err(error),
                    // The queue is empty, or the next stream was closed meanwhile.
                    _ => break,
                },
            }
        }
        let surplus = self.guests.len().saturating_sub(MOST_AT_DOOR);
        self.guests.drain(..surplus);
        Ok(())
    }
}

impl Guest {
    /// Reads the secret and no byte behind it. Returns whether it is right, or `None` while it is incomplete.
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

/// Waits until one of `sockets` is readable or `patience` has passed. Returns for each whether it is readable.
pub(super) fn wait_until_readable<'a>(
    sockets: impl Iterator<Item = BorrowedFd<'a>>,
    patience: Duration,
) -> Vec<bool> {
    let mut polled: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    // A wait that fails or is interrupted is repeated by the caller.
    let _ = poll(&mut polled, timeout);
    polled.iter().map(|one| one.any().unwrap_or(false)).collect()
}

/// Whether a failed read or write may be tried again.
pub(super) fn is_retryable(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
