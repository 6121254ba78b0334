//! The address range of a loop, with which a sampled monitor measures the time spent in it.
//!
//! A hardware monitor compares the address bus with two bound registers. A sampled monitor compares the address of the
//! next instruction, which is virtual and needs no bus. The bounds are found by stepping through some iterations of the
//! loop.
//!
//! Source: Kraemer, slides 27 to 30 and 51.

use std::ops::Range;
use syscost_platform::error::{Error, Result};
use syscost_platform::ptrace::step_each;

/// The maximum number of instructions that are stepped.
const LIMIT: u64 = 30_000;
/// The longest gap inside a function, bytes: code that a jump skips, or that aligns a loop. Beyond it another function
/// begins.
const GAP: usize = 96;

/// The address range of the instructions that `run` executes in the function at address `function`, without functions that it
/// calls.
///
/// # Errors
/// An error where the kernel or a sandbox refuses `ptrace`; [`Error::Usage`] if `run` does not call the function.
pub fn executed_range(function: usize, run: impl FnOnce()) -> Result<Range<usize>> {
    let (mut last, mut was_called) = (function, false);
    step_each(run, LIMIT, |step| {
        was_called |= step.address == function;
        if was_called && (function..=last + GAP).contains(&step.address) {
            last = last.max(step.address);
        }
    })?;
    if was_called {
        return Ok(function..last + 1);
    }
    Err(Error::Usage(format!(
        "the function at {function:#x} was not called within {LIMIT} instructions: give the address of one that is"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::arch;

    #[test]
    fn a_loop_of_two_instructions_is_short() {
        let at = arch::register_loop as *const () as usize;
        let extent = executed_range(at, || arch::register_loop(5)).expect("traced");
        assert_eq!(extent.start, at);
        assert!(extent.len() > 2 && extent.len() < 96, "{extent:?}");
    }

    #[test]
    fn a_function_that_is_not_called_is_an_error() {
        let at = arch::register_loop as *const () as usize;
        let error = executed_range(at, || _ = arch::add_chain(5)).expect_err("not called").to_string();
        assert!(error.contains("was not called"), "{error}");
    }
}
