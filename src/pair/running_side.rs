//! The driver's end of one side: sends requests to its process, awaits responses with a timeout, and ends it.

use super::launch::Launch;
use super::protocol::{Request, Response, VERSION};
use crate::error::{Error, Result};
use crate::platform::cpu::Aside;
use crate::platform::signal;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

/// Longest possible response, bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Time that a side has to remove its scratch files after its input was closed.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes quoted from the end of a side's standard error.
const QUOTED: usize = 400;

/// A running side. Dropping this value closes the side's input, which ends it; after [`GRACE`] its whole process group is
/// killed.
pub(super) struct Side {
    label: &'static str,
    child: Child,
    requests: Option<ChildStdin>,
    responses: Lines,
}

impl Side {
    /// Starts it.
    pub(super) fn start(launch: &Launch, padding: usize, aside: &Aside) -> Result<Self> {
        let mut child = launch.start(padding, aside)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(responses), Some(error)) = pipes else {
            return Err(Error::Disproved("a side was started without its pipes".into()));
        };
        let responses = Lines::of(responses, Remarks::of(error)?);
        Ok(Self { label: launch.label, child, requests: Some(requests), responses })
    }

    /// Sends a request, without waiting for the response.
    pub(super) fn ask(&mut self, request: &Request) -> std::result::Result<(), String> {
        let mut line = serde_json::to_vec(request).map_err(|e| e.to_string())?;
        line.push(b'\n');
        let sent = self.requests.as_mut().is_some_and(|requests| requests.write_all(&line).is_ok());
        if sent { Ok(()) } else { Err(self.died()) }
    }

    /// Checks the first response, which carries the version of the protocol.
    pub(super) fn hello(&mut self, patience: Duration) -> std::result::Result<(), String> {
        match self.response(patience)? {
            Response::Hello { version: VERSION } => Ok(()),
            Response::Hello { version } => Err(format!(
                "side {} speaks version {version} of the turns, and this is version {VERSION}: build it anew",
                self.label
            )),
            other => Err(self.nonsense(&format!("{other:?}"))),
        }
    }

    /// The next response.
    pub(super) fn response(&mut self, patience: Duration) -> std::result::Result<Response, String> {
        match self.responses.next(patience) {
            Received::Line(line) => serde_json::from_str(&line).map_err(|_| self.nonsense(&line)),
            Received::End => Err(self.died()),
            Received::Nothing => Err(format!(
                "side {} said nothing for {} s and was killed{}",
                self.label,
                patience.as_secs(),
                self.last_output()
            )),
            Received::TooMuch => Err(self.nonsense("a line without end")),
            Received::Interrupted => Err("interrupted".into()),
        }
    }

    pub(super) fn nonsense(&self, said: &str) -> String {
        let said: String = said.chars().take(100).collect();
        format!(
            "side {} answered {said:?}, which is no answer to a turn: it must be a bench of this version of \
             syscost, and what comes before it must write nothing to its standard output and pass the environment \
             on{}",
            self.label,
            self.last_output()
        )
    }

    fn died(&mut self) -> String {
        // Its output is closed, so it is about to exit; a wrapper may live on.
        std::thread::sleep(Duration::from_millis(50));
        self.responses.remarks.read();
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it closed its output".into(),
        };
        format!("side {} ended in the middle of the conversation ({how}){}", self.label, self.last_output())
    }

    /// The end of its standard error, as part of a sentence.
    fn last_output(&self) -> String {
        let text = String::from_utf8_lossy(&self.responses.remarks.end);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { String::new() } else { format!("; it said: {text}") }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.requests = None;
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its process group contains a wrapper's other children. ESRCH means that all have ended.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// The result of waiting for a line.
enum Received {
    Line(String),
    End,
    Nothing,
    TooMuch,
    Interrupted,
}

/// A side's standard error. It is read to the end again and again, so that the side never waits for a full pipe, and only
/// its last words are kept: a file would hold everything, and could fill the disk.
struct Remarks {
    /// `None` once the side has closed it.
    pipe: Option<ChildStderr>,
    /// The last bytes, at most [`QUOTED`].
    end: Vec<u8>,
}

impl Remarks {
    fn of(pipe: ChildStderr) -> Result<Self> {
        let refused = |errno| Error::refused("fcntl O_NONBLOCK of a side's standard error", errno);
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(refused)?;
        Ok(Self { pipe: Some(pipe), end: Vec::new() })
    }

    /// Reads what has arrived, up to the capacity of a pipe.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 64 << 10];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.end.extend_from_slice(&buffer[..length]);
                self.end.drain(..self.end.len().saturating_sub(QUOTED));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }
}

/// Lines of a pipe, each awaited with a timeout.
struct Lines {
    pipe: ChildStdout,
    /// Bytes read and not yet returned.
    held: Vec<u8>,
    remarks: Remarks,
}

impl Lines {
    fn of(pipe: ChildStdout, remarks: Remarks) -> Self {
        Self { pipe, held: Vec::new(), remarks }
    }

    fn next(&mut self, patience: Duration) -> Received {
        let until = Instant::now() + patience;
        loop {
            if let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let line = std::mem::replace(&mut self.held, rest);
                return Received::Line(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.held.len() > LONGEST_LINE {
                return Received::TooMuch;
            }
            if signal::pending().is_some() {
                return Received::Interrupted;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Received::Nothing;
            }
            if let Err(end) = self.read_within(left.min(Duration::from_millis(200))) {
                return end;
            }
        }
    }

    /// Reads what arrives within this time.
    fn read_within(&mut self, time: Duration) -> std::result::Result<(), Received> {
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
        let mut waiting = vec![PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let remarks = self.remarks.pipe.as_ref();
        waiting.extend(remarks.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        match poll(&mut waiting, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(Received::End),
        }
        let is_answered = waiting[0].any() != Some(false);
        self.remarks.read();
        if !is_answered {
            return Ok(());
        }
        let mut buffer = [0; 4096];
        match self.pipe.read(&mut buffer) {
            Ok(0) | Err(_) => Err(Received::End),
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
    use crate::platform::time::tried_by_chance;
    use std::path::Path;

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
    fn a_side_that_talks_without_end_stops_nothing_and_its_last_words_are_quoted() {
        // Far more than a pipe holds, before the answer and in the place of one.
        let talk = "head -c 20000000 /dev/zero | tr '\\0' x >&2";
        let mut side =
            side(&format!("{talk}; echo '{{\"hello\":{{\"version\":99}}}}'; {talk}; echo ' why' >&2 #"));
        assert!(side.hello(LONG).expect_err("another").contains("version 99"));
        let said = side.hello(LONG).expect_err("the end");
        assert!(said.ends_with("x why") && said.len() < 2 * QUOTED, "{said}");
    }

    #[test]
    fn an_answer_out_of_turn_is_no_answer() {
        let said =
            side("echo '{\"turn\":{\"ticks\":[1],\"core_hz\":1,\"involuntary_switches\":0}}' #").hello(LONG);
        assert!(said.expect_err("no hello").contains("is no answer to a turn"));
    }

    /// Lines that are tried at the least.
    const FEWEST: u64 = 5_000;

    /// Lines of chance in the place of a side's, by fixed seeds. `SYSCOST_FUZZ_SECONDS` says for how long. Each is one of
    /// the responses or refused in a short sentence.
    #[test]
    fn a_line_of_chance_is_a_response_or_refused() {
        let side = side("cat #");
        let (mut random, mut read) = (crate::statistic::Random::new(9), 0);
        let lines = tried_by_chance("lines", FEWEST, || {
            let line = spoilt(&mut random);
            match serde_json::from_str::<Response>(&line) {
                Ok(_) => read += 1,
                Err(_) => assert!(side.nonsense(&line).len() < 2_000, "{line:?}"),
            }
        });
        assert!(read > 0 && read < lines, "{read} of {lines} are responses");
    }

    /// A response with something else in it.
    fn spoilt(random: &mut crate::statistic::Random) -> String {
        const SOUND: [&str; 5] = [
            r#"{"hello":{"version":1}}"#,
            r#"{"cases":["call/u64/3","a"]}"#,
            r#"{"ready":{"body":"1","cpu":1,"iteration_ns":1.5,"evidence":["a"],"notes":[]}}"#,
            r#"{"turn":{"ticks":[1,2],"elapsed_ns":1.0,"core_hz":3e9,"waited_ns":null,"stolen_ticks":1,"involuntary_switches":0}}"#,
            r#"{"ended":{"how":"failed","sentence":"why"}}"#,
        ];
        const PIECES: [&str; 8] =
            ["1e999", "-1", "18446744073709551616", "null", "[[[[", "\u{202e}", "\"\"", "{"];
        let mut line = SOUND[random.below(SOUND.len())].to_owned();
        for _ in 0..random.below(4) {
            // All of them are ASCII but one piece, of which no part is taken.
            let at = random.below(line.len() + 1);
            if !line.is_char_boundary(at) {
                continue;
            }
            match random.below(4) {
                0 => line.insert_str(at, PIECES[random.below(PIECES.len())]),
                1 => line.truncate(at),
                2 => line.insert_str(at, &"[".repeat(random.below(5_000))),
                _ => {
                    line = line.replacen(|c: char| c.is_ascii_digit(), PIECES[random.below(PIECES.len())], 1)
                }
            }
        }
        line
    }
}
