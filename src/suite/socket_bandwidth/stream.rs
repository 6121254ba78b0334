//! The near end of a stream, whoever receives: partners on this machine, or another machine.

use crate::case::{Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::alarm::Alarm;
use crate::kit::placement::refused;
use crate::kit::socket::flow::{Bounds, Control};
use crate::kit::socket::source::Source;
use crate::kit::socket::{hold, push};
use crate::platform::partner::{Partner, Task};
use crate::{Error, Result};
use std::time::Duration;

/// One connection: what sends, and who is asked how much has come.
pub struct Lane {
    pub source: Box<dyn Source>,
    pub control: Control,
    pub bounds: Bounds,
}

/// The live thing: one or several connections, which send in turn.
pub struct Stream {
    name: &'static str,
    lanes: Vec<Lane>,
    /// Messages that each sends in an iteration, and the length of one.
    messages: u64,
    bytes: u64,
    partners: Vec<Partner>,
    alarm: Alarm,
    /// Datagrams that were sent, and those of them that came.
    pub(super) sent: u64,
    pub(super) come: u64,
}

/// A receiver whose sum is not what was sent.
const MISCOUNTED: i64 = -(libc::EBADMSG as i64);

impl Stream {
    /// Over these connections, with so many messages an iteration, of so many bytes. `name` stands in its errors.
    pub fn new(name: &'static str, lanes: Vec<Lane>, messages: usize, bytes: usize) -> Result<Self> {
        let (messages, bytes) = (messages as u64, bytes as u64);
        let (partners, alarm) = (Vec::new(), Alarm::new()?);
        Ok(Self { name, lanes, messages, bytes, partners, alarm, sent: 0, come: 0 })
    }

    /// With these partners, who receive.
    pub fn with(mut self, partners: Vec<Partner>) -> Self {
        self.partners = partners;
        self
    }

    /// After so long nobody receives any more: a hundredth of what loopback does, and a tenth of a slow network.
    fn patience(&self, messages: u64) -> Duration {
        const BYTES_A_SECOND: f64 = 10e6;
        const MESSAGES_A_SECOND: f64 = 10e3;
        let (all, lanes) = (messages as f64, self.lanes.len() as f64);
        let seconds = lanes * (all * self.bytes as f64 / BYTES_A_SECOND + all / MESSAGES_A_SECOND);
        Duration::from_secs(2) + Duration::from_secs_f64(seconds)
    }
}

/// Sends so many messages by each lane and waits until all have come.
#[inline(always)]
fn whole(lanes: &mut [Lane], messages: u64, bytes: u64) -> i64 {
    for _ in 0..messages {
        for lane in &mut *lanes {
            let sent = lane.source.message();
            if sent < 0 {
                return sent;
            }
        }
    }
    for lane in &*lanes {
        push(lane.source.end());
    }
    for lane in lanes {
        let count = lane.control.count();
        if count < 0 {
            return count;
        }
        if count as u64 != messages * bytes {
            return MISCOUNTED;
        }
        let settled = lane.source.settle();
        if settled < 0 {
            return settled;
        }
    }
    0
}

/// Sends so many datagrams, and again as many as were lost, until all have come. Answers how many were sent.
#[inline(always)]
fn lossy(lane: &mut Lane, messages: u64, bytes: u64) -> i64 {
    let (mut missing, mut sent) = (messages, 0);
    loop {
        for _ in 0..missing {
            let answer = lane.source.message();
            if answer < 0 {
                return answer;
            }
        }
        sent += missing;
        let count = lane.control.count_of_datagrams(lane.source.end());
        if count < 0 {
            return count;
        }
        let come = count as u64;
        if come % bytes != 0 || come > missing * bytes {
            return MISCOUNTED;
        }
        missing -= come / bytes;
        if missing == 0 {
            return sent as i64;
        }
        let told = lane.control.expect(missing * bytes);
        if told < 0 {
            return told;
        }
    }
}

impl Subject for Stream {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let messages = iterations * self.messages;
        let patience = self.patience(messages);
        let Self { lanes, bytes, alarm, .. } = self;
        let told = lanes.iter_mut().map(|lane| {
            hold(lane.source.end());
            lane.control.expect(messages * *bytes)
        });
        let told = told.min();
        let mut answer = told.unwrap_or(0).min(0);
        let mut ticks = Ticks(0);
        if answer == 0 {
            ticks = alarm.watch(patience, || match &mut lanes[..] {
                [lane] if lane.bounds == Bounds::Datagram => {
                    clock.time(|| answer = lossy(lane, messages, *bytes))
                }
                lanes => clock.time(|| answer = whole(lanes, messages, *bytes)),
            });
        }
        match answer {
            0 => Ok(ticks),
            sent if sent > 0 => {
                self.sent += sent as u64;
                self.come += messages;
                Ok(ticks)
            }
            MISCOUNTED => Err(Error::Usage(format!(
                "{}: a receiver has counted other than the {} bytes that were sent: somebody else sends to it",
                self.name,
                messages * self.bytes
            ))),
            _ => Err(refused(self.name, answer, &mut self.partners, iterations)),
        }
    }

    fn report(&self) -> Report {
        Report {
            partners: self.partners.iter().map(Partner::task).collect(),
            evidence: self.told().into_iter().collect(),
            ..Report::default()
        }
    }
}

impl Stream {
    /// What was lost, or how what is sent left us.
    fn told(&self) -> Option<String> {
        if self.sent == 0 {
            return self.lanes.first()?.source.remark();
        }
        let lost = self.sent - self.come;
        let share = 100.0 * lost as f64 / self.sent as f64;
        Some(format!("of {} datagrams {lost} were lost ({share:.1} %) and sent again", self.sent))
    }
}
