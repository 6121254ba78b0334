//! The events of programs on several machines, each shown after its cause.
//!
//! Programs write their events to logs ([`syscost_technique::logical_time::EventLog`]), which the monitors of their machines
//! serve. Events are ordered by logical time, which messages carry, so clocks that differ do not matter. Where a machine's
//! clock contradicts the order, the row of the effect shows by how much. At the end come the traffic and the delay of each
//! pair of machines, and the messages that no program of the list has received.

use super::several::{Host, ask_all, read_hosts};
use super::{Args, write_at_intervals};
use crate::host_page::fetch_body;
use crate::http_server::EVENTS;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use syscost_command_line::page;
use syscost_platform::error::{Error, Result};
use syscost_technique::logical_time::{CausalOrder, Event, Link, Logged, Stamp, parse_line};

/// The maximum number of messages whose sending time is remembered until they are received. Messages to machines outside of
/// the list are never received.
const REMEMBERED: usize = 100_000;

/// A row: stamp, host, clock, description, and a note on anything unusual.
type Row = [String; 5];

pub(super) fn watch_events(list: &Path, args: &Args, views: u64) -> Result<()> {
    let (hosts, mut view, patience) = (read_hosts(list)?, EventView::default(), args.interval_duration());
    write_at_intervals(args, views, || Ok(rows_text(args, &view.observe(fetch_logs(&hosts, patience))?)))?;
    page::write_unless_closed(&rows_text(args, &view.summary())).map(drop)
}

fn rows_text(args: &Args, rows: &[Row]) -> String {
    match (args.json, page::is_piped()) {
        (true, _) => rows.iter().map(row_json).collect(),
        (_, true) => page::tabbed_rows(rows),
        _ => page::columns_text(rows, usize::MAX),
    }
}

fn row_json([stamp, host, clock, what, note]: &Row) -> String {
    format!("{}\n", json!({"stamp": stamp, "host": host, "clock": clock, "what": what, "note": note}))
}

/// The log of each host, or the reason why it is missing. All hosts are queried at once.
fn fetch_logs(hosts: &[Host], patience: Duration) -> Vec<(String, std::result::Result<String, String>)> {
    let logs = ask_all(hosts, |host| fetch_body(host.address, EVENTS, patience));
    hosts.iter().map(|host| host.name.clone()).zip(logs).collect()
}

/// The state of the view: the events shown so far, and those held back.
#[derive(Default)]
struct EventView {
    order: CausalOrder<Logged>,
    /// The host of each stream.
    host_of: BTreeMap<usize, String>,
    /// The sending times of messages that are not yet received, by the clock of their sender.
    sent: BTreeMap<Stamp, Duration>,
    /// For each pair of sending and receiving host: the sum of the delays of messages, seconds by their clocks, and the
    /// number of messages.
    traffic: BTreeMap<[String; 2], (f64, usize)>,
    /// The sentences of the last view.
    said: BTreeSet<String>,
}

impl EventView {
    /// Adds the logs of all hosts, and returns the new rows.
    fn observe(&mut self, logs: Vec<(String, std::result::Result<String, String>)>) -> Result<Vec<Row>> {
        let mut notes = Vec::new();
        for (host, log) in logs {
            match log.and_then(|log| log.lines().map(parse_line).collect::<std::result::Result<Vec<_>, _>>())
            {
                Ok(events) => events.into_iter().try_for_each(|event| self.add(&host, event))?,
                Err(why) => notes.push((host, why)),
            }
        }
        let released = self.order.release();
        let mut rows: Vec<_> = released.into_iter().map(|event| self.row(event)).collect();
        for (stream, message, count) in self.order.held_back() {
            let events = page::count_with_noun(count, "event", "events");
            let sender = self.host_of.get(&message.stream).map_or("no host of the list", String::as_str);
            let why =
                format!("{events} held back until message {message} is sent: its stream is of {sender}");
            notes.push((self.host_of.get(&stream).cloned().unwrap_or_default(), why));
        }
        // A sentence that is still true is not repeated in each view.
        let now = notes.iter().map(|(host, why)| format!("{host} {why}")).collect();
        let before = std::mem::replace(&mut self.said, now);
        let new = notes.into_iter().filter(|(host, why)| !before.contains(&format!("{host} {why}")));
        rows.extend(new.map(|(host, why)| ["–".into(), host, "–".into(), String::new(), why]));
        Ok(rows)
    }

    fn add(&mut self, host: &str, event: Event<Logged>) -> Result<()> {
        let stream = event.stamp.stream;
        let owner = self.host_of.entry(stream).or_insert_with(|| host.to_owned());
        if owner != host {
            return Err(Error::Usage(format!(
                "{owner} and {host} both have events of stream {stream}: give each program a number of its own"
            )));
        }
        self.order.add(event);
        Ok(())
    }

    fn row(&mut self, event: Event<Logged>) -> Row {
        let clock = event.what.clock;
        let note = match event.link {
            Link::Sent => {
                self.sent.insert(event.stamp, clock);
                if self.sent.len() > REMEMBERED {
                    self.sent.pop_first();
                }
                String::new()
            }
            Link::Received(message) => {
                self.count_received(message, event.stamp.stream, clock).unwrap_or_default()
            }
            Link::Local => String::new(),
        };
        let host = self.host_of.get(&event.stamp.stream).cloned().unwrap_or_default();
        [event.stamp.to_string(), host, time_of_day(clock), event.what.text, note]
    }

    /// The traffic of each pair of hosts, and each message that was not received.
    fn summary(&self) -> Vec<Row> {
        let pairs = self.traffic.iter().map(|([from, to], (delays, count))| {
            let messages = page::count_with_noun(*count, "message", "messages");
            let mean = delays / *count as f64;
            let words =
                format!("{messages} to {to}, under way for {mean:.3} s in the mean by the two clocks");
            ["–".into(), from.clone(), "–".into(), String::new(), words]
        });
        let lost = self.sent.iter().map(|(message, clock)| {
            let host = self.host_of.get(&message.stream).cloned().unwrap_or_default();
            let words = "sent, and received by no program of the list so far".into();
            [message.to_string(), host, time_of_day(*clock), String::new(), words]
        });
        pairs.chain(lost).collect()
    }

    /// Counts a message for its pair of hosts. Returns a sentence if, by the clocks, it was received before it was sent.
    fn count_received(&mut self, message: Stamp, receiver: usize, received: Duration) -> Option<String> {
        let sent = self.sent.remove(&message)?;
        let (sender, receiver) = (self.host_of.get(&message.stream)?, self.host_of.get(&receiver)?);
        let (delays, count) = self.traffic.entry([sender.clone(), receiver.clone()]).or_default();
        (*delays, *count) = (*delays + received.as_secs_f64() - sent.as_secs_f64(), *count + 1);
        let early = sent.checked_sub(received).filter(|early| !early.is_zero())?;
        Some(format!("its clock is at least {:.3} s behind that of {sender}", early.as_secs_f64()))
    }
}

/// Time of day in universal time, rounded to milliseconds.
fn time_of_day(clock: Duration) -> String {
    let clock = clock.saturating_add(Duration::from_micros(500));
    let second = clock.as_secs() % 86_400;
    let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
    format!("{hour:02}:{minute:02}:{second:02}.{:03}", clock.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client whose clock is a second ahead, and a server whose clock is right.
    const CLIENT: &str = "1@0 message sent 101.000 ask\n6@0 message received:5@1 101.030 answered\n";
    const SERVER: &str = "2@1 message received:1@0 100.010 asked\n4@1 machine local 100.015 disk\n\
                          5@1 message sent 100.020 answer\n";

    fn observe(view: &mut EventView, client: &str, server: &str) -> Vec<Row> {
        let logs =
            [("near", client), ("far", server)].map(|(host, log)| (host.to_owned(), Ok(log.to_owned())));
        view.observe(logs.into()).expect("two streams")
    }

    fn descriptions(rows: &[Row]) -> Vec<&str> {
        rows.iter().filter(|row| row[0] != "–").map(|row| row[3].as_str()).collect()
    }

    #[test]
    fn an_effect_follows_its_cause_though_a_clock_is_a_second_ahead() {
        let rows = observe(&mut EventView::default(), CLIENT, SERVER);
        assert_eq!(descriptions(&rows), ["ask", "asked", "disk", "answer", "answered"]);
        let by_clock: Vec<_> = [&rows[1], &rows[0]].map(|row| row[2].as_str()).into();
        assert_eq!(by_clock[0], "00:01:40.010", "a decimal fraction is rounded");
        assert!(by_clock.is_sorted(), "by the clocks the request arrives before it is sent: {by_clock:?}");
        assert_eq!(rows[1][4], "its clock is at least 0.990 s behind that of near");
        assert_eq!(rows.iter().filter(|row| !row[4].is_empty()).count(), 1, "{rows:?}");
    }

    #[test]
    fn the_summary_lists_the_traffic_of_each_pair_and_unreceived_messages() {
        let mut view = EventView::default();
        observe(&mut view, &format!("{CLIENT}7@0 message sent 101.040 ask again\n"), SERVER);
        let rows = view.summary();
        let words: Vec<_> =
            rows.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[4].as_str())).collect();
        assert_eq!(
            words,
            [
                ("–", "far", "1 message to near, under way for 1.010 s in the mean by the two clocks"),
                ("–", "near", "1 message to far, under way for -0.990 s in the mean by the two clocks"),
                ("7@0", "near", "sent, and received by no program of the list so far"),
            ]
        );
    }

    #[test]
    fn a_late_host_delays_its_effects_and_no_event_is_shown_twice() {
        let mut view = EventView::default();
        let early = observe(&mut view, "", SERVER);
        assert_eq!((descriptions(&early).len(), early.len()), (0, 1), "{early:?}");
        assert_eq!(
            early[0][4],
            "3 events held back until message 1@0 is sent: its stream is of no host of the list"
        );
        assert_eq!(observe(&mut view, "", SERVER), Vec::<Row>::new(), "a sentence is said once");
        assert_eq!(descriptions(&observe(&mut view, CLIENT, SERVER)).len(), 5);
        assert_eq!(observe(&mut view, CLIENT, SERVER), Vec::<Row>::new());
    }

    #[test]
    fn a_stream_number_of_two_programs_and_a_wrong_line_are_reported() {
        let twice = ["a", "b"].map(|host| (host.to_owned(), Ok("1@0 machine local 1 x\n".to_owned())));
        let error = EventView::default().observe(twice.into()).expect_err("one number").to_string();
        assert!(error.contains("a and b") && error.contains("stream 0"), "{error}");
        let rows = observe(&mut EventView::default(), "nonsense\n", SERVER);
        assert!(rows[0][1] == "near" && rows[0][4].contains("expected"), "{rows:?}");
    }
}
