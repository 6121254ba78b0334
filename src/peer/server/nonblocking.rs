//! Sockets that are waited for together and never block.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::time::Duration;

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
