//! Connections in one process, of which one part or the whole is timed.

use super::{Ending, Part, QUEUE, Row};
use crate::kit::contract::*;
use crate::kit::kernel_call::time_until_error;
use crate::kit::placement::partner_time_limit;
use crate::kit::socket::connection::{
    Address, End, Family, Listeners, accept, check_granted, count_time_wait, error_from_answer,
    open_stream_socket,
};
use crate::kit::watchdog::Alarm;
use std::net::Ipv4Addr;

/// The number of connections that are closed before the case, to check how many of them are in TIME_WAIT.
const TRIED: u64 = 30;
/// The number of client addresses. The next address is used when the ports of one are exhausted.
const SOURCES: u8 = 8;

/// The state of one attempt to connect: the shared state, and the client once it is made.
type Attempt<'a> = (&'a mut Parts, Option<End>);
/// The name of a failed call, and its negative error number.
type Refused = (&'static str, i64);
/// The results of connect(2) and, if it is timed, of accept(2): an end or a negative error number.
type Answers = (i64, Option<std::result::Result<End, i64>>);

/// Makes, proves and closes connections.
struct Parts {
    row: Row,
    listeners: Listeners,
    /// The clients whose connections wait to be accepted, the oldest first.
    waiting: Vec<End>,
    sources: Sources,
}

/// The addresses that clients bind to. The first is the kernel's choice; the next is used when no port is left.
#[derive(Default)]
struct Sources {
    /// The address in use; 0 is 127.0.0.1.
    now: u8,
    /// The number of connections so far.
    made: u64,
    /// The number of connections at which the ports of each address were exhausted.
    used_up: Vec<u64>,
}

impl Sources {
    /// Binds a client to the address in use.
    fn bind_client(&self, client: &End) -> i64 {
        if self.now == 0 { 0 } else { client.bind_to(Ipv4Addr::new(127, 0, 0, 1 + self.now)) }
    }

    /// Moves to the next address. Returns whether there is one.
    fn move_to_next_address(&mut self) -> bool {
        self.used_up.push(self.made);
        self.now += 1;
        self.now < SOURCES
    }
}

impl Parts {
    fn new(row: Row) -> Result<Self> {
        let listeners = match row.sharing {
            0 => Listeners::open_one(row.family, QUEUE)?,
            count => Listeners::open_sharing(count, QUEUE)?,
        };
        let (waiting, sources) = (Vec::with_capacity(QUEUE as usize), Sources::default());
        let mut parts = Self { row, listeners, waiting, sources };
        if row.family == Family::Tcp {
            parts.verify_time_wait()?;
        }
        Ok(parts)
    }

    /// Checks that connections that are closed as in the case enter TIME_WAIT, or that reset ones do not. Other processes
    /// open and close connections too, and the kernel reuses ports in TIME_WAIT. So it is enough if a quarter of the
    /// connections is there, in one of three attempts.
    fn verify_time_wait(&mut self) -> Result<()> {
        let mut grown = 0;
        for _ in 0..3 {
            let Some(before) = count_time_wait() else { return Ok(()) };
            for _ in 0..TRIED {
                let [client, server] = self.new_connection()?;
                close_both(self.row.ending, client, server)?;
            }
            grown = count_time_wait().unwrap_or(before).saturating_sub(before);
            if (grown >= TRIED / 4) == (self.row.ending != Ending::Reset) {
                return Ok(());
            }
        }
        let ending = self.row.ending.name();
        Err(Error::Missing(format!(
            "{TRIED} connections that were closed {ending} left {grown} in TIME_WAIT: the kernel keeps no more \
             (net.ipv4.tcp_max_tw_buckets), or others of this machine open and close many; wait a minute"
        )))
    }

    /// A client that is not connected yet.
    fn new_client(&self) -> Result<End> {
        let client = open_stream_socket(self.listeners.address())
            .map_err(|answer| error_from_answer("socket", answer))?;
        check_granted("bind of a client", self.sources.bind_client(&client)).map(|()| client)
    }

    /// Connects a new client, untimed; if no port is left, from the next address.
    fn connect_client(&mut self) -> Result<End> {
        loop {
            let client = self.new_client()?;
            match client.connect(self.listeners.address()) {
                0 => {
                    self.sources.made += 1;
                    return Ok(client);
                }
                refused => self.use_next_address(refused)?,
            }
        }
    }

    /// Moves to the next address if connect(2) failed because no port was left. Another failure is returned as an error.
    fn use_next_address(&mut self, refused: i64) -> Result<()> {
        const NO_PORT: i64 = -(libc::EADDRNOTAVAIL as i64);
        ensure(refused == NO_PORT && self.sources.move_to_next_address(), || {
            error_from_answer(&format!("connect, after {} of them", self.sources.made), refused)
        })
    }

    /// Accepts the connection that waits.
    fn accept_waiting(&self) -> Result<End> {
        let none = || Error::Contradicted("a connection was made and none waits to be accepted".into());
        let at = self.listeners.find_waiting()?.ok_or_else(none)?;
        accept(at).map_err(|answer| error_from_answer("accept", answer))
    }

    /// Makes a connection, untimed, and checks it. Returns both ends.
    fn new_connection(&mut self) -> Result<[End; 2]> {
        let client = self.connect_client()?;
        let server = self.accept_waiting()?;
        verify_ends(self.row.family, &client, &server)?;
        Ok([client, server])
    }

    /// Times connect(2), and accept(2) as well where `accepts`.
    fn time_connect(&mut self, iterations: u64, accepts: bool, clock: &Clock) -> Result<Ticks> {
        const NO_CLIENT: i64 = -(libc::EBADF as i64);
        let (address, first) = (*self.listeners.address(), self.listeners.first_descriptor());
        let prepare = |(parts, client): &mut Attempt<'_>| {
            *client = Some(parts.new_client()?);
            Ok(())
        };
        let operation = |(_, client): &mut Attempt<'_>| {
            let connected = client.as_ref().map_or(NO_CLIENT, |client| client.connect(&address));
            (connected, (accepts && connected == 0).then(|| accept(first)))
        };
        let check = |(parts, client): &mut Attempt<'_>, (connected, accepted): Answers| {
            let Some(client) = client.take().filter(|_| connected == 0) else {
                return parts.use_next_address(connected).map(|()| Counts::Again);
            };
            parts.sources.made += 1;
            let server = match accepted {
                Some(accepted) => accepted.map_err(|answer| error_from_answer("accept", answer))?,
                None => parts.accept_waiting()?,
            };
            verify_ends(parts.row.family, &client, &server)?;
            close_both(parts.row.ending, client, server).map(|()| Counts::Yes)
        };
        clock.time_each(iterations, &mut (self, None), prepare, operation, check)
    }

    /// Times accept(2) of the first of `count` connections that wait.
    fn time_accept(&mut self, count: usize, clock: &Clock) -> Result<Ticks> {
        while self.waiting.len() < count {
            let client = self.connect_client()?;
            self.waiting.push(client);
        }
        let first = self.listeners.first_descriptor();
        let mut server = Err(0);
        let ticks = clock.time(|| server = accept(first));
        let server = server.map_err(|answer| error_from_answer("accept", answer))?;
        // Connections are accepted in the order in which they were made.
        let client = self.waiting.remove(0);
        verify_ends(self.row.family, &client, &server)?;
        close_both(self.row.ending, client, server).map(|()| ticks)
    }

    /// Times close(2) of both ends, or of the first end only.
    fn time_close(&mut self, clock: &Clock) -> Result<Ticks> {
        let [client, server] = self.new_connection()?;
        if self.row.ending == Ending::Reset {
            set_reset_on_close(&client)?;
        }
        let (first, second) = match self.row.ending {
            Ending::ServerFirst => (server, client),
            Ending::ClientFirst | Ending::Reset => (client, server),
        };
        let mut answer = 0;
        let ticks = if self.row.part == Part::OneEnd {
            let ticks = clock.time(|| answer = first.close());
            answer = answer.min(second.close());
            ticks
        } else {
            clock.time(|| answer = first.close().min(second.close()))
        };
        check_granted("close", answer).map(|()| ticks)
    }
}

/// Times a part of each connection by itself.
pub(super) struct SinglePart {
    parts: Parts,
    alarm: Alarm,
}

impl SinglePart {
    /// Opens the listener. For TCP it also checks that connections end as the case says.
    ///
    /// # Errors
    /// [`Error::Missing`] for what the machine lacks; a call that the kernel refuses.
    pub(super) fn new(row: Row) -> Result<Self> {
        Ok(Self { parts: Parts::new(row)?, alarm: Alarm::new()? })
    }
}

impl Subject for SinglePart {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { alarm, parts } = self;
        alarm.run_with_limit(partner_time_limit(iterations), || match parts.row.part {
            Part::Connect => parts.time_connect(iterations, false, clock),
            Part::SetUpBoth => parts.time_connect(iterations, true, clock),
            Part::Accept(count) => (0..iterations).map(|_| parts.time_accept(count, clock)).sum(),
            Part::TearDown | Part::OneEnd => (0..iterations).map(|_| parts.time_close(clock)).sum(),
        })
    }

    fn report(&self) -> Report {
        let Sources { now, made, used_up } = &self.parts.sources;
        let after: Vec<_> = used_up.iter().map(u64::to_string).collect();
        let exhausted = (*now > 0).then(|| {
            format!(
                "{made} connections; all ports of an address were used or rested in TIME_WAIT after {}, and it went \
                 on from 127.0.0.{}",
                after.join(", "),
                now + 1
            )
        });
        Report { evidence: exhausted.into_iter().collect(), ..Report::default() }
    }
}

/// Checks that the accepted end belongs to this client, and that both ends are established.
///
/// # Errors
/// [`Error::Disturbed`] where another process connected, [`Error::Disproved`] for an end that is not established.
pub(super) fn verify_ends(family: Family, client: &End, server: &End) -> Result<()> {
    if family == Family::Unix {
        return verify_processes(client, server); // a client has no address
    }
    let (ours, theirs) =
        (client.own_and_peer_addresses().map(|of| of[0]), server.own_and_peer_addresses().map(|of| of[1]));
    ensure(ours == theirs, || {
        Error::Disturbed(format!("{theirs:?} was accepted where {ours:?} had connected: run again"))
    })?;
    ensure(client.is_established() && server.is_established(), || {
        Error::Disproved(format!("the connection of {ours:?} is not established on both ends"))
    })
}

/// Checks that both ends of a Unix connection belong to this process.
fn verify_processes(client: &End, server: &End) -> Result<()> {
    let own = Some(std::process::id());
    match (client.peer_process_id(), server.peer_process_id()) {
        (listens, connected) if listens == own && connected == own => Ok(()),
        (listens, connected) => Err(Error::Disturbed(format!(
            "{connected:?} was accepted, and {listens:?} listens, where both are process {own:?}: run again"
        ))),
    }
}

fn set_reset_on_close(client: &End) -> Result<()> {
    check_granted("setsockopt SO_LINGER", client.reset_on_close())
}

/// Closes both ends as the case does it, untimed.
fn close_both(ending: Ending, client: End, server: End) -> Result<()> {
    let answer = match ending {
        Ending::ServerFirst => server.close().min(client.close()),
        Ending::ClientFirst => client.close().min(server.close()),
        Ending::Reset => {
            set_reset_on_close(&client)?;
            client.close().min(server.close())
        }
    };
    check_granted("close", answer)
}

/// Whole connections in a loop.
///
/// # Errors
/// [`Error::Missing`] for what the machine lacks; a call that the kernel refuses.
pub(super) fn whole_connections(family: Family, ending: Ending) -> Result<impl Subject> {
    let (listeners, mut alarm) = (Listeners::open_one(family, QUEUE)?, Alarm::new()?);
    Ok(move |iterations: u64, clock: &Clock| {
        let (at, listener) = (*listeners.address(), listeners.first_descriptor());
        let timed = || time_until_error(iterations, clock, || connect_and_close(&at, listener, ending));
        let ended = alarm.run_with_limit(partner_time_limit(iterations), timed);
        let ticks = ended.map_err(|(call, answer)| error_from_answer(call, answer))?;
        match listeners.find_waiting()? {
            None => Ok(ticks),
            Some(_) => Err(Error::Disturbed("a connection waits that was not ours: run again".into())),
        }
    })
}

/// One connection from socket(2) to the second close(2).
///
/// # Errors
/// The call that was refused, and its negative error number.
#[inline(always)]
fn connect_and_close(at: &Address, listener: i32, ending: Ending) -> std::result::Result<(), Refused> {
    let client = open_stream_socket(at).map_err(|answer| ("socket", answer))?;
    let connected = client.connect(at);
    if connected < 0 {
        return Err(("connect", connected));
    }
    let server = accept(listener).map_err(|answer| ("accept", answer))?;
    let closed = match ending {
        Ending::ServerFirst => server.close().min(client.close()),
        Ending::ClientFirst => client.close().min(server.close()),
        Ending::Reset => client.reset_on_close().min(client.close()).min(server.close()),
    };
    if closed < 0 { Err(("close", closed)) } else { Ok(()) }
}
