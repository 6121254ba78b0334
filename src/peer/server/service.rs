//! A service of the server: its data port, the admission of data sockets, and a thread for each of them.

use super::super::control_protocol::{
    Counted, MEETING_PATIENCE, Open, Opened, READ_PATIENCE, STACK, Service,
};
use super::super::secret::generate_secret;
use super::data::{self, Tally};
use super::threshold::{Admission, Threshold};
use crate::error::{Error, Result};
use crate::platform::socket_handle::shut_down;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// The socket to which data sockets connect.
enum Door {
    /// Streams.
    Streams(TcpListener),
    /// Datagrams.
    Datagrams(UdpSocket),
}

/// A service that waits for its data sockets.
pub(super) struct Opening {
    asked: Open,
    door: Door,
    admission: Admission,
}

impl Opening {
    /// Opens a data port at the first of these addresses that this machine has. It accepts the client at the address
    /// `client`, or at any address if that is `None`.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the socket or the secret is refused.
    pub(super) fn open_port(at: &[SocketAddr], client: Option<IpAddr>, asked: Open) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: "opening a data socket".into(), cause };
        let door = match asked.service {
            Service::DatagramEcho => Door::Datagrams(UdpSocket::bind(at).map_err(refused)?),
            _ => {
                let listener = TcpListener::bind(at).map_err(refused)?;
                listener.set_nonblocking(true).map_err(refused)?;
                Door::Streams(listener)
            }
        };
        Ok(Self { asked, door, admission: Admission { client, secret: generate_secret()? } })
    }

    /// The port and the secret, for the client.
    ///
    /// # Errors
    /// The address of the socket is unknown.
    pub(super) fn port_and_secret(&self) -> std::io::Result<Opened> {
        let address = match &self.door {
            Door::Streams(listener) => listener.local_addr()?,
            Door::Datagrams(socket) => socket.local_addr()?,
        };
        Ok(Opened { port: address.port(), secret: self.admission.secret })
    }

    /// Waits for the announced streams and serves them. Streams from other addresses or without the secret are refused.
    /// Stops waiting when `has_ended` returns true.
    ///
    /// # Errors
    /// [`Error::Disturbed`] if the streams do not arrive in time; [`Error::Kernel`] where a thread is refused.
    pub(super) fn start_serving(self, has_ended: impl Fn() -> bool) -> Result<Serving> {
        let mut serving = Serving::default();
        let admission = self.admission;
        match (self.asked.service, self.door) {
            (Service::Greeter, Door::Streams(listener)) => {
                serving.ends.push(shutdown_handle(listener.try_clone())?);
                let threshold = Threshold::new(listener, admission);
                serving.start_thread(move |tally, ended| data::serve_greeter(threshold, tally, ended))?;
            }
            (_, Door::Datagrams(socket)) => {
                serving.ends.push(shutdown_handle(socket.try_clone())?);
                serving.start_thread(move |tally, ended| {
                    data::serve_datagrams(&socket, admission, tally, ended)
                })?;
            }
            (service, Door::Streams(listener)) => {
                for stream in
                    accept_streams(Threshold::new(listener, admission), self.asked.streams, has_ended)?
                {
                    serving.ends.push(shutdown_handle(stream.try_clone())?);
                    serving.route = stream.local_addr().and_then(|own| Ok((own, stream.peer_addr()?))).ok();
                    let size = self.asked.bytes as usize;
                    serving.start_thread(move |tally, _| match service {
                        Service::Sink => data::serve_sink(&stream, tally),
                        Service::Reply => data::serve_messages::<false>(&stream, size, tally),
                        _ => data::serve_messages::<true>(&stream, size, tally),
                    })?;
                }
            }
        }
        Ok(serving)
    }
}

/// A second descriptor of a socket, by which another thread shuts the socket down and so ends the thread that serves it.
fn shutdown_handle<S: Into<OwnedFd>>(copy: std::io::Result<S>) -> Result<OwnedFd> {
    copy.map(Into::into).map_err(|cause| Error::Kernel { call: "dup of a data socket".into(), cause })
}

fn accept_streams(mut at: Threshold, wanted: u32, has_ended: impl Fn() -> bool) -> Result<Vec<TcpStream>> {
    let (mut streams, wanted) = (Vec::new(), wanted as usize);
    let over = |cause| Error::Kernel { call: "accept of a data stream".into(), cause };
    let set = |stream: &TcpStream| {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(READ_PATIENCE))
    };
    let deadline = Instant::now() + MEETING_PATIENCE;
    while streams.len() < wanted {
        if Instant::now() > deadline || has_ended() {
            return Err(Error::Disturbed(format!("{} of {wanted} data streams came in time", streams.len())));
        }
        let left = wanted - streams.len();
        let known = at.admit_streams().map_err(over)?.into_iter();
        streams.extend(known.filter(|stream| set(stream).is_ok()).take(left));
    }
    Ok(streams)
}

/// The threads that serve the data sockets. Dropping this value ends them.
#[derive(Default)]
pub(super) struct Serving {
    tallies: Vec<Arc<Tally>>,
    ends: Vec<OwnedFd>,
    /// The local address and the client's address of the last stream.
    pub(super) route: Option<(SocketAddr, SocketAddr)>,
    threads: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

impl Serving {
    fn start_thread(
        &mut self,
        serve: impl FnOnce(&Tally, &AtomicBool) -> std::io::Result<()> + Send + 'static,
    ) -> Result<()> {
        let tally = Arc::new(Tally::default());
        self.tallies.push(Arc::clone(&tally));
        let ended = Arc::clone(&self.ended);
        // An error needs no report: the client notices that the stream ends.
        let life = move || _ = serve(&tally, &ended);
        let builder = std::thread::Builder::new().name("peer data".into()).stack_size(STACK);
        let refused = |cause| Error::Kernel { call: "clone of a data thread".into(), cause };
        self.threads.push(builder.spawn(life).map_err(refused)?);
        Ok(())
    }

    /// The counts of all threads so far.
    pub(super) fn total_counts(&self) -> Counted {
        self.tallies.iter().map(|tally| tally.totals()).fold(Counted::default(), |sum, (messages, bytes)| {
            Counted { messages: sum.messages + messages, bytes: sum.bytes + bytes }
        })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.ends.iter().for_each(shut_down);
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}
