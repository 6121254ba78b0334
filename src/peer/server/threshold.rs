//! Admission of the data streams of one client. Streams from other addresses or with another secret are refused; a
//! silent one does not delay others, since all are polled together.

use super::super::secret::{Secret, is_same_secret};
use super::super::service_limit::{DATA_PATIENCE, GLANCE, MOST_AT_DOOR};
use super::nonblocking::{PAUSE, accept_all, is_retryable, wait_until_readable};
use std::io::{Read, Result};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

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
                Some(true) => admitted.extend(into_blocking(guest.stream)),
                None if guest.since.elapsed() < DATA_PATIENCE => self.guests.push(guest),
                Some(false) | None => {}
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

fn into_blocking(stream: TcpStream) -> Option<TcpStream> {
    stream.set_nonblocking(false).is_ok().then_some(stream)
}
