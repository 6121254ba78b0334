//! Tracing an operation by `ptrace(2)`: which instructions it executes, how often it enters
//! a function, and which system calls it makes.
//!
//! Tracing counts exactly, and needs no privilege and no PMU, but costs two context switches a step. It is therefore
//! done for a few iterations in a forked child, never while an operation is timed.
//!
//! On AArch64 a step loses the reservation of a load-exclusive, so that a loop around a store-exclusive never
//! ends while it is stepped: an operation with such a loop (atomics of cores before Armv8.1) cannot be stepped through.

mod mid_run;
#[cfg(any(target_arch = "riscv64", test))]
mod riscv_step;
mod syscall_stop;
mod whole_tree;

use super::cpu::{FormerAffinity, keep_on_this_cpu};
use super::process::{CHILD_LIMIT_SECONDS, PANIC_CODE, fork_child, kill_and_reap};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use syscall_stop::read_call;

pub(crate) use mid_run::set_breakpoint;
pub use mid_run::{count_executions, step_mid_run};
pub use whole_tree::{TreeCalls, count_tree_calls};

/// The text of [`Error::Died`] for a child whose operation panicked.
pub const PANICKED: &str = "it panicked";

/// Whether a process can be stopped after each instruction on this processor. RISC-V has no such mode and stops at breakpoints;
/// of processors other than these three, the registers are not read.
pub const HAS_STEPS: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));
/// The message for processors without single steps.
pub const NO_STEPS: &str = "no process can be stopped behind each of its instructions on this processor";

/// What a traced child executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sighting {
    /// Instructions executed in user space.
    pub instructions: u64,
    /// How often each instruction was executed, by address.
    pub executed: BTreeMap<usize, u64>,
    /// The system calls entered, in order.
    pub entries: Vec<Call>,
    /// Number of calls that do not count, and are not in `entries`.
    pub left_out: u64,
}

impl Sighting {
    /// How often the instruction at this address was executed.
    pub fn visits(&self, address: usize) -> u64 {
        self.executed.get(&address).copied().unwrap_or(0)
    }

    /// Removes the calls for which `counts` is false, and adds their number to `left_out`.
    pub fn retain_counted(&mut self, counts: impl Fn(&Call) -> bool) {
        let all = self.entries.len();
        self.entries.retain(counts);
        self.left_out += (all - self.entries.len()) as u64;
    }
}

/// A system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its first argument.
    pub argument: i64,
    /// Its return value: a negative error number if the kernel refused it, 0 if it never returned.
    pub answer: i64,
}

impl Call {
    /// Whether the kernel refused the call. Error codes from 512 on are internal to the kernel: the call is about to be
    /// restarted. `rt_sigreturn` has no return value: it restores the interrupted registers.
    pub fn is_refused(self) -> bool {
        (-511..=-1).contains(&self.answer) && self.number != libc::SYS_rt_sigreturn
    }
}

/// One instruction that is about to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub address: usize,
    /// Its bytes, and the bytes behind it.
    pub code: [u8; 8],
    /// The registers of a system call: its number and argument, if this instruction enters the kernel; its return value, if the
    /// previous instruction did.
    call: Call,
}

/// Runs `body` in a forked child, one instruction at a time. `None` if it takes more than `limit` instructions, or cannot be
/// followed ([`Stepped::Lost`]).
///
/// # Errors
/// The kernel refuses a child or `ptrace`; [`Error::Died`] if the child does not end with code 0.
pub fn step_through(body: impl FnOnce(), limit: u64) -> Result<Option<Sighting>> {
    let mut seen = Sighting::default();
    let mut entered = false;
    let ended = step_each(body, limit, |step| {
        seen.instructions += 1;
        *seen.executed.entry(step.address).or_default() += 1;
        if let Some(call) = seen.entries.last_mut().filter(|_| entered) {
            call.answer = step.call.answer;
        }
        entered = super::arch::is_kernel_entry(i64::from_le_bytes(step.code));
        if entered {
            seen.entries.push(Call { answer: 0, ..step.call });
        }
    })?;
    Ok(ended.then_some(seen))
}

/// Runs `body` in a forked child and calls `look` before each instruction. Returns whether the body ended
/// within `limit` instructions, and could be followed to its end.
///
/// # Errors
/// As of [`step_through`].
pub fn step_each(body: impl FnOnce(), limit: u64, mut look: impl FnMut(&Step)) -> Result<bool> {
    let mut stepper = Stepper::start(body)?;
    for _ in 0..limit {
        look(&stepper.next()?);
        match stepper.execute_instruction()? {
            Stepped::On => {}
            Stepped::Ended => return Ok(true),
            Stepped::Lost => break,
        }
    }
    Ok(false)
}

/// The state of a child after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// The child continues.
    On,
    /// The child has ended with code 0.
    Ended,
    /// The child cannot be followed further: on RISC-V, from a load-reserved, a signal or the start of a task on.
    Lost,
}

/// A forked child that executes one instruction at a time. Dropping this value kills it.
pub struct Stepper {
    child: Traced,
    #[cfg(not(target_arch = "riscv64"))]
    deliver: Option<Signal>,
}

impl Stepper {
    /// Forks a child, which stops before it runs `body`.
    ///
    /// # Errors
    /// The kernel refuses a child or `ptrace`; [`Error::Missing`] on a processor without single steps.
    pub fn start(body: impl FnOnce()) -> Result<Self> {
        if !HAS_STEPS {
            return Err(Error::Missing(NO_STEPS.into()));
        }
        Ok(Self {
            child: fork_stopped_child(body)?,
            #[cfg(not(target_arch = "riscv64"))]
            deliver: None,
        })
    }

    /// The instruction that the child executes next.
    ///
    /// # Errors
    /// The kernel refuses the registers.
    pub fn next(&self) -> Result<Step> {
        let (address, call) = read_registers(self.child.pid)?;
        Ok(Step { address, code: self.code_at(address)?, call })
    }

    /// The bytes of an instruction. If a program may be executed but not read, the kernel refuses other processes access to its
    /// memory. Then the bytes are read from this process, which has the same code at the same address as its forked child.
    fn code_at(&self, address: usize) -> Result<[u8; 8]> {
        if let Ok(word) = ptrace::read(self.child.pid, address as ptrace::AddressType) {
            return Ok(word.to_le_bytes());
        }
        let mut code = [0; 8];
        let there = RemoteIoVec { base: address, len: code.len() };
        // A process may always read its own memory by this call, but not by `/proc/self/mem`.
        process_vm_readv(Pid::this(), &mut [IoSliceMut::new(&mut code)], &[there])
            .map_err(|e| Error::from_errno("process_vm_readv of the code of a witness", e))?;
        Ok(code)
    }

    /// Executes the next instruction.
    ///
    /// # Errors
    /// [`Error::Died`] if the child does not end with code 0.
    #[cfg(not(target_arch = "riscv64"))]
    pub fn execute_instruction(&mut self) -> Result<Stepped> {
        ptrace::step(self.child.pid, self.deliver.take()).map_err(|e| Error::from_errno("ptrace step", e))?;
        match self.child.wait_for_stop()? {
            Stop::Ended => return Ok(Stepped::Ended),
            Stop::Signal(signal) => self.deliver = (signal != Signal::SIGTRAP).then_some(signal),
            Stop::Entry => {}
        }
        Ok(Stepped::On)
    }
}

/// Runs `body` in a forked child and lists its system calls that count, at most the first `most` of them.
///
/// # Errors
/// As of [`step_through`].
pub fn list_syscalls(body: impl FnOnce(), most: usize, counts: impl Fn(&Call) -> bool) -> Result<Sighting> {
    let mut child = fork_stopped_child(body)?;
    let mut seen = Sighting::default();
    // Whether the child's present call counts; `None` outside of calls.
    let (mut inside, mut deliver): (Option<bool>, _) = (None, None);
    while seen.entries.len() <= most {
        ptrace::syscall(child.pid, deliver.take()).map_err(|e| Error::from_errno("ptrace syscall", e))?;
        match child.wait_for_stop()? {
            Stop::Ended => return Ok(seen),
            Stop::Signal(signal) => deliver = Some(signal),
            Stop::Entry => {
                let at = read_call(child.pid)?;
                let left = inside.take();
                match (left, seen.entries.last_mut()) {
                    (Some(true), Some(call)) => call.answer = at.answer,
                    (Some(_), _) => {}
                    (None, _) => {
                        let call = Call { answer: 0, ..at };
                        inside = Some(counts(&call));
                        match inside {
                            Some(true) => seen.entries.push(call),
                            _ => seen.left_out += 1,
                        }
                    }
                }
            }
        }
    }
    seen.entries.truncate(most);
    Ok(seen)
}

/// A traced child. Dropping it kills and reaps it.
pub(crate) struct Traced {
    pub(crate) pid: Pid,
    /// Whether the child's end was waited for. From then on its number may belong to another process.
    reaped: bool,
    /// Keeps both on one CPU: a stop takes some microseconds there, and ten times as long if each stop wakes an idle CPU.
    _beside_tracer: Option<FormerAffinity>,
}

impl Traced {
    pub(crate) fn wait_for_stop(&mut self) -> Result<Stop> {
        let status = waitpid(self.pid, None).map_err(|e| Error::from_errno("waitpid of a witness", e))?;
        self.reaped = matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..));
        match status {
            WaitStatus::Stopped(_, signal) => Ok(Stop::Signal(signal)),
            WaitStatus::PtraceSyscall(_) => Ok(Stop::Entry),
            WaitStatus::Exited(_, 0) => Ok(Stop::Ended),
            WaitStatus::Exited(_, PANIC_CODE) => Err(Error::Died(PANICKED.into())),
            WaitStatus::Exited(_, code) => Err(Error::Died(format!("exit code {code}"))),
            WaitStatus::Signaled(_, Signal::SIGALRM, _) => Err(Error::Disturbed(format!(
                "the operation was not watched to its end within {CHILD_LIMIT_SECONDS} s: it hangs, or this machine is too \
                 slow or too busy to step through it"
            ))),
            WaitStatus::Signaled(_, signal, _) => Err(Error::Died(signal.to_string())),
            other => Err(Error::Died(format!("{other:?}"))),
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !self.reaped {
            kill_and_reap(self.pid);
        }
    }
}

pub(crate) fn fork_stopped_child(body: impl FnOnce()) -> Result<Traced> {
    let _beside_tracer = keep_on_this_cpu();
    let child = fork_child(|| {
        if ptrace::traceme().is_ok() && raise(Signal::SIGSTOP).is_ok() {
            body();
        }
    })?;
    let mut child = Traced { pid: child, reaped: false, _beside_tracer };
    match child.wait_for_stop()? {
        Stop::Signal(Signal::SIGSTOP) => {
            // By this option, requested stops at system calls differ from stops by signals.
            ptrace::setoptions(child.pid, ptrace::Options::PTRACE_O_TRACESYSGOOD)
                .map_err(|e| Error::from_errno("ptrace setoptions", e))?;
            Ok(child)
        }
        // The child did not stop: it was not allowed to be traced, and has ended.
        _ => Err(Error::from_errno("ptrace traceme in a forked child", Errno::EPERM)),
    }
}

/// Why a child has stopped: it has ended, is inside a system call, or a signal has arrived.
pub(crate) enum Stop {
    Ended,
    Entry,
    Signal(Signal),
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn read_registers(_: Pid) -> Result<(usize, Call)> {
    Err(Error::Missing(NO_STEPS.into()))
}

/// The address at which a child has stopped, and the registers of a system call: the number and the first argument before the
/// kernel is entered, the answer when it is left.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
fn read_registers(child: Pid) -> Result<(usize, Call)> {
    let r = ptrace::getregs(child).map_err(|e| Error::from_errno("ptrace getregs", e))?;
    #[cfg(target_arch = "x86_64")]
    let (address, number, argument, answer) = (r.rip, r.rax, r.rdi, r.rax);
    #[cfg(target_arch = "aarch64")]
    let (address, number, argument, answer) = (r.pc, r.regs[8], r.regs[0], r.regs[0]);
    #[cfg(target_arch = "riscv64")]
    let (address, number, argument, answer) = (r.pc, r.a7, r.a0, r.a0);
    let call = Call { number: number as i64, argument: argument as i64, answer: answer as i64 };
    Ok((address as usize, call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;

    fn per_turn(body: fn(u64), address: Option<usize>) -> (u64, u64) {
        let seen = [8, 16].map(|n| step_through(|| body(n), 100_000));
        let [few, many] = seen.map(|s| s.expect("traced").expect("short"));
        let visits = |seen: &Sighting| address.map_or(0, |address| seen.visits(address));
        ((many.instructions - few.instructions) / 8, (visits(&many) - visits(&few)) / 8)
    }

    #[test]
    fn an_empty_loop_is_two_instructions() {
        assert_eq!(per_turn(arch::register_loop, None), (2, 0));
    }

    #[test]
    fn stepping_and_listing_see_the_same_kernel_entries() {
        let body = || (0..5).for_each(|_| _ = nix::unistd::getppid());
        let stepped = step_through(body, 100_000).expect("traced").expect("short");
        let listed = list_syscalls(body, usize::MAX, |_| true).expect("traced");
        for seen in [stepped, listed] {
            let asked = seen.entries.iter().filter(|call| call.number == libc::SYS_getppid);
            let answers: Vec<_> = asked.map(|call| call.answer).collect();
            assert_eq!(answers, [i64::from(std::process::id()); 5], "the child's parent is this process");
        }
    }

    #[test]
    fn a_refusal_is_seen_and_a_restart_is_no_refusal() {
        let seen = step_through(|| _ = crate::syscall::RawCall::nonexistent_call().repeat(1), 100_000);
        let entries = seen.expect("traced").expect("short").entries;
        assert!(
            entries.iter().any(|call| call.is_refused() && call.answer == -i64::from(libc::ENOSYS)),
            "{entries:?}"
        );
        let refused = |number, answer| Call { number, argument: 0, answer }.is_refused();
        assert!(refused(libc::SYS_read, -9) && !refused(libc::SYS_read, -512) && !refused(libc::SYS_read, 7));
        assert!(!refused(libc::SYS_rt_sigreturn, -9));
    }

    #[test]
    fn a_body_beyond_the_limit_gives_none_and_leaves_no_child() {
        assert_eq!(step_through(|| arch::register_loop(1 << 30), 1000).expect("traced"), None);
    }
}
