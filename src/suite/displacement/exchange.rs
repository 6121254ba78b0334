//! A TCP message to a server, which replies with one byte when it has read the whole message.

use super::message_path::{NetworkPath, PATIENCE};
use crate::case::{Place, Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::error::{Error, Result};
use crate::platform::arch;
use crate::platform::partner::{Class, Kind, Partner, Task};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// The claim that is checked on every reply.
pub(super) const ANSWERED: &str =
    "every reply carried the number of the message, which the server had read whole";
const OTHER_REPLY: &str = "the reply was to another message: the server had not read the whole of this one";

/// The sender's end of a connection.
pub(super) struct Client {
    stream: TcpStream,
    message: Vec<u8>,
    /// Messages so far, modulo 256: what the next reply must carry.
    count: u8,
    /// Multiplications after each reply.
    computed: u64,
}

impl Client {
    /// Connects to a new server process on another CPU.
    ///
    /// # Errors
    /// [`Error::Missing`] without another CPU or the nodes; a call or a process that the kernel refuses.
    pub(super) fn connect(
        path: NetworkPath,
        bytes: usize,
        computed: u64,
        place: &Place,
    ) -> Result<(Self, Partner)> {
        let cpu = place.cpus.others.first().copied();
        let cpu = cpu.ok_or_else(|| Error::Missing("there is no CPU for a server".into()))?;
        let [near, far] = path.connect()?;
        let mut received = vec![0; bytes];
        let mut count = 0u8;
        let serve = move || serve_message(&far, &mut received, &mut count);
        let server = Partner::start(Kind::Process, (cpu, Class::Ordinary), serve, || ())?;
        Ok((Self { stream: near, message: vec![0x55; bytes], count: 0, computed }, server))
    }

    /// One message, its reply, and computation. Returns whether the reply was to this message. Allocates nothing.
    ///
    /// # Errors
    /// Those of the connection.
    #[inline(always)]
    pub(super) fn exchange_message(&mut self) -> std::io::Result<bool> {
        let mut reply = [0];
        self.count = self.count.wrapping_add(1);
        self.stream.write_all(&self.message)?;
        self.stream.read_exact(&mut reply)?;
        std::hint::black_box(arch::multiply_chain(self.computed));
        Ok(reply[0] == self.count)
    }

    /// One message, computation while it is under way, and its reply. Returns whether the reply was to this message.
    /// Allocates nothing.
    ///
    /// # Errors
    /// Those of the connection.
    #[inline(always)]
    fn exchange_overlapped(&mut self) -> std::io::Result<bool> {
        let mut reply = [0];
        self.count = self.count.wrapping_add(1);
        self.stream.write_all(&self.message)?;
        std::hint::black_box(arch::multiply_chain(self.computed));
        self.stream.read_exact(&mut reply)?;
        Ok(reply[0] == self.count)
    }
}

/// The measuring process as a sender, with its server.
pub(super) struct Exchange {
    client: Client,
    server: Partner,
    /// The wire to another node.
    wire: Option<Wire>,
}

impl Exchange {
    /// Messages of `bytes` over `path`, with `computed` multiplications after each reply.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub(super) fn start(path: NetworkPath, bytes: usize, computed: u64, place: &Place) -> Result<Self> {
        let (client, server) = Client::connect(path, bytes, computed, place)?;
        let wire = path.wire(&client.stream);
        Ok(Self { client, server, wire })
    }

    pub(super) fn server_task(&self) -> Task {
        self.server.task()
    }

    /// One message and its reply.
    ///
    /// # Errors
    /// [`Error::Disproved`] for a reply to another message or a server that has ended, [`Error::Disturbed`] for one
    /// that does not reply.
    #[inline(always)]
    pub(super) fn exchange_message(&mut self) -> Result<()> {
        let answered = self.client.exchange_message();
        self.judge_reply(answered)
    }

    /// One message, computation while it is under way, and its reply.
    ///
    /// # Errors
    /// Those of [`Exchange::exchange`].
    #[inline(always)]
    pub(super) fn exchange_overlapped(&mut self) -> Result<()> {
        let answered = self.client.exchange_overlapped();
        self.judge_reply(answered)
    }

    #[inline(always)]
    fn judge_reply(&mut self, answered: std::io::Result<bool>) -> Result<()> {
        match answered {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Disproved(OTHER_REPLY.into())),
            Err(cause) => Err(self.connection_error(cause)),
        }
    }

    #[cold]
    fn connection_error(&mut self, cause: std::io::Error) -> Error {
        match (self.server.fate(), cause.kind()) {
            (Some(fate), _) => fate.into_error("the server: "),
            (None, ErrorKind::WouldBlock) => Error::Disturbed(format!(
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
                answered = self.exchange_message();
                if answered.is_err() {
                    break;
                }
            }
        });
        answered.map(|()| ticks)
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.server_task()], wire: self.wire.clone(), ..Report::default() }
    }
}

/// A sender that computes while each message is under way. The reply arrives before the sender reads it, so this
/// sender alone keeps the CPU busy.
pub(super) struct LoneSender(pub(super) Exchange);

impl Subject for LoneSender {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut answered = Ok(());
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                answered = self.0.exchange_overlapped();
                if answered.is_err() {
                    break;
                }
            }
        });
        answered.map(|()| ticks)
    }

    fn report(&self) -> Report {
        self.0.report()
    }
}

/// The server's step: one whole message, and the reply. Allocates nothing.
fn serve_message(mut stream: &TcpStream, message: &mut [u8], count: &mut u8) -> i64 {
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
    use crate::case::Scale;
    use crate::kit::runnable::test_place;
    use crate::platform::cpu;

    fn exchange() -> Option<Exchange> {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        if cpu::allowed_cpus().len() < 2 {
            println!("skipped: there is one CPU");
            return None;
        }
        Some(Exchange::start(NetworkPath::Loopback, 3000, 0, &place).expect("a server"))
    }

    #[test]
    fn every_message_is_answered_by_its_number() {
        let Some(mut exchange) = exchange() else { return };
        let clock = Clock::start_up();
        assert!(exchange.run(300, &clock).expect("answered").0 > 0);
    }

    #[test]
    fn a_sender_that_computes_meanwhile_is_answered_too() {
        let Some(exchange) = exchange() else { return };
        let clock = Clock::start_up();
        assert!(LoneSender(exchange).run(300, &clock).expect("answered").0 > 0);
    }

    #[test]
    fn a_reply_to_another_message_ends_it() {
        let Some(mut exchange) = exchange() else { return };
        exchange.client.count = 7;
        let error = exchange.exchange_message().expect_err("not this one").to_string();
        assert_eq!(error, OTHER_REPLY);
    }

    #[test]
    fn a_server_that_has_died_is_reported() {
        let Some(mut exchange) = exchange() else { return };
        let server = exchange.server.task().process;
        nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).expect("sent");
        // The first message may still go into the socket's buffer.
        let ended = (0..100).find_map(|_| exchange.exchange_message().err());
        let error = ended.expect("a refusal").to_string();
        assert!(error.contains("SIGKILL") || error.contains("a message and its reply"), "{error}");
    }
}
