//! One measuring process: started, listened to, and its end explained.

use super::super::arguments::{Arguments, Mode};
use super::super::message::{Message, PIPE_VARIABLE};
use super::super::plan::Planned;
use super::super::progress::Progress;
use super::super::{GROUP_VARIABLE, bencher};
use super::{Options, PEER_TOKEN_VARIABLE, PEER_VARIABLE};
use crate::platform::{limit, signal};
use crate::record::{CaseRecord, GroupRun, Outcome};
use crate::{Error, Result};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A case that says nothing for so long hangs, unless longer samples were asked for. The longest at full scale
/// takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(300);

/// The same and ten times what the samples were asked to take: a disturbed case is tried again.
fn patience(arguments: &Arguments) -> Duration {
    PATIENCE + Duration::from_secs_f64(10.0 * arguments.asked_seconds)
}

/// Starts the process, listens until it ends, and returns what it measured. However it ends, and if it cannot
/// even begin, the cases that it finished are in the answer.
pub(super) fn measure(
    planned: &Planned,
    arguments: &Arguments,
    options: &Options,
    home: &Path,
    progress: &Progress,
) -> GroupRun {
    let mut heard = Heard::new(planned, arguments, options, progress);
    match heard.of_a_process(home) {
        Ok((status, patient)) => heard.end(status, patient),
        Err(error) => heard.blame(error.to_string()),
    }
}

/// A pipe of which a child inherits the writing end alone, so that it is broken when the driver has gone.
fn pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&write, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok((read, write))
}

fn start(
    group: &str,
    arguments: &Arguments,
    options: &Options,
    home: &Path,
    pipe: &OwnedFd,
) -> Result<Child> {
    let exe = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let scale = if arguments.mode == Mode::Test { "smoke" } else { options.scale.name() };
    let mut command = Command::new(&exe);
    command
        .args(arguments.for_measuring())
        .env(GROUP_VARIABLE, group)
        // The descriptor itself is inherited.
        .env(PIPE_VARIABLE, format!("/proc/self/fd/{}", pipe.as_raw_fd()))
        .env("SYSCOST_SCALE", scale)
        .env("SYSCOST_MEASURE", &options.unit)
        .env("CRITERION_HOME", home)
        .envs(options.directory.iter().map(|directory| ("SYSCOST_DIR", directory)))
        .envs(options.peer.iter().map(|peer| (PEER_VARIABLE, peer)))
        .envs(options.peer_token_file.iter().map(|file| (PEER_TOKEN_VARIABLE, file)));
    command.spawn().map_err(|cause| match cause.kind() {
        ErrorKind::WouldBlock => Error::Missing(limit::no_task("starting a process to measure in", cause)),
        _ => Error::file(exe, "starting a process to measure in", cause),
    })
}

/// Lines of the pipe, read by a thread of the driver's so that waiting for them can end.
fn lines(read: OwnedFd) -> Result<Receiver<String>> {
    let (sender, receiver) = channel();
    let listener = std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(File::from(read)).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let refused = |cause| Error::Missing(limit::no_task("starting a thread that listens", cause));
    listener.map(|_| receiver).map_err(refused)
}

/// What was heard so far.
struct Heard<'a> {
    run: GroupRun,
    current: Option<String>,
    ended: bool,
    broken: Option<String>,
    planned: &'a Planned<'a>,
    arguments: &'a Arguments,
    options: &'a Options,
    progress: &'a Progress,
}

impl<'a> Heard<'a> {
    fn new(
        planned: &'a Planned,
        arguments: &'a Arguments,
        options: &'a Options,
        progress: &'a Progress,
    ) -> Self {
        let run = GroupRun {
            name: planned.group.name.into(),
            version: planned.group.version_text(),
            ..GroupRun::default()
        };
        Self { run, current: None, ended: false, broken: None, planned, arguments, options, progress }
    }

    /// How the process ended, and whether it spoke until it did.
    fn of_a_process(&mut self, home: &Path) -> Result<(ExitStatus, bool)> {
        let (read, write) = pipe().map_err(|e| Error::refused("pipe to a measuring process", e))?;
        let lines = lines(read)?;
        let mut child = start(self.planned.group.name, self.arguments, self.options, home, &write)?;
        drop(write);
        signal::pass_on_to(Some(child.id()));
        let patient = self.listen(&lines);
        if !patient {
            // A process that does not answer does not end by being asked.
            let _ = child.kill();
        }
        let status = child.wait();
        signal::pass_on_to(None);
        let lost = |cause| Error::Kernel { call: "wait for a measuring process".into(), cause };
        Ok((status.map_err(lost)?, patient))
    }

    /// Whether the process spoke until it closed the pipe.
    fn listen(&mut self, lines: &Receiver<String>) -> bool {
        loop {
            match lines.recv_timeout(patience(self.arguments)) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn hear(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Message::Ready(run)) => self.run = run,
            Ok(Message::Begin(id)) => {
                self.progress.begin(&id);
                self.current = Some(id);
            }
            Ok(Message::Done(case)) => self.done(*case),
            Ok(Message::Note(note)) => self.run.notes.push(note),
            Ok(Message::Broken(reason)) => self.broken = Some(reason),
            Ok(Message::End(clock)) => {
                self.run.clock = clock;
                self.ended = true;
            }
            Err(error) => self.run.notes.push(format!("the measuring process spoke unintelligibly: {error}")),
        }
    }

    fn done(&mut self, mut case: CaseRecord) {
        self.current = None;
        if let Outcome::Measured(measured) = &mut case.outcome {
            // Every case brings it; once is enough.
            self.run.wire = measured.wire.take().or(self.run.wire.take());
        }
        self.progress.done();
        if self.arguments.bencher {
            self.progress.print(&bencher::line(&case, &self.options.unit));
        } else if self.arguments.mode == Mode::Test {
            self.progress.print(&format!("{}: {}", case.id, verdict(&case.outcome)));
        }
        self.run.cases.push(case);
    }

    /// Explains an early end. A signal to the driver is not an accident of the case.
    fn end(mut self, status: ExitStatus, patient: bool) -> GroupRun {
        if self.ended && status.success() && self.first_missing().is_none() {
            return self.run;
        }
        if signal::pending().is_some() {
            self.run.notes.push("interrupted: the remaining cases were not measured".into());
            return self.run;
        }
        let sentence = match (self.broken.take(), patient) {
            (Some(reason), _) => format!("the measuring process could not go on: {reason}"),
            (None, true) => format!("the measuring process ended early ({status})"),
            (None, false) => {
                format!("the case said nothing for {} s and was killed", patience(self.arguments).as_secs())
            }
        };
        self.blame(sentence)
    }

    fn blame(mut self, sentence: String) -> GroupRun {
        // Between two cases there is none to blame: the first that is missing stands for the rest.
        let blamed = self.current.take().or_else(|| self.first_missing());
        match blamed {
            Some(id) => self.fail(id, sentence),
            None => self.run.notes.push(sentence),
        }
        self.run
    }

    fn first_missing(&self) -> Option<String> {
        self.planned.ids.iter().find(|id| !self.run.cases.iter().any(|case| case.id == **id)).cloned()
    }

    fn fail(&mut self, id: String, sentence: String) {
        let left = self.planned.ids.len().saturating_sub(self.run.cases.len() + 1);
        if left > 0 {
            self.run.notes.push(format!("{left} cases after {id} were not measured: {sentence}"));
        }
        self.run.cases.push(CaseRecord { id, title: String::new(), outcome: Outcome::Failed(sentence) });
    }
}

fn verdict(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured(m) => format!("ok, {} claims hold", m.evidence.len()),
        Outcome::Skipped(sentence) => format!("skipped: {sentence}"),
        Outcome::Failed(sentence) => format!("FAILED: {sentence}"),
    }
}
