//! Where the data streams of one client come in. Who comes from elsewhere, or shows another secret, is sent away;
//! who says nothing keeps nobody waiting, since all of them are heard at the same time.

use super::super::secret::{Secret, same};
use super::super::service_limit::{DATA_PATIENCE, GLANCE, MOST_AT_DOOR};
use super::nonblocking::{PAUSE, accept_all, is_pause, is_ready};
use std::io::{Read, Result};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

/// A listener, and who has come to it and shown no secret yet.
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
    /// For streams from this address that begin with this secret. The listener must not wait.
    pub(super) fn of(listener: TcpListener, (client, secret): (IpAddr, Secret)) -> Self {
        Self { listener, client, secret, guests: Vec::new() }
    }

    /// Waits for a moment; those that are known by then, which wait from here on.
    ///
    /// # Errors
    /// The listener is no more.
    pub(super) fn admitted(&mut self) -> Result<Vec<TcpStream>> {
        let sockets = std::iter::once(self.listener.as_fd());
        let sockets = sockets.chain(self.guests.iter().map(|guest| guest.stream.as_fd()));
        let spoke = is_ready(sockets, GLANCE);
        if spoke[0] {
            self.receive()?;
        }
        let mut admitted = Vec::new();
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.show(self.secret) {
                Some(true) => admitted.extend(waiting(guest.stream)),
                None if guest.since.elapsed() < DATA_PATIENCE => self.guests.push(guest),
                Some(false) | None => {}
            }
        }
        Ok(admitted)
    }

    /// Lets in whoever comes from the client's address. Where there are too many the oldest goes: a client shows its
    /// secret at once.
    fn receive(&mut self) -> Result<()> {
        let Self { listener, client, guests, .. } = self;
        let ran_out = accept_all(listener, MOST_AT_DOOR, |stream, from| {
            if from.ip() == *client && stream.set_nonblocking(true).is_ok() {
                guests.push(Guest { stream, since: Instant::now(), shown: Secret::default(), came: 0 });
            }
        })?;
        let surplus = guests.len().saturating_sub(MOST_AT_DOOR);
        guests.drain(..surplus);
        if ran_out {
            // Who goes from here leaves a descriptor for who comes next.
            guests.drain(..guests.len().min(1));
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Guest {
    /// Reads what there is of the secret and nothing beyond it: whether it is the one, once it is known.
    fn show(&mut self, secret: Secret) -> Option<bool> {
        while self.came < self.shown.len() {
            match self.stream.read(&mut self.shown[self.came..]) {
                Ok(0) => return Some(false),
                Ok(more) => self.came += more,
                Err(error) if is_pause(&error) => return None,
                Err(_) => return Some(false),
            }
        }
        Some(same(self.shown, secret))
    }
}

fn waiting(stream: TcpStream) -> Option<TcpStream> {
    stream.set_nonblocking(false).is_ok().then_some(stream)
}
