//! The driver's end of one side: it sends requests to the process, awaits responses with a timeout, and ends the process.

use super::launch::Connection;
use crate::error::Result;
use crate::platform::cpu::Aside;
use crate::platform::inert;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use syscost_engine::json_line::NoMessage;
use syscost_engine::pair::{Request, Response, VERSION};

/// The random choices for one process of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// Bytes by which the environment is lengthened, which shifts the stack.
    pub padding: usize,
    /// The number of the link of the build; `None` for the link that the build has made.
    pub link: Option<u32>,
}

/// Starts the processes of one side.
pub trait Start {
    /// Starts a process. A side without links always runs the same binary.
    ///
    /// # Errors
    /// The process cannot be started.
    fn start_side(&self, draw: Draw, aside: &Aside) -> Result<Side>;
    /// Whether another process can be started.
    fn can_start_another(&self) -> bool {
        true
    }
}

/// The machine on which the process of a side runs: this one, or a guest.
pub trait SideProcess {
    /// A description of how the process ended. It is called after the process has closed its output.
    fn exit_description(&mut self) -> String;
    /// CPU time that others have taken from the side so far, measured from outside; `None` if the side measures it itself.
    fn taken_time(&self) -> Option<Taken> {
        None
    }
    /// Ends the process. `is_gone`: the guest has reported that the process has ended.
    fn end_process(&mut self, connection: &mut Connection, is_gone: bool);
}

/// Time that was taken from a side, counted from an arbitrary time in the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Time, ns, for which the side was runnable while other tasks ran.
    pub waited_ns: u64,
    /// Stolen time of the side's CPU, in clock ticks of 10 ms.
    pub stolen_ticks: u64,
}

/// A running side. Dropping this value ends its process.
pub struct Side {
    label: &'static str,
    /// The connection to the process. A guest uses one connection for all its sides, one after the other.
    connection: Rc<RefCell<Connection>>,
    process: Box<dyn SideProcess>,
    is_gone: bool,
}

impl Side {
    /// A side whose process was started. `label` is its name in sentences.
    pub fn new(
        label: &'static str,
        connection: Rc<RefCell<Connection>>,
        process: Box<dyn SideProcess>,
    ) -> Self {
        Self { label, connection, process, is_gone: false }
    }

    /// CPU time that others have taken from this side so far, if it is measured from outside.
    pub(super) fn taken_time(&self) -> Option<Taken> {
        self.process.taken_time()
    }

    /// Sends a request, without waiting for the response.
    pub(super) fn send_request(&mut self, request: &Request) -> std::result::Result<(), String> {
        let is_sent = self.connection.borrow_mut().send_request(request);
        if is_sent { Ok(()) } else { Err(self.describe_end()) }
    }

    /// Checks the first response, which has the version of the protocol. Returns the build's description of its compiler.
    pub(super) fn receive_hello(
        &mut self,
        patience: Duration,
    ) -> std::result::Result<Option<String>, String> {
        match self.receive_response(patience)? {
            Response::Hello { version: VERSION, build } => Ok(build),
            Response::Hello { version, .. } => Err(format!(
                "side {} speaks version {version} of the turns, and this is version {VERSION}: build it anew",
                self.label
            )),
            other => Err(self.invalid_answer_sentence(&NoMessage::unexpected(&other))),
        }
    }

    /// Receives the next response; an error is a sentence.
    pub(super) fn receive_response(&mut self, patience: Duration) -> std::result::Result<Response, String> {
        let received = self.connection.borrow_mut().receive(patience);
        match received {
            Ok(Response::Gone { how }) => {
                self.is_gone = true;
                Err(self.end_sentence(&inert::neutralize_line(&how, 100)))
            }
            Ok(response) => Ok(response),
            Err(NoMessage::Closed | NoMessage::Broken(_)) => Err(self.describe_end()),
            Err(NoMessage::Late) => Err(format!(
                "side {} said nothing for {} s and was killed{}",
                self.label,
                patience.as_secs(),
                self.connection.borrow().quoted_output()
            )),
            Err(NoMessage::Woken) => Err("interrupted".into()),
            Err(why) => Err(self.invalid_answer_sentence(&why)),
        }
    }

    pub(super) fn duplicate_case_sentence(&self, id: &str) -> String {
        format!(
            "side {} has two cases of the id {id}, of which only the first is ever found: rename one",
            self.label
        )
    }

    pub(super) fn invalid_answer_sentence(&self, why: &NoMessage) -> String {
        format!(
            "side {} does not take turns: {why}; it must be a bench of this version of syscost, and what comes before \
             it must write nothing to its standard output and pass the environment on{}",
            self.label,
            self.connection.borrow().quoted_output()
        )
    }

    fn describe_end(&mut self) -> String {
        // The process has closed its output, so it is about to exit; a wrapper may live on.
        std::thread::sleep(Duration::from_millis(50));
        let how = self.process.exit_description();
        self.end_sentence(&how)
    }

    fn end_sentence(&self, how: &str) -> String {
        let said = self.connection.borrow_mut().last_output();
        format!("side {} ended in the middle of the conversation ({how}){said}", self.label)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.process.end_process(&mut self.connection.borrow_mut(), self.is_gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Launch;
    use crate::platform::cpu;
    use crate::platform::testing::run_random_trials;
    use std::path::Path;
    use syscost_engine::json_line::Lines;

    fn side(wrap: &str) -> Side {
        let directory = tempfile::tempdir().expect("a directory");
        let wrap = Some(wrap.to_owned());
        let launch = Launch::new("B", Path::new("/bin/true"), wrap, directory.path()).expect("linked");
        let aside = Aside::keep_off(cpu::current_cpu()).expect("aside");
        launch.start_side(Draw::default(), &aside).expect("started")
    }

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_side_that_hangs_is_killed_after_the_timeout() {
        let place = tempfile::tempdir().expect("a directory");
        let told = place.path().join("pid");
        let mut side = side(&format!("echo $$ >{}; sleep 1000 #", told.display()));
        assert!(side.receive_hello(SHORT).expect_err("silent").contains("side B said nothing"));
        let pid = std::fs::read_to_string(told).expect("its number");
        drop(side);
        assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "killed and reaped");
    }

    #[test]
    fn a_side_of_another_version_is_refused() {
        let said = side("echo '{\"hello\":{\"version\":99}}' #").receive_hello(LONG).expect_err("another");
        assert!(said.contains("version 99") && said.contains("build it anew"), "{said}");
    }

    #[test]
    fn an_endless_line_is_no_response() {
        let said = side("yes | tr -d '\\n' #").receive_hello(LONG).expect_err("too much");
        assert!(said.contains("a line of more than 1048576 bytes"), "{said}");
    }

    #[test]
    fn a_full_standard_error_blocks_no_side_and_its_end_is_quoted() {
        // Far more output than a pipe holds, before the first response and instead of the second.
        let noise = "head -c 20000000 /dev/zero | tr '\\0' x >&2";
        let mut side =
            side(&format!("{noise}; echo '{{\"hello\":{{\"version\":99}}}}'; {noise}; echo ' why' >&2 #"));
        assert!(side.receive_hello(LONG).expect_err("another").contains("version 99"));
        let said = side.receive_hello(LONG).expect_err("the end");
        assert!(said.ends_with("x why") && said.len() < 800, "{said}");
    }

    #[test]
    fn an_unexpected_response_is_refused() {
        let said = side(
            "echo '{\"turn\":{\"ticks\":[1],\"elapsed_ns\":1,\"core_hz\":1,\"involuntary_switches\":0}}' #",
        )
        .receive_hello(LONG);
        assert!(said.expect_err("no hello").contains("`Turn(Turn { ticks: [1], "));
    }

    /// The least number of lines that are tried.
    const FEWEST: u64 = 5_000;

    /// Replaces a side's lines by random lines from a fixed seed. `SYSCOST_FUZZ_SECONDS` sets the duration. Each line must be
    /// a response, or be refused with a short sentence.
    #[test]
    fn a_random_line_is_a_response_or_refused() {
        let side = side("cat #");
        let (mut random, mut read) = (crate::statistic::Random::new(9), 0);
        let lines = run_random_trials("lines", FEWEST, || {
            let line = spoilt(&mut random);
            match received(&line) {
                Ok(_) => read += 1,
                Err(why) => assert!(side.invalid_answer_sentence(&why).len() < 2_000, "{line:?}"),
            }
        });
        assert!(read > 0 && read < lines, "{read} of {lines} are responses");
    }

    #[test]
    fn a_guest_reports_how_its_process_ended() {
        let mut side = side("echo '{\"gone\":{\"how\":\"signal: 9\"}}' #");
        let said = side.receive_hello(LONG).expect_err("it has ended");
        assert!(said.contains("side B ended in the middle of the conversation (signal: 9)"), "{said}");
        assert!(side.is_gone);
    }

    fn received(line: &str) -> std::result::Result<Response, NoMessage> {
        let (mut lines, line) = (Lines::new(1 << 20), format!("{line}\n"));
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            lines.read_once(&mut rest)?;
        }
        lines.take_message().map(|response| response.expect("a whole line"))
    }

    /// A random response with up to three random changes.
    fn spoilt(random: &mut crate::statistic::Random) -> String {
        const SOUND: [&str; 6] = [
            r#"{"gone":{"how":"exit status: 1"}}"#,
            r#"{"hello":{"version":1}}"#,
            r#"{"cases":["call/u64/3","a"]}"#,
            r#"{"ready":{"body":"1","cpu":1,"iteration_ns":1.5,"evidence":["a"],"notes":[]}}"#,
            r#"{"turn":{"ticks":[1,2],"elapsed_ns":1.0,"core_hz":3e9,"waited_ns":null,"stolen_ticks":1,"involuntary_switches":0}}"#,
            r#"{"ended":{"how":"failed","sentence":"why"}}"#,
        ];
        const PIECES: [&str; 8] =
            ["1e999", "-1", "18446744073709551616", "null", "[[[[", "\u{202e}", "\"\"", "{"];
        let mut line = SOUND[random.number_below(SOUND.len())].to_owned();
        for _ in 0..random.number_below(4) {
            // One of the pieces is not ASCII, and must not be split within a character.
            let at = random.number_below(line.len() + 1);
            if !line.is_char_boundary(at) {
                continue;
            }
            match random.number_below(4) {
                0 => line.insert_str(at, PIECES[random.number_below(PIECES.len())]),
                1 => line.truncate(at),
                2 => line.insert_str(at, &"[".repeat(random.number_below(5_000))),
                _ => {
                    line = line.replacen(
                        |c: char| c.is_ascii_digit(),
                        PIECES[random.number_below(PIECES.len())],
                        1,
                    )
                }
            }
        }
        line
    }
}
