//! What a guest says: lines of answers on its console, between those of the kernel. Nothing in them is trusted.

use super::last_words::{self, printable_line};
use super::question::VERSION;
use crate::instruction_counts::CountOutcome;
use serde::{Deserialize, Serialize};
use syscost_engine::record::guest_side::Identity;

/// Begins each line of ours.
pub const MARK: &str = "@syscost ";

/// A line of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// The guest is ready.
    Hello(Box<Identity>),
    /// A case has ended.
    Answer(Answer),
    /// All cases have ended.
    End,
}

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `group/variant/parameter`.
    pub id: String,
    /// The count, or why there is none.
    pub outcome: CountOutcome,
}

/// All that one boot has said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The identity of the guest.
    pub hello: Option<Identity>,
    /// The answers, in order.
    pub answers: Vec<Answer>,
    /// Whether the guest has announced its end.
    pub ended: bool,
    /// The last lines that are not ours, without control characters.
    pub last_words: Vec<String>,
}

/// Reads a console. Lines of ours that are damaged are left out: their cases have no answer.
pub fn parse_transcript(bytes: &[u8]) -> Transcript {
    let text = String::from_utf8_lossy(bytes);
    let mut read = Transcript::default();
    for line in text.lines() {
        match line.split_once(MARK).map(|(_, json)| serde_json::from_str(json.trim_end())) {
            Some(Ok(Message::Hello(hello))) => read.hello = Some(inert_identity(&hello)),
            Some(Ok(Message::Answer(answer))) => read.answers.extend(answer.sanitize()),
            Some(Ok(Message::End)) => read.ended = true,
            Some(Err(_)) | None => {}
        }
    }
    read.last_words = last_words::last_lines(&text, MARK);
    read
}

/// Why the program in the guest cannot be used: it speaks another version of the questions. `None` if it can.
pub fn version_mismatch(identity: &Identity) -> Option<String> {
    (identity.version != VERSION).then(|| {
        format!(
            "the program in the guest speaks version {} of the questions, and this is version {VERSION}: build the \
             guest's program anew",
            identity.version
        )
    })
}

/// The identity that a guest states, without the characters that a terminal obeys.
pub fn inert_identity(said: &Identity) -> Identity {
    let pairs =
        said.mitigations.iter().take(64).map(|(name, state)| (printable_line(name), printable_line(state)));
    Identity {
        version: said.version,
        release: printable_line(&said.release),
        build: printable_line(&said.build),
        command_line: printable_line(&said.command_line),
        clocksource: printable_line(&said.clocksource),
        page_size: said.page_size,
        mitigations: pairs.collect(),
        processor_flags: said.processor_flags.iter().take(1024).map(|flag| printable_line(flag)).collect(),
        tool: printable_line(&said.tool),
    }
}

impl Answer {
    /// The answer with control characters replaced; `None` if its count cannot be a count.
    fn sanitize(self) -> Option<Self> {
        let outcome = match self.outcome {
            CountOutcome::Counted(count) if !count.is_sound() => return None,
            CountOutcome::Counted(count) => CountOutcome::Counted(count),
            CountOutcome::Skipped(why) => CountOutcome::Skipped(printable_line(&why)),
            CountOutcome::Failed(why) => CountOutcome::Failed(printable_line(&why)),
        };
        Some(Self { id: printable_line(&self.id), outcome })
    }
}

/// A line of ours, as the guest writes it. It begins a line whatever the kernel has said before.
///
/// # Errors
/// The message cannot be written as JSON.
pub fn message_line(message: &Message) -> serde_json::Result<String> {
    Ok(format!("\n{MARK}{}\n", serde_json::to_string(message)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction_counts::Count;

    fn counted(batches: [u64; 2]) -> Message {
        let count = Count { iterations: 10, batches, repetitions: [0; 2] };
        Message::Answer(Answer { id: "syscall/getppid".into(), outcome: CountOutcome::Counted(count) })
    }

    fn said(messages: &[Message]) -> String {
        messages.iter().map(|message| message_line(message).expect("JSON")).collect()
    }

    #[test]
    fn what_a_guest_writes_is_read_between_lines_of_the_kernel() {
        let hello = Identity { version: VERSION, release: "6.12".into(), ..Identity::default() };
        let text = "[    0.000000] Linux version 6.12\r\n".to_owned()
            + &said(&[Message::Hello(Box::new(hello.clone())), counted([1, 2]), Message::End])
                .replace('\n', "\r\n");
        let read = parse_transcript(text.as_bytes());
        assert_eq!(read.hello, Some(hello));
        assert_eq!((read.answers.len(), read.ended), (1, true));
        assert_eq!(read.last_words, ["[    0.000000] Linux version 6.12"]);
    }

    #[test]
    fn a_line_that_is_damaged_is_no_answer() {
        let text = said(&[counted([1, 2])]).replace("batches", "b\u{0}tches") + &said(&[counted([5, 5])]);
        let read = parse_transcript(text.as_bytes());
        assert_eq!(read, Transcript::default());
        assert_eq!(parse_transcript(b"\xff\xfe@syscost {\"Hello\":").answers, []);
    }

    #[test]
    fn a_terminal_is_not_commanded_by_a_guest() {
        let hello = Identity { release: "6.1\u{1b}[2J".into(), ..Identity::default() };
        let failed = CountOutcome::Failed("\u{1b}]0;x\u{7}".into());
        let answer = Message::Answer(Answer { id: "a\u{1b}".into(), outcome: failed });
        let read = parse_transcript(said(&[Message::Hello(Box::new(hello)), answer]).as_bytes());
        assert!(!format!("{read:?}").contains("\\u{1b}"), "{read:?}");
    }

    #[test]
    fn a_program_of_another_version_is_refused() {
        assert_eq!(version_mismatch(&Identity { version: VERSION, ..Identity::default() }), None);
        assert!(version_mismatch(&Identity::default()).is_some_and(|why| why.contains("build")));
    }
}
