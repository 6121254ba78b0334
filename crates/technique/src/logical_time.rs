//! Events of several threads or machines in the order of cause and effect, without a common clock.
//!
//! Each [`Stream`] has a logical clock, which each event advances. A message carries the time of its sender, and its
//! receiver's clock advances beyond that time. So an event that causes another one has the lower time, whatever the clocks of
//! the machines show. [`merge`] puts the events of all streams into one such order. Two independent events have an arbitrary
//! order, which is the same in every merge.
//!
//! A *cut* is a prefix of each stream. The whole system can have been in that state only if each message that the cut holds
//! as received is also sent in it. [`snapshot_at`] cuts all streams at one logical time, which guarantees this, and lists the
//! messages in transit. A cut at equal readings of clocks that differ, or at equal numbers of events, has no such guarantee:
//! [`is_consistent`] judges it.
//!
//! The [`Detail`] of a stream is chosen for the measurement. Events of finer detail are counted and not kept. The clock
//! advances with each of them, so that the order of the others is the same.
//!
//! ```
//! use syscost_technique::logical_time::{Detail, Stream, merge};
//!
//! let (mut client, mut server) = (Stream::new(0, Detail::Message), Stream::new(1, Detail::Message));
//! let request = client.send("request");
//! server.receive(request, "request");
//! server.record(Detail::Machine, "page fault");
//! client.receive(server.send("answer"), "answer");
//! assert_eq!(server.left_out(), 1);
//! let order: Vec<_> = merge(&[client, server]).iter().map(|event| event.what).collect();
//! assert_eq!(order, ["request", "request", "answer", "answer"]);
//! ```
//!
//! A program writes its events to a file by an [`EventLog`]. [`CausalOrder`] releases the events of several such files in the
//! order of cause and effect: `syscost monitor --hosts LIST --events` shows it.
//!
//! [`super::time_line`] places the events of several clocks in real time instead, each with its error.
//!
//! [`merge`] needs all events at once. A monitor of several machines reads one machine after the other ([`CausalOrder`]), and
//! may receive the reception of a message before its sending. Such an event is held back, together with all later events of
//! its stream, until the sending has arrived. The released events are therefore in an order of cause and effect, whatever the
//! clocks of the machines show and in whatever order the machines are read.
//!
//! Source: Kraemer, slides 41 and 98 to 102; L. Lamport, *Time, Clocks, and the Ordering of Events in a Distributed
//! System* (1978); K. M. Chandy and L. Lamport, *Distributed Snapshots* (1985).

mod event_log;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use syscost_platform::error::{Error, Result};

pub use event_log::{EventLog, Logged, parse_line};

/// A logical time of a stream. Stamps are ordered by time, and those of equal time by stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// The logical time, which is greater than that of each event that causes this one.
    pub time: u64,
    /// The number of the stream.
    pub stream: usize,
}

/// A level of detail, the coarsest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// The actions of the application: its transactions.
    Application,
    /// The messages between streams.
    Message,
    /// Events within one machine: all events.
    Machine,
}

/// The relation of an event to other streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The event concerns its own stream only.
    Local,
    /// A message was sent.
    Sent,
    /// The message with this stamp was received.
    Received(Stamp),
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<T> {
    /// Its place in the order.
    pub stamp: Stamp,
    /// Its level of detail.
    pub detail: Detail,
    /// Its relation to other streams.
    pub link: Link,
    /// The caller's description.
    pub what: T,
}

/// The events of one thread or machine, in order.
#[derive(Clone, Debug)]
pub struct Stream<T> {
    last: Stamp,
    detail: Detail,
    events: Vec<Event<T>>,
    left_out: u64,
}

impl<T> Stream<T> {
    /// A stream that keeps events up to this level of detail. The number must differ from that of every other stream.
    pub fn new(number: usize, detail: Detail) -> Self {
        Self { last: Stamp { time: 0, stream: number }, detail, events: Vec::new(), left_out: 0 }
    }

    /// Records an event that concerns this stream only.
    pub fn record(&mut self, detail: Detail, what: T) {
        self.add(detail, Link::Local, what);
    }

    /// Records that a message is sent. The message must carry the returned stamp.
    pub fn send(&mut self, what: T) -> Stamp {
        self.add(Detail::Message, Link::Sent, what)
    }

    /// Records that the message with the stamp `sent` was received.
    pub fn receive(&mut self, sent: Stamp, what: T) {
        self.last.time = self.last.time.max(sent.time);
        self.add(Detail::Message, Link::Received(sent), what);
    }

    fn add(&mut self, detail: Detail, link: Link, what: T) -> Stamp {
        self.last.time += 1;
        match detail <= self.detail {
            true => self.events.push(Event { stamp: self.last, detail, link, what }),
            false => self.left_out += 1,
        }
        self.last
    }

    /// The events that the stream has kept, in order.
    pub fn events(&self) -> &[Event<T>] {
        &self.events
    }

    /// The number of events of finer detail, which were not kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// The events of all streams in one order, in which each event follows its causes.
pub fn merge<T>(streams: &[Stream<T>]) -> Vec<&Event<T>> {
    let mut all: Vec<_> = streams.iter().flat_map(Stream::events).collect();
    all.sort_by_key(|event| event.stamp);
    all
}

/// The events up to a level of detail, in the given order.
pub fn select_detail<'a, T>(events: &[&'a Event<T>], detail: Detail) -> Vec<&'a Event<T>> {
    events.iter().copied().filter(|event| event.detail <= detail).collect()
}

/// A state of all streams at one logical time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<'a, T> {
    /// The number of events of each stream that the snapshot holds.
    pub events: Vec<usize>,
    /// The sendings of the messages that are sent and not yet received, in the order of their stamps.
    pub in_transit: Vec<&'a Event<T>>,
}

/// The state after all events up to a logical time. It is consistent at every time.
///
/// # Errors
/// [`Error::Usage`] if a stream was recorded without its messages.
pub fn snapshot_at<T>(streams: &[Stream<T>], time: u64) -> Result<Snapshot<'_, T>> {
    if let Some(coarse) = streams.iter().find(|stream| stream.detail < Detail::Message) {
        return Err(Error::Usage(format!(
            "stream {} was recorded without messages, of which a snapshot consists: record it with Detail::Message",
            coarse.last.stream
        )));
    }
    let within = |stream: &Stream<T>| stream.events.partition_point(|event| event.stamp.time <= time);
    let events: Vec<usize> = streams.iter().map(within).collect();
    let sent = events_in(streams, &events).filter(|event| event.link == Link::Sent);
    let mut in_transit: BTreeMap<_, _> = sent.map(|event| (event.stamp, event)).collect();
    for event in events_in(streams, &events) {
        if let Link::Received(sent) = event.link {
            in_transit.remove(&sent);
        }
    }
    Ok(Snapshot { events, in_transit: in_transit.into_values().collect() })
}

/// Whether a cut holds the sending of each message whose reception it holds. `events` is the number of events of each stream.
pub fn is_consistent<T>(streams: &[Stream<T>], events: &[usize]) -> bool {
    let sent = events_in(streams, events).filter(|event| event.link == Link::Sent);
    let sent: BTreeSet<Stamp> = sent.map(|event| event.stamp).collect();
    events_in(streams, events).all(|event| match event.link {
        Link::Received(message) => sent.contains(&message),
        Link::Sent | Link::Local => true,
    })
}

/// The events of a cut.
fn events_in<'a, T>(streams: &'a [Stream<T>], events: &[usize]) -> impl Iterator<Item = &'a Event<T>> {
    streams.iter().zip(events).flat_map(|(stream, count)| &stream.events[..(*count).min(stream.events.len())])
}

/// Events of several streams that are to be released in an order of cause and effect.
#[derive(Clone, Debug)]
pub struct CausalOrder<T> {
    streams: BTreeMap<usize, Arriving<T>>,
}

/// A stream of which some events have arrived.
#[derive(Clone, Debug)]
struct Arriving<T> {
    /// The logical times of its first arrived, last arrived and last released event.
    first: u64,
    last: u64,
    released: u64,
    held: VecDeque<Event<T>>,
}

impl<T> Default for CausalOrder<T> {
    fn default() -> Self {
        Self { streams: BTreeMap::new() }
    }
}

impl<T> CausalOrder<T> {
    /// Adds the next event of its stream. An event that does not come after the last one of its stream is a repetition, and
    /// is dropped.
    pub fn add(&mut self, event: Event<T>) {
        let Stamp { time, stream } = event.stamp;
        let fresh = || Arriving { first: time, last: 0, released: 0, held: VecDeque::new() };
        let stream = self.streams.entry(stream).or_insert_with(fresh);
        if time > stream.last {
            stream.last = time;
            stream.held.push_back(event);
        }
    }

    /// Releases all events whose causes have been released, in an order of cause and effect.
    pub fn release(&mut self) -> Vec<Event<T>> {
        let mut released = Vec::new();
        while let Some(stream) = self.next_ready_stream() {
            let stream = self.streams.get_mut(&stream).expect("it was found there");
            let event = stream.held.pop_front().expect("it has a ready event");
            stream.released = event.stamp.time;
            released.push(event);
        }
        released
    }

    /// The stream with the lowest next stamp, among the streams whose next event has all its causes released.
    fn next_ready_stream(&self) -> Option<usize> {
        let next = self.streams.values().filter_map(|stream| stream.held.front());
        next.filter(|event| self.is_cause_released(event))
            .map(|event| event.stamp)
            .min()
            .map(|stamp| stamp.stream)
    }

    fn is_cause_released(&self, event: &Event<T>) -> bool {
        let Link::Received(sent) = event.link else { return true };
        // Events of a stream before its first arrived event are past, and can no longer arrive.
        let is_past = |stream: &Arriving<T>| sent.time < stream.first || sent.time <= stream.released;
        self.streams.get(&sent.stream).is_some_and(is_past)
    }

    /// For each stream that is held back: its number, the stamp of the message that it waits for, and the number of its held
    /// events.
    pub fn held_back(&self) -> Vec<(usize, Stamp, usize)> {
        let held = |(number, stream): (&usize, &Arriving<T>)| match stream.held.front()?.link {
            Link::Received(sent) => Some((*number, sent, stream.held.len())),
            Link::Sent | Link::Local => None,
        };
        self.streams.iter().filter_map(held).collect()
    }
}

#[cfg(test)]
mod tests;
