//! Both ends of a round trip. The measuring end sends numbered messages; the far end sends its process id first, and then
//! returns every message.

use super::endpoint::Endpoint;
use crate::clock::{Clock, Ticks};
use crate::kit::placement::NOT_THE_MESSAGE;
use crate::platform::time::monotonic_raw_ns;
use std::mem::swap;

/// What one bracket of the clock times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// A batch of round trips.
    Together,
    /// One round trip: the distribution is the result.
    Each,
    /// One round trip, from the moment at which it is due at this number of messages a second: the distribution is the result.
    AtRate(u32),
}

/// Messages of one length over one endpoint. The first `AT` bytes of each are a constant prefix, then comes its number.
pub struct Dialogue<E, const AT: usize> {
    endpoint: E,
    message: Vec<u8>,
    reply: Vec<u8>,
    /// The number of the next message.
    number: u64,
}

impl<E: Endpoint, const AT: usize> Dialogue<E, AT> {
    /// Messages of `bytes`, prefix included.
    pub fn new(endpoint: E, bytes: usize, prefix: &[u8; AT]) -> Self {
        let mut message: Vec<_> = (0..bytes).map(|at| at as u8 ^ 0x5a).collect();
        message[..AT].copy_from_slice(prefix);
        Self { endpoint, message, reply: vec![0; bytes], number: 1 }
    }

    /// The endpoint, for what precedes the first message.
    pub fn endpoint(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// Times round trips, and compares the last reply with its message byte for byte.
    ///
    /// # Errors
    /// The negative error number of a call, or [`NOT_THE_MESSAGE`].
    pub fn time_round_trips(&mut self, iterations: u64, timed: Timed, clock: &Clock) -> Result<Ticks, i64> {
        let Self { endpoint, message, reply, number } = self;
        let (mut answer, mut sum) = (0, Ticks(0));
        match timed {
            Timed::Together => {
                sum = clock.time(|| {
                    answer = exchange_messages::<_, AT>(endpoint, message, reply, number, iterations)
                });
            }
            Timed::AtRate(rate) => {
                sum = pace(rate, iterations, clock, || {
                    answer = exchange_messages::<_, AT>(endpoint, message, reply, number, 1);
                    answer == 0
                });
            }
            Timed::Each => {
                for _ in 0..iterations {
                    sum += clock
                        .time(|| answer = exchange_messages::<_, AT>(endpoint, message, reply, number, 1));
                    if answer != 0 {
                        break;
                    }
                }
            }
        }
        match answer {
            0 if reply != message => Err(NOT_THE_MESSAGE),
            0 => Ok(sum),
            refused => Err(refused),
        }
    }
}

/// Calls `once` up to `iterations` times, `rate` times a second, until it returns `false`. The time recorded for a call begins
/// when the call is due, even if the previous call was late. Returns the total time in which a call was due or under way, which
/// never exceeds the elapsed time.
fn pace(rate: u32, iterations: u64, clock: &Clock, mut once: impl FnMut() -> bool) -> Ticks {
    let interval_ns = 1_000_000_000 / u64::from(rate.max(1));
    let ticks = |ns: u64| Ticks((ns as f64 * clock.hz() / 1e9) as u64);
    let mut done = monotonic_raw_ns();
    let (mut due, mut sum) = (done, Ticks(0));
    for _ in 0..iterations {
        due += interval_ns;
        while monotonic_raw_ns() < due {
            std::hint::spin_loop();
        }
        let before = done.max(due);
        let goes_on = once();
        done = monotonic_raw_ns();
        clock.record_bracket(ticks(done - due));
        sum += ticks(done - before);
        if !goes_on {
            break;
        }
    }
    sum
}

/// Makes `n` round trips. Each reply must have the length and the number of its message. Returns 0 or a negative
/// error number.
#[inline(always)]
fn exchange_messages<E: Endpoint, const AT: usize>(
    endpoint: &mut E,
    message: &mut [u8],
    reply: &mut [u8],
    number: &mut u64,
    n: u64,
) -> i64 {
    for _ in 0..n {
        write_number(&mut message[AT..], *number);
        *number += 1;
        let received = endpoint.exchange(message, reply);
        if received < 0 {
            return received;
        }
        if received as usize != message.len() || !numbers_match(&message[AT..], &reply[AT..]) {
            return NOT_THE_MESSAGE;
        }
    }
    0
}

/// Writes the number at the start. A message shorter than eight bytes holds only the number's low bytes.
#[inline(always)]
fn write_number(message: &mut [u8], number: u64) {
    match message.first_chunk_mut() {
        Some(start) => *start = number.to_le_bytes(),
        None => message.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, of)| *byte = of),
    }
}

/// Whether both begin with the same number; if they are shorter than eight bytes, whether they are equal.
#[inline(always)]
fn numbers_match(message: &[u8], reply: &[u8]) -> bool {
    match (message.first_chunk::<8>(), reply.first_chunk::<8>()) {
        (Some(sent), Some(received)) => sent == received,
        _ => message == reply,
    }
}

/// Length of the greeting: the id of the process that answers.
pub const GREETING_BYTES: usize = 4;

/// The answering end. Its two buffers alternate: one is sent while the other receives the next message.
pub struct Echo<E> {
    endpoint: E,
    received: Vec<u8>,
    next: Vec<u8>,
    greeted: bool,
}

impl<E: Endpoint> Echo<E> {
    /// For messages of `bytes`. Allocates here and never later.
    pub fn new(endpoint: E, bytes: usize) -> Self {
        Self { endpoint, received: vec![0; bytes], next: vec![0; bytes], greeted: false }
    }

    /// Answers one message and waits for the next. The first call sends the greeting instead. Returns the bytes of the
    /// next message or a negative error number.
    #[inline(always)]
    pub fn answer_message(&mut self) -> i64 {
        if !self.greeted {
            self.greeted = true;
            let number = std::process::id().to_ne_bytes();
            let greeted = self.endpoint.send(&number);
            return if greeted < 0 { greeted } else { self.endpoint.receive(&mut self.received) };
        }
        let answer = self.endpoint.exchange(&self.received, &mut self.next);
        swap(&mut self.received, &mut self.next);
        answer
    }
}
