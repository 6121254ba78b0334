//! A fixed rate for reading counters. Deadlines are absolute, so that the duration of one reading does not delay the next.
//! Missed deadlines are counted and not made up for.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::time::Duration;

/// Periodic deadlines on the monotonic clock.
#[derive(Debug)]
pub struct Pace {
    period: Duration,
    next: Duration,
    missed: u64,
}

impl Pace {
    /// Deadlines with this period, of which the first is now.
    pub fn every(period: Duration) -> Self {
        Self { period: period.max(Duration::from_nanos(1)), next: monotonic_now(), missed: 0 }
    }

    /// Sleeps until the next deadline. Deadlines that have passed by a whole period or more are skipped and counted, because
    /// several readings in a row would say nothing about the missed time. Returns `false` if a signal ended the sleep; the
    /// next deadline is then unchanged.
    pub fn wait_for_deadline(&mut self) -> bool {
        self.missed += skip_missed_deadlines(&mut self.next, monotonic_now(), self.period);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        let slept = clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &TimeSpec::from_duration(self.next));
        if slept.is_ok() {
            self.next += self.period;
        }
        slept.is_ok()
    }

    /// The number of skipped deadlines.
    pub fn missed_deadlines(&self) -> u64 {
        self.missed
    }
}

/// Advances the deadline by the whole periods that have passed since it, and returns their number.
fn skip_missed_deadlines(next: &mut Duration, now: Duration, period: Duration) -> u64 {
    let late = now.saturating_sub(*next);
    let whole = u64::try_from(late.as_nanos() / period.as_nanos()).unwrap_or(u64::MAX);
    *next += Duration::from_nanos((period.as_nanos() as u64).saturating_mul(whole));
    whole
}

/// The time of the monotonic clock. The call cannot fail.
fn monotonic_now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_deadlines_are_counted_and_the_phase_is_kept() {
        let ms = Duration::from_millis;
        let mut next = ms(100);
        assert_eq!(skip_missed_deadlines(&mut next, ms(90), ms(10)), 0, "early");
        assert_eq!(skip_missed_deadlines(&mut next, ms(109), ms(10)), 0, "late by less than a period");
        assert_eq!((skip_missed_deadlines(&mut next, ms(135), ms(10)), next), (3, ms(130)));
    }

    #[test]
    fn a_reader_that_takes_longer_than_a_period_misses_deadlines_and_makes_up_for_none() {
        let mut pace = Pace::every(Duration::from_millis(2));
        let begun = monotonic_now();
        let mut beats = 0;
        while monotonic_now() - begun < Duration::from_millis(60) {
            assert!(pace.wait_for_deadline());
            beats += 1;
            std::thread::sleep(Duration::from_millis(7));
        }
        assert!(beats <= 9, "{beats}");
        assert!(pace.missed_deadlines() >= 2 * (beats - 1), "{} {beats}", pace.missed_deadlines());
    }
}
