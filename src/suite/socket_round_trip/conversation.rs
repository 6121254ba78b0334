//! The near end of a round trip, whoever answers: a partner on this machine, or another machine.

use super::Make;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::alarm::Alarm;
use crate::kit::placement::{patience, refused};
use crate::kit::socket::echo::GREETING_BYTES;
use crate::kit::socket::way::Way;
use crate::kit::socket::{Transport, are_connected};
use crate::platform::partner::{Partner, Task};
use crate::{Error, Result};

/// What a bracket of the clock holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// A batch of round trips.
    Together,
    /// One round trip: the distribution is the answer.
    Each,
}

/// The live thing: one end, and who is known to be at the other.
pub struct Conversation<W> {
    name: &'static str,
    way: W,
    message: Vec<u8>,
    reply: Vec<u8>,
    /// The number of the next message.
    number: u64,
    timed: Timed,
    /// The one who answers first, if he is on this machine, then who keeps CPUs awake.
    partners: Vec<Partner>,
    alarm: Alarm,
}

/// What an answer that is not the message is told by.
const NOT_THE_MESSAGE: i64 = -(libc::EBADMSG as i64);

impl<W: Way> Conversation<W> {
    /// Over this end, with messages of so many bytes. `name` stands in its errors.
    pub fn new(name: &'static str, way: W, bytes: usize, timed: Timed) -> Result<Self> {
        let message = (0..bytes).map(|at| at as u8 ^ 0x5a).collect();
        let (reply, partners) = (vec![0; bytes], Vec::new());
        Ok(Self { name, way, message, reply, number: 1, timed, partners, alarm: Alarm::new()? })
    }

    /// With these partners, of whom the first must greet, and be who was started.
    pub fn with(&mut self, partners: Vec<Partner>) -> Result<()> {
        self.partners = partners;
        let mut greeting = [0; GREETING_BYTES];
        let Self { way, alarm, .. } = self;
        let answer = alarm.watch(patience(1), || way.receive(&mut greeting));
        if answer < 0 {
            return Err(refused(self.name, answer, &mut self.partners, 1));
        }
        let (said, started) = (i32::from_ne_bytes(greeting), self.partners.first().map(Partner::task));
        match started {
            Some(task) if task.process.as_raw() == said => Ok(()),
            _ => Err(Error::Usage(format!(
                "{}: process {said} answers, which is not the partner that was started",
                self.name
            ))),
        }
    }
}

/// So many round trips, one after another.
#[inline(always)]
fn converse<W: Way>(way: &mut W, message: &mut [u8], reply: &mut [u8], number: &mut u64, n: u64) -> i64 {
    for _ in 0..n {
        mark(message, *number);
        *number += 1;
        let come = way.turn(message, reply);
        if come < 0 {
            return come;
        }
        if come as usize != message.len() || !have_one_mark(message, reply) {
            return NOT_THE_MESSAGE;
        }
    }
    0
}

/// The sum of what so many brackets hold, up to one that is refused.
pub(super) fn one_by_one(n: u64, mut bracket: impl FnMut() -> Option<Ticks>) -> Ticks {
    let mut sum = Ticks(0);
    for ticks in (0..n).map_while(|_| bracket()) {
        sum += ticks;
    }
    sum
}

/// Numbers a message; of a short one only the number's end fits.
#[inline(always)]
fn mark(message: &mut [u8], number: u64) {
    match message.first_chunk_mut() {
        Some(start) => *start = number.to_le_bytes(),
        None => message.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, of)| *byte = of),
    }
}

#[inline(always)]
fn have_one_mark(message: &[u8], reply: &[u8]) -> bool {
    match (message.first_chunk::<8>(), reply.first_chunk::<8>()) {
        (Some(sent), Some(come)) => sent == come,
        _ => message == reply,
    }
}

impl<W: Way> Subject for Conversation<W> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { way, message, reply, number, timed, alarm, .. } = self;
        let mut answer = 0;
        let ticks = alarm.watch(patience(iterations), || match timed {
            Timed::Together => clock.time(|| answer = converse(way, message, reply, number, iterations)),
            Timed::Each => one_by_one(iterations, || {
                let ticks = clock.time(|| answer = converse(way, message, reply, number, 1));
                (answer == 0).then_some(ticks)
            }),
        });
        if answer == 0 && self.reply != self.message {
            answer = NOT_THE_MESSAGE;
        }
        match answer {
            0 => Ok(ticks),
            NOT_THE_MESSAGE => Err(Error::Usage(format!(
                "{}: an answer was not the message that was sent: somebody else has this address",
                self.name
            ))),
            _ => Err(refused(self.name, answer, &mut self.partners, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report { partners: self.partners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// Both ends' part of every round trip by one process, so that nobody is switched to.
pub(super) fn alone<W: Way>(transport: Transport, make: Make<W>, bytes: usize) -> Result<Box<dyn Subject>> {
    let ends = transport.pair()?;
    are_connected(transport, &ends)?;
    let [near, far] = ends;
    let (mut near, mut far) = (make(near)?, make(far)?);
    let (message, mut come) = (vec![1; bytes], vec![0; bytes]);
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let mut lowest = 0;
        let ticks = clock.time(|| {
            for _ in 0..n {
                lowest = lowest.min(near.send(&message)).min(far.receive(&mut come));
                lowest = lowest.min(far.send(&come)).min(near.receive(&mut come));
            }
        });
        if lowest < 0 { Err(refused(transport.name(), lowest, &mut [], n)) } else { Ok(ticks) }
    }))
}
