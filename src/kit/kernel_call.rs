//! A repeated kernel call: the timed loop, its control, and the check that no answer was an error.
//!
//! A call is a closure that answers what the kernel does: zero or more, or a negative error number.

use crate::case::{Case, Claim, SetUp, set_up};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use std::hint::black_box;

/// A case of one call an iteration. Its control is the same loop around the constant 0.
pub fn case(name: &'static str, title: impl Into<String>, set_up: SetUp) -> Case {
    Case::new(name, title, set_up)
        .control_set_up(control(name))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
}

fn control(name: &'static str) -> SetUp {
    set_up(move |_| Ok(move |n: u64, clock: &Clock| repeat(name, n, clock, || 0)))
}

/// Times `n` calls in one bracket. The loop keeps the lowest answer, which costs a comparison and shows any error.
///
/// # Errors
/// That of [`granted`], if any answer was negative.
#[inline(always)]
pub fn repeat(call: &str, n: u64, clock: &Clock, mut once: impl FnMut() -> i64) -> Result<Ticks> {
    let mut lowest = 0;
    let ticks = clock.time(|| {
        for _ in 0..n {
            lowest = lowest.min(black_box(once()));
        }
    });
    granted(call, lowest)?;
    Ok(ticks)
}

/// Times up to `n` calls in one bracket and stops at the first negative answer, which it returns beside the time; 0 if
/// there was none.
#[inline(always)]
pub fn repeat_until_refused(n: u64, clock: &Clock, mut once: impl FnMut() -> i64) -> (Ticks, i64) {
    let mut lowest = 0;
    let ticks = clock.time(|| {
        for _ in 0..n {
            lowest = lowest.min(once());
            if lowest < 0 {
                break;
            }
        }
    });
    (ticks, lowest)
}

/// Checks an answer of the kernel.
///
/// # Errors
/// A negative answer: [`Error::Forbidden`] if the call is not allowed or unknown here, else [`Error::Kernel`].
pub fn granted(call: &str, answer: i64) -> Result<()> {
    if answer >= 0 { Ok(()) } else { Err(Error::refused_to_case(call, Error::errno(answer))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_refused_is_no_number() {
        assert!(granted("getpid", 7).is_ok() && granted("getpid", 0).is_ok());
        assert!(matches!(granted("madvise", -i64::from(libc::ENOSYS)), Err(Error::Forbidden { .. })));
        assert!(matches!(granted("madvise", -i64::from(libc::EINVAL)), Err(Error::Kernel { .. })));
    }
}
