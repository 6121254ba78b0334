//! Round trips to a partner on this machine, and the control: both ends' transfers in one process.

use super::Make;
use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::{explain_refusal, partner_time_limit};
use crate::kit::socket::dialogue::GREETING_BYTES;
use crate::kit::socket::dialogue::{Dialogue, NOT_THE_MESSAGE, Timed};
use crate::kit::socket::endpoint::Endpoint;
use crate::kit::socket::{Transport, verify_connected};
use crate::kit::watchdog::Alarm;
use crate::platform::partner::Partner;

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
    /// Waits for the greeting of the first partner, which must be the process that was started.
    ///
    /// # Errors
    /// [`Error::Disproved`] for another process, and the errors of [`refused`] without a greeting.
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
        if answer < 0 {
            return Err(explain_refusal(name, answer, &mut partners, 1));
        }
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
        ended.map_err(|answer| match answer {
            NOT_THE_MESSAGE => Error::Disproved(format!(
                "{name}: an answer was not the message that was sent: another process has this address"
            )),
            _ => explain_refusal(name, answer, partners, iterations),
        })
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
    let ends = transport.connected_pair()?;
    verify_connected(transport, &ends)?;
    let [near, far] = ends;
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
