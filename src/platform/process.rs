//! Processes: a forked witness, memory locked, death together with the parent.
//!
//! # Invariants
//!
//! * **CHILD**: a forked child runs one closure and ends by `_exit`: a panic of the closure is caught, so that
//!   it never returns or unwinds into the parent's code, runs no exit handler and flushes no buffer. The
//!   measuring process has one thread, so that what the closure allocates finds no lock held. An alarm ends
//!   it if the closure does not return.
//! * **NUMBERS-ONLY**: a question about a number.
#![allow(unsafe_code)]

use crate::{Error, Result};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage};
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, fork};

/// Exit code of a child whose closure panicked, as of any Rust program.
pub const PANIC_CODE: i32 = 101;
/// A child that does not return in this time is killed by its own alarm.
const CHILD_LIMIT_SECONDS: u32 = 20;

/// The bytes of a page: 4096 on x86-64, and what the kernel was built for elsewhere.
#[inline]
pub fn page_size() -> u64 {
    static SIZE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    // SAFETY: NUMBERS-ONLY: it never fails (sysconf(3)); 64 KiB is the largest there is.
    *SIZE.get_or_init(|| u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(64 << 10))
}

/// CPUs that the calling thread may run on.
#[inline]
pub fn cpus_allowed() -> std::io::Result<usize> {
    // SAFETY: NUMBERS-ONLY: a set of CPUs is bits, which the kernel fills in and which are counted.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) {
            0 => Ok(libc::CPU_COUNT(&set) as usize),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// CPUs that are online, whether we may run on them or not.
pub fn cpus_online() -> usize {
    // SAFETY: NUMBERS-ONLY: a negative answer means that it is not known, and then there is one.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1).max(1)
}

/// CPUs that this machine may have online at some time: those of today, and those that may be plugged in.
pub fn cpus_configured() -> usize {
    // SAFETY: NUMBERS-ONLY: a negative answer means that it is not known, and then there is one.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1).max(1)
}

/// Runs `body` in a forked child and returns its pid; the caller must wait for it.
pub fn fork_child(body: impl FnOnce()) -> Result<Pid> {
    // SAFETY: CHILD.
    match unsafe { fork() }.map_err(|e| Error::refused("fork of a witness", e))? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            // SAFETY: `alarm` has no precondition.
            unsafe { libc::alarm(CHILD_LIMIT_SECONDS) };
            let _ = die_with_parent();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: CHILD: `_exit` runs no destructor and no exit handler.
            unsafe { libc::_exit(if ended.is_err() { PANIC_CODE } else { 0 }) }
        }
    }
}

/// Asks the kernel to kill this process when its parent dies, so that nothing is left behind.
pub fn die_with_parent() -> Result<()> {
    set_pdeathsig(Signal::SIGKILL).map_err(|e| Error::refused("prctl PR_SET_PDEATHSIG", e))
}

/// When a process began, in clock ticks since boot; `None` if none of this number runs. One that was killed may
/// stand in the table for long, until its parent, or whoever has inherited it, looks: it has ended all the same.
pub fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; the state is the letter behind it, the start the 20th field.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// Locks what is mapped now into memory, so that no page of it is taken away in the middle of a case.
pub fn lock_memory() -> Result<()> {
    mlockall(MlockAllFlags::MCL_CURRENT).map_err(|e| Error::refused("mlockall (RLIMIT_MEMLOCK)", e))
}

/// Touches the stack that a measurement may use, so that it does not fault there for the first time. Under a
/// small `ulimit -s` it is left alone: a stack that overflows kills.
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

/// A command that, once started, is on this CPU and dies with its parent.
pub fn on_cpu(command: &mut std::process::Command, cpu: usize) {
    use std::os::unix::process::CommandExt;
    let settle = move || {
        let _ = set_pdeathsig(Signal::SIGKILL);
        super::cpu::pin_bare(cpu).map_err(std::io::Error::from)
    };
    // SAFETY: CHILD: it makes two system calls on numbers and allocates nothing; the child then executes the command.
    unsafe { command.pre_exec(settle) };
}

/// Nanoseconds that all threads of a process have run, by its own clock. 0 once it has gone.
pub fn cpu_ns_of(pid: u32) -> u64 {
    // The clock's number is made of the process's (CPUCLOCK_SCHED of linux/posix-timers.h), as
    // clock_getcpuclockid(3) does.
    const SCHED: i32 = 2;
    i32::try_from(pid).map_or(0, |pid| super::time::clock_gettime_ns((!pid << 3) | SCHED))
}

/// How willingly a process gives way to others, from -20 to 19; 0 is the calling task. One that is gone is said to be
/// at -1.
pub fn niceness(pid: u32) -> i32 {
    // SAFETY: `getpriority` takes two numbers and reads nothing of ours.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, pid) }
}

/// Sets how willingly the calling task gives way to others, 19 being the most willing. Answers an error number, so
/// that a forked child, which must not allocate, can use it.
pub fn be_nice(nice: i32) -> std::result::Result<(), i32> {
    // SAFETY: `setpriority` takes three numbers; 0 is the calling task.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if answer == 0 { Ok(()) } else { Err(nix::errno::Errno::last_raw()) }
}

/// What the kernel has charged to this thread so far.
pub fn usage() -> Result<Usage> {
    getrusage(UsageWho::RUSAGE_THREAD).map_err(|e| Error::refused("getrusage RUSAGE_THREAD", e))
}

/// How often another task took the CPU from the calling task so far. It allocates nothing, so that a forked child can
/// ask; 0 where the kernel does not tell.
pub fn preemptions() -> u64 {
    usage().map_or(0, |usage| usage.involuntary_context_switches() as u64)
}

/// What the kernel has charged to all threads of this process, and to the children that it has waited for.
pub fn family_usage() -> Result<[Usage; 2]> {
    let of = |who, name: &str| getrusage(who).map_err(|e| Error::refused(format!("getrusage {name}"), e));
    Ok([of(UsageWho::RUSAGE_SELF, "RUSAGE_SELF")?, of(UsageWho::RUSAGE_CHILDREN, "RUSAGE_CHILDREN")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{WaitStatus, waitpid};

    #[test]
    fn who_is_nice_is_known_to_be() {
        let nicer = std::thread::spawn(|| {
            let nice = (niceness(0) + 1).min(19);
            (be_nice(nice), nice, niceness(0))
        });
        let (answer, asked, found) = nicer.join().expect("it ends");
        assert_eq!((answer, found), (Ok(()), asked));
    }

    #[test]
    fn who_is_dead_and_not_yet_buried_is_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        assert!(began(std::process::id()).is_some_and(|ticks| ticks > 0));
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a process");
        while !state().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(began(child.id()), None);
        child.wait().expect("buried");
    }

    #[test]
    fn the_clock_of_a_process_is_the_one_that_it_reads_itself() {
        let before = super::super::time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        let from_outside = cpu_ns_of(std::process::id());
        let after = super::super::time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        assert!(before <= from_outside && from_outside <= after, "{before} {from_outside} {after}");
        assert_eq!(cpu_ns_of(u32::MAX), 0);
    }

    #[test]
    fn a_command_is_on_the_cpu_that_it_was_given() {
        let cpu = super::super::cpu::allowed().into_iter().min().expect("a CPU");
        let mut command = std::process::Command::new("grep");
        on_cpu(command.args(["Cpus_allowed_list", "/proc/self/status"]), cpu);
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
}
