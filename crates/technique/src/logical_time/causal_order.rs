//! Events of several streams that arrive bit by bit, each released only after its cause.
//!
//! [`merge`](super::merge) has all events at once. A monitor of several machines asks one after the other: it may have
//! heard of the reception of a message, and not yet of its sending. Such an event is held back, and with it all that its
//! stream did later, until the sending has arrived. What is released is therefore in an order of cause and effect, whatever
//! the clocks of the machines say and in whatever order the machines answer.

use super::{Event, Link, Stamp};
use std::collections::{BTreeMap, VecDeque};

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
mod tests {
    use super::super::{Detail, Stream};
    use super::*;

    /// A request and its answer between streams 0 and 1, and an effect of it on stream 2.
    fn streams() -> [Vec<Event<&'static str>>; 3] {
        let new = |number| Stream::new(number, Detail::Machine);
        let (mut client, mut server, mut disk) = (new(0), new(1), new(2));
        server.receive(client.send("ask"), "asked");
        disk.receive(server.send("write"), "written");
        client.receive(server.send("answer"), "answered");
        [client, server, disk].map(|stream| stream.events().to_vec())
    }

    /// What is released after each of these arrivals.
    fn released(arrivals: &[&[Event<&'static str>]]) -> Vec<Vec<&'static str>> {
        let mut order = CausalOrder::default();
        let arrive = |events: &&[Event<&'static str>]| {
            events.iter().for_each(|event| order.add(event.clone()));
            order.release().iter().map(|event| event.what).collect()
        };
        arrivals.iter().map(arrive).collect()
    }

    #[test]
    fn an_effect_waits_for_its_cause_in_whatever_order_the_machines_answer() {
        let [client, server, disk] = streams();
        let whole = ["ask", "asked", "write", "answer", "written", "answered"];
        for arrivals in [[&client, &server, &disk], [&disk, &server, &client], [&server, &disk, &client]] {
            let order = released(&arrivals.map(Vec::as_slice));
            let order = order.concat();
            let place = |what| order.iter().position(|other| *other == what).expect("it is released");
            assert_eq!(order.len(), whole.len(), "{order:?}");
            for (cause, effect) in
                [("ask", "asked"), ("write", "written"), ("answer", "answered"), ("asked", "write")]
            {
                assert!(place(cause) < place(effect), "{order:?}");
            }
        }
        assert_eq!(released(&[&[client, server, disk].concat()]), [whole]);
    }

    #[test]
    fn what_is_held_back_is_named_with_what_it_waits_for() {
        let [client, server, _] = streams();
        let mut order = CausalOrder::default();
        server.iter().for_each(|event| order.add(event.clone()));
        assert!(order.release().is_empty());
        assert_eq!(order.held_back(), [(1, client[0].stamp, 3)]);
    }

    #[test]
    fn a_repetition_is_dropped_and_a_cause_before_the_beginning_is_not_waited_for() {
        let [client, server, _] = streams();
        assert_eq!(released(&[&client[..1], &client[..1]]), [vec!["ask"], vec![]]);
        // The client's log begins after it has asked.
        let mut later = Stream::new(0, Detail::Machine);
        later.last.time = client[0].stamp.time;
        later.record(Detail::Machine, "later");
        assert_eq!(released(&[&server, later.events()]).concat().len(), 4);
    }
}
