//! What a guest says: lines of answers on its console, between those of the kernel. Nothing in them is trusted. The end of a
//! console says in a sentence why a kernel stopped.

use super::question::VERSION;
use crate::instruction_counts::CountOutcome;
use serde::{Deserialize, Serialize};
use syscost_engine::record::guest_side::Identity;
use syscost_platform::inert;

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
    read.last_words = last_lines(&text, MARK);
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

/// The longest line that is kept, characters.
const LONGEST: usize = 400;
/// Lines that are kept.
const LINES: usize = 8;
/// What kernels say when they stop, and what that means.
const MEANINGS: [(&str, &str); 6] = [
    ("Initramfs unpacking failed", "it could not unpack the initramfs: give it more memory (--memory)"),
    ("No working init found", "it could not start the program in the initramfs"),
    (
        "Unable to mount root fs",
        "it did not take the initramfs, and found no other root: CONFIG_BLK_DEV_INITRD is needed",
    ),
    ("Out of memory", "it ran out of memory: give it more (--memory)"),
    ("Attempted to kill init", "the program in the guest ended too early"),
    ("System is deadlocked on memory", "it ran out of memory: give it more (--memory)"),
];

/// The last lines that do not hold `mark`, without control characters.
pub fn last_lines(text: &str, mark: &str) -> Vec<String> {
    let lines: Vec<_> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty() && !line.contains(mark))
        .take(LINES)
        .collect();
    lines.into_iter().rev().map(|line| printable_line(line.trim_end())).collect()
}

/// The text on one line, without the characters that a terminal obeys, up to `LONGEST` characters.
pub fn printable_line(text: &str) -> String {
    inert::neutralize_line(text, LONGEST)
}

/// What these last words mean.
pub fn explain_last_words(words: &[String]) -> String {
    let said = |phrase: &str| words.iter().any(|line| line.contains(phrase));
    if let Some((_, meaning)) = MEANINGS.iter().find(|(phrase, _)| said(phrase)) {
        return (*meaning).into();
    }
    if words.is_empty() {
        return "it said nothing: it may have too little memory (--memory), lack the driver of the console \
                (CONFIG_SERIAL_8250_CONSOLE), or be of another architecture"
            .into();
    }
    if said("Kernel panic") { "it panicked".into() } else { "it stopped without a word about why".into() }
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

    #[test]
    fn only_the_last_lines_are_kept_and_they_are_inert() {
        let text: String = (0..20).map(|n| format!("line {n}\u{1b}[2J\u{202e}\r\n\r\n")).collect();
        let words = last_lines(&text, "@");
        assert_eq!(words.len(), LINES);
        assert_eq!(words[7], "line 19\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn what_kernels_say_is_understood() {
        let meaning_of_line = |line: &str| explain_last_words(&[line.to_owned()]);
        assert!(meaning_of_line("[ 1.2] Initramfs unpacking failed: write error").contains("more memory"));
        assert!(
            meaning_of_line("Kernel panic - not syncing: No working init found.")
                .contains("start the program")
        );
        assert!(
            meaning_of_line("Kernel panic - not syncing: VFS: Unable to mount root fs").contains("INITRD")
        );
        assert!(meaning_of_line("Kernel panic - not syncing: Fatal exception").contains("panicked"));
        assert!(explain_last_words(&[]).contains("console"));
        assert!(meaning_of_line("hello").contains("without a word"));
    }
}
