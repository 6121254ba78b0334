//! The instructions of a program in user space between two marks, counted by single steps (`ptrace(2)`): exact, without a PMU
//! and without a privilege. Between the marks a forked child runs one instruction at a time, elsewhere at full speed.
//!
//! # Invariants
//!
//! * **MARK**: the code at the mark is an instruction that the processor refuses, and a return behind it. It touches no memory.
//!   The kernel stops a traced child there, and the tracer sets it behind that instruction. It is executed in such a child only,
//!   and ends any other process.
#![allow(unsafe_code)]

use super::ptrace::{Stop, Traced, fork_stopped_child};
use crate::error::{Error, Result};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::arch::global_asm;

#[cfg(target_arch = "x86_64")]
global_asm!(".globl syscost_step_mark", ".hidden syscost_step_mark", "syscost_step_mark:", "ud2", "ret");
#[cfg(target_arch = "aarch64")]
global_asm!(".globl syscost_step_mark", ".hidden syscost_step_mark", "syscost_step_mark:", "udf #0", "ret");
/// Length of the instruction at the mark, bytes.
const MARK_LENGTH: u64 = if cfg!(target_arch = "x86_64") { 2 } else { 4 };

unsafe extern "C" {
    fn syscost_step_mark();
}

/// Begins or ends what is counted, in the body of [`count_steps`].
#[inline(always)]
pub fn execute_mark() {
    // SAFETY: MARK.
    unsafe { syscost_step_mark() }
}

/// What a body executed between its marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCount {
    /// Number of brackets: of pairs of marks.
    pub brackets: u64,
    /// Instructions in them. A string instruction that is repeated is one.
    pub instructions: u64,
    /// Steps: instructions, and repetitions of string instructions.
    pub steps: u64,
}

/// Runs `body` in a forked child and counts what it executes between its marks. `None` if that takes more than `limit` steps.
///
/// # Errors
/// The kernel refuses a child or `ptrace`; [`Error::Died`] if the child does not end with code 0.
pub fn count_steps(body: impl FnOnce(), limit: u64) -> Result<Option<StepCount>> {
    let mut child = fork_stopped_child(body)?;
    let mark = syscost_step_mark as *const () as u64;
    let (mut count, mut is_inside, mut place, mut deliver) = (StepCount::default(), false, 0, None);
    while count.steps < limit {
        resume(&child, is_inside, deliver.take())?;
        match child.wait_for_stop()? {
            Stop::Ended => return Ok(Some(count)),
            Stop::Signal(Signal::SIGTRAP) if is_inside => {
                // The step of a repetition ends where it began.
                let now = instruction_pointer(child.pid)?;
                count.steps += 1;
                count.instructions += u64::from(now != place);
                place = now;
            }
            Stop::Signal(Signal::SIGILL) if instruction_pointer(child.pid)? == mark => {
                place = mark + MARK_LENGTH;
                set_instruction_pointer(child.pid, place)?;
                is_inside = !is_inside;
                count.brackets += u64::from(is_inside);
            }
            Stop::Signal(signal) => deliver = Some(signal),
            Stop::Entry => {}
        }
    }
    Ok(None)
}

fn resume(child: &Traced, by_step: bool, deliver: Option<Signal>) -> Result<()> {
    let resumed = if by_step { ptrace::step(child.pid, deliver) } else { ptrace::cont(child.pid, deliver) };
    resumed.map_err(|e| Error::from_errno("ptrace step or cont", e))
}

#[cfg(target_arch = "x86_64")]
fn instruction_pointer(child: Pid) -> Result<u64> {
    // One register is read in half the time of all of them.
    let place = std::mem::offset_of!(libc::user, regs) + std::mem::offset_of!(libc::user_regs_struct, rip);
    let read = ptrace::read_user(child, place as ptrace::AddressType);
    read.map(|word| word as u64).map_err(|e| Error::from_errno("ptrace peekuser", e))
}

#[cfg(target_arch = "aarch64")]
fn instruction_pointer(child: Pid) -> Result<u64> {
    ptrace::getregs(child).map(|registers| registers.pc).map_err(|e| Error::from_errno("ptrace getregs", e))
}

fn set_instruction_pointer(child: Pid, place: u64) -> Result<()> {
    let set = ptrace::getregs(child).and_then(|mut registers| {
        #[cfg(target_arch = "x86_64")]
        (registers.rip = place);
        #[cfg(target_arch = "aarch64")]
        (registers.pc = place);
        ptrace::setregs(child, registers)
    });
    set.map_err(|e| Error::from_errno("ptrace setregs", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;
    use std::hint::black_box;

    fn bracketed(operation: impl FnOnce()) -> impl FnOnce() {
        || {
            execute_mark();
            operation();
            execute_mark();
        }
    }

    fn instructions(operation: impl FnOnce()) -> u64 {
        count_steps(bracketed(operation), 100_000).expect("traced").expect("short").instructions
    }

    #[test]
    fn a_loop_is_two_instructions_a_turn_and_the_rest_runs_at_full_speed() {
        let [few, many] = [8, 16].map(|turns| instructions(|| arch::register_loop(turns)));
        assert_eq!(many - few, 16);
        let outside = || {
            arch::register_loop(10_000_000);
            bracketed(|| arch::register_loop(8))();
            arch::register_loop(10_000_000);
        };
        let seen = count_steps(outside, 1_000).expect("traced").expect("short");
        // The marks stand in another function, with an instruction more or less beside them.
        assert!(seen.brackets == 1 && seen.instructions.abs_diff(few) < 8, "{seen:?} {few}");
    }

    #[test]
    fn one_more_addition_is_one_more_instruction() {
        let chain = |links| instructions(|| _ = black_box(arch::add_chain(links)));
        assert_eq!(chain(128) - chain(64), 64 + 2, "and the loop around a block of 64");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_repeated_string_instruction_is_one() {
        let copy = |bytes: usize| {
            let (from, mut to) = ([1u8; 64], [0u8; 64]);
            let body = bracketed(|| {
                // SAFETY: MARK: both are longer than what is copied, and the registers are given back.
                unsafe {
                    std::arch::asm!("rep movsb", inout("rcx") bytes => _, inout("rsi") from.as_ptr() => _,
                        inout("rdi") to.as_mut_ptr() => _);
                }
            });
            count_steps(body, 10_000).expect("traced").expect("short")
        };
        let [short, long] = [1, 33].map(copy);
        assert_eq!(short.instructions, long.instructions);
        assert_eq!(long.steps - short.steps, 32);
    }

    #[test]
    fn a_child_stays_beside_its_tracer_which_is_let_go() {
        let before = crate::cpu::allowed_cpus();
        let body = || {
            assert_eq!(crate::cpu::allowed_cpus().len(), 1);
            bracketed(|| ())();
        };
        assert_eq!(count_steps(body, 1_000).expect("one CPU").expect("short").brackets, 1);
        assert_eq!(crate::cpu::allowed_cpus(), before);
    }

    #[test]
    fn too_long_is_no_count_and_leaves_no_child() {
        assert_eq!(count_steps(bracketed(|| arch::register_loop(1 << 30)), 1_000).expect("traced"), None);
    }
}
