//! The counters of one process, by descriptors that stay its own.

use super::kernel_file::{self, SHORT};
use super::text::{after_words, last, nth, number};
use super::{Fault, Method, Reading, TICK, of_ticks};
use crate::platform::pidfd::Pidfd;
use crate::platform::process::page_size;
use nix::time::ClockId;
use std::fs::File;
use std::time::Duration;

/// Room for the seven numbers of `/proc/PID/statm`, whatever they are.
const STATM: usize = 160;
/// Room for the first 23 of the fields of `/proc/PID/stat`, whatever they are: those behind them are not looked at.
const STAT: usize = HEAD + 22 * 21;
/// Which of the seven is which.
pub(super) const VIRTUAL: usize = 0;
pub(super) const RESIDENT: usize = 1;

/// A process, held by four descriptors. Once it has ended every reading is [`Fault::Gone`], for ever: a later process
/// of the same number is another one. Dropping it closes them.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    pidfd: Pidfd,
    stat: File,
    statm: File,
    tasks: File,
}

/// What one look at `/proc/PID/stat` tells (proc_pid_stat(5)). Times are in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The process that started it.
    pub parent: u64,
    /// Page faults served without a device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Time charged in user space, ticks.
    pub user: u64,
    /// Time charged in the kernel, ticks.
    pub kernel: u64,
    /// The same two of children that have ended and were waited for, and of theirs, together. A child whose parent
    /// ignores SIGCHLD is in no such count.
    pub children: u64,
    /// Page faults of those children, with and without a device.
    pub children_faults: u64,
    /// Threads.
    pub threads: u64,
    /// When it was started: ticks since boot.
    pub started: u64,
    /// Virtual memory, bytes.
    pub virtual_bytes: u64,
}

impl Process {
    /// The process that has this number now.
    ///
    /// # Errors
    /// [`Fault::Gone`] where there is none, [`Fault::Denied`] where it is hidden from us (`hidepid` of proc(5)),
    /// [`Fault::Unsupported`] before Linux 5.3.
    pub fn open(pid: i32) -> Result<Self, Fault> {
        let pidfd = Pidfd::open(pid).map_err(|e| Fault::of(named(pid), &e))?;
        let open = |name: &str| kernel_file::open_of_process(pid, name);
        let hidden = |fault: Fault| if pidfd.is_there() { hidden(pid, fault) } else { fault };
        let [stat, statm, tasks] = [open("stat"), open("statm"), open("task")];
        let (stat, statm, tasks) = (stat.map_err(hidden)?, statm.map_err(hidden)?, tasks.map_err(hidden)?);
        // It was there all the while, so that its number, and these files, were nobody else's.
        if !pidfd.is_there() {
            return Err(Fault::Gone(named(pid)));
        }
        Ok(Self { pid, pidfd, stat, statm, tasks })
    }

    /// Its number. Another process may have it after this one.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it is still there, if only as a zombie.
    pub fn is_there(&self) -> bool {
        self.pidfd.is_there()
    }

    /// The CPU time of all its threads, those that have ended included.
    ///
    /// # Errors
    /// [`Fault::Gone`].
    #[inline]
    pub fn cpu_time(&self) -> Result<Reading<Duration>, Fault> {
        let reading = cpu_time(self.pid);
        // Asked afterwards: while it is there, the clock of its number is its own.
        if self.pidfd.is_there() { reading } else { Err(Fault::Gone(named(self.pid))) }
    }

    /// All that one look at its `stat` tells.
    ///
    /// # Errors
    /// [`Fault::Gone`], [`Fault::Parse`].
    pub fn stat(&self) -> Result<Stat, Fault> {
        self.of_stat(stat)
    }

    #[inline]
    pub(super) fn of_stat<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
        let mut buffer = [0; STAT];
        let text = kernel_file::read(&self.stat, &mut buffer, || named(self.pid))?;
        parse(text).ok_or_else(|| Fault::parse(format!("/proc/{}/stat", self.pid), "52 fields", text))
    }

    /// Page faults, with and without a device.
    ///
    /// # Errors
    /// As of [`stat`](Self::stat).
    pub fn page_faults(&self) -> Result<Reading<u64>, Fault> {
        Ok(Reading::now(self.of_stat(page_faults)?, 1, Method::ProcessStat))
    }

    /// CPU time in user space, as the kernel divides the exact total by what its ticks saw.
    ///
    /// # Errors
    /// As of [`stat`](Self::stat).
    pub fn user_time(&self) -> Result<Reading<Duration>, Fault> {
        Ok(Reading::now(of_ticks(self.stat()?.user), TICK, Method::ProcessStat))
    }

    /// CPU time in the kernel, likewise.
    ///
    /// # Errors
    /// As of [`stat`](Self::stat).
    pub fn kernel_time(&self) -> Result<Reading<Duration>, Fault> {
        Ok(Reading::now(of_ticks(self.stat()?.kernel), TICK, Method::ProcessStat))
    }

    /// Memory that it has in pages of its own or shared, bytes: its resident set.
    ///
    /// # Errors
    /// [`Fault::Gone`], [`Fault::Parse`].
    pub fn resident(&self) -> Result<Reading<u64>, Fault> {
        self.words(RESIDENT)
    }

    /// Address space, bytes.
    ///
    /// # Errors
    /// [`Fault::Gone`], [`Fault::Parse`].
    pub fn virtual_memory(&self) -> Result<Reading<u64>, Fault> {
        self.words(VIRTUAL)
    }

    #[inline]
    fn words(&self, word: usize) -> Result<Reading<u64>, Fault> {
        Ok(Reading::now(self.bytes(word)?, page_size(), Method::ProcessStatm))
    }

    /// The resident set without its time: for whoever reads several things at a moment.
    #[inline]
    pub(super) fn resident_bytes(&self) -> Result<u64, Fault> {
        self.bytes(RESIDENT)
    }

    #[inline]
    fn bytes(&self, word: usize) -> Result<u64, Fault> {
        let mut buffer = [0; STATM];
        let text = kernel_file::read(&self.statm, &mut buffer, || named(self.pid))?;
        let pages = nth(text, word);
        let pages =
            pages.ok_or_else(|| Fault::parse(format!("/proc/{}/statm", self.pid), "seven numbers", text))?;
        Ok(pages * page_size())
    }

    /// Threads. The directory of them is not read: it has a link for each.
    ///
    /// # Errors
    /// [`Fault::Gone`].
    pub fn threads(&self) -> Result<Reading<u64>, Fault> {
        let status = nix::sys::stat::fstat(&self.tasks).map_err(|e| Fault::of(named(self.pid), &e.into()))?;
        counted(self.pid, &status)
    }
}

/// The CPU time of whoever has this number.
#[inline]
pub(super) fn cpu_time(pid: i32) -> Result<Reading<Duration>, Fault> {
    Ok(Reading::now(cpu_clock(pid)?, Duration::from_nanos(1), Method::CpuClock))
}

/// The same without its time.
#[inline]
pub(super) fn cpu_clock(pid: i32) -> Result<Duration, Fault> {
    // The kernel's own encoding: the complement of the number, three bits for which of its clocks; 2 is the
    // scheduler's (include/linux/posix-timers.h, `make_process_cpuclock`).
    let clock = ClockId::from_raw((!pid << 3) | 2);
    match nix::time::clock_gettime(clock) {
        Ok(time) => Ok(time.into()),
        // Of a clock that belongs to nobody it says that it is none.
        Err(_) => Err(Fault::Gone(named(pid))),
    }
}

/// What one file of a process holds, by opening it for this reading.
pub(super) fn once<T>(pid: i32, name: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
    let file = kernel_file::open_of_process(pid, name).map_err(|fault| gone_or_hidden(pid, fault))?;
    let mut buffer = [0; SHORT];
    let text = kernel_file::read(&file, &mut buffer, || named(pid))?;
    parse(text).ok_or_else(|| Fault::parse(format!("/proc/{pid}/{name}"), "the fields of proc(5)", text))
}

/// Why there is no such file: whoever had the number has ended, or is hidden from us.
fn gone_or_hidden(pid: i32, fault: Fault) -> Fault {
    match Pidfd::open(pid) {
        Ok(pidfd) if pidfd.is_there() => hidden(pid, fault),
        _ if matches!(fault, Fault::Gone(_)) => Fault::Gone(named(pid)),
        _ => fault,
    }
}

/// What it means that a process which is there has no files.
fn hidden(pid: i32, fault: Fault) -> Fault {
    match fault {
        Fault::Gone(_) => Fault::Denied {
            what: named(pid),
            cause: "it runs, and /proc does not show it: mounted with hidepid, or of another namespace"
                .into(),
        },
        other => other,
    }
}

/// Threads, by the links of a directory that is not opened.
pub(super) fn threads_of(pid: i32) -> Result<Reading<u64>, Fault> {
    let status = kernel_file::status_of_process(pid, "task");
    counted(pid, &status.map_err(|e| gone_or_hidden(pid, Fault::of(named(pid), &e.into())))?)
}

#[allow(clippy::unnecessary_cast, reason = "a number of links has 32 bits on AArch64")]
fn counted(pid: i32, status: &nix::sys::stat::FileStat) -> Result<Reading<u64>, Fault> {
    // Of a process that has ended the directory is kept, and has lost its links.
    let threads = (status.st_nlink as u64).checked_sub(2).filter(|threads| *threads > 0);
    Ok(Reading::now(threads.ok_or_else(|| Fault::Gone(named(pid)))?, 1, Method::TaskLinks))
}

pub(super) fn named(pid: i32) -> String {
    format!("process {pid}")
}

/// The longest that stands before the state in `/proc/PID/stat`: the number, and the name, of which the kernel doubles
/// some characters (`proc_task_name` in fs/proc/array.c).
const HEAD: usize = 160;

/// What follows the name, from the state on, which is field 3. The name may hold anything, brackets and line ends too,
/// and what follows it holds no bracket.
#[inline]
fn after_name(text: &[u8]) -> Option<&[u8]> {
    let end = last(&text[..text.len().min(HEAD)], b')')?;
    Some(&text[end + 1..])
}

/// Page faults in a line of `/proc/PID/stat`: its fields 10 and 12, and nothing behind them.
#[inline]
pub(super) fn page_faults(text: &[u8]) -> Option<u64> {
    Some(faults(text)?.0)
}

/// The same, and what follows them.
#[inline]
fn faults(text: &[u8]) -> Option<(u64, &[u8])> {
    let (minor, rest) = number(after_words(after_name(text)?, 10 - 3)?)?;
    let (major, rest) = number(after_words(rest, 1)?)?;
    Some((minor + major, rest))
}

/// Page faults, and threads, which are field 20.
#[inline]
pub(super) fn faults_and_threads(text: &[u8]) -> Option<(u64, u64)> {
    let (faults, rest) = faults(text)?;
    Some((faults, number(after_words(rest, 20 - 13)?)?.0))
}

/// Reads a line of `/proc/PID/stat`, whose fields are numbered from one.
pub(super) fn stat(text: &[u8]) -> Option<Stat> {
    let mut rest = after_words(after_name(text)?, 1)?;
    let mut fields = [0u64; 24];
    for field in &mut fields[4..] {
        // The terminal's group is -1 where there is none.
        let digits = rest.strip_prefix(b" -").unwrap_or(rest);
        (*field, rest) = number(digits)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().expect("a child")
    }

    fn own() -> Process {
        Process::open(std::process::id() as i32).expect("ourselves")
    }

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name_holds() {
        let numbers: Vec<_> = (4..53).map(|n: u64| n.to_string()).collect();
        let line = format!("17 (a) S 9\n(b) R {}", numbers.join(" "));
        let stat = stat(line.as_bytes()).expect("a line");
        let expected = (4, 10, 12, 14, 15, 33, 24, 20, 22, 23);
        let found = (
            stat.parent,
            stat.minor_faults,
            stat.major_faults,
            stat.user,
            stat.kernel,
            stat.children,
            stat.children_faults,
            stat.threads,
            stat.started,
            stat.virtual_bytes,
        );
        assert_eq!(found, expected);
        assert_eq!(super::stat(b"17 (a) S -1 2"), None);
        assert_eq!(super::stat(b""), None);
        assert_eq!(page_faults(line.as_bytes()), Some(22));
        assert_eq!(faults_and_threads(line.as_bytes()), Some((22, stat.threads)));
        assert_eq!(page_faults(b"17 (a) S 1 2 3"), None);
    }

    #[test]
    fn a_negative_field_moves_no_other() {
        let mut numbers: Vec<_> = (4..53).map(|n: i64| n.to_string()).collect();
        numbers[4] = "-1".into(); // the terminal's group, field 8
        let line = format!("17 (x) S {}", numbers.join(" "));
        assert_eq!(stat(line.as_bytes()).expect("a line").minor_faults, 10);
        assert_eq!(page_faults(line.as_bytes()), Some(22));
    }

    #[test]
    fn touched_pages_are_counted_in_faults_and_in_memory() {
        let process = own();
        let read = |process: &Process| {
            (process.page_faults().expect("read").value, process.resident().expect("read").value)
        };
        let before = read(&process);
        let bytes = 512 * page_size() as usize;
        let mut memory = memmap2::MmapMut::map_anon(bytes).expect("mapped");
        memory.iter_mut().step_by(page_size() as usize).for_each(|byte| *byte = 1);
        let after = read(&process);
        assert!(after.0 > before.0, "{before:?} {after:?}");
        assert!(after.1 >= before.1 + bytes as u64 / 2, "{before:?} {after:?}");
    }

    #[test]
    fn work_is_seen_in_the_clock_and_a_thread_in_the_links() {
        let process = own();
        let before = process.cpu_time().expect("read").value;
        let threads = process.threads().expect("read").value;
        let (send, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        // Other tests start and end threads of this process at the same time.
        assert!(threads >= 1 && process.threads().expect("read").value >= 1);
        drop(send);
        let _ = thread.join();
        assert!(process.cpu_time().expect("read").value > before);
    }

    #[test]
    fn what_has_ended_is_gone_for_every_counter() {
        let mut child = sleeper();
        let process = Process::open(child.id() as i32).expect("a child");
        assert_eq!(process.threads().expect("read").value, 1);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(matches!(process.cpu_time(), Err(Fault::Gone(_))));
        assert!(matches!(process.stat(), Err(Fault::Gone(_))), "{:?}", process.stat());
        assert!(matches!(process.resident(), Err(Fault::Gone(_))), "{:?}", process.resident());
        assert!(matches!(process.threads(), Err(Fault::Gone(_))), "{:?}", process.threads());
        assert!(matches!(Process::open(child.id() as i32), Err(Fault::Gone(_))));
    }

    #[test]
    fn a_number_that_nobody_can_have_is_gone_or_refused() {
        assert!(Process::open(i32::MAX).is_err() && Process::open(-5).is_err());
    }
}
