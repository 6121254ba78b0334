//! The rate between two readings of a count.

use super::{Fault, Reading};
use std::time::Duration;

/// The growth of a count over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The growth.
    pub grown: u64,
    /// The time between the two readings.
    pub window: Duration,
}

/// The largest value of a count of 32 bits.
const NARROW: u64 = u32::MAX as u64;

impl Rate {
    /// The rate between two readings of `what`. An overflow of a count of 32 bits is recognised by a first value in its
    /// last eighth and a second in its first eighth.
    ///
    /// # Errors
    /// [`Fault::TooShort`] where no time has passed; [`Fault::Parse`] where the count decreased otherwise, because a
    /// device was replaced or its driver loaded again.
    pub fn between(what: &str, before: &Reading<u64>, after: &Reading<u64>) -> Result<Self, Fault> {
        let window = after.at.saturating_duration_since(before.at);
        if window.is_zero() {
            return Err(Fault::TooShort { window, resolution: Duration::from_nanos(1) });
        }
        let grown = match after.value.checked_sub(before.value) {
            Some(grown) => grown,
            None if has_overflowed(before.value, after.value) => NARROW - before.value + after.value + 1,
            None => {
                let found = format!("{} and then {}", before.value, after.value);
                return Err(Fault::parse_error(what, "a count that grows", found.as_bytes()));
            }
        };
        Ok(Self { grown, window })
    }

    /// Growth per second.
    pub fn per_second(&self) -> f64 {
        self.grown as f64 / self.window.as_secs_f64()
    }
}

fn has_overflowed(before: u64, after: u64) -> bool {
    (NARROW - NARROW / 8..=NARROW).contains(&before) && after <= NARROW / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use std::time::Instant;

    fn rate(before: u64, after: u64, ms: u64) -> Result<Rate, Fault> {
        let start = Instant::now();
        let reading = |value, ms| Reading {
            value,
            at: start + Duration::from_millis(ms),
            resolution: 1,
            method: Method::BlockStat,
        };
        Rate::between("it", &reading(before, 0), &reading(after, ms))
    }

    #[test]
    fn a_hundred_in_half_a_second_are_two_hundred_in_one() {
        assert_eq!(rate(100, 200, 500).expect("a rate").per_second(), 200.0);
    }

    #[test]
    fn a_narrow_count_is_followed_over_its_end() {
        assert_eq!(rate(NARROW - 9, 10, 1000).expect("a rate").grown, 20);
    }

    #[test]
    fn a_count_that_went_back_is_no_rate() {
        assert!(matches!(rate(500, 20, 1000), Err(Fault::Parse { .. })));
        assert!(matches!(rate(NARROW + 5, 20, 1000), Err(Fault::Parse { .. })));
    }

    #[test]
    fn at_one_moment_there_is_no_rate() {
        assert!(matches!(rate(1, 2, 0), Err(Fault::TooShort { .. })));
    }
}
