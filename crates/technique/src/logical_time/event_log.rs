//! Events of a program as lines of a file, for a monitor that shows the events of several machines.
//!
//! A line is `TIME@STREAM DETAIL LINK CLOCK TEXT`: `14@1 message received:9@0 1764217971.250 the answer`. DETAIL is
//! `application`, `message` or `machine`; LINK is `local`, `sent` or `received:` with the stamp of the message; CLOCK is
//! the time of the machine's clock in seconds since 1970. A program in another language writes the same lines.

use super::{Detail, Event, Link, Stamp, Stream};
use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};
use syscost_platform::error::{Error, Result};

/// The part of a log line that describes the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The reading of the machine's clock, as time since 1970.
    pub clock: Duration,
    /// The description of the event.
    pub text: String,
}

/// A stream that writes each event to a log as a line, and keeps none in memory.
///
/// ```
/// use syscost_technique::logical_time::{Detail, EventLog};
///
/// # fn main() -> syscost_technique::Result<()> {
/// let (mut client, mut server) = (Vec::new(), Vec::new());
/// let sent = EventLog::new(0, Detail::Message, &mut client).send("a request")?; // `sent` travels with the request
/// EventLog::new(1, Detail::Message, &mut server).receive(sent, "a request")?;
/// assert!(client.starts_with(b"1@0 message sent ") && server.starts_with(b"2@1 message received:1@0 "));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EventLog<W> {
    stream: Stream<Logged>,
    to: W,
}

impl<W: Write> EventLog<W> {
    /// A log of the stream with this number, up to a level of detail. The number must be unique. A program that starts again
    /// needs a new number, since its logical time begins at 0.
    pub fn new(number: usize, detail: Detail, to: W) -> Self {
        Self { stream: Stream::new(number, detail), to }
    }

    /// Logs an event that concerns its own stream only.
    ///
    /// # Errors
    /// An error where the line cannot be written.
    pub fn record(&mut self, detail: Detail, text: &str) -> Result<()> {
        self.stream.record(detail, logged(text));
        self.write_line()
    }

    /// Logs that a message is sent. The message must carry the returned stamp.
    ///
    /// # Errors
    /// The errors of [`EventLog::record`].
    pub fn send(&mut self, text: &str) -> Result<Stamp> {
        let sent = self.stream.send(logged(text));
        self.write_line().map(|()| sent)
    }

    /// Logs that the message with the stamp `sent` was received.
    ///
    /// # Errors
    /// The errors of [`EventLog::record`].
    pub fn receive(&mut self, sent: Stamp, text: &str) -> Result<()> {
        self.stream.receive(sent, logged(text));
        self.write_line()
    }

    fn write_line(&mut self) -> Result<()> {
        // Beyond the level of detail the stream keeps no event.
        let Some(event) = self.stream.events.pop() else { return Ok(()) };
        // One write call per line, so that lines of several programs in one file do not mix.
        let refused = |cause| Error::Kernel { call: "writing a line of the event log".into(), cause };
        self.to.write_all(format!("{event}\n").as_bytes()).map_err(refused)
    }
}

fn logged(text: &str) -> Logged {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A line break would begin another event.
    Logged { clock, text: text.replace(['\n', '\r'], " ") }
}

const DETAILS: [(Detail, &str); 3] =
    [(Detail::Application, "application"), (Detail::Message, "message"), (Detail::Machine, "machine")];

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}@{}", self.time, self.stream)
    }
}

impl fmt::Display for Event<Logged> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let detail = DETAILS.iter().find(|(detail, _)| *detail == self.detail).map_or("", |(_, word)| word);
        write!(f, "{} {detail} ", self.stamp)?;
        match self.link {
            Link::Local => f.write_str("local"),
            Link::Sent => f.write_str("sent"),
            Link::Received(sent) => write!(f, "received:{sent}"),
        }?;
        let Logged { clock, text } = &self.what;
        write!(f, " {}.{:09} {text}", clock.as_secs(), clock.subsec_nanos())
    }
}

/// Reads a line of a log.
///
/// # Errors
/// A sentence that names the wrong field and what was expected.
pub fn parse_line(line: &str) -> std::result::Result<Event<Logged>, String> {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().unwrap_or_default();
    let [stamp, detail, link, clock, text] = std::array::from_fn(|_| word());
    let wrong = |field, expected, found| format!("{field}: expected {expected}, found `{found}`");
    let stamp_of =
        |field, text| parse_stamp(text).ok_or_else(|| wrong(field, "TIME@STREAM such as 14@1", text));
    Ok(Event {
        stamp: stamp_of("the stamp", stamp)?,
        detail: DETAILS
            .iter()
            .find(|(_, word)| *word == detail)
            .map(|(detail, _)| *detail)
            .ok_or_else(|| wrong("the level of detail", "application, message or machine", detail))?,
        link: match (link, link.strip_prefix("received:")) {
            ("local", _) => Link::Local,
            ("sent", _) => Link::Sent,
            (_, Some(sent)) => Link::Received(stamp_of("the received message", sent)?),
            _ => return Err(wrong("the link", "local, sent or received:TIME@STREAM", link)),
        },
        what: Logged {
            clock: clock
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| wrong("the clock", "seconds since 1970", clock))?,
            text: text.to_owned(),
        },
    })
}

fn parse_stamp(text: &str) -> Option<Stamp> {
    let (time, stream) = text.split_once('@')?;
    Some(Stamp { time: time.parse().ok()?, stream: stream.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_written_is_read_back() {
        let (mut client, mut server) = (Vec::new(), Vec::new());
        let mut asks = EventLog::new(0, Detail::Message, &mut client);
        let mut answers = EventLog::new(7, Detail::Machine, &mut server);
        asks.record(Detail::Machine, "beyond its level").expect("written");
        let sent = asks.send("a question\nof two lines").expect("written");
        answers.receive(sent, "").expect("written");
        answers.record(Detail::Application, "an answer").expect("written");
        let lines = String::from_utf8([client, server].concat()).expect("text");
        let events: Vec<_> = lines.lines().map(|line| parse_line(line).expect(line)).collect();
        let written: String = events.iter().map(|event| format!("{event}\n")).collect();
        assert_eq!(events.len(), 3);
        assert_eq!(events[1].link, Link::Received(Stamp { time: 2, stream: 0 }));
        assert_eq!(events[0].what.text, "a question of two lines");
        // A time in seconds is kept to some hundred nanoseconds.
        assert_eq!(written.len(), lines.len(), "{written}{lines}");
    }

    #[test]
    fn an_error_names_the_wrong_field_of_a_line() {
        for (line, field) in [
            ("", "the stamp"),
            ("1 machine local 0 a", "the stamp"),
            ("1@0 disk local 0 a", "the level of detail"),
            ("1@0 machine received 0 a", "the link"),
            ("1@0 machine received:x 0 a", "the received message"),
            ("1@0 machine local -1 a", "the clock"),
            ("1@0 machine local NaN a", "the clock"),
        ] {
            let why = parse_line(line).expect_err(line);
            assert!(why.starts_with(field) && why.contains("expected"), "{line}: {why}");
        }
    }
}
