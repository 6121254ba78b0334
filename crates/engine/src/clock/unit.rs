//! Types of time, so that ticks are never taken for nanoseconds.

use std::ops::{Add, AddAssign, Sub};

/// A number of steps of the clock's counter. They are not core cycles: a time-stamp counter runs at its own rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// Nanoseconds, with a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Nanoseconds(pub f64);

impl From<u64> for Ticks {
    fn from(ticks: u64) -> Self {
        Self(ticks)
    }
}

impl Add for Ticks {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Ticks {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl std::iter::Sum for Ticks {
    fn sum<I: Iterator<Item = Self>>(ticks: I) -> Self {
        Self(ticks.map(|ticks| ticks.0).sum())
    }
}

impl Sub for Ticks {
    type Output = Self;
    /// Saturates: a bracket that closes before it opens (two CPUs that disagree) is empty, not 2⁶⁴ long.
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_is_never_negative() {
        assert_eq!(Ticks(3) - Ticks(5), Ticks(0));
    }
}
