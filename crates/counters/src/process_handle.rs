//! The counters of one process, read by descriptors that no later process inherits.
//!
//! The functions of a process take its number or its handle.

use super::kernel_file::{self, SHORT};
use super::text::{last_position, nth_number, parse_number, skip_words};
use super::{Fault, Method, Reading, TICK, ticks_to_duration};
use nix::time::ClockId;
use std::fs::File;
use std::time::Duration;
use syscost_platform::process::{Pidfd, page_size};

/// Space for the seven numbers of `/proc/PID/statm`, bytes.
const STATM: usize = 160;
/// Space for the first 23 fields of `/proc/PID/stat`, bytes; later fields are not read.
const STAT: usize = HEAD + 22 * 21;
/// Positions of the numbers in `/proc/PID/statm`.
pub(super) const VIRTUAL: usize = 0;
pub(super) const RESIDENT: usize = 1;

/// The counters of one process. It holds four descriptors. After the process has ended every reading is [`Fault::Gone`], even
/// if a later process has the same number.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    pidfd: Pidfd,
    stat: File,
    statm: File,
    tasks: File,
}

/// Fields of `/proc/PID/stat` (proc_pid_stat(5)), all from one read. Times are in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The number of its parent process.
    pub parent: u64,
    /// Minor page faults, which were served without a device.
    pub minor_faults: u64,
    /// Major page faults, which waited for a device.
    pub major_faults: u64,
    /// CPU time in user space, ticks.
    pub user: u64,
    /// CPU time in the kernel, ticks.
    pub kernel: u64,
    /// CPU time of descendants that have ended and were waited for, ticks. A child whose parent ignores SIGCHLD is not
    /// included.
    pub children: u64,
    /// Page faults of those descendants, minor and major.
    pub children_faults: u64,
    /// The number of threads.
    pub threads: u64,
    /// Start of the process, ticks since boot.
    pub started: u64,
    /// Virtual memory, bytes.
    pub virtual_bytes: u64,
}

impl Process {
    /// Opens the process that has this number now.
    ///
    /// # Errors
    /// [`Fault::Gone`] where there is no such process, [`Fault::Denied`] where `/proc` hides it (`hidepid` of proc(5)),
    /// [`Fault::Unsupported`] before Linux 5.3.
    pub fn open(pid: i32) -> Result<Self, Fault> {
        let pidfd = Pidfd::open(pid).map_err(|e| Fault::from_error(process_label(pid), &e.into()))?;
        let open = |name: &str| kernel_file::open_process_file(pid, name);
        let hidden = |fault: Fault| if pidfd.is_there() { hidden_process_fault(pid, fault) } else { fault };
        let [stat, statm, tasks] = [open("stat"), open("statm"), open("task")];
        let (stat, statm, tasks) = (stat.map_err(hidden)?, statm.map_err(hidden)?, tasks.map_err(hidden)?);
        // If the process still exists now, these files belong to it and not to a later process with its number.
        if !pidfd.is_there() {
            return Err(Fault::Gone(process_label(pid)));
        }
        Ok(Self { pid, pidfd, stat, statm, tasks })
    }

    /// The number of the process, which a later process may get after its end.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the process still exists, at least as a zombie.
    pub fn is_there(&self) -> bool {
        self.pidfd.is_there()
    }

    /// CPU time of all its threads, including those that have ended.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended.
    #[inline]
    pub fn cpu_time(&self) -> Result<Reading<Duration>, Fault> {
        let reading = cpu_time(self.pid);
        // Tested after the reading: if the process still exists, the clock with its number was its own.
        if self.pidfd.is_there() { reading } else { Err(Fault::Gone(process_label(self.pid))) }
    }

    /// Fields of the process's `stat` file.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended; [`Fault::Parse`] for an unknown format.
    pub fn stat(&self) -> Result<Stat, Fault> {
        self.parse_stat_file(parse_stat)
    }

    #[inline]
    pub(super) fn parse_stat_file<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
        let mut buffer = [0; STAT];
        let text = kernel_file::read(&self.stat, &mut buffer, || process_label(self.pid))?;
        parse(text).ok_or_else(|| Fault::parse_error(format!("/proc/{}/stat", self.pid), "52 fields", text))
    }

    /// The number of page faults, minor and major.
    ///
    /// # Errors
    /// The errors of [`stat`](Self::stat).
    pub fn page_faults(&self) -> Result<Reading<u64>, Fault> {
        Ok(Reading::now(self.parse_stat_file(parse_page_faults)?, 1, Method::ProcessStat))
    }

    /// CPU time in user space: the exact total, divided in the proportion in which ticks found user space and kernel.
    ///
    /// # Errors
    /// The errors of [`stat`](Self::stat).
    pub fn user_time(&self) -> Result<Reading<Duration>, Fault> {
        Ok(Reading::now(ticks_to_duration(self.stat()?.user), TICK, Method::ProcessStat))
    }

    /// CPU time in the kernel, divided as for [`user_time`](Self::user_time).
    ///
    /// # Errors
    /// The errors of [`stat`](Self::stat).
    pub fn kernel_time(&self) -> Result<Reading<Duration>, Fault> {
        Ok(Reading::now(ticks_to_duration(self.stat()?.kernel), TICK, Method::ProcessStat))
    }

    /// Resident set, including shared pages, bytes.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended; [`Fault::Parse`] for an unknown format.
    pub fn resident(&self) -> Result<Reading<u64>, Fault> {
        self.statm_reading(RESIDENT)
    }

    /// Address space, bytes.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended; [`Fault::Parse`] for an unknown format.
    pub fn virtual_memory(&self) -> Result<Reading<u64>, Fault> {
        self.statm_reading(VIRTUAL)
    }

    #[inline]
    fn statm_reading(&self, word: usize) -> Result<Reading<u64>, Fault> {
        Ok(Reading::now(self.statm_bytes(word)?, page_size(), Method::ProcessStatm))
    }

    /// The resident set without a time stamp, for a block of several counters.
    #[inline]
    pub(super) fn resident_bytes(&self) -> Result<u64, Fault> {
        self.statm_bytes(RESIDENT)
    }

    #[inline]
    fn statm_bytes(&self, word: usize) -> Result<u64, Fault> {
        let mut buffer = [0; STATM];
        let text = kernel_file::read(&self.statm, &mut buffer, || process_label(self.pid))?;
        let pages = nth_number(text, word);
        let pages = pages
            .ok_or_else(|| Fault::parse_error(format!("/proc/{}/statm", self.pid), "seven numbers", text))?;
        Ok(pages * page_size())
    }

    /// The number of threads, from the number of links of the task directory, which need not be listed.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the process has ended.
    pub fn threads(&self) -> Result<Reading<u64>, Fault> {
        let status = nix::sys::stat::fstat(&self.tasks)
            .map_err(|e| Fault::from_error(process_label(self.pid), &e.into()))?;
        thread_count_from_links(self.pid, &status)
    }
}

/// CPU time of the process that has this number.
#[inline]
pub(super) fn cpu_time(pid: i32) -> Result<Reading<Duration>, Fault> {
    Ok(Reading::now(read_cpu_clock(pid)?, Duration::from_nanos(1), Method::CpuClock))
}

/// The CPU time of the process that has this number, without a time stamp.
#[inline]
pub(super) fn read_cpu_clock(pid: i32) -> Result<Duration, Fault> {
    // The kernel's encoding: the complement of the number, and three bits for one of its clocks. The value 2 is the
    // scheduler's clock (include/linux/posix-timers.h, `make_process_cpuclock`).
    let clock = ClockId::from_raw((!pid << 3) | 2);
    match nix::time::clock_gettime(clock) {
        Ok(time) => Ok(time.into()),
        // The kernel returns EINVAL for the clock of a process that does not exist.
        Err(_) => Err(Fault::Gone(process_label(pid))),
    }
}

/// Parses one file of a process, without a handle.
pub(super) fn parse_process_file<T>(
    pid: i32,
    name: &str,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<T, Fault> {
    let file = kernel_file::open_process_file(pid, name).map_err(|fault| missing_file_fault(pid, fault))?;
    let mut buffer = [0; SHORT];
    let text = kernel_file::read(&file, &mut buffer, || process_label(pid))?;
    parse(text)
        .ok_or_else(|| Fault::parse_error(format!("/proc/{pid}/{name}"), "the fields of proc(5)", text))
}

/// The fault for a file of a process that cannot be opened: the process has ended, or `/proc` hides it.
fn missing_file_fault(pid: i32, fault: Fault) -> Fault {
    match Pidfd::open(pid) {
        Ok(pidfd) if pidfd.is_there() => hidden_process_fault(pid, fault),
        _ if matches!(fault, Fault::Gone(_)) => Fault::Gone(process_label(pid)),
        _ => fault,
    }
}

/// Turns "gone" into "denied" for a process that exists but whose files in `/proc` cannot be found.
fn hidden_process_fault(pid: i32, fault: Fault) -> Fault {
    match fault {
        Fault::Gone(_) => Fault::Denied {
            what: process_label(pid),
            cause: "it runs, and /proc does not show it: mounted with hidepid, or of another namespace"
                .into(),
        },
        other => other,
    }
}

/// The number of threads of a process, from the links of its task directory.
pub(super) fn read_thread_count(pid: i32) -> Result<Reading<u64>, Fault> {
    let status = kernel_file::stat_process_file(pid, "task");
    thread_count_from_links(
        pid,
        &status.map_err(|e| missing_file_fault(pid, Fault::from_error(process_label(pid), &e.into())))?,
    )
}

#[allow(clippy::unnecessary_cast, reason = "a number of links has 32 bits on AArch64")]
fn thread_count_from_links(pid: i32, status: &nix::sys::stat::FileStat) -> Result<Reading<u64>, Fault> {
    // The directory of a process that has ended has no links to threads.
    let threads = (status.st_nlink as u64).checked_sub(2).filter(|threads| *threads > 0);
    Ok(Reading::now(threads.ok_or_else(|| Fault::Gone(process_label(pid)))?, 1, Method::TaskLinks))
}

pub(super) fn process_label(pid: i32) -> String {
    format!("process {pid}")
}

/// The longest text before the state in `/proc/PID/stat`: the number and the name, in which the kernel escapes some
/// characters (`proc_task_name` in fs/proc/array.c).
const HEAD: usize = 160;

/// The text after the name, which begins with field 3, the state. The name may contain brackets and line ends; the text
/// after it has no bracket.
#[inline]
fn text_after_name(text: &[u8]) -> Option<&[u8]> {
    let end = last_position(&text[..text.len().min(HEAD)], b')')?;
    Some(&text[end + 1..])
}

/// Page faults from a line of `/proc/PID/stat`: fields 10 and 12. Later fields are not parsed.
#[inline]
pub(super) fn parse_page_faults(text: &[u8]) -> Option<u64> {
    Some(parse_faults_and_rest(text)?.0)
}

/// Page faults, and the rest of the line after them.
#[inline]
fn parse_faults_and_rest(text: &[u8]) -> Option<(u64, &[u8])> {
    let (minor, rest) = parse_number(skip_words(text_after_name(text)?, 10 - 3)?)?;
    let (major, rest) = parse_number(skip_words(rest, 1)?)?;
    Some((minor + major, rest))
}

/// Page faults (fields 10 and 12), and threads (field 20).
#[inline]
pub(super) fn parse_faults_and_threads(text: &[u8]) -> Option<(u64, u64)> {
    let (faults, rest) = parse_faults_and_rest(text)?;
    Some((faults, parse_number(skip_words(rest, 20 - 13)?)?.0))
}

/// Parses a line of `/proc/PID/stat`. Fields are numbered from 1, as in proc_pid_stat(5).
pub(super) fn parse_stat(text: &[u8]) -> Option<Stat> {
    let mut rest = skip_words(text_after_name(text)?, 1)?;
    let mut fields = [0u64; 24];
    for field in &mut fields[4..] {
        // The terminal's process group is -1 if there is no terminal.
        let digits = rest.strip_prefix(b" -").unwrap_or(rest);
        (*field, rest) = parse_number(digits)?;
    }
    Some(Stat {
        parent: fields[4],
        minor_faults: fields[10],
        major_faults: fields[12],
        user: fields[14],
        kernel: fields[15],
        children: fields[16] + fields[17],
        children_faults: fields[11] + fields[13],
        threads: fields[20],
        started: fields[22],
        virtual_bytes: fields[23],
    })
}

/// The process that a function reads: a number (`i32`), as from the kernel and
/// [`enumeration::pids`](super::enumeration::pids), or a `&Process`, as from
/// [`process_identifiers`](super::camp::process_identifiers).
///
/// A number may have passed to a later process since the caller learned it; the function then reads the later process. For an
/// ended [`Process`] it returns [`Fault::Gone`].
pub trait ProcessIdentifier: Copy {
    /// The number of the process.
    fn pid(self) -> i32;

    /// Returns `reading`, which was read by the number, if the number still belongs to the process.
    ///
    /// # Errors
    /// [`Fault::Gone`] where the process has ended.
    fn confirm<T>(self, reading: T) -> Result<T, Fault>;
}

impl ProcessIdentifier for i32 {
    fn pid(self) -> i32 {
        self
    }

    fn confirm<T>(self, reading: T) -> Result<T, Fault> {
        Ok(reading)
    }
}

impl ProcessIdentifier for &Process {
    fn pid(self) -> i32 {
        Process::pid(self)
    }

    fn confirm<T>(self, reading: T) -> Result<T, Fault> {
        if self.is_there() { Ok(reading) } else { Err(Fault::Gone(process_label(Process::pid(self)))) }
    }
}

#[cfg(test)]
mod tests;
