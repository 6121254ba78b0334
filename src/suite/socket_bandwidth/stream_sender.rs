//! The sending end of one or several streams to partners on this machine.

use crate::kit::contract::*;
use crate::kit::placement::explain_refusal;
use crate::kit::socket::flow::{Bounds, Control};
use crate::kit::socket::source::Source;
use crate::kit::socket::{enable_nagle, flush_held_data, raw_descriptor};
use crate::kit::watchdog::Alarm;
use crate::platform::partner::Partner;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// One connection: the source of its messages, and the control by which the receiver returns its count.
pub(super) struct Connection {
    /// The end that sends. It is closed before the source frees its buffer.
    pub(super) end: OwnedFd,
    pub(super) source: Box<dyn Source>,
    pub(super) control: Control,
    pub(super) bounds: Bounds,
    /// A sentence on the sizes of the socket buffers, if they are fixed.
    pub(super) buffers: Option<String>,
}

/// One or several connections, which send in turn.
pub(super) struct StreamSender {
    /// The name in error messages.
    name: &'static str,
    connections: Vec<Connection>,
    /// The number of messages that each connection sends in an iteration.
    messages: u64,
    /// The length of a message.
    bytes: u64,
    partners: Vec<Partner>,
    alarm: Alarm,
    /// Datagrams that were sent.
    pub(super) sent: u64,
    /// Datagrams that were received.
    pub(super) received: u64,
}

/// The result if a receiver's count differs from the number of bytes that were sent.
const MISCOUNTED: i64 = -(libc::EBADMSG as i64);

impl StreamSender {
    /// A sender: in an iteration each connection sends `messages` messages of `bytes` bytes. The `partners` receive them.
    ///
    /// # Errors
    /// The kernel refuses the alarm.
    pub(super) fn new(
        name: &'static str,
        connections: Vec<Connection>,
        (messages, bytes): (usize, usize),
        partners: Vec<Partner>,
    ) -> Result<Self> {
        let (messages, bytes) = (messages as u64, bytes as u64);
        Ok(Self { name, connections, messages, bytes, partners, alarm: Alarm::new()?, sent: 0, received: 0 })
    }

    /// Time after which the receivers of a batch count as hung: the time of the batch at a hundredth of the rate of loopback.
    fn batch_timeout(&self, messages: u64) -> Duration {
        const BYTES_A_SECOND: f64 = 10e6;
        const MESSAGES_A_SECOND: f64 = 10e3;
        let (all, connections) = (messages as f64, self.connections.len() as f64);
        let seconds = connections * (all * self.bytes as f64 / BYTES_A_SECOND + all / MESSAGES_A_SECOND);
        Duration::from_secs(2) + Duration::from_secs_f64(seconds)
    }
}

/// Sends the messages by each connection and waits for every receiver's count. Returns 0 or a negative error number.
#[inline(always)]
fn send_stream(connections: &mut [Connection], messages: u64, bytes: u64) -> i64 {
    for _ in 0..messages {
        for connection in &mut *connections {
            let sent = connection.source.send_message(raw_descriptor(&connection.end));
            if sent < 0 {
                return sent;
            }
        }
    }
    for connection in &*connections {
        flush_held_data(raw_descriptor(&connection.end));
    }
    for connection in connections {
        let count = connection.control.receive_count();
        if count < 0 {
            return count;
        }
        if count as u64 != messages * bytes {
            return MISCOUNTED;
        }
        let settled = connection.source.wait_until_released(raw_descriptor(&connection.end));
        if settled < 0 {
            return settled;
        }
    }
    0
}

/// Sends datagrams, and replaces lost ones, until `messages` of them were received. Returns the number sent, or a
/// negative error number.
#[inline(always)]
fn send_datagrams(connection: &mut Connection, messages: u64, bytes: u64) -> i64 {
    let (mut missing, mut sent) = (messages, 0);
    loop {
        for _ in 0..missing {
            let answer = connection.source.send_message(raw_descriptor(&connection.end));
            if answer < 0 {
                return answer;
            }
        }
        sent += missing;
        let count = connection.control.receive_datagram_count(raw_descriptor(&connection.end));
        if count < 0 {
            return count;
        }
        let received = count as u64;
        if received % bytes != 0 || received > missing * bytes {
            return MISCOUNTED;
        }
        missing -= received / bytes;
        if missing == 0 {
            return sent as i64;
        }
        let announced = connection.control.announce_batch(missing * bytes);
        if announced < 0 {
            return announced;
        }
    }
}

impl Subject for StreamSender {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let messages = iterations * self.messages;
        let patience = self.batch_timeout(messages);
        let Self { connections, bytes, alarm, .. } = self;
        let announced = connections.iter_mut().map(|connection| {
            enable_nagle(raw_descriptor(&connection.end));
            connection.control.announce_batch(messages * *bytes)
        });
        let mut answer = announced.min().unwrap_or(0).min(0);
        let mut ticks = Ticks(0);
        if answer == 0 {
            ticks = alarm.run_with_limit(patience, || match &mut connections[..] {
                [connection] if connection.bounds == Bounds::Datagram => {
                    clock.time(|| answer = send_datagrams(connection, messages, *bytes))
                }
                connections => clock.time(|| answer = send_stream(connections, messages, *bytes)),
            });
        }
        match answer {
            0 => Ok(ticks),
            sent if sent > 0 => {
                self.sent += sent as u64;
                self.received += messages;
                Ok(ticks)
            }
            MISCOUNTED => Err(Error::Disproved(format!(
                "{}: a receiver has counted other than the {} bytes that were sent: another process sends to it",
                self.name,
                messages * self.bytes
            ))),
            _ => Err(explain_refusal(self.name, answer, &mut self.partners, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report {
            partners: self.partners.iter().map(Partner::task).collect(),
            evidence: self.evidence(),
            ..Report::default()
        }
    }
}

impl StreamSender {
    /// The sizes of the buffers, the source's remark, and how many datagrams were lost.
    fn evidence(&self) -> Vec<String> {
        let first = self.connections.first();
        let lost = (self.sent > 0).then(|| {
            let lost = self.sent - self.received;
            let share = 100.0 * lost as f64 / self.sent as f64;
            format!("of {} datagrams {lost} were lost ({share:.1} %) and sent again", self.sent)
        });
        let said = first.map(|one| [one.buffers.clone(), one.source.evidence_sentence()]);
        said.into_iter().flatten().chain([lost]).flatten().collect()
    }
}
