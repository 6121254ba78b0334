//! A message of so many bytes to a server, which replies with one byte when it has read all of it.

use super::node::{self, Nodes};
use super::sender::Senders;
use crate::case::{Need, Place, Report, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::{arch, namespace};
use crate::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// What is looked at in every reply.
pub(super) const ANSWERED: &str =
    "every reply carried the number of the message, which the server had read whole";
/// What is said of a reply with another number.
const OTHER_REPLY: &str = "the reply was to another message: the server had not read the whole of this one";
/// A server that does not reply for so long has gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// Multiplications after each reply, by the byte of the message: 40 ns of a processor of 2.3 GHz. In the paper it is
/// slightly more than the transmission, which takes 27 ns a byte at 300 Mbit/s; of several senders there is always one
/// that computes then. It is the same on every machine, since it is a part of the number.
const COMPUTED: u64 = 30;

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the loopback, receive work done where it falls: on the sender's CPU.
    Loopback,
    /// Through a loopback whose receive work of both ends is done on the measuring CPU.
    Steered,
    /// Between two namespaces with an Ethernet between, the receive work of each done on its own CPU.
    Nodes,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Steered => "steered",
            Self::Nodes => "nodes",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Loopback => "by the loopback",
            Self::Steered => "by a loopback steered to this CPU",
            Self::Nodes => "between two nodes",
        }
    }

    pub(super) fn need(self) -> Need {
        Need::new(match self {
            Self::Loopback => node::not_steered,
            Self::Steered | Self::Nodes => node::steered_here,
        })
    }

    /// Core cycles of the hardware and of the software.
    pub(super) fn expected(self, bytes: usize) -> (f64, f64, &'static str) {
        let frames = bytes.div_ceil(1448) as f64;
        match self {
            Self::Loopback => {
                (12_000.0, 60_000.0, "both directions of TCP, a sleep, a wake-up by another CPU")
            }
            Self::Steered => (16_000.0, 60_000.0, "the same, and the interrupts of steering"),
            Self::Nodes => (
                14_000.0 + 4_000.0 * frames,
                30_000.0 + 40_000.0 * frames,
                "TCP once, a frame each 1448 bytes, interrupts for the acknowledgements and the reply",
            ),
        }
    }

    /// Both ends, connected: ours and the server's.
    fn connected(self) -> Result<[TcpStream; 2]> {
        let nodes = || Nodes::found().map_err(Error::Missing);
        match self {
            Self::Loopback => connect("127.0.0.1", |f| f(), |f| f()),
            Self::Steered => {
                let there = nodes()?.steered;
                connect("127.0.0.1", |f| namespace::within(&there, f), |f| namespace::within(&there, f))
            }
            Self::Nodes => {
                let nodes = nodes()?;
                connect(&nodes.address, |f| namespace::within(&nodes.peer, f), |f| f())
            }
        }
    }

    /// What a connection of ours goes over, where that is more than a loopback.
    fn wire(self, ours: &TcpStream) -> Option<Wire> {
        let nodes = Nodes::found().ok().filter(|_| self == Self::Nodes)?;
        Some(nodes.wire(ours.local_addr().ok()?.ip(), ours.peer_addr().ok()?.ip()))
    }
}

/// Something that makes a socket.
type Make<'a, T> = &'a dyn Fn() -> Result<T>;

/// Listens where the server is and connects from where we are. Neither end waits to gather bytes.
fn connect(
    address: &str,
    there: impl Fn(Make<'_, TcpListener>) -> Result<TcpListener>,
    here: impl Fn(Make<'_, TcpStream>) -> Result<TcpStream>,
) -> Result<[TcpStream; 2]> {
    let refused =
        |call: &'static str| move |cause| Error::Kernel { call: format!("{call} ({address})"), cause };
    let listener = there(&|| TcpListener::bind((address, 0)).map_err(refused("listening for TCP")))?;
    let to = listener.local_addr().map_err(refused("naming a socket"))?;
    let ours = here(&|| TcpStream::connect_timeout(&to, PATIENCE).map_err(refused("connecting by TCP")))?;
    let (theirs, _) = listener.accept().map_err(refused("accepting TCP"))?;
    for end in [&ours, &theirs] {
        end.set_nodelay(true).map_err(refused("setting TCP_NODELAY"))?;
    }
    ours.set_read_timeout(Some(PATIENCE)).map_err(refused("setting SO_RCVTIMEO"))?;
    Ok([ours, theirs])
}

/// Our end of a connection.
pub(super) struct End {
    stream: TcpStream,
    message: Vec<u8>,
    /// Messages so far; its low byte is in the reply.
    count: u8,
    /// Multiplications after each reply.
    chain: u64,
}

impl End {
    /// The same with so many multiplications after each reply.
    pub(super) fn computing(self, chain: u64) -> Self {
        Self { chain, ..self }
    }

    /// One message, its reply, and computation. Answers whether the reply was to this message; it allocates nothing.
    #[inline(always)]
    pub(super) fn exchange(&mut self) -> std::io::Result<bool> {
        let mut reply = [0];
        self.count = self.count.wrapping_add(1);
        self.stream.write_all(&self.message)?;
        self.stream.read_exact(&mut reply)?;
        std::hint::black_box(arch::multiply_chain(self.chain));
        Ok(reply[0] == self.count)
    }
}

/// A connection to a server of its own on another CPU, and messages of so many bytes for it.
pub(super) fn connection(way: Way, bytes: usize, place: &Place) -> Result<(End, Partner)> {
    let cpu = place.cpus.others.first().copied();
    let cpu = cpu.ok_or_else(|| Error::Usage("there is no CPU for a server".into()))?;
    let [ours, theirs] = way.connected()?;
    let mut served = vec![0; bytes];
    let mut count = 0u8;
    let serve = move || serve(&theirs, &mut served, &mut count);
    let server = Partner::start(Kind::Process, (cpu, Class::Ordinary), serve, || ())?;
    Ok((End { stream: ours, message: vec![0x55; bytes], count: 0, chain: 0 }, server))
}

/// The live thing.
pub(super) struct Exchange {
    end: End,
    server: Partner,
    /// Who has the CPU while this one waits, where it is to be never idle.
    others: Option<Senders>,
    /// The way to another node.
    wire: Option<Wire>,
}

impl Exchange {
    /// A server on another CPU, and messages of so many bytes to it.
    pub(super) fn set_up(way: Way, bytes: usize) -> SetUp {
        Box::new(move |place: &Place| Ok(Box::new(Self::new(way, bytes, place)?) as Box<dyn Subject>))
    }

    /// Between two nodes, with computation after each reply, and with others that do the same on this CPU.
    pub(super) fn set_up_saturated(bytes: usize) -> SetUp {
        Box::new(move |place: &Place| {
            let mut exchange = Self::new(Way::Nodes, bytes, place)?;
            exchange.end.chain = COMPUTED * bytes as u64;
            exchange.others = Some(Senders::start(bytes, exchange.end.chain, place)?);
            Ok(Box::new(exchange) as Box<dyn Subject>)
        })
    }

    fn new(way: Way, bytes: usize, place: &Place) -> Result<Self> {
        let (end, server) = connection(way, bytes, place)?;
        let wire = way.wire(&end.stream);
        Ok(Self { end, server, others: None, wire })
    }

    #[inline(always)]
    fn exchange(&mut self) -> Result<()> {
        match self.end.exchange() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Usage(OTHER_REPLY.into())),
            Err(cause) => Err(self.broken(cause)),
        }
    }

    #[cold]
    fn broken(&mut self, cause: std::io::Error) -> Error {
        match (self.server.fate(), cause.kind()) {
            (Some(fate), _) => Error::Usage(format!("the server: {fate}")),
            (None, ErrorKind::WouldBlock) => Error::Usage(format!(
                "the server has not replied for {} s; it hangs, or others have its CPU",
                PATIENCE.as_secs()
            )),
            (None, _) => Error::Kernel { call: "a message and its reply".into(), cause },
        }
    }
}

impl Subject for Exchange {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut answered = Ok(());
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                answered = self.exchange();
                if answered.is_err() {
                    break;
                }
            }
        });
        answered.map(|()| ticks)
    }

    fn saturated(&mut self, lasting: Duration, clock: &Clock) -> Option<Result<(u64, Ticks)>> {
        let mut others = self.others.take()?;
        let found = others.beside(|| self.exchange(), lasting, clock);
        self.others = Some(others);
        Some(found)
    }

    fn report(&self) -> Report {
        let others = self.others.iter().flat_map(Senders::tasks);
        let partners = others.chain([self.server.task()]).collect();
        Report { partners, wire: self.wire.clone(), ..Report::default() }
    }
}

/// The server's step: a whole message, and the reply. It allocates nothing.
fn serve(mut stream: &TcpStream, message: &mut [u8], count: &mut u8) -> i64 {
    *count = count.wrapping_add(1);
    let served = stream.read_exact(message).and_then(|()| stream.write_all(&[*count]));
    match served {
        Ok(()) => 0,
        Err(cause) => -i64::from(cause.raw_os_error().unwrap_or(libc::EPIPE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};
    use crate::platform::cpu;

    fn exchange() -> Option<Exchange> {
        let place = Place { scratch: std::env::temp_dir(), scale: Scale::Smoke, cpus: Cpus::expected() };
        if cpu::allowed().len() < 2 {
            println!("skipped: there is one CPU");
            return None;
        }
        Some(Exchange::new(Way::Loopback, 3000, &place).expect("a server"))
    }

    #[test]
    fn every_message_is_answered_by_its_number() {
        let Some(mut exchange) = exchange() else { return };
        let clock = Clock::start_up();
        assert!(exchange.run(300, &clock).expect("answered").0 > 0);
        assert!(exchange.saturated(Duration::ZERO, &clock).is_none(), "it is alone");
    }

    #[test]
    fn a_reply_to_another_message_ends_it() {
        let Some(mut exchange) = exchange() else { return };
        exchange.end.count = 7;
        let error = exchange.exchange().expect_err("not this one").to_string();
        assert_eq!(error, OTHER_REPLY);
    }

    #[test]
    fn a_server_that_has_died_is_told() {
        let Some(mut exchange) = exchange() else { return };
        let server = exchange.server.task().process;
        nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).expect("sent");
        // The first message may still go into the socket's buffer.
        let ended = (0..100).find_map(|_| exchange.exchange().err());
        let error = ended.expect("nobody answers").to_string();
        assert!(error.contains("SIGKILL") || error.contains("a message and its reply"), "{error}");
    }
}
