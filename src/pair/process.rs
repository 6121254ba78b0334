//! The driver's end of one side: a process started, asked, listened to with patience, and ended.

use super::protocol::{Answer, Ask, VARIABLE, VERSION};
use crate::platform::cpu::Aside;
use crate::platform::signal;
use crate::{Error, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A line longer than this is no answer of ours.
const LONGEST_LINE: usize = 1 << 20;
/// A side that is let go needs a moment to unmap and to remove its scratch files.
const FAREWELL: Duration = Duration::from_millis(500);
/// So much of what a side said on its standard error is quoted.
const LAST_WORDS: u64 = 400;

/// How a side is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name in sentences: `A` or `B`.
    pub label: &'static str,
    /// The binary, by a name as long as the other side's: a longer one would shift the stack.
    program: PathBuf,
    /// A shell's words to stand before the binary.
    wrap: Option<String>,
}

impl Launch {
    /// A side that runs `binary`, linked into `directory`, behind the words of `wrap`.
    pub fn new(label: &'static str, binary: &Path, wrap: Option<String>, directory: &Path) -> Result<Self> {
        let there = std::fs::canonicalize(binary).map_err(|e| Error::file(binary, "looking for", e))?;
        let home = directory.join(label);
        let program = home.join("syscost-side");
        let linked =
            std::fs::create_dir_all(&home).and_then(|()| std::os::unix::fs::symlink(there, &program));
        linked.map_err(|e| Error::file(&program, "linking", e))?;
        Ok(Self { label, program, wrap })
    }

    /// The command line, and an environment of a length drawn anew: where the stack begins must be chance,
    /// and not the same chance for all processes of one side.
    fn command(&self, padding: usize) -> Command {
        let mut command = match &self.wrap {
            None => Command::new(&self.program),
            Some(wrap) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{wrap} \"$@\"")).arg("sh").arg(&self.program);
                shell
            }
        };
        command.env(VARIABLE, "x".repeat(1 + padding)).process_group(0);
        command
    }
}

/// A side that is alive. When this value goes it is let go, which it takes as its end; if it does not end by
/// itself it is killed, with whatever wraps it.
pub(super) struct Side {
    label: &'static str,
    child: Child,
    questions: Option<ChildStdin>,
    answers: Lines,
    error: File,
}

impl Side {
    /// Starts it with the affinity that the driver had before it stepped aside.
    pub(super) fn start(launch: &Launch, padding: usize, aside: &Aside) -> Result<Self> {
        let error =
            tempfile::tempfile().map_err(|e| Error::file(std::env::temp_dir(), "making a file in", e))?;
        let copy = error.try_clone().map_err(|e| Error::file("a temporary file", "duplicating", e))?;
        let mut command = launch.command(padding);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(copy);
        let spawned = aside.as_before(|| command.spawn())?;
        let mut child = spawned.map_err(|e| Error::file(&launch.program, "starting a side", e))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Died("a side was started without its pipes".into()));
        };
        Ok(Self {
            label: launch.label,
            child,
            questions: Some(questions),
            answers: Lines::of(answers),
            error,
        })
    }

    /// Asks; the answer is waited for elsewhere.
    pub(super) fn ask(&mut self, ask: &Ask) -> std::result::Result<(), String> {
        let mut line = serde_json::to_vec(ask).map_err(|e| e.to_string())?;
        line.push(b'\n');
        let sent = self.questions.as_mut().is_some_and(|questions| questions.write_all(&line).is_ok());
        if sent { Ok(()) } else { Err(self.died()) }
    }

    /// The first line, which tells whether it speaks with us at all.
    pub(super) fn hello(&mut self, patience: Duration) -> std::result::Result<(), String> {
        match self.answer(patience)? {
            Answer::Hello { version: VERSION } => Ok(()),
            Answer::Hello { version } => Err(format!(
                "side {} speaks version {version} of the turns, and this is version {VERSION}: build it anew",
                self.label
            )),
            other => Err(self.nonsense(&format!("{other:?}"))),
        }
    }

    /// Its next answer.
    pub(super) fn answer(&mut self, patience: Duration) -> std::result::Result<Answer, String> {
        match self.answers.next(patience) {
            Heard::Line(line) => serde_json::from_str(&line).map_err(|_| self.nonsense(&line)),
            Heard::End => Err(self.died()),
            Heard::Nothing => Err(format!(
                "side {} said nothing for {} s and was killed{}",
                self.label,
                patience.as_secs(),
                self.last_words()
            )),
            Heard::TooMuch => Err(self.nonsense("a line without end")),
            Heard::Interrupted => Err("interrupted".into()),
        }
    }

    pub(super) fn nonsense(&self, said: &str) -> String {
        let said: String = said.chars().take(100).collect();
        format!(
            "side {} answered {said:?}, which is no answer to a turn: it must be a bench of this version of \
             syscost, and nothing before it may write to its standard output{}",
            self.label,
            self.last_words()
        )
    }

    fn died(&mut self) -> String {
        // Its output is closed, so its end is near; a wrapper that lives on is not waited for.
        std::thread::sleep(Duration::from_millis(50));
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it closed its output".into(),
        };
        format!("side {} ended in the middle of the conversation ({how}){}", self.label, self.last_words())
    }

    /// What it said on its standard error, for a sentence.
    fn last_words(&self) -> String {
        let mut file = &self.error;
        let mut bytes = Vec::new();
        let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
        let read = file
            .seek(SeekFrom::Start(end.saturating_sub(LAST_WORDS)))
            .and_then(|_| file.take(LAST_WORDS).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if read.is_err() || text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.questions = None;
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its own group: a wrapper's other children go with it. One that has ended answers ESRCH.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// What came of waiting for a line.
enum Heard {
    Line(String),
    End,
    Nothing,
    TooMuch,
    Interrupted,
}

/// Lines of a pipe, each waited for with patience.
struct Lines {
    pipe: ChildStdout,
    held: Vec<u8>,
}

impl Lines {
    fn of(pipe: ChildStdout) -> Self {
        Self { pipe, held: Vec::new() }
    }

    fn next(&mut self, patience: Duration) -> Heard {
        let until = Instant::now() + patience;
        loop {
            if let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let line = std::mem::replace(&mut self.held, rest);
                return Heard::Line(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.held.len() > LONGEST_LINE {
                return Heard::TooMuch;
            }
            if signal::pending().is_some() {
                return Heard::Interrupted;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Heard::Nothing;
            }
            if let Err(heard) = self.read_within(left.min(Duration::from_millis(200))) {
                return heard;
            }
        }
    }

    /// Reads what there is, or nothing within the time.
    fn read_within(&mut self, time: Duration) -> std::result::Result<(), Heard> {
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
        let mut waiting = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(Heard::End),
        }
        let mut buffer = [0; 4096];
        match self.pipe.read(&mut buffer) {
            Ok(0) | Err(_) => Err(Heard::End),
            Ok(length) => {
                self.held.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    fn side(wrap: &str) -> Side {
        let directory = tempfile::tempdir().expect("a directory");
        let wrap = Some(wrap.to_owned());
        let launch = Launch::new("B", Path::new("/bin/true"), wrap, directory.path()).expect("linked");
        let aside = Aside::from(cpu::current()).expect("aside");
        Side::start(&launch, 0, &aside).expect("started")
    }

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_side_that_hangs_is_given_up_and_killed() {
        let mut side = side("sleep 1000 #");
        let pid = side.child.id();
        assert!(side.hello(SHORT).expect_err("silent").contains("side B said nothing"));
        drop(side);
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "killed and reaped");
    }

    #[test]
    fn a_side_of_another_version_is_told_apart() {
        let said = side("echo '{\"hello\":{\"version\":99}}' #").hello(LONG).expect_err("another");
        assert!(said.contains("version 99") && said.contains("build it anew"), "{said}");
    }

    #[test]
    fn a_line_without_end_is_no_answer() {
        let said = side("yes | tr -d '\\n' #").hello(LONG).expect_err("too much");
        assert!(said.contains("a line without end"), "{said}");
    }

    #[test]
    fn an_answer_out_of_turn_is_no_answer() {
        let said =
            side("echo '{\"turn\":{\"ticks\":[1],\"core_hz\":1,\"involuntary_switches\":0}}' #").hello(LONG);
        assert!(said.expect_err("no hello").contains("is no answer to a turn"));
    }
}
