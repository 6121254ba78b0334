//! The task that the driver gives to a measuring process, as JSON in an unnamed file that the process inherits. The kernel
//! limits an environment variable to 128 KiB, the ids of some 2000 cases, which is too short. Only addresses and directories
//! are passed in the environment, because other code reads them, too.

use crate::case::Scale;
use crate::clock::ClockScale;
use crate::error::{Error, Result};
use crate::json_line::{self, parse_value};
use crate::platform::plain_file;
use crate::platform::process::inheritance::duplicate_inherited;
use crate::platform::process::own_program_command;
use crate::record::store::LIMIT;
use crate::record::{ClockRun, GroupRun, Measured};
use crate::trial::CaseEnd;
use crate::trial::scratch::scratch_parent;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::close;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Environment variable with the number of that file's descriptor in the measuring process. Only the driver sets it.
pub(super) const TASK_VARIABLE: &str = "SYSCOST_TASK";

/// Environment variable with the descriptor of the file through which [`begin_anew`] passes its value.
pub(super) const ANEW_VARIABLE: &str = "SYSCOST_ANEW";

/// Whether a driver started this process to measure one group.
pub fn is_measuring_process() -> bool {
    std::env::var_os(TASK_VARIABLE).is_some()
}

/// The task of a measuring process, and the settings with which the process carries it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The group of its cases.
    pub group: String,
    /// Descriptor of the pipe to the driver, as numbered in the measuring process. Opening it by number needs no `/proc`.
    pub pipe: RawFd,
    /// The clock's scale, if an earlier process has found it.
    pub clock: Option<ClockScale>,
    /// Scale of the cases' parameters.
    pub scale: Scale,
    /// What is measured: `ns`, or the name of a perf event.
    pub unit: String,
    /// Perf events that are counted in addition to the time, separated by commas.
    pub events: String,
    /// Operations of a run where a case is measured by displacement.
    pub operations: Option<u64>,
    /// Undisturbed runs of a case that is measured by displacement.
    pub replications: Option<u32>,
    /// Where callgrind writes its counts, if the process runs under it.
    pub callgrind: Option<PathBuf>,
    /// The copy that this process is, if several measure at the same time.
    pub copy: Option<Copied>,
    /// Time until no further case begins, if the run has a limit.
    pub time_left: Option<Duration>,
    /// What the process does with the cases.
    pub task: Task,
}

/// One of several copies that measure at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Its number, from 0.
    pub own: usize,
    /// The CPU of each copy.
    pub cpus: Vec<usize>,
    /// Number of the descriptor of the table that the copies share, in the measuring process.
    pub table: RawFd,
}

/// What a measuring process does with the cases of its group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Measure these, each once.
    Measure(Vec<Wanted>),
    /// Have Criterion write its files for these.
    Write(Vec<Samples>),
}

/// A case that is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether an earlier process has proved the case's claims.
    pub proven: bool,
}

/// The samples of one case, of all executions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// The id without its group: Criterion's function id.
    pub name: String,
    /// Cost per iteration of each sample, in the record's unit.
    pub values: Vec<f64>,
    /// What an iteration processes, from which Criterion computes a throughput.
    pub work: Option<Work>,
}

/// What an iteration processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// This many bytes.
    Bytes(u64),
    /// This many elements.
    Elements(u64),
}

impl Assignment {
    /// The case of this id, if it is to be measured.
    pub fn find_wanted(&self, id: &str) -> Option<&Wanted> {
        let Task::Measure(wanted) = &self.task else { return None };
        wanted.iter().find(|wanted| wanted.id == id)
    }

    /// Whether a case may still begin after this process has run for `elapsed`.
    pub fn has_time_after(&self, elapsed: Duration) -> bool {
        self.time_left.is_none_or(|left| elapsed < left)
    }

    /// The assignment of this process.
    ///
    /// # Errors
    /// The variable names no readable file, or one of another version of this crate.
    pub fn read_inherited() -> Result<Self> {
        read_inherited(TASK_VARIABLE)
    }
}

/// Reads the value from the inherited file whose descriptor this variable names, and closes the descriptor.
fn read_inherited<T: DeserializeOwned>(variable: &str) -> Result<T> {
    let wrong =
        |error: String| Error::Usage(format!("{variable} is for the driver to set, so unset it: {error}"));
    let number = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let number: RawFd =
        number.filter(|&number| number > 2).ok_or_else(|| wrong("expected a descriptor".into()))?;
    let file = duplicate_inherited(number).map_err(|error| wrong(error.to_string()))?;
    // The inherited descriptor is no longer needed, and would count against the limit for the cases.
    close(number).map_err(|error| wrong(error.to_string()))?;
    let text = plain_file::read_open(file, Path::new(variable), LIMIT);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    parse_value(&text).map_err(|(error, _)| wrong(error.to_string()))
}

/// Writes a value into a file without a name, which a child process inherits.
///
/// # Errors
/// The file can be made neither in memory nor where scratch directories are.
pub(super) fn write_inheritable(value: &impl Serialize) -> Result<File> {
    let failed = |cause| Error::file("the task of a process", "writing", cause);
    let text = serde_json::to_vec(value).map_err(|e| failed(e.into()))?;
    let mut file = make_inheritable_file().map_err(failed)?;
    file.write_all(&text).and_then(|()| file.rewind()).map_err(failed)?;
    Ok(file)
}

/// Replaces this process image by a fresh one of the same program (execve), and passes it a value. The kernel then closes the
/// process' ports and files and ends its threads. Returns only on failure, with the error.
pub fn begin_anew(value: &impl Serialize) -> Error {
    let execute = |file: File| {
        let mut command = own_program_command();
        let cause =
            command.args(std::env::args_os().skip(1)).env(ANEW_VARIABLE, file.as_raw_fd().to_string()).exec();
        Error::file("/proc/self/exe", "executing it anew", cause)
    };
    write_inheritable(value).map_or_else(|error| error, execute)
}

/// The value that [`begin_anew`] passed to this process; `None` if the process was started normally.
///
/// # Errors
/// The variable names no readable file.
pub fn read_handed_over<T: DeserializeOwned>() -> Result<Option<T>> {
    std::env::var_os(ANEW_VARIABLE).map(|_| read_inherited(ANEW_VARIABLE)).transpose()
}

/// A file without a name, which a child process inherits.
///
/// # Errors
/// It can be made neither in memory nor where scratch directories are.
pub(super) fn make_inheritable_file() -> io::Result<File> {
    // A sandbox may refuse memfd_create.
    let memory = memfd_create(c"syscost-task", MFdFlags::empty()).map(File::from).map_err(io::Error::from);
    let file = memory.or_else(|_| tempfile::tempfile_in(scratch_parent()))?;
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(file)
}

// Messages of a measuring process to its driver: one JSON value per line, over a pipe, since Criterion writes to the
// standard output.

/// A message, which is sent as one line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The process is ready to measure: its group, still without cases.
    Ready(GroupRun),
    /// A case begins.
    Begin(String),
    /// A case has ended.
    Done(Box<CaseExecution>),
    /// A note on the whole group.
    Note(String),
    /// The process cannot continue, for this reason.
    Broken(String),
    /// The machine does not offer what the process needs: nothing is wrong with its cases.
    Refused(String),
    /// All cases have ended, or a signal ended the work; carries the clock as it is now.
    End(ClockRun),
}

/// The end of a case in one process.
pub type ExecutionEnd = std::result::Result<Box<Measured>, CaseEnd>;

/// How a case ended in one process.
#[derive(Debug, Serialize, Deserialize)]
pub struct CaseExecution {
    /// `group/variant/parameter`.
    pub id: String,
    /// A description for people.
    pub title: String,
    /// Duration of the execution, set-up included, seconds.
    pub seconds: f64,
    /// How the execution ended: with figures if every claim held. The case itself ends with its last execution.
    pub end: ExecutionEnd,
}

/// Opens a pipe and returns its reading and writing ends. Children inherit only the writing end: once the driver dies, writing fails.
pub(super) fn open_pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&write, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok((read, write))
}

/// The measuring process's end of the pipe.
pub struct Sender(File);

impl Sender {
    /// Opens the pipe that was inherited under this number, as a new descriptor that children of cases do not inherit.
    ///
    /// # Errors
    /// No descriptor was inherited under this number.
    pub fn open(number: RawFd) -> Result<Self> {
        let file = duplicate_inherited(number);
        Ok(Self(
            file.map_err(|cause| Error::Kernel { call: "fcntl F_DUPFD of the driver's pipe".into(), cause })?,
        ))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The driver has ended.
    pub fn send(&mut self, message: &Message) -> Result<()> {
        let sent = json_line::send(&self.0, message);
        sent.map_err(|cause| Error::Kernel { call: "write to the driver".into(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An assignment to measure these cases.
    fn assignment(wanted: Vec<Wanted>) -> Assignment {
        Assignment {
            callgrind: None,
            copy: None,
            time_left: None,
            group: "group".into(),
            pipe: 9,
            clock: None,
            scale: Scale::Smoke,
            unit: "ns".into(),
            events: "page-faults".into(),
            operations: Some(7),
            replications: None,
            task: Task::Measure(wanted),
        }
    }

    #[test]
    fn a_task_of_twenty_thousand_cases_is_handed_over_whole() {
        let wanted = |at| Wanted { id: format!("group/{}/{at}", "x".repeat(180)), proven: at % 2 == 0 };
        let assignment = assignment((0..20_000).map(wanted).collect());
        let handed_over = write_inheritable(&assignment).expect("written");
        let file = duplicate_inherited(handed_over.as_raw_fd()).expect("another descriptor");
        let text = plain_file::read_open(file, Path::new("it"), LIMIT).expect("read");
        assert!(text.len() > 3 << 20);
        assert!(serde_json::from_slice::<Assignment>(&text).expect("an assignment") == assignment);
    }

    #[test]
    fn a_case_may_begin_until_the_time_that_is_left_has_passed() {
        let mut assignment = assignment(Vec::new());
        let [before, after] = [Duration::from_secs(19), Duration::from_secs(20)];
        assert!(assignment.has_time_after(after), "without a limit");
        assignment.time_left = Some(after);
        assert!(assignment.has_time_after(before) && !assignment.has_time_after(after));
    }
}
