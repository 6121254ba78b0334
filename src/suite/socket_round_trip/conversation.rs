//! Round trips to a partner on this machine; round trips within one process, as controls and as cases; and ICMP echoes, which
//! the kernel answers.

use super::{Make, TCP_LAYERS, are_few_sleeps};
use crate::kit::contract::*;
use crate::kit::placement::{explain_refusal, partner_time_limit};
use crate::kit::socket::Transport::Tcp;
use crate::kit::socket::dialogue::{Dialogue, GREETING_BYTES, Timed};
use crate::kit::socket::endpoint::{Blocking, Endpoint};
use crate::kit::socket::icmp::Ping;
use crate::kit::socket::{LOOPBACK, Transport, size_text};
use crate::kit::watchdog::Alarm;
use crate::platform::partner::Partner;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// The measuring end and its partners.
pub struct Conversation<E> {
    /// The name in error messages.
    name: &'static str,
    dialogue: Dialogue<E, 0>,
    timed: Timed,
    /// The partner that answers first, then the tasks that keep CPUs awake.
    partners: Vec<Partner>,
    alarm: Alarm,
}

impl<E: Endpoint> Conversation<E> {
    /// Waits for the greeting of the first partner, and checks that its sender is the process that was started.
    ///
    /// # Errors
    /// [`Error::Disproved`] if another process greets; the errors of [`refused`] if no greeting arrives.
    pub fn await_greeting(
        name: &'static str,
        endpoint: E,
        (bytes, timed): (usize, Timed),
        mut partners: Vec<Partner>,
    ) -> Result<Self> {
        let (mut dialogue, mut alarm) = (Dialogue::new(endpoint, bytes, &[]), Alarm::new()?);
        let mut greeting = [0; GREETING_BYTES];
        let answer =
            alarm.run_with_limit(partner_time_limit(1), || dialogue.endpoint().receive(&mut greeting));
        ensure(answer >= 0, || explain_refusal(name, answer, &mut partners, 1))?;
        let (said, started) = (i32::from_ne_bytes(greeting), partners.first().map(Partner::task));
        match started {
            Some(task) if task.process.as_raw() == said => {
                Ok(Self { name, dialogue, timed, partners, alarm })
            }
            _ => Err(Error::Disproved(format!(
                "{name}: process {said} answers, which is not the partner that was started"
            ))),
        }
    }
}

impl<E: Endpoint> Subject for Conversation<E> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { name, dialogue, timed, partners, alarm } = self;
        let ended = alarm.run_with_limit(partner_time_limit(iterations), || {
            dialogue.time_round_trips(iterations, *timed, clock)
        });
        ended.map_err(|answer| explain_refusal(name, answer, partners, iterations))
    }

    fn report(&self) -> Report {
        Report { partners: self.partners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// The control: all four transfers of a round trip in one process, without a switch.
pub(super) fn single_process_control<E: Endpoint>(
    transport: Transport,
    make: Make<E>,
    bytes: usize,
) -> Result<Box<dyn Subject>> {
    let [near, far] = transport.connected_pair()?;
    let (mut near, mut far) = (make(near)?, make(far)?);
    let (message, mut received) = (vec![1; bytes], vec![0; bytes]);
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let mut lowest = 0;
        let ticks = clock.time(|| {
            for _ in 0..n {
                lowest = lowest.min(near.send(&message)).min(far.receive(&mut received));
                lowest = lowest.min(far.send(&received)).min(near.receive(&mut received));
            }
        });
        if lowest < 0 { Err(explain_refusal(transport.name(), lowest, &mut [], n)) } else { Ok(ticks) }
    }))
}

/// A round trip of this many bytes by TCP, both ends in the measuring process.
pub(super) fn one_process_case(bytes: usize) -> Case {
    let title = format!("{} to and fro by TCP, both ends in one process", size_text(bytes));
    Case::new(format!("tcp-one-process/{}", size_text(bytes)), title, one_process_set_up(bytes))
        .need(LOOPBACK)
        .claim(Claim::Checked("every answer was the message that was sent, with its number"))
        .claim(Claim::AtMost(claim_never_waited))
        .predict(0.0, TCP_LAYERS, "two messages through the layers, four copies, and no switch")
}

fn one_process_set_up(bytes: usize) -> SetUp {
    set_up(move |_| {
        let [near, far] = Tcp.connected_pair()?;
        let (mut near, mut far) = (Blocking::new(near)?, Blocking::new(far)?);
        let [mut message, mut passed, mut answer] = [vec![1; bytes], vec![0; bytes], vec![0; bytes]];
        let mut number = 0u64;
        Ok(move |n: u64, clock: &Clock| {
            let (mut lowest, mut wrong) = (0, 0u64);
            let ticks = clock.time(|| {
                for _ in 0..n {
                    number += 1;
                    message[..size_of::<u64>()].copy_from_slice(&number.to_ne_bytes());
                    lowest = lowest.min(near.send(&message)).min(far.receive(&mut passed));
                    lowest = lowest.min(far.send(&passed)).min(near.receive(&mut answer));
                    wrong += u64::from(answer != message);
                }
            });
            match (lowest < 0, wrong) {
                (true, _) => Err(explain_refusal("tcp in one process", lowest, &mut [], n)),
                (_, 0) => Ok(ticks),
                _ => Err(Error::Disproved(format!(
                    "{wrong} of {n} answers were not the message that was sent"
                ))),
            }
        })
    })
}

/// The claim that no transfer waited for another task.
fn claim_never_waited(delta: &Delta, iterations: u64) -> Judged {
    let waited = delta.counted.voluntary_switches;
    let seen = format!("it gave up the CPU {waited} times in {iterations}");
    ensure(are_few_sleeps(waited, iterations), || format!("{seen}: a message waited for another task"))
        .map(|()| seen)
}

/// The loopback address, with any port.
const LOCAL: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

pub(super) fn icmp_echo_case(bytes: usize) -> Case {
    let set_up = set_up(move |_| {
        let (mut ping, mut alarm) = (Ping::new(LOCAL, bytes)?, Alarm::new()?);
        Ok(move |n: u64, clock: &Clock| {
            let echo = |ping: &mut Ping| ping.echo_once();
            let check = |_: &mut Ping, answer| check_echo(answer, bytes, n);
            ping.discard_waiting();
            alarm.run_with_limit(partner_time_limit(n), || {
                clock.time_each(n, &mut ping, |_| Ok(()), echo, check)
            })
        })
    });
    let title = format!("ICMP echo of {} by 127.0.0.1, which the kernel answers", size_text(bytes));
    Case::new(format!("icmp-each/{}", size_text(bytes)), title, set_up)
        .need(LOOPBACK)
        .need(PING)
        .one_by_one()
        .claim(Claim::Checked("every reply had the identifier, the number and the bytes of its question"))
        .predict(1_000.0, 8_000.0, "a packet up and one down again in the sender's own call, one received")
}

fn check_echo(answer: i64, bytes: usize, iterations: u64) -> Result<Counts> {
    match answer {
        refusal if refusal < 0 => Err(explain_refusal("icmp", refusal, &mut [], iterations)),
        received if received as usize != bytes => {
            Err(Error::Disproved(format!("icmp: {received} bytes came back of {bytes}")))
        }
        _ => Ok(Counts::Yes),
    }
}

/// The need that this process may open a ping socket or a raw socket.
const PING: Need = Need::new(|_| Ping::new(LOCAL, 1).map(drop).map_err(|e| e.to_string()));
