//! Processes: forking and killing children, priority, CPU time, locked memory.
//!
//! # Invariants
//!
//! * **CHILD**: a forked child runs one closure and ends by `_exit`: a panic of the closure is caught, so that
//!   it never returns or unwinds into the parent's code, runs no exit handler and flushes no buffer. The
//!   measuring process has one thread, so that no lock is held when the closure allocates, and the C library's `fork` leaves
//!   its allocator usable in the child. An alarm ends a child of [`fork_child`] if its closure does not return.
//! * **NUMBERS-ONLY**: the call is given numbers, and a null pointer where it allows one.
#![allow(unsafe_code)]

pub mod inheritance;
mod pidfd;
pub mod tool;
pub mod usage;

pub use pidfd::{Pidfd, await_end};
pub use tool::{own_program_command, own_program_file};

use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeVal;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::io;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Exit code of a child whose closure panicked, as of any Rust program.
pub const PANIC_CODE: i32 = 101;
/// Time, seconds, after which its own alarm kills a child of [`fork_child`].
pub const CHILD_LIMIT_SECONDS: u32 = 20;

/// The bytes of a page: 4096 on x86-64, and what the kernel was built for elsewhere.
#[inline]
pub fn page_size() -> u64 {
    static SIZE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    // SAFETY: NUMBERS-ONLY: it never fails (sysconf(3)); 64 KiB is the largest there is.
    *SIZE.get_or_init(|| u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(64 << 10))
}

/// How many CPUs the calling thread may run on.
///
/// # Errors
/// sched_getaffinity(2) is refused.
#[inline]
pub fn cpus_allowed() -> io::Result<usize> {
    Ok(super::cpu::CpuMask::of_thread()?.count())
}

/// How many CPUs are online, whether this process may run on them or not.
pub fn cpus_online() -> usize {
    // SAFETY: NUMBERS-ONLY: a negative value means that the number is not known, and then it is taken to be 1.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1).max(1)
}

/// How many CPUs may be online at some time: those that are present, and those that may be plugged in.
pub fn cpus_configured() -> usize {
    // SAFETY: NUMBERS-ONLY: a negative value means that the number is not known, and then it is taken to be 1.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1).max(1)
}

/// Runs `body` in a forked child, which exits with the code that `body` returns, or with [`PANIC_CODE`] if it panics. The
/// caller must wait for the child.
///
/// # Errors
/// The kernel refuses another process.
pub(crate) fn fork_into(body: impl FnOnce() -> i32) -> nix::Result<Pid> {
    // SAFETY: CHILD.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANIC_CODE);
            // SAFETY: CHILD: `_exit` runs no destructor and no exit handler.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Runs `body` in a forked child with a time limit, and returns the child's number. The caller must wait for the child.
///
/// # Errors
/// The kernel refuses another process.
pub fn fork_child(body: impl FnOnce()) -> Result<Pid> {
    let parent = getpid();
    let child = fork_into(|| {
        // SAFETY: NUMBERS-ONLY.
        unsafe { libc::alarm(CHILD_LIMIT_SECONDS) };
        // A child that waits to be traced by a dead parent would hold the pipes that it inherited for ever.
        if die_with(parent) != Err(Errno::ESRCH) {
            body();
        }
        0
    });
    child.map_err(|e| Error::from_errno("fork of a witness", e))
}

/// The first file of this name in the directories of PATH.
pub fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file())
}

/// Asks the kernel to kill this process when its parent dies, so that nothing is left behind.
///
/// # Errors
/// The kernel refuses `prctl`.
pub fn die_with_parent() -> Result<()> {
    set_pdeathsig(Signal::SIGKILL).map_err(|e| Error::from_errno("prctl PR_SET_PDEATHSIG", e))
}

/// As [`die_with_parent`], in a child that `parent` has forked.
///
/// # Errors
/// The kernel refuses `prctl`; ESRCH if `parent` died before the call, for which the kernel sends no signal.
pub fn die_with(parent: Pid) -> nix::Result<()> {
    let asked = set_pdeathsig(Signal::SIGKILL);
    // A parent outside of this process's PID namespace has the number 0, and a sandbox may refuse the call.
    let now = getppid();
    if now.as_raw() > 0 && now != parent { Err(Errno::ESRCH) } else { asked }
}

/// Longest wait for killed processes: a process that gets no CPU beside real-time tasks does not end.
const KILL_WAIT: Duration = Duration::from_secs(3);

/// Waits for a child, at most until the limit has passed; `None` if it has not ended by then.
///
/// # Errors
/// The child cannot be waited for.
pub fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            None if begun.elapsed() < limit => {
                await_end(child.id() as i32, limit.saturating_sub(begun.elapsed()));
            }
            status => return Ok(status),
        }
    }
}

/// Kills a child of this process with everything that descends from it, the youngest first: one of them may keep the
/// CPU on which the others would have to end. Waits until all have ended, for three seconds at most: until then they hold the lock of
/// a scratch directory, which no process could remove.
pub fn kill_process_tree(pid: u32) {
    let parents = processes_with_parents();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(&elder) = family.get(at) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == elder).map(|(child, _)| *child));
        at += 1;
    }
    for pid in family.iter().rev().filter_map(|&pid| i32::try_from(pid).ok()) {
        // A process that has ended meanwhile needs no signal.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let begun = Instant::now();
    while begun.elapsed() < KILL_WAIT && family.iter().any(|&pid| process_start_ticks(pid).is_some()) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every process that `/proc` shows, with its parent. Empty if `/proc` shows the numbers of another PID namespace.
fn processes_with_parents() -> Vec<(u32, u32)> {
    if !super::proc::shows_own_numbers() {
        return Vec::new();
    }
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let with_parent = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name ends with the last bracket; state and parent follow (proc_pid_stat(5)).
        Some((pid, stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    numbers.filter_map(with_parent).collect()
}

/// Kills a child that was not waited for, and waits for it. A sandbox may refuse `kill` but not `tgkill`. If it refuses both, this
/// function does not wait, since it might wait for ever, and leaves the child to end with its parent.
pub fn kill_and_reap(child: Pid) {
    let by_thread = || {
        // SAFETY: NUMBERS-ONLY: until the child is waited for, no other process has its number.
        unsafe { libc::syscall(libc::SYS_tgkill, child.as_raw(), child.as_raw(), libc::SIGKILL) == 0 }
    };
    if kill(child, Signal::SIGKILL).is_ok() || by_thread() {
        while waitpid(child, None) == Err(Errno::EINTR) {}
    }
}

/// When a process began, in clock ticks since boot; `None` if no process of this number runs. A zombie has ended.
pub fn process_start_ticks(pid: u32) -> Option<u64> {
    super::proc::start_ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Locks all present mappings into memory, so that the kernel takes no page of them away in the middle of a case.
///
/// # Errors
/// The limit on locked memory is too low.
pub fn lock_memory() -> Result<()> {
    mlockall(MlockAllFlags::MCL_CURRENT).map_err(|e| Error::from_errno("mlockall (RLIMIT_MEMLOCK)", e))
}

/// Touches the stack that a measurement may use, so that its first use causes no page fault there. Under a small
/// `ulimit -s` it does nothing: a stack overflow would kill the process.
pub fn touch_stack() {
    const TOUCHED: usize = 256 << 10;
    #[inline(never)]
    fn touch() {
        let stack = [1u8; TOUCHED];
        std::hint::black_box(&stack);
    }
    if getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(limit, _)| limit > 2 * TOUCHED as u64) {
        touch();
    }
}

/// Lets a command, once started, run on this CPU only and die with its parent.
pub fn pin_command(command: &mut Command, cpu: usize) {
    let starter = getpid();
    let settle = move || {
        if die_with(starter) == Err(Errno::ESRCH) {
            return Err(Errno::ESRCH.into());
        }
        super::cpu::pin_without_allocation(cpu).map_err(io::Error::from)
    };
    // SAFETY: CHILD: it makes two system calls on numbers and allocates nothing; the child then executes the command.
    unsafe { command.pre_exec(settle) };
}

/// Lets a command, once started, die with the thread that started it.
pub fn die_with_starter(command: &mut Command) {
    let starter = getpid();
    let settle = move || die_with(starter).map_err(io::Error::from);
    // SAFETY: CHILD: it makes system calls on numbers and allocates nothing; the child then executes the command.
    unsafe { command.pre_exec(settle) };
}

/// CPU time of all threads of a process, ns, by its CPU-time clock. 0 once the process has ended.
pub fn process_cpu_ns(pid: u32) -> u64 {
    // The number of the clock contains that of the process (CPUCLOCK_SCHED of linux/posix-timers.h), as in
    // clock_getcpuclockid(3).
    const SCHED: i32 = 2;
    i32::try_from(pid).map_or(0, |pid| super::time::clock_gettime_ns((!pid << 3) | SCHED))
}

/// The nice value of a process, from -20 to 19; `pid` 0 is the calling task. -1 for a process that does not exist.
pub fn niceness(pid: u32) -> i32 {
    // SAFETY: NUMBERS-ONLY.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, pid) }
}

/// Sets the nice value of the calling task. It allocates nothing, so that a forked child can use it.
///
/// # Errors
/// The error number of the kernel: a value below the present one needs a privilege.
pub fn set_niceness(nice: i32) -> std::result::Result<(), i32> {
    // SAFETY: NUMBERS-ONLY: 0 is the calling task.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if answer == 0 { Ok(()) } else { Err(Errno::last_raw()) }
}

/// The resources that the kernel has charged to this thread so far.
///
/// # Errors
/// The kernel refuses `getrusage`.
pub fn thread_usage() -> Result<Usage> {
    getrusage(UsageWho::RUSAGE_THREAD).map_err(|e| Error::from_errno("getrusage RUSAGE_THREAD", e))
}

/// The number of threads of this process; 0 if `/proc` is not mounted.
pub fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// How often the calling task was preempted so far; 0 if the kernel refuses getrusage(2). Allocates nothing, for forked children.
pub fn preemption_count() -> u64 {
    thread_usage().map_or(0, |usage| usage.involuntary_context_switches() as u64)
}

/// The resources that the kernel has charged to all threads of this process, and to the children that it has waited for.
///
/// # Errors
/// The kernel refuses `getrusage`.
pub fn process_usage() -> Result<[Usage; 2]> {
    let usage = |whose| getrusage(whose).map_err(|e| Error::from_errno(format!("getrusage {whose:?}"), e));
    Ok([usage(UsageWho::RUSAGE_SELF)?, usage(UsageWho::RUSAGE_CHILDREN)?])
}

/// CPU time of all children that were waited for; 0 if the kernel refuses getrusage(2).
pub fn children_cpu_time() -> Duration {
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(Duration::ZERO, |usage| Duration::from_micros(cpu_time_us(&usage)))
}

/// CPU time in user space and in the kernel together, µs.
pub fn cpu_time_us(usage: &Usage) -> u64 {
    micros(usage.user_time()) + micros(usage.system_time())
}

/// A time of getrusage(2), µs.
pub fn micros(time: TimeVal) -> u64 {
    u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::WaitStatus;

    #[test]
    fn a_nice_value_that_was_set_is_read_back() {
        let nicer = std::thread::spawn(|| {
            let nice = (niceness(0) + 1).min(19);
            (set_niceness(nice), nice, niceness(0))
        });
        let (answer, asked, found) = nicer.join().expect("it ends");
        assert_eq!((answer, found), (Ok(()), asked));
    }

    #[test]
    fn killing_a_process_tree_ends_all_of_its_processes() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("started");
        let mut line = String::new();
        let output = shell.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).expect("read");
        let grandchild: u32 = line.trim().parse().expect("a number");
        assert!(process_start_ticks(grandchild).is_some());
        assert_eq!(wait_within(&mut shell, Duration::from_millis(20)).expect("waited"), None);
        kill_process_tree(shell.id());
        assert_eq!([shell.id(), grandchild].map(process_start_ticks), [None; 2], "both have ended");
        assert!(wait_within(&mut shell, Duration::from_secs(60)).expect("waited").is_some());
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        assert!(process_start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a process");
        while !state().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(process_start_ticks(child.id()), None);
        child.wait().expect("waited for");
    }

    #[test]
    fn the_clock_of_a_process_is_the_one_that_it_reads_itself() {
        let before = super::super::time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        let from_outside = process_cpu_ns(std::process::id());
        let after = super::super::time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        assert!(before <= from_outside && from_outside <= after, "{before} {from_outside} {after}");
        assert_eq!(process_cpu_ns(u32::MAX), 0);
    }

    #[test]
    fn a_command_is_on_the_cpu_that_it_was_given() {
        let cpu = super::super::cpu::allowed_cpus().into_iter().min().expect("a CPU");
        let mut command = std::process::Command::new("grep");
        pin_command(command.args(["Cpus_allowed_list", "/proc/self/status"]), cpu);
        let output = command.output().expect("started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.split_whitespace().last(), Some(cpu.to_string().as_str()), "{text}");
    }

    #[test]
    fn a_child_that_panics_never_returns_into_the_parent() {
        let here = std::process::id();
        let child = fork_child(|| std::panic::resume_unwind(Box::new("in the child"))).expect("forked");
        assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, PANIC_CODE)));
        assert_eq!(here, std::process::id());
    }

    #[test]
    fn no_process_has_a_number_below_one() {
        assert!(Pidfd::open(-1).is_err());
    }
}
