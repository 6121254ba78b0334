//! Starts one measuring process, receives its messages, and explains its end.

use super::arguments::{Arguments, Mode};
use super::bencher;
use super::options::{
    DIRECTORY_VARIABLE, GROUP_VARIABLE, Options, PEER_TOKEN_VARIABLE, PEER_VARIABLE, SCALE_VARIABLE,
    UNIT_VARIABLE,
};
use super::pipe_message::{Message, PIPE_VARIABLE};
use super::plan::Planned;
use super::terminal::Progress;
use crate::error::{Error, Result};
use crate::platform::{limit, signal};
use crate::record::{CaseRecord, GroupRun, Outcome};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Silence after which a case counts as hung: ten times the longest case at full scale.
const PATIENCE: Duration = Duration::from_secs(300);

/// [`PATIENCE`], longer by ten times the sampling time that the user asked for, since a disturbed case is repeated.
fn patience(arguments: &Arguments) -> Duration {
    PATIENCE + Duration::from_secs_f64(10.0 * arguments.asked_seconds)
}

/// Measures one group in a process of its own. However the process ends, the result holds the cases that it finished
/// and, for the next one, why it failed.
pub(super) fn measure(
    planned: &Planned,
    arguments: &Arguments,
    options: &Options,
    home: &Path,
    progress: &Progress,
) -> GroupRun {
    let mut received = Received::new(planned, arguments, options, progress);
    match received.listen_to_process(home) {
        Ok((status, patient)) => received.end(status, patient),
        Err(error) => received.blame(error.to_string()),
    }
}

/// A pipe whose writing end alone is inherited by children: when the driver dies, writing fails.
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
        // The child inherits the descriptor under this number.
        .env(PIPE_VARIABLE, format!("/proc/self/fd/{}", pipe.as_raw_fd()))
        .env(SCALE_VARIABLE, scale)
        .env(UNIT_VARIABLE, &options.unit)
        .env("CRITERION_HOME", home)
        .envs(options.directory.iter().map(|directory| (DIRECTORY_VARIABLE, directory)))
        .envs(options.peer.iter().map(|peer| (PEER_VARIABLE, peer)))
        .envs(options.peer_token_file.iter().map(|file| (PEER_TOKEN_VARIABLE, file)));
    command.spawn().map_err(|cause| match cause.kind() {
        ErrorKind::WouldBlock => Error::Missing(limit::no_task("starting a process to measure in", cause)),
        _ => Error::file(exe, "starting a process to measure in", cause),
    })
}

/// Lines of the pipe, read by a thread, so that waiting for the next one can time out.
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

/// The messages received so far.
struct Received<'a> {
    run: GroupRun,
    current: Option<String>,
    ended: bool,
    broken: Option<String>,
    planned: &'a Planned<'a>,
    arguments: &'a Arguments,
    options: &'a Options,
    progress: &'a Progress,
}

impl<'a> Received<'a> {
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

    /// Runs the process. Returns its exit status, and false if it hung and was killed.
    fn listen_to_process(&mut self, home: &Path) -> Result<(ExitStatus, bool)> {
        let (read, write) = pipe().map_err(|e| Error::refused("pipe to a measuring process", e))?;
        let lines = lines(read)?;
        let mut child = start(self.planned.group.name, self.arguments, self.options, home, &write)?;
        drop(write);
        signal::pass_on_to(Some(child.id()));
        let patient = self.listen(&lines);
        if !patient {
            let _ = child.kill();
        }
        let status = child.wait();
        signal::pass_on_to(None);
        let lost = |cause| Error::Kernel { call: "wait for a measuring process".into(), cause };
        Ok((status.map_err(lost)?, patient))
    }

    /// Receives messages until the process closes the pipe; false if it is silent for too long.
    fn listen(&mut self, lines: &Receiver<String>) -> bool {
        loop {
            match lines.recv_timeout(patience(self.arguments)) {
                Ok(line) => self.receive(&line),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn receive(&mut self, line: &str) {
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
            // Every case carries the same network path; the record keeps it once per group.
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

    /// The finished group, with an explanation if the process ended early. A signal to the driver is no failure.
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

    /// Charges an early end to the case that was running or, between two cases, to the first that is missing.
    fn blame(mut self, sentence: String) -> GroupRun {
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
        Outcome::Disturbed(sentence) => format!("disturbed: {sentence}"),
        Outcome::Failed(sentence) => format!("FAILED: {sentence}"),
    }
}
