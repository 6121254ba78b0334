//! A manager that steers the monitors of several processes at one logical time.
//!
//! A process with a [`SteeredMonitor`] joins by a TCP connection, and leaves by closing it. The manager makes a request in
//! two steps. First each member checks the request, stops sampling, and reports its logical time. If all members accept, the
//! request takes effect at the time after the greatest reported time. Each member advances its clock to that time, so that
//! one logical time separates the samples before the request from those after it, in all members. If a member refuses, does
//! not answer or leaves, the manager abandons the request, and no member changes its settings.
//!
//! Each member also reports the logical time of its last change. A member that its own program changed, or that missed a
//! change, is *inconsistent*: the manager abandons the request and excludes the member until it joins again. A process that
//! joins takes over the settings of the group before it counts as a member.
//!
//! Each message is a line of text: `join NAME`, `prepare period NANOSECONDS`, `prepare detail LEVEL`, `ready TIME CHANGED`,
//! `refused REASON`, `apply TIME`, `applied TIME` and `abandon`. The connections have no password: use addresses that you
//! trust.

use super::{DetailLevel, Request, SteeredMonitor, Stretch};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::mem::discriminant;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::inert::neutralize_line;

/// The maximum length of a message, bytes, and of a name or a reason in messages to the user, characters.
const LONGEST: u64 = 512;
const SHOWN: usize = 200;
/// A member that has stopped sampling for a request resumes after this time if the manager does not decide. The time is
/// longer than a manager waits for several silent members.
const HOLD: Duration = Duration::from_secs(60);

/// A request that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steered {
    /// The logical time at which it took effect, in each of its members.
    pub time: u64,
    /// The names of the members in which it took effect.
    pub members: Vec<String>,
}

/// The manager of a group of processes.
pub struct Manager {
    listener: TcpListener,
    /// The longest time for which it waits for an answer of a member.
    patience: Duration,
    members: Vec<Member>,
    /// The logical time of the last request that took effect, and the last request of each kind.
    changed: u64,
    settings: Vec<Request>,
}

impl Manager {
    /// Listens for processes that join. A member that does not answer within `patience` is excluded.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the address cannot be used.
    pub fn listen(at: SocketAddr, patience: Duration) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: format!("listening at {at}"), cause };
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Self { listener, patience, members: Vec::new(), changed: 0, settings: Vec::new() })
    }

    /// The address at which the manager listens.
    ///
    /// # Errors
    /// An error where the kernel does not report the address.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|cause| Error::Kernel { call: "getsockname".into(), cause })
    }

    /// Removes the members that have left, gives the settings of the group to the processes that have joined, and returns the
    /// names of all members. A process that does not speak the protocol does not become a member.
    pub fn update_members(&mut self) -> Vec<String> {
        self.members.retain(Member::is_connected);
        while let Ok((stream, _)) = self.listener.accept() {
            self.members.extend(self.admit(stream).ok());
        }
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    fn admit(&self, stream: TcpStream) -> io::Result<Member> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        let mut member = Member { name: String::new(), stream: BufReader::new(stream) };
        member.name = neutralize_line(&member.receive("join ")?, SHOWN);
        for request in &self.settings {
            member.send(&format!("prepare {}", request_text(request).ok_or(ErrorKind::Unsupported)?))?;
            member.receive("ready ")?;
            member.send(&format!("apply {}", self.changed))?;
            member.receive("applied ")?;
        }
        Ok(member)
    }

    /// Makes a request of all members, which takes effect in all of them at one logical time. A member that leaves after it
    /// has accepted is missing in the result.
    ///
    /// # Errors
    /// The request took effect in no member. [`Error::Usage`] if a member refuses it, if it is for another event, or if there
    /// is no member. [`Error::Disturbed`] if a member does not answer or is inconsistent; that member is excluded.
    pub fn request(&mut self, request: &Request) -> Result<Steered> {
        let Some(text) = request_text(request).filter(|_| !self.members.is_empty()) else {
            let expected = "a period or a level of detail, for one process that has joined or more";
            return Err(Error::Usage(format!("a steering request to other processes: expected {expected}")));
        };
        let time = self.prepare_all(&text)? + 1;
        // If a message cannot be sent, its answer does not arrive, which excludes the member below.
        self.send_all(&format!("apply {time}"));
        self.members.retain_mut(|member| member.receive("applied ").is_ok_and(|at| at == time.to_string()));
        self.changed = time;
        self.settings.retain(|old| discriminant(old) != discriminant(request));
        self.settings.push(request.clone());
        Ok(Steered { time, members: self.members.iter().map(|member| member.name.clone()).collect() })
    }

    /// Asks all members to prepare, and returns their greatest logical time. All have then accepted and wait for the
    /// decision.
    fn prepare_all(&mut self, text: &str) -> Result<u64> {
        self.send_all(&format!("prepare {text}"));
        let (mut latest, mut fault, group) = (self.changed, None, self.changed);
        self.members.retain_mut(|member| match member.receive_vote() {
            Ok(Vote::Ready { time, changed }) if changed == group => {
                latest = latest.max(time);
                true
            }
            Ok(Vote::Refused(why)) => {
                fault = Some(Error::Usage(format!("{} refuses the request: {why}", member.name)));
                true
            }
            Ok(Vote::Ready { changed, .. }) => {
                fault = Some(Error::Disturbed(format!(
                    "{} is inconsistent: its settings are of time {changed}, those of the group of {group}; it must join again",
                    member.name
                )));
                false
            }
            Err(cause) => {
                fault = Some(Error::Disturbed(format!("{} does not answer: {cause}", member.name)));
                false
            }
        });
        let Some(fault) = fault else { return Ok(latest) };
        self.send_all("abandon");
        Err(fault)
    }

    fn send_all(&mut self, line: &str) {
        self.members.iter_mut().for_each(|member| _ = member.send(line));
    }
}

/// The connection to a process.
struct Member {
    name: String,
    stream: BufReader<TcpStream>,
}

/// A member's answer to a request.
enum Vote {
    Ready { time: u64, changed: u64 },
    Refused(String),
}

impl Member {
    fn is_connected(&self) -> bool {
        let stream = self.stream.get_ref();
        let _ = stream.set_nonblocking(true);
        let peeked = stream.peek(&mut [0]);
        // A member sends nothing between two requests.
        stream.set_nonblocking(false).is_ok() && peeked.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        send_line(&mut self.stream, line)
    }

    /// Receives a message that begins with `begin`, and returns the rest of it.
    fn receive(&mut self, begin: &str) -> io::Result<String> {
        let line = receive_line(&mut self.stream)?;
        line.strip_prefix(begin).map(str::to_owned).ok_or_else(|| unexpected(begin, &line))
    }

    fn receive_vote(&mut self) -> io::Result<Vote> {
        let line = receive_line(&mut self.stream)?;
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["ready", time, changed] => {
                let number = |word| parse_time(word).ok_or_else(|| unexpected("two times", &line));
                Ok(Vote::Ready { time: number(time)?, changed: number(changed)? })
            }
            ["refused", ..] => Ok(Vote::Refused(neutralize_line(line["refused".len()..].trim(), SHOWN))),
            _ => Err(unexpected("`ready` or `refused`", &line)),
        }
    }
}

/// Parses a logical time; `None` also for a time that no process can have reached.
fn parse_time(word: &str) -> Option<u64> {
    word.parse().ok().filter(|time| *time < 1 << 62)
}

fn send_line(stream: &mut BufReader<TcpStream>, line: &str) -> io::Result<()> {
    stream.get_mut().write_all(format!("{line}\n").as_bytes())
}

fn receive_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.by_ref().take(LONGEST).read_line(&mut line)?;
    let whole = line.strip_suffix('\n').map(str::to_owned);
    whole.ok_or_else(|| {
        io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed, or a line is too long")
    })
}

fn unexpected(expected: &str, line: &str) -> io::Error {
    let found = neutralize_line(line, SHOWN);
    io::Error::new(ErrorKind::InvalidData, format!("expected {expected}, found `{found}`"))
}

/// A request as text; `None` for an event, whose condition has no text form.
fn request_text(request: &Request) -> Option<String> {
    match request {
        Request::Period(period) => Some(format!("period {}", period.as_nanos())),
        Request::Detail(level) => Some(format!("detail {level:?}")),
        Request::Event(_) => None,
    }
}

fn parse_request(text: &str) -> Option<Request> {
    let (what, value) = text.split_once(' ')?;
    let levels = [DetailLevel::Fraction, DetailLevel::Entries, DetailLevel::Samples];
    match what {
        "period" => Some(Request::Period(Duration::from_nanos(value.parse().ok()?))),
        "detail" => levels.into_iter().find(|level| format!("{level:?}") == value).map(Request::Detail),
        _ => None,
    }
}

impl<const N: usize> SteeredMonitor<N> {
    /// Joins the group of a manager under a name, and applies its requests until one side closes the connection. `ended`
    /// receives the stretch that each change ended.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the manager cannot be reached or violates the protocol; the errors of
    /// [`SteeredMonitor::request`].
    pub fn follow(&self, manager: SocketAddr, name: &str, mut ended: impl FnMut(Stretch<N>)) -> Result<()> {
        let failed = |cause| Error::Kernel { call: format!("steering by the manager at {manager}"), cause };
        let mut stream = BufReader::new(TcpStream::connect(manager).map_err(failed)?);
        stream.get_ref().set_nodelay(true).map_err(failed)?;
        // Settings from an earlier group do not count as changes of this one.
        self.lock()?.changed = 0;
        send_line(&mut stream, &format!("join {}", neutralize_line(name, SHOWN))).map_err(failed)?;
        while let Ok(line) = receive_line(&mut stream) {
            let request = line.strip_prefix("prepare ").and_then(parse_request);
            let request = request.ok_or_else(|| failed(unexpected("`prepare` and a request", &line)))?;
            if let Some(stretch) = self.vote(&request, &mut stream)? {
                ended(stretch);
            }
        }
        Ok(())
    }

    /// Answers a request, and applies it if the manager decides so. No sample is taken during the call.
    fn vote(&self, request: &Request, stream: &mut BufReader<TcpStream>) -> Result<Option<Stretch<N>>> {
        let mut collector = self.lock()?;
        if let Err(why) = collector.check(request) {
            let _ = send_line(stream, &format!("refused {}", neutralize_line(&why.to_string(), SHOWN)));
            return receive_line(stream).map_or(Ok(None), |_| Ok(None));
        }
        let _ = send_line(stream, &format!("ready {} {}", collector.time, collector.changed));
        let _ = stream.get_ref().set_read_timeout(Some(HOLD));
        let decision = receive_line(stream);
        let _ = stream.get_ref().set_read_timeout(None);
        let time = decision.ok().and_then(|line| parse_time(line.strip_prefix("apply ")?));
        let Some(time) = time else { return Ok(None) };
        let ended = collector.apply(request, time)?;
        let _ = (self.changes.send(()), send_line(stream, &format!("applied {time}")));
        Ok(Some(ended))
    }
}
