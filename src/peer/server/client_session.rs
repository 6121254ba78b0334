//! The session of an authenticated client, within limits, and its service: the data sockets, with a thread for each.

use super::super::control_protocol::{
    Answer, Ask, Counted, DATA_PATIENCE, GLANCE, Limits, Open, Opened, READ_PATIENCE, STACK, Service, Talk,
    Welcome,
};
use super::super::proof::{Secret, random_bytes, to_hex};
use super::super::station;
use super::data::{self, Tally};
use super::threshold::Threshold;
use crate::error::{Error, Result};
use crate::json_line::NoMessage;
use crate::platform::socket_handle::shut_down;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// A session with a client.
pub(super) struct Session<'a> {
    pub(super) talk: Talk,
    pub(super) own: SocketAddr,
    pub(super) client: SocketAddr,
    pub(super) limits: Limits,
    /// Set when the server is to end.
    pub(super) ending: &'a AtomicBool,
}

/// The reason for which the server ends a session; `None` where the connection has ended or failed.
type Farewell = Option<String>;

fn farewell(why: NoMessage) -> Farewell {
    let is_other_protocol = matches!(why, NoMessage::Long(_) | NoMessage::Invalid(_));
    is_other_protocol.then(|| "that is no sentence of the protocol".into())
}

/// What a client has used of its limits.
struct Used {
    since: Instant,
    /// Time of the last request or data.
    active: Instant,
    /// Bytes of services that have ended.
    before: u64,
    /// Bytes at the last check.
    seen: u64,
}

impl Session<'_> {
    /// Welcomes the client and serves it until one of the two ends the session.
    pub(super) fn run(mut self, proof: String) {
        let station = station::describe_this_machine(self.own, self.client);
        let welcome = Answer::Welcome(Box::new(Welcome { proof, station, reached: self.own }));
        if self.talk.send(&welcome).is_err() {
            return;
        }
        if let Err(Some(sentence)) = self.serve_requests() {
            // Fails if the client has gone meanwhile.
            let _ = self.talk.send(&Answer::Ended(sentence));
        }
        // The server has another handle, which would keep the connection open.
        shut_down(self.talk.stream());
    }

    fn serve_requests(&mut self) -> std::result::Result<(), Farewell> {
        let now = Instant::now();
        let mut used = Used { since: now, active: now, before: 0, seen: 0 };
        let mut serving = None;
        loop {
            match self.talk.receive(GLANCE) {
                Ok(Ask::Open(open)) => {
                    used.before += service_counts(&serving).bytes;
                    used.active = Instant::now();
                    // The previous service ends before the next begins.
                    drop(serving.take());
                    serving = Some(self.open_service(open)?);
                    used.active = Instant::now();
                }
                Ok(Ask::Count) => {
                    used.active = Instant::now();
                    self.talk.send(&Answer::Counted(service_counts(&serving))).map_err(farewell)?;
                }
                Ok(Ask::Hello(_) | Ask::Proof(_)) => {
                    return Err(Some("this conversation has begun already".into()));
                }
                Err(NoMessage::Late) => {}
                Err(why) => return Err(farewell(why)),
            }
            self.check_limits(&mut used, service_counts(&serving).bytes)?;
        }
    }

    fn open_service(&mut self, asked: Open) -> std::result::Result<Serving, Farewell> {
        if let Some(complaint) = asked.invalid_reason() {
            return Err(Some(complaint));
        }
        let said = |error: crate::error::Error| Some(error.to_string());
        let opening = Opening::open_port(self.own, self.client, asked).map_err(said)?;
        let told = opening.port_and_secret().map_err(|cause| Some(cause.to_string()))?;
        self.talk.send(&Answer::Opened(told)).map_err(farewell)?;
        let serving = opening
            .start_serving(|| self.ending.load(Ordering::SeqCst) || self.talk.is_closed())
            .map_err(said)?;
        self.talk.send(&Answer::Ready).map_err(farewell)?;
        Ok(serving)
    }

    /// Ends the session at a limit.
    fn check_limits(&self, used: &mut Used, bytes: u64) -> std::result::Result<(), Farewell> {
        let Limits { bytes: most, time, idle, .. } = self.limits;
        if bytes != used.seen {
            (used.seen, used.active) = (bytes, Instant::now());
        }
        let said = |sentence: String| Err(Some(sentence));
        if self.ending.load(Ordering::SeqCst) {
            return said("it was asked to end".into());
        }
        if used.before + bytes > most {
            return said(format!("{most} bytes are what it takes of one client: raise `--bytes` there"));
        }
        if used.since.elapsed() > time {
            return said(format!(
                "{} s are what it gives one client: raise `--seconds` there",
                time.as_secs()
            ));
        }
        if used.active.elapsed() > idle {
            return said(format!("nothing was asked or sent for {} s", idle.as_secs()));
        }
        Ok(())
    }
}

fn service_counts(serving: &Option<Serving>) -> Counted {
    serving.as_ref().map(Serving::total_counts).unwrap_or_default()
}

/// The socket to which data sockets connect.
pub(super) enum Door {
    /// Streams.
    Streams(TcpListener),
    /// Datagrams.
    Datagrams(UdpSocket),
}

/// A service that waits for its data sockets.
pub(super) struct Opening {
    pub(super) asked: Open,
    pub(super) door: Door,
    client: IpAddr,
    secret: Secret,
}

impl Opening {
    /// Opens a data port at the address `own` for one client.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the socket or the secret is refused.
    pub(super) fn open_port(mut own: SocketAddr, client: SocketAddr, asked: Open) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: "opening a data socket".into(), cause };
        own.set_port(0);
        let door = match asked.service {
            Service::DatagramEcho => Door::Datagrams(UdpSocket::bind(own).map_err(refused)?),
            _ => {
                let listener = TcpListener::bind(own).map_err(refused)?;
                listener.set_nonblocking(true).map_err(refused)?;
                Door::Streams(listener)
            }
        };
        Ok(Self { asked, door, client: client.ip(), secret: random_bytes()? })
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
        Ok(Opened { port: address.port(), secret: to_hex(&self.secret) })
    }

    /// Waits for the announced streams and serves them. Streams from other addresses or without the secret are refused.
    /// It ends early if `has_ended`.
    ///
    /// # Errors
    /// [`Error::Disturbed`] if the streams do not arrive in time; [`Error::Kernel`] where a thread is refused.
    pub(super) fn start_serving(self, has_ended: impl Fn() -> bool) -> Result<Serving> {
        let mut serving = Serving::default();
        let way = (self.client, self.secret);
        match (self.asked.service, self.door) {
            (Service::Greeter, Door::Streams(listener)) => {
                serving.ends.push(shutdown_handle(listener.try_clone())?);
                let threshold = Threshold::new(listener, way);
                serving.start_thread(move |tally, ended| data::serve_greeter(threshold, tally, ended))?;
            }
            (_, Door::Datagrams(socket)) => {
                serving.ends.push(shutdown_handle(socket.try_clone())?);
                serving
                    .start_thread(move |tally, ended| data::serve_datagrams(&socket, way, tally, ended))?;
            }
            (service, Door::Streams(listener)) => {
                for stream in accept_streams(Threshold::new(listener, way), self.asked.streams, has_ended)? {
                    serving.ends.push(shutdown_handle(stream.try_clone())?);
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

/// A second handle of a socket, to end its thread.
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
    let deadline = Instant::now() + DATA_PATIENCE;
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

/// Threads that serve. Dropping this value ends them.
#[derive(Default)]
pub(super) struct Serving {
    tallies: Vec<Arc<Tally>>,
    ends: Vec<OwnedFd>,
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
        // The client notices the end of a stream, for whatever reason.
        let life = move || _ = serve(&tally, &ended);
        let builder = std::thread::Builder::new().name("peer data".into()).stack_size(STACK);
        let refused = |cause| Error::Kernel { call: "clone of a data thread".into(), cause };
        self.threads.push(builder.spawn(life).map_err(refused)?);
        Ok(())
    }

    /// Counts so far.
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
