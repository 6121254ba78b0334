//! Connections from their making to their end, one after another.

use super::{Ending, Part, QUEUE, Row};
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::alarm::Alarm;
use crate::kit::placement::patience;
use crate::kit::socket::connection::{
    Address, End, Family, Listeners, Side, accept, failed, resting, socket,
};
use crate::{Error, Result};
use std::net::Ipv4Addr;

/// Connections that are made before the case, to see what they leave behind.
const TRIED: u64 = 30;
/// Addresses from which clients go, one after the other when the ports of one are used up.
const SOURCES: u8 = 8;

/// The live thing of a part that is timed by itself.
pub struct Parts {
    lives: Lives,
    alarm: Alarm,
}

impl Parts {
    /// Listens, and closes a few connections as the case will.
    pub fn begin(row: Row) -> Result<Self> {
        Ok(Self { lives: Lives::begin(row)?, alarm: Alarm::new()? })
    }
}

/// One life after another.
struct Lives {
    row: Row,
    listeners: Listeners,
    /// Clients whose connections wait to be accepted.
    waiting: Vec<End>,
    sources: Sources,
}

/// From where clients go: as the kernel likes, until no port is left.
#[derive(Default)]
struct Sources {
    /// 127.0.0.1 is nought.
    now: u8,
    made: u64,
    /// After how many connections the ports of each were used up.
    used_up: Vec<u64>,
}

impl Sources {
    /// Tells a client where to go from.
    fn direct(&self, client: &End) -> i64 {
        if self.now == 0 { 0 } else { client.go_from(Ipv4Addr::new(127, 0, 0, 1 + self.now)) }
    }

    /// Whether there is another address, now that no port of this one is left.
    fn go_on(&mut self) -> bool {
        self.used_up.push(self.made);
        self.now += 1;
        self.now < SOURCES
    }
}

impl Lives {
    fn begin(row: Row) -> Result<Self> {
        let listeners = match row.sharing {
            0 => Listeners::one(row.family, QUEUE)?,
            count => Listeners::sharing(count, QUEUE)?,
        };
        let (waiting, sources) = (Vec::with_capacity(QUEUE as usize), Sources::default());
        let mut lives = Self { row, listeners, waiting, sources };
        if row.family == Family::Tcp {
            lives.leave_behind_what_they_must()?;
        }
        Ok(lives)
    }

    /// Others of this machine open and close connections as well, and the kernel uses resting ports again: a quarter
    /// is enough, and it is tried three times.
    fn leave_behind_what_they_must(&mut self) -> Result<()> {
        let mut grown = 0;
        for _ in 0..3 {
            let Some(before) = resting() else { return Ok(()) };
            for _ in 0..TRIED {
                let [client, server] = self.connected()?;
                end(self.row.ending, client, server)?;
            }
            grown = resting().unwrap_or(before).saturating_sub(before);
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

    /// A client that may be connected.
    fn client(&self) -> Result<End> {
        let client = socket(self.listeners.address()).map_err(|answer| failed("socket", answer))?;
        match self.sources.direct(&client) {
            0 => Ok(client),
            answer => Err(failed("bind of a client", answer)),
        }
    }

    /// Connects a client, untimed; where no port is left, from the next address.
    fn connect(&mut self) -> Result<End> {
        loop {
            let client = self.client()?;
            if self.joined(&client)? {
                return Ok(client);
            }
        }
    }

    /// Connects this one. No where no port is left, and the next client will go from another address.
    fn joined(&mut self, client: &End) -> Result<bool> {
        let answer = client.connect(self.listeners.address());
        self.judged(answer)
    }

    /// What the answer to a connect means.
    fn judged(&mut self, answer: i64) -> Result<bool> {
        const NO_PORT: i64 = -(libc::EADDRNOTAVAIL as i64);
        match answer {
            0 => {
                self.sources.made += 1;
                Ok(true)
            }
            NO_PORT if self.sources.go_on() => Ok(false),
            refused => Err(failed(&format!("connect, after {} of them", self.sources.made), refused)),
        }
    }

    /// Takes the one that waits.
    fn accepted(&self) -> Result<End> {
        let none = || Error::Usage("a connection was made and none waits to be accepted".into());
        let at = self.listeners.waiting()?.ok_or_else(none)?;
        accept(at).map_err(|answer| failed("accept", answer))
    }

    /// Both ends of a connection, untimed and proved.
    fn connected(&mut self) -> Result<[End; 2]> {
        let client = self.connect()?;
        let server = self.accepted()?;
        proved(self.row.family, &client, &server)?;
        Ok([client, server])
    }

    /// One life; the time of the part that is asked for. `None` where the ports were used up, and it is to be begun
    /// again.
    fn one(&mut self, clock: &Clock) -> Result<Option<Ticks>> {
        match self.row.part {
            Part::Connect | Part::SetUpBoth => self.set_up(clock),
            Part::Accept(count) => self.accept(count, clock).map(Some),
            Part::TearDown | Part::OneEnd => self.tear_down(clock).map(Some),
        }
    }

    fn set_up(&mut self, clock: &Clock) -> Result<Option<Ticks>> {
        let client = self.client()?;
        let (address, first) = (*self.listeners.address(), self.listeners.first());
        let mut server = None;
        let begun = clock.start();
        let answer = client.connect(&address);
        if self.row.part == Part::SetUpBoth && answer == 0 {
            server = Some(accept(first));
        }
        let ticks = clock.stop() - begun;
        if !self.judged(answer)? {
            return Ok(None);
        }
        clock.note(ticks);
        let server = match server {
            Some(accepted) => accepted.map_err(|answer| failed("accept", answer))?,
            None => self.accepted()?,
        };
        proved(self.row.family, &client, &server)?;
        end(self.row.ending, client, server)?;
        Ok(Some(ticks))
    }

    fn accept(&mut self, count: usize, clock: &Clock) -> Result<Ticks> {
        while self.waiting.len() < count {
            let client = self.connect()?;
            self.waiting.push(client);
        }
        let first = self.listeners.first();
        let mut server = Err(0);
        let ticks = clock.time(|| server = accept(first));
        let server = server.map_err(|answer| failed("accept", answer))?;
        // They are accepted in the order in which they came.
        let client = self.waiting.remove(0);
        proved(self.row.family, &client, &server)?;
        end(self.row.ending, client, server)?;
        Ok(ticks)
    }

    fn tear_down(&mut self, clock: &Clock) -> Result<Ticks> {
        let [client, server] = self.connected()?;
        if self.row.ending == Ending::Reset {
            reset(&client)?;
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
        if answer < 0 { Err(failed("close", answer)) } else { Ok(ticks) }
    }
}

/// Who was accepted is who connected, and the kernel says that both are.
pub(super) fn proved(family: Family, client: &End, server: &End) -> Result<()> {
    if family == Family::Unix {
        return ours(client, server); // a client has no name
    }
    let port = |end: &End, side| end.address(side).map(|address: Address| address.port());
    let (ours, theirs) = (port(client, Side::Own)?, port(server, Side::Other)?);
    if ours != theirs {
        return Err(Error::Usage(format!("{theirs:?} was accepted where {ours:?} had connected: run again")));
    }
    match client.is_established() && server.is_established() {
        true => Ok(()),
        false => Err(Error::Usage(format!("the connection of {ours:?} is not established on both ends"))),
    }
}

/// Both ends of a Unix connection are this process's.
fn ours(client: &End, server: &End) -> Result<()> {
    let own = Some(std::process::id());
    match (client.other_process(), server.other_process()) {
        (listens, connected) if listens == own && connected == own => Ok(()),
        (listens, connected) => Err(Error::Usage(format!(
            "{connected:?} was accepted, and {listens:?} listens, where both are process {own:?}: run again"
        ))),
    }
}

fn reset(client: &End) -> Result<()> {
    match client.reset_on_close() {
        0 => Ok(()),
        answer => Err(failed("setsockopt SO_LINGER", answer)),
    }
}

/// Closes both ends as the case does it, untimed.
fn end(ending: Ending, client: End, server: End) -> Result<()> {
    let answer = match ending {
        Ending::ServerFirst => server.close().min(client.close()),
        Ending::ClientFirst => client.close().min(server.close()),
        Ending::Reset => {
            reset(&client)?;
            client.close().min(server.close())
        }
    };
    if answer < 0 { Err(failed("close", answer)) } else { Ok(()) }
}

impl Subject for Parts {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { alarm, lives } = self;
        alarm.watch(patience(iterations), || {
            let (mut sum, mut left) = (Ticks(0), iterations);
            while left > 0 {
                if let Some(ticks) = lives.one(clock)? {
                    sum += ticks;
                    left -= 1;
                }
            }
            Ok(sum)
        })
    }

    fn report(&self) -> Report {
        let Sources { now, made, used_up } = &self.lives.sources;
        let after: Vec<_> = used_up.iter().map(u64::to_string).collect();
        let told = (*now > 0).then(|| {
            format!(
                "{made} connections; all ports of an address were used or rested in TIME_WAIT after {}, and it went \
                 on from 127.0.0.{}",
                after.join(", "),
                now + 1
            )
        });
        Report { evidence: told.into_iter().collect(), ..Report::default() }
    }
}

/// The live thing of whole lives in a loop.
pub struct Whole {
    listeners: Listeners,
    ending: Ending,
    alarm: Alarm,
}

impl Whole {
    pub fn begin(family: Family, ending: Ending) -> Result<Self> {
        Ok(Self { listeners: Listeners::one(family, QUEUE)?, ending, alarm: Alarm::new()? })
    }
}

/// One life. Answers nought, or which call was refused, and its answer.
#[inline(always)]
fn live(at: &Address, listener: i32, ending: Ending) -> std::result::Result<(), (&'static str, i64)> {
    let client = socket(at).map_err(|answer| ("socket", answer))?;
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

impl Subject for Whole {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (at, listener) = (*self.listeners.address(), self.listeners.first());
        let ending = self.ending;
        let mut lived = Ok(());
        let ticks = self.alarm.watch(patience(iterations), || {
            clock.time(|| {
                for _ in 0..iterations {
                    lived = live(&at, listener, ending);
                    if lived.is_err() {
                        break;
                    }
                }
            })
        });
        lived.map_err(|(call, answer)| failed(call, answer))?;
        match self.listeners.waiting()? {
            None => Ok(ticks),
            Some(_) => Err(Error::Usage("a connection waits that was not ours: run again".into())),
        }
    }
}
