//! A TCP message to a server, and its reply when the server has read the whole message. One of the two has the size that is
//! measured, the other one byte.

use super::local_case::chain_length_for;
use super::message_path::{NetworkPath, PATIENCE};
use crate::environment::Wire;
use crate::kit::contract::*;
use crate::kit::kernel_call::time_until_error;
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::{arch, process};
use crate::statistic::median;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// The claim that is checked on every reply.
pub(super) const ANSWERED: &str =
    "every reply carried the number of the message, which the server had read whole";
const OTHER_REPLY: &str = "the reply was to another message: the server had not read the whole of this one";

/// Exchanges by which the length of the computation is found.
const TRIED: i64 = 200;
/// The most of these replies that may be late. [`check_hardly_slept`](super::local_case::check_hardly_slept) allows one of twenty.
const LATE: i64 = TRIED / 100;
/// The ratio of the time in which a sender computes to the time of its message: in the paper's third table, the rates and costs show
/// 1.13 times the transmission. A shorter computation would leave the CPU idle, a longer one hide the cost of the message.
const SLIGHTLY_LONGER: f64 = 1.13;
/// The most times that the computation is lengthened by this factor while replies are late, to about twice its length. More would
/// hide the cost of a message; if replies are late even then, the claims say that the CPU was idle.
const LENGTHENED: usize = 6;

/// The parameter of an exchange that computes after the reply has arrived.
pub(super) const AFTERWARDS: bool = false;
/// The parameter of an exchange that computes while its message is under way.
const MEANWHILE: bool = true;

/// Lengths of a message and of its reply, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    message: usize,
    reply: usize,
}

impl Sizes {
    /// A message of this length, and a reply of one byte.
    pub(super) fn sent(bytes: usize) -> Self {
        Self { message: bytes, reply: 1 }
    }

    /// A message of one byte, and a reply of this length.
    pub(super) fn received(bytes: usize) -> Self {
        Self { message: 1, reply: bytes }
    }
}

/// The sender's end of a connection.
pub(super) struct Client {
    stream: TcpStream,
    message: Vec<u8>,
    reply: Vec<u8>,
    /// Messages so far, modulo 256. The reply to the last message must carry this number.
    count: u8,
    /// Multiplications for each message.
    computed: u64,
}

impl Client {
    /// Connects to a new server process on another CPU.
    ///
    /// # Errors
    /// [`Error::Missing`] without another CPU or the nodes; a call or a process that the kernel refuses.
    pub(super) fn connect(
        path: NetworkPath,
        sizes: Sizes,
        computed: u64,
        place: &Place,
    ) -> Result<(Self, Partner)> {
        let [near, far] = path.connect()?;
        let (mut message, mut reply) = (vec![0; sizes.message], vec![0; sizes.reply]);
        let server = start_server(place, move || serve_message(&far, &mut message, &mut reply))?;
        let (message, reply) = (vec![0x55; sizes.message], vec![0; sizes.reply]);
        Ok((Self { stream: near, message, reply, count: 0, computed }, server))
    }

    /// Sends one message, receives its reply, and computes: after the reply, or while the message is under way. Returns whether the
    /// reply was to this message. Allocates nothing.
    ///
    /// # Errors
    /// The errors of the connection.
    #[inline(always)]
    pub(super) fn exchange<const MEANWHILE: bool>(&mut self) -> std::io::Result<bool> {
        self.count = self.count.wrapping_add(1);
        self.stream.write_all(&self.message)?;
        if MEANWHILE {
            std::hint::black_box(arch::multiply_chain(self.computed));
        }
        self.stream.read_exact(&mut self.reply)?;
        if !MEANWHILE {
            std::hint::black_box(arch::multiply_chain(self.computed));
        }
        Ok(self.reply[0] == self.count)
    }
}

/// Starts a server process on another CPU.
///
/// # Errors
/// [`Error::Missing`] without another CPU; a process that the kernel refuses.
pub(super) fn start_server(place: &Place, serve: impl FnMut() -> i64 + Send + 'static) -> Result<Partner> {
    let cpu = place.cpus.others.first().copied();
    let cpu = cpu.ok_or_else(|| Error::Missing("there is no CPU for a server".into()))?;
    Partner::start(Kind::Process, (cpu, Class::Ordinary), serve, || ())
}

/// The error of a connection to this server: why the server has ended, or that it hangs.
#[cold]
pub(super) fn connection_error(server: &mut Partner, call: &str, cause: std::io::Error) -> Error {
    match (server.fate(), cause.kind()) {
        (Some(fate), _) => fate.into_error("the server: "),
        (None, ErrorKind::WouldBlock) => Error::Disturbed(format!(
            "the server has not replied for {} s; it hangs, or others have its CPU",
            PATIENCE.as_secs()
        )),
        (None, _) => Error::Kernel { call: call.into(), cause },
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
    /// Messages of these sizes over `path`, with `computed` multiplications for each.
    ///
    /// # Errors
    /// The errors of [`Client::connect`].
    pub(super) fn start(path: NetworkPath, sizes: Sizes, computed: u64, place: &Place) -> Result<Self> {
        let (client, server) = Client::connect(path, sizes, computed, place)?;
        let wire = path.wire(&client.stream);
        Ok(Self { client, server, wire })
    }

    /// Finds how many multiplications take slightly longer than a message and its reply: 1.13 times as long, lengthened by this factor
    /// until hardly a reply is late. Returns their number, which is computed for each later message. The time of a message includes
    /// that on the wire, whatever its rate, and that of the server.
    ///
    /// # Errors
    /// The errors of [`Exchange::exchange`].
    pub(super) fn calibrate_computation(&mut self) -> Result<u64> {
        let mut each = Vec::new();
        for _ in 0..TRIED {
            let begun = Instant::now();
            self.exchange::<AFTERWARDS>()?;
            each.push(begun.elapsed().as_nanos() as f64);
        }
        self.client.computed = chain_length_for(SLIGHTLY_LONGER * median(&each));
        for _ in 0..LENGTHENED {
            if self.count_late_replies()? <= LATE {
                break;
            }
            self.client.computed = (SLIGHTLY_LONGER * self.client.computed as f64) as u64;
        }
        Ok(self.client.computed)
    }

    /// Counts the replies, of [`TRIED`], that had not arrived after the computation, so that the process slept.
    fn count_late_replies(&mut self) -> Result<i64> {
        let waits = || process::process_usage().map(|[own, _]| own.voluntary_context_switches());
        let before = waits()?;
        (0..TRIED).try_for_each(|_| self.exchange::<MEANWHILE>())?;
        Ok(waits()? - before)
    }

    pub(super) fn server_task(&self) -> Task {
        self.server.task()
    }

    /// Exchanges one message and its reply, and computes: after the reply, or while the message is under way.
    ///
    /// # Errors
    /// [`Error::Disproved`] for a reply to another message or a server that has ended, [`Error::Disturbed`] for a server
    /// that does not reply.
    #[inline(always)]
    pub(super) fn exchange<const MEANWHILE: bool>(&mut self) -> Result<()> {
        match self.client.exchange::<MEANWHILE>() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Disproved(OTHER_REPLY.into())),
            Err(cause) => Err(connection_error(&mut self.server, "a message and its reply", cause)),
        }
    }
}

impl Subject for Exchange {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        time_until_error(iterations, clock, || self.exchange::<AFTERWARDS>())
    }

    fn report(&self) -> Report {
        let (partners, wire) = (vec![self.server_task()], self.wire.clone());
        Report { partners, wire, computed: self.client.computed, ..Report::default() }
    }
}

/// A sender that computes while each message is under way. The reply arrives before the sender reads it, so this
/// sender alone keeps the CPU busy.
pub(super) struct LoneSender(pub(super) Exchange);

impl Subject for LoneSender {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        time_until_error(iterations, clock, || self.0.exchange::<MEANWHILE>())
    }

    fn report(&self) -> Report {
        self.0.report()
    }
}

/// The server's step: one whole message, and the reply, which begins with the number of the message. Allocates nothing.
fn serve_message(mut stream: &TcpStream, message: &mut [u8], reply: &mut [u8]) -> i64 {
    reply[0] = reply[0].wrapping_add(1);
    step_answer(stream.read_exact(message).and_then(|()| stream.write_all(reply)))
}

/// The result of a server's step: zero, or a negative error number.
pub(super) fn step_answer(served: std::io::Result<()>) -> i64 {
    match served {
        Ok(()) => 0,
        Err(cause) => -i64::from(cause.raw_os_error().unwrap_or(libc::EPIPE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;
    use crate::platform::cpu;
    use crate::platform::testing::print_skipped;

    fn exchange() -> Option<Exchange> {
        exchange_of(Sizes::sent(3000))
    }

    fn exchange_of(sizes: Sizes) -> Option<Exchange> {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        if cpu::allowed_cpus().len() < 2 {
            print_skipped("there is one CPU");
            return None;
        }
        Some(Exchange::start(NetworkPath::Loopback, sizes, 0, &place).expect("a server"))
    }

    #[test]
    fn every_message_is_answered_by_its_number() {
        let Some(mut exchange) = exchange() else { return };
        let clock = Clock::start_up();
        assert!(exchange.run(300, &clock).expect("answered").0 > 0);
    }

    #[test]
    fn a_receiver_gets_the_whole_message_and_its_number() {
        let Some(mut exchange) = exchange_of(Sizes::received(3000)) else { return };
        // More than 256, so that the number begins again.
        assert!(exchange.run(300, &Clock::start_up()).expect("answered").0 > 0);
        assert_eq!((exchange.client.message.len(), exchange.client.reply.len()), (1, 3000));
        exchange.client.count = 7;
        assert_eq!(exchange.exchange::<AFTERWARDS>().expect_err("not this one").to_string(), OTHER_REPLY);
    }

    #[test]
    fn a_sender_that_computes_meanwhile_is_answered_too() {
        let Some(mut exchange) = exchange() else { return };
        let computed = exchange.calibrate_computation().expect("answered");
        assert!(computed > 0 && exchange.report().computed == computed);
        let clock = Clock::start_up();
        assert!(LoneSender(exchange).run(300, &clock).expect("answered").0 > 0);
    }

    #[test]
    fn a_reply_to_another_message_is_an_error() {
        let Some(mut exchange) = exchange() else { return };
        exchange.client.count = 7;
        let error = exchange.exchange::<AFTERWARDS>().expect_err("not this one").to_string();
        assert_eq!(error, OTHER_REPLY);
    }

    #[test]
    fn a_server_that_has_died_is_reported() {
        let Some(mut exchange) = exchange() else { return };
        let server = exchange.server.task().process;
        nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).expect("sent");
        // The first message may still go into the socket's buffer.
        let ended = (0..100).find_map(|_| exchange.exchange::<AFTERWARDS>().err());
        let error = ended.expect("a refusal").to_string();
        assert!(error.contains("SIGKILL") || error.contains("a message and its reply"), "{error}");
    }
}
