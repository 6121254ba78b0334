//! Measures of the three types for frequently executed code: no operation on them allocates.
//!
//! ```
//! use std::time::Duration;
//! use syscost_technique::state_measure::{CountMeasure, FractionOfTime, OnEntry};
//!
//! let mut initiations = CountMeasure::new(Duration::ZERO);
//! let mut waiting = OnEntry::with_capacity(16);
//! let mut busy = FractionOfTime::new(Duration::ZERO);
//! for (at, processes_waiting) in [(1, 3), (5, 2)] {
//!     initiations.count_entry();
//!     waiting.record_entry(processes_waiting);
//!     busy.enter(Duration::from_secs(at));
//!     busy.leave(Duration::from_secs(at + 2));
//! }
//! let end = Duration::from_secs(10);
//! assert_eq!(initiations.end_interval(end).per_second(), Some(0.2));
//! assert_eq!(waiting.mean(), Some(2.5));
//! assert_eq!(busy.fraction(end), Some(0.4));
//! ```
//!
//! All times that are passed to a measure must be of the same clock. Any clock will do: the elapsed time of an `Instant`,
//! nanoseconds of a counter, or numbers in a test.
//!
//! Source: Kraemer, slides 3, 4 and 17.

use std::time::Duration;

/// Type A: the number of entries into a state during an interval.
#[derive(Clone, Debug)]
pub struct CountMeasure {
    visits: u64,
    since: Duration,
}

/// The count of a [`CountMeasure`] over one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// The number of entries into the state.
    pub count: u64,
    /// The length of the interval.
    pub interval: Duration,
}

impl CountMeasure {
    /// A count whose first interval begins at `now`.
    pub fn new(now: Duration) -> Self {
        Self { visits: 0, since: now }
    }

    /// Counts one entry into the state.
    #[inline(always)]
    pub fn count_entry(&mut self) {
        self.visits += 1;
    }

    /// Ends the interval, returns its count, and begins the next interval.
    pub fn end_interval(&mut self, now: Duration) -> Visits {
        let interval = now.saturating_sub(self.since);
        self.since = now;
        Visits { count: std::mem::take(&mut self.visits), interval }
    }
}

impl Visits {
    /// Entries per second; `None` for an interval of zero.
    pub fn per_second(&self) -> Option<f64> {
        (!self.interval.is_zero()).then(|| self.count as f64 / self.interval.as_secs_f64())
    }
}

/// Type B: the value of an auxiliary variable at each entry into a state. Only the first values are kept, up to the capacity;
/// all entries are counted.
#[derive(Clone, Debug)]
pub struct OnEntry<T> {
    values: Vec<T>,
    entries: u64,
}

impl<T> OnEntry<T> {
    /// A measure with a buffer for this many values.
    pub fn with_capacity(values: usize) -> Self {
        Self { values: Vec::with_capacity(values), entries: 0 }
    }

    /// Records an entry with this value.
    #[inline(always)]
    pub fn record_entry(&mut self, value: T) {
        self.entries += 1;
        if self.values.len() < self.values.capacity() {
            self.values.push(value);
        }
    }

    /// The recorded values, in order. The values of entries after the buffer was full are missing.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The number of entries whose value was not recorded.
    pub fn unrecorded_count(&self) -> u64 {
        self.entries - self.values.len() as u64
    }
}

impl<T: Copy + Into<f64>> OnEntry<T> {
    /// The mean of the recorded values; `None` without a value.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.values.iter().copied().map(Into::into).sum();
        (!self.values.is_empty()).then(|| sum / self.values.len() as f64)
    }
}

/// Type C: the time spent in a state, and its fraction of the total.
#[derive(Clone, Debug)]
pub struct FractionOfTime {
    since: Duration,
    inside: Duration,
    entered: Option<Duration>,
}

impl FractionOfTime {
    /// A measure that begins at `now`, outside of the state.
    pub fn new(now: Duration) -> Self {
        Self { since: now, inside: Duration::ZERO, entered: None }
    }

    /// Enters the state. The call is ignored if the state is already entered.
    #[inline(always)]
    pub fn enter(&mut self, now: Duration) {
        self.entered.get_or_insert(now);
    }

    /// Leaves the state. The call is ignored outside of the state.
    #[inline(always)]
    pub fn leave(&mut self, now: Duration) {
        if let Some(entered) = self.entered.take() {
            self.inside += now.saturating_sub(entered);
        }
    }

    /// Enters or leaves the state, as an observation at `now` found it.
    #[inline(always)]
    pub fn observe(&mut self, is_inside: bool, now: Duration) {
        if is_inside { self.enter(now) } else { self.leave(now) }
    }

    /// The time in the state, including a visit that has not ended.
    pub fn time_inside(&self, now: Duration) -> Duration {
        self.inside + self.entered.map_or(Duration::ZERO, |entered| now.saturating_sub(entered))
    }

    /// The fraction of time in the state; `None` if no time has passed.
    pub fn fraction(&self, now: Duration) -> Option<f64> {
        let all = now.saturating_sub(self.since);
        (!all.is_zero()).then(|| self.time_inside(now).as_secs_f64() / all.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_interval_begins_where_the_last_one_ended() {
        let mut measure = CountMeasure::new(ms(100));
        (0..7).for_each(|_| measure.count_entry());
        assert_eq!(measure.end_interval(ms(600)), Visits { count: 7, interval: ms(500) });
        measure.count_entry();
        let second = measure.end_interval(ms(700));
        assert_eq!((second.count, second.per_second()), (1, Some(10.0)));
        assert_eq!(measure.end_interval(ms(700)).per_second(), None);
    }

    #[test]
    fn values_beyond_the_capacity_are_counted_as_unrecorded() {
        let mut measure = OnEntry::with_capacity(3);
        assert_eq!(measure.mean(), None);
        (1..=5u32).for_each(|value| measure.record_entry(value));
        assert_eq!(
            (measure.values(), measure.unrecorded_count(), measure.mean()),
            (&[1, 2, 3][..], 2, Some(2.0))
        );
    }

    #[test]
    fn a_state_that_is_not_left_yet_counts_up_to_now() {
        let mut measure = FractionOfTime::new(ms(0));
        assert_eq!(measure.fraction(ms(0)), None);
        measure.enter(ms(100));
        measure.enter(ms(150));
        measure.leave(ms(200));
        measure.leave(ms(900));
        measure.enter(ms(950));
        assert_eq!(measure.time_inside(ms(1000)), ms(150));
        assert_eq!(measure.fraction(ms(1000)), Some(0.15));
    }

    #[test]
    fn nothing_is_allocated_while_measuring() {
        let (mut count, mut values, mut time) =
            (CountMeasure::new(ms(0)), OnEntry::with_capacity(10), FractionOfTime::new(ms(0)));
        let counted = allocation_counter::measure(|| {
            for at in 0..100u32 {
                count.count_entry();
                values.record_entry(at);
                time.enter(ms(u64::from(at)));
                time.leave(ms(u64::from(at) + 1));
            }
        });
        assert_eq!(
            (counted.count_total, time.time_inside(ms(200)), values.unrecorded_count()),
            (0, ms(100), 90)
        );
    }
}
