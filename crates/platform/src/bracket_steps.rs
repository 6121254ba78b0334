//! The instructions of a program in user space between two marks, counted by single steps (`ptrace(2)`): exact, without a PMU
//! and without a privilege. Between the marks a forked child runs one instruction at a time, elsewhere at full speed.
//!
//! # Invariants
//!
//! * **MARK**: the code at the mark is an undefined instruction, followed by a return. It touches no memory. The kernel stops a
//!   traced child there, and the tracer moves the child's instruction pointer past that instruction. Only such a child executes
//!   a mark: it would end any other process.
#![allow(unsafe_code)]

use super::ptrace::{Stop, Traced, fork_stopped_child, set_breakpoint};
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

/// Begins or ends a bracket, whose instructions are counted, in the body of [`count_steps`].
#[inline(always)]
pub fn execute_mark() {
    // SAFETY: MARK.
    unsafe { syscost_step_mark() }
}

/// What a body executed between its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCount {
    /// Number of brackets: of pairs of marks.
    pub brackets: u64,
    /// Instructions in them. A string instruction that is repeated is one.
    pub instructions: u64,
    /// Steps: instructions, and repetitions of string instructions.
    pub steps: u64,
    /// The first 128 different instructions that were executed, among them the head of a loop. Counting allocates nothing: the
    /// next child must find the memory of this process as the last one did.
    pub executed: [Executions; 128],
}

/// The executions of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// Address of the instruction; 0 in a free slot.
    pub address: usize,
    /// Number of executions.
    pub times: u64,
    /// Number of instructions that were counted before the last execution.
    pub before_last: u64,
}

impl Default for StepCount {
    fn default() -> Self {
        Self { brackets: 0, instructions: 0, steps: 0, executed: [Executions::default(); 128] }
    }
}

impl StepCount {
    /// The executions of the instruction at `address`, if it is among the first 128 different ones.
    pub fn executions(&self, address: usize) -> Option<Executions> {
        self.executed.into_iter().find(|seen| seen.address == address)
    }

    fn add_instruction(&mut self, next: usize) {
        self.instructions += 1;
        let mut places = self.executed.iter_mut();
        if let Some(seen) = places.find(|seen| seen.address == next || seen.address == 0) {
            *seen = Executions { address: next, times: seen.times + 1, before_last: self.instructions };
        }
    }
}

/// Runs `body` in a forked child and counts what it executes between its marks. `None` if that takes more than `limit` steps.
///
/// # Errors
/// The kernel refuses a child or `ptrace`; [`Error::Died`] if the child does not end with code 0.
pub fn count_steps(body: impl FnOnce(), limit: u64) -> Result<Option<StepCount>> {
    count_from(fork_stopped_child(body)?, StepCount::default(), |_| true, limit)
}

/// As [`count_steps`], but counting begins at the `number`-th execution, within brackets, of the instruction at `address`. Until
/// then the body runs at full speed.
///
/// # Errors
/// As of [`count_steps`]; [`Error::Missing`] if the kernel or this processor has no breakpoint.
pub fn count_steps_behind(
    body: impl FnOnce(),
    address: usize,
    number: u64,
    limit: u64,
) -> Result<Option<StepCount>> {
    let child = fork_stopped_child(body)?;
    set_breakpoint(child.pid, Some(address))?;
    let mut count = StepCount::default();
    count.executed[0].address = address;
    count_from(child, count, |stops| stops == number, limit)
}

/// Counts as soon as `begins` returns true. Its argument is the number of stops at the breakpoint within brackets.
fn count_from(
    mut child: Traced,
    mut count: StepCount,
    begins: impl Fn(u64) -> bool,
    limit: u64,
) -> Result<Option<StepCount>> {
    let mark = syscost_step_mark as *const () as u64;
    let (mut is_inside, mut place, mut deliver) = (false, 0, None);
    let mut stops = 0;
    let mut has_begun = begins(stops);
    while count.steps < limit {
        let by_step = is_inside && has_begun;
        resume(&child, by_step, deliver.take())?;
        match child.wait_for_stop()? {
            Stop::Ended => return Ok(Some(count)),
            Stop::Signal(Signal::SIGTRAP) if by_step => {
                // After a repetition of a string instruction, the instruction pointer is the same as before.
                let now = instruction_pointer(child.pid)?;
                count.steps += 1;
                if now != place {
                    count.add_instruction(now as usize);
                }
                place = now;
            }
            Stop::Signal(Signal::SIGTRAP) if !has_begun => {
                stops += u64::from(is_inside);
                has_begun = begins(stops);
                if has_begun {
                    // The instruction has not been executed yet, and its breakpoint would stop the child again.
                    set_breakpoint(child.pid, None)?;
                    place = instruction_pointer(child.pid)?;
                }
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
        // The marks are in another function here, which may have a few more or fewer instructions beside them.
        assert!(seen.brackets == 1 && seen.instructions.abs_diff(few) < 8, "{seen:?} {few}");
    }

    #[test]
    fn instructions_before_the_chosen_execution_are_not_counted() {
        let body =
            |turns: u64| move || bracketed(|| (0..turns).for_each(|_| _ = black_box(arch::add_chain(64))))();
        let whole = count_steps(body(9), 10_000).expect("traced").expect("short");
        let once = whole.executed.into_iter().find(|seen| seen.times == 9).expect("a loop").address;
        let behind = |number, limit| match count_steps_behind(body(500), once, number, limit) {
            Err(Error::Missing(sentence)) => {
                crate::testing::print_skipped(&sentence);
                None
            }
            counted => Some(counted.expect("traced")),
        };
        let Some(last) = behind(490, 10_000) else { return };
        let more = behind(480, 10_000).flatten().expect("short");
        let [last, more] = [last.expect("short"), more].map(|count| count.executions(once).expect("known"));
        assert_eq!((last.times, more.times), (10, 20));
        assert_eq!(2 * last.before_last, more.before_last);
        assert_eq!(behind(1, 10_000), Some(None), "too long");
        assert_eq!(behind(501, 10_000).flatten().map(|count| count.steps), Some(0), "never met");
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
    fn a_child_stays_on_the_cpu_of_its_tracer_whose_affinity_is_restored() {
        let before = crate::cpu::allowed_cpus();
        let body = || {
            assert_eq!(crate::cpu::allowed_cpus().len(), 1);
            bracketed(|| ())();
        };
        assert_eq!(count_steps(body, 1_000).expect("one CPU").expect("short").brackets, 1);
        assert_eq!(crate::cpu::allowed_cpus(), before);
    }

    #[test]
    fn a_body_beyond_the_step_limit_gives_no_count_and_leaves_no_child() {
        assert_eq!(count_steps(bracketed(|| arch::register_loop(1 << 30)), 1_000).expect("traced"), None);
    }
}
