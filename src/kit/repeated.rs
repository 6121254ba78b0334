//! One call of the kernel, over and over: the timed loop of the groups that ask nothing else of the answers than that
//! none of them was a refusal.

use crate::case::{Place, Subject};
use crate::clock::{Clock, Ticks};
use crate::{Error, Result};
use std::hint::black_box;

/// The timed loop. The lowest answer is kept, which costs a comparison and tells of any failure.
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

/// The same loop around an answer of 0: the control.
pub fn nothing(call: &'static str) -> impl Fn(&Place) -> Result<Box<dyn Subject>> {
    move |_| Ok(Box::new(move |n: u64, clock: &Clock| repeat(call, n, clock, || 0)))
}

/// An answer below zero is a refusal.
pub fn granted(call: &str, answer: i64) -> Result<()> {
    if answer >= 0 { Ok(()) } else { Err(Error::refused_to_case(call, Error::errno(answer))) }
}
