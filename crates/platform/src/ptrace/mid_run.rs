//! Tracing a small part of a run, since each stop takes microseconds: some instructions of its middle, or how often it executes one
//! instruction.

use super::{Stepped, Stepper, Stop};
use crate::error::{Error, Result};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::time::Duration;

/// Runs `body` in a forked child until it has used `after` of CPU time, and then one instruction at a time. Returns the addresses of
/// the next `steps` instructions; `None` if the body ends before, or cannot be followed ([`Stepped::Lost`]).
///
/// # Errors
/// As of [`step_through`](super::step_through).
pub fn step_mid_run(body: impl FnOnce(), after: Duration, steps: usize) -> Result<Option<Vec<usize>>> {
    let mut stepper = Stepper::start(body)?;
    if !stepper.run_for(after)? {
        return Ok(None);
    }
    let mut addresses = Vec::with_capacity(steps);
    while addresses.len() < steps {
        addresses.push(stepper.next()?.address);
        if stepper.execute_instruction()? != Stepped::On {
            return Ok(None);
        }
    }
    Ok(Some(addresses))
}

/// Runs `body` in a forked child, and counts how often it executes the instruction at `address`, by a breakpoint of the processor.
/// `None` if that is more than `most` times.
///
/// # Errors
/// As of [`step_through`](super::step_through); [`Error::Missing`] if the kernel or this processor has no such breakpoint, or the
/// breakpoint was never hit.
pub fn count_executions(body: impl FnOnce(), address: usize, most: u64) -> Result<Option<u64>> {
    let mut child = super::fork_stopped_child(body)?;
    set_breakpoint(child.pid, Some(address))?;
    let (mut times, mut deliver) = (0, None);
    while times <= most {
        ptrace::cont(child.pid, deliver.take()).map_err(|errno| Error::from_errno("ptrace cont", errno))?;
        match child.wait_for_stop()? {
            // An emulator may accept a breakpoint and ignore it.
            Stop::Ended if times == 0 => {
                return Err(Error::Missing("a breakpoint of the processor was never met".into()));
            }
            Stop::Ended => return Ok(Some(times)),
            Stop::Signal(Signal::SIGTRAP) => times += 1,
            Stop::Signal(signal) => deliver = Some(signal),
            Stop::Entry => {}
        }
    }
    Ok(None)
}

/// Has the processor stop a traced child before it executes the instruction at `address`; `None` removes the breakpoint.
///
/// # Errors
/// [`Error::Missing`] if the kernel or this processor has no such breakpoint.
#[cfg(target_arch = "x86_64")]
pub(crate) fn set_breakpoint(child: Pid, address: Option<usize>) -> Result<()> {
    // In the control register, 7, the lowest bit enables the first breakpoint, whose kind of zero means an execution: ptrace(2), and
    // the AMD64 Architecture Programmer's Manual, volume 2, section 13.1.
    for (register, value) in [(0, address.unwrap_or(0) as i64), (7, i64::from(address.is_some()))] {
        let place = std::mem::offset_of!(libc::user, u_debugreg) + register * size_of::<u64>();
        ptrace::write_user(child, place as ptrace::AddressType, value).map_err(|errno| {
            Error::Missing(format!("the kernel refuses a breakpoint of the processor: {errno}"))
        })?;
    }
    Ok(())
}

/// Always an error: breakpoints are set on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn set_breakpoint(_: Pid, _: Option<usize>) -> Result<()> {
    Err(Error::Missing("no breakpoint of this processor is set here".into()))
}

impl Stepper {
    /// Lets the child run at full speed until it has used this CPU time, and stops it. Returns false if it has ended before.
    fn run_for(&mut self, cpu_time: Duration) -> Result<bool> {
        let pid = self.child.pid;
        let refused = |what| move |errno| Error::from_errno(what, errno);
        let spent = || clock_getcpuclockid(pid).and_then(clock_gettime).map(Duration::from);
        let begun = spent().map_err(refused("clock_gettime of a witness"))?;
        let mut deliver = None;
        loop {
            ptrace::cont(pid, deliver.take()).map_err(refused("ptrace cont"))?;
            // This wait does not reap the child, so that its number and its clock stay valid.
            let stops =
                WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
            while waitid(Id::Pid(pid), stops).map_err(refused("waitid of a witness"))?
                == WaitStatus::StillAlive
            {
                // A child that has just ended may have no clock any more.
                let Ok(now) = spent() else { break };
                let left = cpu_time.saturating_sub(now.saturating_sub(begun));
                if left.is_zero() {
                    kill(pid, Signal::SIGSTOP).map_err(refused("kill of a witness"))?;
                    break;
                }
                std::thread::sleep(left);
            }
            match self.child.wait_for_stop()? {
                Stop::Ended => return Ok(false),
                Stop::Signal(Signal::SIGSTOP) => return Ok(true),
                Stop::Signal(signal) => deliver = Some(signal),
                Stop::Entry => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;

    #[test]
    fn the_middle_of_a_loop_is_two_instructions_a_turn() {
        let body = || arch::register_loop(1 << 40);
        let after = Duration::from_millis(1);
        let addresses = step_mid_run(body, after, 200).expect("traced").expect("it goes on");
        let first = addresses.iter().filter(|address| **address == addresses[0]).count();
        assert_eq!((addresses.len(), first), (200, 100));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_breakpoint_counts_what_single_steps_count() {
        let body = |n| move || (0..n).for_each(|_| _ = std::hint::black_box(arch::add_chain(64)));
        let seen = crate::ptrace::step_through(body(9), 100_000).expect("traced").expect("short");
        let each: Vec<usize> =
            seen.executed.iter().filter(|(_, times)| **times == 9).map(|(at, _)| *at).collect();
        let count = |n, most| match count_executions(body(n), each[each.len() / 2], most) {
            Err(Error::Missing(sentence)) => {
                crate::testing::print_skipped(&sentence);
                None
            }
            counted => Some(counted.expect("traced")),
        };
        assert!(count(500, 1_000).is_none_or(|times| times == Some(500)));
        assert!(count(500, 100).is_none_or(|times| times.is_none()), "more than wanted");
        let elsewhere = arch::register_loop as *const () as usize;
        assert!(matches!(count_executions(body(5), elsewhere, 9), Err(Error::Missing(_))), "never met");
    }

    #[test]
    fn a_body_that_ends_early_has_no_middle() {
        let body = || arch::register_loop(10);
        assert_eq!(step_mid_run(body, Duration::from_secs(1), 200).expect("traced"), None);
        let nearly = || std::thread::sleep(Duration::from_millis(5));
        assert_eq!(step_mid_run(nearly, Duration::from_millis(100), 200).expect("traced"), None);
    }
}
