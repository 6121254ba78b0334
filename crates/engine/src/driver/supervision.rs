//! Starts one measuring process, receives its messages, and explains its end.

use super::arguments::{Arguments, Mode};
use super::copies::CopyStart;
use super::options::{
    CASE_TIME_VARIABLE, DIRECTORY_VARIABLE, Options, PEER_COMMAND_VARIABLE, PEER_VARIABLE, TimeLimit,
};
use super::process_task::{
    ANEW_VARIABLE, Assignment, CaseExecution, Message, TASK_VARIABLE, Task, open_pipe, write_inheritable,
};
use super::terminal::Progress;
use crate::case::Scale;
use crate::clock::ClockScale;
use crate::error::{Error, Result};
use crate::json_line::{Lines, NoMessage};
use crate::platform::cpu::cpu_class::{CPU_VARIABLE, fixed_choice};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::{self, inheritance, own_program_command};
use crate::platform::{callgrind, cpu, limit, signal};
use crate::record::GroupRun;
use crate::record::quantity::CALLGRIND;
use crate::record::store::LIMIT;
use crate::trial::CaseEnd;
use crate::trial::scratch::{self, Scratch};
use nix::libc::SIGKILL;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Environment variable with cargo-criterion's port. Measuring processes do not get it: Criterion would wait there for ever.
pub(super) const RUNNER_VARIABLE: &str = "CARGO_CRITERION_PORT";

/// Time for a measuring process to end after a signal. Under load a sample may take longer, but it is lost in any case.
const GRACE: Duration = Duration::from_secs(1);
/// Time for a process to finish a file of results after a signal. Container runtimes give the whole run ten seconds.
const WRITING: Duration = Duration::from_secs(5);
/// Time for a process to end after its last message, while the kernel frees its memory.
const ENDING: Duration = Duration::from_secs(60);

/// The results of one measuring process.
#[derive(Default)]
pub(super) struct ProcessRun {
    /// The group as the process described it: clock, CPU and notes, without cases.
    pub(super) run: GroupRun,
    /// The cases that it ended.
    pub(super) cases: Vec<CaseExecution>,
    /// Why it ended before its last case.
    pub(super) cut_short: Option<String>,
}

/// The settings that all measuring processes of a run share.
pub(super) struct Supervisor<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) options: &'a Options,
    pub(super) home: &'a Path,
    pub(super) progress: &'a Progress,
    /// When the run began, and its limit.
    pub(super) time: TimeLimit,
    /// The scale of the first process' clock, once it is known.
    pub(super) clock: Option<ClockScale>,
}

impl Supervisor<'_> {
    /// Carries out a task of this group in a process of its own, or in as many as there are to be copies.
    pub(super) fn run_task(&self, group: &str, task: &Task) -> ProcessRun {
        let runs_beside_copies = matches!(task, Task::Measure(_)) && self.options.copies > 1;
        if runs_beside_copies { self.run_copies(group, task) } else { self.run_process(group, task, None) }
    }

    /// Carries out a task in one process. However it ends, the result holds the finished cases and why the next one failed.
    pub(super) fn run_process(&self, group: &str, task: &Task, copy: Option<&CopyStart<'_>>) -> ProcessRun {
        let mut received = Received::new(self, group, task, copy);
        match received.run_and_listen() {
            Ok((status, patient)) => received.explain_end(status, patient),
            Err(error) => match error.unmet_need(true) {
                Some(sentence) => received.blame_unfinished_case(CaseEnd::Skipped, sentence),
                None => received.blame_unfinished_case(CaseEnd::CutShort, error.to_string()),
            },
        }
    }

    fn start_process(
        &self,
        group: &str,
        task: &Task,
        pipe: &OwnedFd,
        copy: Option<&CopyStart<'_>>,
    ) -> Result<(Child, Option<Scratch>)> {
        let options = self.options;
        let counts = (options.unit == CALLGRIND).then(scratch::make_directory).transpose()?;
        let assignment = Assignment {
            group: group.into(),
            pipe: pipe.as_raw_fd(),
            clock: self.clock,
            scale: if self.arguments.mode == Mode::Test { Scale::Smoke } else { options.scale },
            unit: options.unit.clone(),
            events: options.events.iter().map(|event| event.name).collect::<Vec<_>>().join(","),
            operations: options.operations,
            replications: options.replications,
            callgrind: counts.as_ref().map(|directory| directory.path().join("counts")),
            copy: copy.map(CopyStart::describe),
            time_left: self.time.left(),
            task: task.clone(),
        };
        let mut command = match &assignment.callgrind {
            Some(file) => callgrind::own_program_under(file)?,
            None => own_program_command(),
        };
        // Every process that is started while this file is open inherits it.
        let assignment = write_inheritable(&assignment)?;
        // The name that `ps` shows.
        command.arg0(format!("syscost {group}"));
        command
            .args(self.arguments.for_measuring_process())
            .env(TASK_VARIABLE, assignment.as_raw_fd().to_string())
            .env_remove(RUNNER_VARIABLE)
            .env_remove(ANEW_VARIABLE)
            .env("CRITERION_HOME", self.home)
            .envs(
                copy.map(|copy| copy.cpu().to_string())
                    .or_else(|| fixed_choice().map(Into::into))
                    .map(|cpu| (CPU_VARIABLE, cpu)),
            )
            .envs(options.directory.iter().map(|directory| (DIRECTORY_VARIABLE, directory)))
            .envs(options.peer.iter().map(|peer| (PEER_VARIABLE, peer)))
            .envs(options.peer_command.iter().map(|words| (PEER_COMMAND_VARIABLE, words)));
        let inherited =
            [pipe.as_fd(), assignment.as_fd()].into_iter().chain(copy.map(|copy| copy.table.as_fd()));
        inheritance::close_other_descriptors(&mut command, &inherited.collect::<Vec<_>>());
        let started = match copy {
            Some(copy) => cpu::run_on_cpu(copy.cpu(), || command.spawn())?,
            None => command.spawn(),
        };
        let child = started.map_err(|cause| match cause.kind() {
            ErrorKind::WouldBlock => {
                Error::Missing(limit::refused_task_message("starting a process to measure in", cause))
            }
            _ => Error::file("/proc/self/exe", "starting a process to measure in", cause),
        })?;
        Ok((child, counts))
    }
}

/// Waits for a process that `is_ending`, and kills it with its children if it does not end in time. Others are killed at once.
///
/// # Errors
/// The killed process does not end.
fn wait_or_kill(child: &mut Child, is_ending: bool) -> Result<ExitStatus> {
    let lost = |cause| Error::Kernel { call: "wait for a measuring process".into(), cause };
    let limit = if signal::pending().is_some() { WRITING } else { ENDING };
    let status = if is_ending { process::wait_within(child, limit).map_err(lost)? } else { None };
    if let Some(status) = status {
        return Ok(status);
    }
    process::kill_process_tree(child.id());
    process::wait_within(child, GRACE).map_err(lost)?.ok_or_else(|| {
        Error::Disturbed(format!(
            "the measuring process {} was killed and does not end: no CPU is left for it beside real-time tasks (`ps -eo \
             pid,cls,rtprio,pcpu,comm`)",
            child.id()
        ))
    })
}

/// The remedy for a shortage of memory.
const MORE_MEMORY: &str = "free some, or raise the limit of the control group (memory.max)";

/// Number of processes that the kernel has killed for lack of memory since boot, in any control group (proc_vmstat(5)).
fn read_oom_kills() -> Option<u64> {
    let text = KernelFiles::live().read_text("/proc/vmstat")?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
}

/// The messages received so far.
struct Received<'a> {
    results: ProcessRun,
    current: Option<String>,
    ended: bool,
    broken: Option<String>,
    refused: Option<String>,
    supervisor: &'a Supervisor<'a>,
    group: &'a str,
    task: &'a Task,
    copy: Option<&'a CopyStart<'a>>,
    /// Number of processes that the kernel had killed for lack of memory when this one began.
    oom_kills: Option<u64>,
    /// CPU time of all ended child processes when this one began.
    cpu_time: Duration,
}

impl<'a> Received<'a> {
    fn new(
        supervisor: &'a Supervisor<'a>,
        group: &'a str,
        task: &'a Task,
        copy: Option<&'a CopyStart<'a>>,
    ) -> Self {
        Self {
            results: ProcessRun::default(),
            current: None,
            ended: false,
            broken: None,
            refused: None,
            supervisor,
            group,
            task,
            copy,
            oom_kills: read_oom_kills(),
            cpu_time: process::children_cpu_time(),
        }
    }

    /// Runs the process. Returns its exit status, and false if it hung and was killed.
    fn run_and_listen(&mut self) -> Result<(ExitStatus, bool)> {
        let (read, write) = open_pipe().map_err(|e| Error::from_errno("pipe to a measuring process", e))?;
        let (mut child, _counts) = self.supervisor.start_process(self.group, self.task, &write, self.copy)?;
        drop(write);
        // Signals are forwarded to the first copy only: the other copies end when it does.
        let is_first = self.copy.is_none_or(CopyStart::is_first);
        let heard = match self.task {
            Task::Measure(_) if !is_first => 0,
            Task::Measure(_) => {
                signal::forward_to_child(Some(child.id()));
                0
            }
            Task::Write(..) => {
                signal::forward_later_to_child(Some(child.id()));
                signal::arrived_count()
            }
        };
        let patient = self.receive_until_closed(&read.into(), heard);
        let status = wait_or_kill(&mut child, patient);
        if is_first {
            signal::forward_to_child(None);
        }
        Ok((status?, patient))
    }

    /// Receives messages until the process closes the pipe. Returns false if it is silent for too long, does not end soon after
    /// a signal, or sends a malformed message. The first `heard` signals are ignored.
    fn receive_until_closed(&mut self, pipe: &File, heard: u32) -> bool {
        let wake_up = signal::bell_descriptor();
        let mut lines = Lines::new(LIMIT as usize);
        let mut end = None;
        loop {
            if end.is_none() && signal::arrived_count() > heard {
                let grace = if matches!(self.task, Task::Measure(_)) { GRACE } else { WRITING };
                end = Some(Instant::now() + grace);
            }
            let until = end.unwrap_or_else(|| {
                Instant::now() + self.supervisor.options.silence_limit(self.supervisor.arguments)
            });
            match lines.receive(pipe, until, wake_up.as_slice()) {
                Ok(message) => self.apply_process_message(message),
                Err(NoMessage::Closed) => return true,
                Err(NoMessage::Late) => return false,
                Err(NoMessage::Woken) => signal::silence_bell(),
                Err(why) => {
                    self.broken = Some(why.to_string());
                    return false;
                }
            }
        }
    }

    fn apply_process_message(&mut self, message: Message) {
        match message {
            Message::Ready(run) => self.results.run = run,
            Message::Begin(id) => {
                self.supervisor.progress.begin(&id);
                self.current = Some(id);
            }
            Message::Done(case) => self.record_case_end(*case),
            Message::Note(note) => self.results.run.notes.push(note),
            Message::Broken(reason) => self.broken = Some(reason),
            Message::Refused(reason) => self.refused = Some(reason),
            Message::End(clock) => {
                self.results.run.clock = clock;
                self.ended = true;
            }
        }
    }

    fn record_case_end(&mut self, mut case: CaseExecution) {
        self.current = None;
        let Supervisor { progress, time, .. } = self.supervisor;
        if let Ok(measured) = &mut case.end {
            // Every case carries the same network path; the record keeps it once per group.
            self.results.run.wire = measured.wire.take().or(self.results.run.wire.take());
            let at = time.began.elapsed().as_secs_f64();
            measured.executions.iter_mut().for_each(|execution| execution.at = at);
        }
        progress.done();
        if self.copy.is_none() {
            self.supervisor.print_verdict(&case);
        }
        self.results.cases.push(case);
    }

    /// The received results, with an explanation if the process ended early. An end by a signal to the driver is no failure.
    fn explain_end(mut self, status: ExitStatus, patient: bool) -> ProcessRun {
        let is_whole = || self.first_missing_case().is_none() || self.supervisor.time.is_over();
        if self.ended && status.success() && is_whole() {
            return self.results;
        }
        if signal::pending().is_some() {
            self.results
                .run
                .notes
                .push("interrupted: the remaining cases were not measured, or not again".into());
            return self.results;
        }
        if let Some(sentence) =
            limit::cpu_limit_message(status.signal(), process::children_cpu_time() - self.cpu_time)
        {
            return self.blame_unfinished_case(CaseEnd::Disturbed, sentence);
        }
        if let Some(reason) = self.refused.take() {
            return self.blame_unfinished_case(CaseEnd::Skipped, reason);
        }
        let sentence = match (self.broken.take(), patient) {
            (Some(reason), _) => format!("the measuring process could not go on: {reason}"),
            (None, true) if status.signal() == Some(SIGKILL) && read_oom_kills() > self.oom_kills => {
                format!("the measuring process was killed ({status}) when memory was short: {MORE_MEMORY}")
            }
            (None, true) => format!("the measuring process ended early ({status})"),
            (None, false) => {
                let seconds = self.supervisor.options.silence_limit(self.supervisor.arguments).as_secs_f64();
                format!(
                    "the case did not end within {seconds} s and was killed; {CASE_TIME_VARIABLE} sets this limit"
                )
            }
        };
        self.blame_unfinished_case(CaseEnd::CutShort, sentence)
    }

    /// Records an early end of this kind for the case that was running or, between two cases, for the first missing case.
    /// Further missing cases are left to the next round.
    fn blame_unfinished_case(mut self, kind: fn(String) -> CaseEnd, sentence: String) -> ProcessRun {
        match self.current.take().or_else(|| self.first_missing_case()) {
            Some(id) => {
                let end = Err(kind(sentence.clone()));
                self.results.cases.push(CaseExecution { id, title: String::new(), seconds: 0.0, end });
            }
            None => self.results.run.notes.push(sentence.clone()),
        }
        ProcessRun { cut_short: Some(sentence), ..self.results }
    }

    fn first_missing_case(&self) -> Option<String> {
        let Task::Measure(cases) = self.task else { return None };
        let is_missing = |id: &str| !self.results.cases.iter().any(|case| case.id == id);
        cases.iter().find(|wanted| is_missing(&wanted.id)).map(|wanted| wanted.id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::process_task::Wanted;
    use crate::driver::terminal::Telling;
    use std::io::Write;

    #[test]
    fn a_malformed_message_ends_its_process_and_is_quoted_without_escape_codes() {
        let arguments = Arguments::parse(Vec::new()).expect("no arguments");
        let options = Options::from_environment().expect("options");
        let progress = Progress::over(1, Telling::Nothing);
        let (time, home) = (TimeLimit::starting_now(None), Path::new("/nowhere"));
        let supervisor = Supervisor {
            arguments: &arguments,
            options: &options,
            home,
            progress: &progress,
            time,
            clock: None,
        };
        let task = Task::Measure(vec![Wanted { id: "call/u64/3".into(), proven: false }]);
        let mut received = Received::new(&supervisor, "call", &task, None);
        let (read, write) = open_pipe().expect("a pipe");
        let sent_bytes = b"{\"begin\":\"call/u64/3\"}\n\x1b[2J{\n{\"note\":\"unheard\"}\n";
        File::from(write).write_all(sent_bytes).expect("written");
        assert!(!received.receive_until_closed(&read.into(), signal::arrived_count()));
        let run = received.explain_end(ExitStatus::from_raw(SIGKILL), false);
        let ends: Vec<_> = run.cases.into_iter().map(|case| case.end.expect_err("no number")).collect();
        let [CaseEnd::CutShort(sentence)] = &ends[..] else { panic!("{ends:?}") };
        assert!(sentence.contains("could not go on: it sent `\u{fffd}[2J{`"), "{sentence}");
        assert!(run.run.notes.is_empty(), "{:?}", run.run.notes);
    }
}
