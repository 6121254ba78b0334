//! The messages of a guest: lines on its console, between those of the kernel. Their content is not trusted. The last lines of
//! the kernel are explained in a sentence that says why it stopped.

use crate::instruction_counts::CountOutcome;
use serde::{Deserialize, Serialize};
use syscost_engine::record::guest_side::Identity;
use syscost_platform::inert;

/// The beginning of each line that is a message.
pub const MARK: &str = "@syscost ";

/// A message of the guest, one line of its console.
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

/// The content of the console of one boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The identity of the guest; `None` if it did not become ready.
    pub hello: Option<Identity>,
    /// The answers, in order.
    pub answers: Vec<Answer>,
    /// Whether the guest has announced its end.
    pub ended: bool,
    /// The last lines that are no messages, without control characters.
    pub last_words: Vec<String>,
}

/// Reads the bytes of a console. Damaged messages are left out: their cases have no answer.
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

/// Why the program in the guest cannot be used: its version of the questions differs from this one's. `None` if they agree.
pub fn version_mismatch(identity: &Identity) -> Option<String> {
    (identity.version != VERSION).then(|| {
        format!(
            "the program in the guest speaks version {} of the questions, and this is version {VERSION}: build the \
             guest's program anew",
            identity.version
        )
    })
}

/// The identity that a guest states, without control characters.
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
    /// The answer with control characters replaced; `None` if its count is impossible.
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

/// A message as the guest writes it. It starts with a newline, since the kernel may have left a line unfinished.
///
/// # Errors
/// The message cannot be written as JSON.
pub fn message_line(message: &Message) -> serde_json::Result<String> {
    Ok(format!("\n{MARK}{}\n", serde_json::to_string(message)?))
}

/// The longest line that is kept, characters.
const LONGEST: usize = 400;
/// The number of last lines that are kept.
const LINES: usize = 8;
/// Phrases of kernels that stop, and their meaning.
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

/// The last lines that do not contain `mark`, at most `LINES`, without control characters.
pub fn last_lines(text: &str, mark: &str) -> Vec<String> {
    let lines: Vec<_> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty() && !line.contains(mark))
        .take(LINES)
        .collect();
    lines.into_iter().rev().map(|line| printable_line(line.trim_end())).collect()
}

/// The text on one line, without control characters, cut to `LONGEST` characters.
pub fn printable_line(text: &str) -> String {
    inert::neutralize_line(text, LONGEST)
}

/// Why the kernel with these last lines stopped, in a sentence.
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

// The questions to a guest: cases, each with a fixed number of iterations, since a count depends on the size of its batch.

/// The version of questions and answers. A program of another version refuses them.
pub const VERSION: u32 = 2;

/// A case to be counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// `group/variant/parameter`.
    pub id: String,
    /// Iterations of the smaller batch; the larger one has twice as many.
    pub iterations: u64,
}

/// All questions to one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// The version of the questions: [`VERSION`].
    pub version: u32,
    /// The cases, in the order in which they are counted.
    pub cases: Vec<Question>,
    /// Whether the guest passes the addresses of its kernel's functions to the emulator.
    #[serde(default)]
    pub wants_symbols: bool,
}

/// Iterations of a case that the table below does not name.
const USUAL: u64 = 8;

/// Prefixes and suffixes of ids, and the iterations of a batch; 0 excludes the cases. The cost of the cases is a path in the kernel.
/// A batch has some hundred thousand instructions: less than the 4 ms between timer interrupts, far more than reading the clock.
const TABLE: &[(&str, &str, u64)] = &[
    ("call/u64/3", "", 1000),
    ("syscall/", "/cold", 0),
    ("syscall/stat", "", 100),
    ("syscall/open-close", "", 50),
    ("syscall/pipe", "", 100),
    ("syscall/sched-yield", "", 200),
    ("syscall/", "", 500),
    ("signal/timer", "", 0),
    ("signal/", "", 100),
    ("page_fault/major", "", 0),
    ("page_fault/cached", "", 0),
    ("page_fault/", "/2MiB", 2),
    ("page_fault/", "", 32),
    ("mapping/", "/64MiB", 0),
    ("mapping/", "/16MiB", 0),
    ("mapping/", "/1MiB", 2),
    ("mapping/", "", 32),
    ("ping_pong/", "/same-cpu", 64),
    ("context_switch/processes-2/", "/0KiB", 64),
    ("context_switch/processes-8/", "/0KiB", 32),
    ("context_switch/threads-2/", "/0KiB", 64),
    ("context_switch/threads-8/", "/0KiB", 32),
    ("lock/futex-mutex/free", "", 1000),
    ("lock/pthread-mutex/free", "", 1000),
    ("lock/sysv-semaphore/free", "", 200),
    ("fork/touched-mib/0", "", 4),
    ("fork/touched-mib/16", "", 2),
    ("fork/returns-mib/0", "", 4),
    ("fork/mappings/1", "", 4),
    ("fork/mappings/100", "", 4),
    ("fork/", "/tiny", 2),
    ("fork/", "/true", 0),
    ("fork/vfork", "", 8),
    ("fork/clone-vm", "", 8),
    ("thread/same-cpu/", "", 8),
    ("wait/", "/500", 0),
    ("wait/", "/100", 0),
    ("wait/", "", 32),
    ("socket_round_trip/", "-same-cpu/1B", 32),
    ("socket_round_trip/", "-same-cpu/56B", 32),
    ("socket_connect/", "-peer", 0),
    ("socket_connect/", "-peer-one-end", 0),
    ("socket_connect/", "/tcp", 16),
    ("socket_connect/", "/unix-stream", 16),
    ("cached_read/", "/4KiB", 64),
    ("cached_read/pread-by-file", "", 0),
    ("cached_read/file-cache", "", 0),
    ("file_ops/", "/1", 16),
    ("getdents/list/10", "", 16),
];

/// The iterations of this case by [`TABLE`]; `None` if it is not in the default set.
fn default_iterations(id: &str) -> Option<u64> {
    let fits = |(prefix, suffix, _): &&(&str, &str, u64)| {
        let whole =
            suffix.is_empty() && !prefix.ends_with('/') && !prefix.ends_with(|c: char| c.is_ascii_digit());
        let begins = if whole {
            id.starts_with(prefix)
        } else {
            id == *prefix || (prefix.ends_with('/') && id.starts_with(prefix))
        };
        begins && id.ends_with(suffix)
    };
    TABLE.iter().find(fits).map(|row| row.2).filter(|iterations| *iterations > 0)
}

/// Whether this case's cost does not depend on the kernel: if its count changes, the program has changed.
pub fn is_canary(id: &str) -> bool {
    id.starts_with("call/")
}

/// The questions about the cases of the default set among these, or with `all` about all of them.
pub fn select_questions(ids: impl Iterator<Item = String>, all: bool) -> Questions {
    let ask = |id: String| {
        let iterations = default_iterations(&id).or_else(|| all.then_some(USUAL))?;
        Some(Question { id, iterations })
    };
    Questions { version: VERSION, cases: ids.filter_map(ask).collect(), wants_symbols: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction_counts::Count;
    use syscost::suite::GROUPS;

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
    fn last_lines_of_known_kernels_are_explained() {
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

    fn ids() -> impl Iterator<Item = String> {
        GROUPS.iter().flat_map(|group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>())
    }

    #[test]
    fn the_default_set_has_sixty_cases_and_a_canary() {
        let asked = select_questions(ids(), false).cases;
        assert!(asked.len() >= 60, "{}", asked.len());
        assert_eq!(asked.iter().filter(|question| is_canary(&question.id)).count(), 1);
        assert!(asked.iter().all(|question| !question.id.contains("cross-cpu")));
    }

    #[test]
    fn every_row_of_the_table_matches_a_case() {
        for (prefix, suffix, _) in TABLE {
            assert!(ids().any(|id| id.starts_with(prefix) && id.ends_with(suffix)), "{prefix}…{suffix}");
        }
    }

    #[test]
    fn a_number_at_the_end_of_a_prefix_matches_only_the_whole_number() {
        assert_eq!(default_iterations("fork/touched-mib/1024"), None);
        assert_eq!(default_iterations("fork/mappings/1000"), None);
        assert_eq!(default_iterations("fork/mappings/100"), Some(4));
        assert_eq!(default_iterations("syscall/getpid/cold"), None);
        assert_eq!(default_iterations("syscall/getpid"), Some(500));
    }

    #[test]
    fn all_cases_can_be_selected() {
        assert_eq!(select_questions(ids(), true).cases.len(), ids().count());
    }
}
