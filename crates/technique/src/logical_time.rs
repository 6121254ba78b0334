//! Events of several threads or machines in the order of cause and effect, without a common clock.
//!
//! Each [`Stream`] has a logical clock, which an event advances. A message carries the time of its sender, and its
//! receiver's clock advances beyond that. Then an event that is the cause of another has the lower time, whatever the
//! clocks of the machines say. [`merge`] puts the events of all streams into one such order; of two events that are
//! independent the order is arbitrary, and the same in every merge.
//!
//! A *cut* is a prefix of each stream. It is a state that the whole system can have been in only if it holds no message
//! that was received and not yet sent. [`snapshot_at`] cuts all streams at one logical time, so that this is always so,
//! and lists the messages that are under way. A cut at equal moments of clocks that differ, or at equal numbers of
//! events, has no such property: [`is_consistent`] judges it.
//!
//! The [`Detail`] of a stream is chosen for what is to be measured. Events beyond it are counted and not kept; the clock
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
//! A program writes its events to a file by an [`EventLog`], and [`CausalOrder`] releases what arrives from several such files
//! in the order of cause and effect: `syscost monitor --hosts LIST --events` shows it.
//!
//! [`super::time_line`] places the events of several clocks in real time instead, each with its error.
//!
//! [`merge`] has all events at once. A monitor of several machines asks one after the other ([`CausalOrder`]): it may have
//! heard of the reception of a message, and not yet of its sending. Such an event is held back, and with it all that its
//! stream did later, until the sending has arrived. What is released is therefore in an order of cause and effect, whatever
//! the clocks of the machines say and in whatever order the machines answer.
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
    /// Greater than that of each event which is a cause of this one.
    pub time: u64,
    /// The number of the stream.
    pub stream: usize,
}

/// A level of detail, the coarsest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// What the application does: its transactions.
    Application,
    /// The messages between streams.
    Message,
    /// What happens within one machine: all.
    Machine,
}

/// What an event has to do with other streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing.
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
    /// A stream that keeps events up to this level of detail. Each stream needs a number of its own.
    pub fn new(number: usize, detail: Detail) -> Self {
        Self { last: Stamp { time: 0, stream: number }, detail, events: Vec::new(), left_out: 0 }
    }

    /// Records an event that has nothing to do with other streams.
    pub fn record(&mut self, detail: Detail, what: T) {
        self.add(detail, Link::Local, what);
    }

    /// Records that a message is sent. The stamp must travel with it.
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

    /// The events that were kept.
    pub fn events(&self) -> &[Event<T>] {
        &self.events
    }

    /// Events beyond the level of detail.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// The events of all streams in one order: each after its causes.
pub fn merge<T>(streams: &[Stream<T>]) -> Vec<&Event<T>> {
    let mut all: Vec<_> = streams.iter().flat_map(Stream::events).collect();
    all.sort_by_key(|event| event.stamp);
    all
}

/// The events up to a level of detail, in their order.
pub fn select_detail<'a, T>(events: &[&'a Event<T>], detail: Detail) -> Vec<&'a Event<T>> {
    events.iter().copied().filter(|event| event.detail <= detail).collect()
}

/// A state of all streams at one logical time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<'a, T> {
    /// The number of events of each stream that are in it.
    pub events: Vec<usize>,
    /// The messages that are sent in it and not yet received, by their sending, in the order of their stamps.
    pub in_transit: Vec<&'a Event<T>>,
}

/// The state after all events up to a logical time. It is consistent for any time.
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

/// Whether a cut with this number of events of each stream holds the sending of each message whose reception it holds.
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

/// Events that are to be released in an order of cause and effect.
#[derive(Clone, Debug)]
pub struct CausalOrder<T> {
    streams: BTreeMap<usize, Arriving<T>>,
}

/// A stream of which some events have arrived.
#[derive(Clone, Debug)]
struct Arriving<T> {
    /// The times of its first event that arrived, of the last, and of the last that was released.
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
    /// Adds the next event of its stream. One that does not come after the last event of its stream is a repetition, and is
    /// dropped.
    pub fn add(&mut self, event: Event<T>) {
        let Stamp { time, stream } = event.stamp;
        let fresh = || Arriving { first: time, last: 0, released: 0, held: VecDeque::new() };
        let stream = self.streams.entry(stream).or_insert_with(fresh);
        if time > stream.last {
            stream.last = time;
            stream.held.push_back(event);
        }
    }

    /// Releases all events whose causes have been released, in their order.
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

    /// The stream whose next event has the lowest stamp of those whose causes have been released.
    fn next_ready_stream(&self) -> Option<usize> {
        let next = self.streams.values().filter_map(|stream| stream.held.front());
        next.filter(|event| self.is_cause_released(event))
            .map(|event| event.stamp)
            .min()
            .map(|stamp| stamp.stream)
    }

    fn is_cause_released(&self, event: &Event<T>) -> bool {
        let Link::Received(sent) = event.link else { return true };
        // What a stream did before its first event that arrived is past, and cannot come any more.
        let is_past = |stream: &Arriving<T>| sent.time < stream.first || sent.time <= stream.released;
        self.streams.get(&sent.stream).is_some_and(is_past)
    }

    /// The streams that are held back: the message that each waits for, and the number of its events.
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
