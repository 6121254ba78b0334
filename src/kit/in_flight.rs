//! Moments of operations that overlap.
//!
//! With several operations in flight, one begins while others have not ended, and its end is seen elsewhere in the
//! program than its beginning: a closure of [`Clock::time`] or [`Clock::time_each`] cannot enclose it. Only such
//! operations open and close brackets by hand, with this type.

use crate::clock::{Clock, Ticks};

/// A reading of the clock at one end of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(Ticks);

impl Moment {
    /// Just before an operation is submitted.
    #[inline(always)]
    pub fn read_before_submission(clock: &Clock) -> Self {
        Self(clock.start())
    }

    /// Just after an operation was found complete.
    #[inline(always)]
    pub fn read_after_completion(clock: &Clock) -> Self {
        Self(clock.stop())
    }

    /// Time from an earlier moment to this one.
    #[inline(always)]
    pub fn since(self, earlier: Self) -> Ticks {
        self.0 - earlier.0
    }
}
