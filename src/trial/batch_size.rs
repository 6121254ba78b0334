//! How many iterations a batch has, found before anything is measured.

use super::{CaseEnd, Trial};
use crate::case::Subject;
use crate::clock::Clock;
use crate::error::Result;

/// Batches of one size of which the quickest counts. Another task may have the CPU for milliseconds in one of them, and a
/// single iteration would be taken for a whole batch. Of 1 700 executions beside a build 125 were sized so by a single one,
/// and 2 by the quicker of two.
const QUICKEST_OF: usize = 2;
/// How many times as long as what is timed of it a sample of a run may be.
pub const SAMPLE_STRETCH: f64 = 2.0;
/// Steps of a coarse clock in a batch, of which one is 0.4 % then.
const STEPS: f64 = 250.0;
/// Iterations that take longer than a batch for any operation.
const MOST: u64 = 1 << 27;
/// A batch that falls short by this factor is followed by one of [`STRIDE`] times the iterations, and otherwise of twice.
const FAR: f64 = 16.0;
/// See [`FAR`].
const STRIDE: u64 = 8;

/// When a batch is long enough: one of both times suffices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enough {
    /// Inside the brackets of the clock, ns.
    pub timed_ns: f64,
    /// With what is not timed, ns, because that may be most of it.
    pub wall_ns: f64,
}

/// A number of iterations, and how long they take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchSize {
    /// At least one.
    pub iterations: u64,
    /// Inside the brackets of the clock, ns.
    pub timed_ns: f64,
    /// With what is not timed, ns.
    pub wall_ns: f64,
}

impl BatchSize {
    /// The first number of iterations, each time more, that takes long enough, or the largest. The operation is warm then.
    ///
    /// # Errors
    /// The subject fails.
    pub(super) fn find(subject: &mut dyn Subject, clock: &Clock, enough: Enough) -> Result<Self> {
        let mut iterations = 1;
        loop {
            let size = Self::quickest(subject, clock, enough, iterations)?;
            if size.suffices(enough) || iterations >= MOST {
                return Ok(size);
            }
            let is_far = enough.is_beyond(size.timed_ns * FAR, size.wall_ns * FAR);
            iterations *= if is_far { STRIDE } else { 2 };
        }
    }

    /// One batch, and further ones as long as all of them take long enough.
    fn quickest(subject: &mut dyn Subject, clock: &Clock, enough: Enough, iterations: u64) -> Result<Self> {
        let mut quickest = Self { iterations, timed_ns: f64::MAX, wall_ns: f64::MAX };
        for _ in 0..QUICKEST_OF {
            let start = clock.start();
            let timed_ns = clock.nanoseconds(subject.run(iterations, clock)?).0;
            let wall_ns = clock.nanoseconds(clock.stop() - start).0;
            quickest.timed_ns = quickest.timed_ns.min(timed_ns);
            quickest.wall_ns = quickest.wall_ns.min(wall_ns);
            if !quickest.suffices(enough) {
                break;
            }
        }
        Ok(quickest)
    }

    /// Whether it takes long enough.
    pub(super) fn suffices(self, enough: Enough) -> bool {
        !enough.is_beyond(self.timed_ns, self.wall_ns)
    }

    /// As many iterations as fill the timed part, if the whole stays within the other time; at least one.
    fn filled(self, full: Enough) -> Self {
        let times = (full.timed_ns / self.timed_ns.max(1.0)).min(full.wall_ns / self.wall_ns.max(1.0));
        let iterations = (self.iterations as f64 * times).round().max(1.0);
        let times = iterations / self.iterations as f64;
        Self { iterations: iterations as u64, timed_ns: self.timed_ns * times, wall_ns: self.wall_ns * times }
    }
}

impl Enough {
    fn is_beyond(self, timed_ns: f64, wall_ns: f64) -> bool {
        timed_ns < self.timed_ns && wall_ns < self.wall_ns
    }
}

impl Trial<'_> {
    /// A batch of which `timed_ns` lie inside the brackets of the clock or, where little of it does, that takes `stretch`
    /// times as long in all. Its `wall_ns` is no less than it takes: what precedes a batch, and not each iteration, is
    /// counted as if it grew.
    ///
    /// # Errors
    /// The subject fails or takes no time.
    pub fn size_batch(&mut self, timed_ns: f64, stretch: f64) -> std::result::Result<BatchSize, CaseEnd> {
        let timed_ns = timed_ns.max(STEPS * self.clock.step_ns());
        let wall_ns = stretch * timed_ns;
        let half = Enough { timed_ns: timed_ns / 2.0, wall_ns };
        let found = BatchSize::find(&mut *self.subject, self.clock, half)?;
        if found.timed_ns == 0.0 && found.iterations >= MOST {
            let sentence = format!("{MOST} iterations took no time at all: nothing was done");
            return Err(CaseEnd::Failed(sentence));
        }
        Ok(found.filled(Enough { timed_ns, wall_ns }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ticks;

    const ENOUGH: Enough = Enough { timed_ns: 1e6, wall_ns: 4e6 };

    /// Tells a time by the number of batches so far and the iterations.
    struct Told<F>(usize, F);

    impl<F: FnMut(usize, u64) -> f64> Subject for Told<F> {
        fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
            self.0 += 1;
            Ok(Ticks(((self.1)(self.0, iterations) * clock.hz() / 1e9).round() as u64))
        }
    }

    fn found(told_ns: impl FnMut(usize, u64) -> f64) -> BatchSize {
        BatchSize::find(&mut Told(0, told_ns), &Clock::start_up(), ENOUGH).expect("no failure")
    }

    #[test]
    fn a_batch_that_was_interrupted_is_tried_again() {
        let size = found(|batch, n| if matches!(batch, 1 | 3 | 6) { 5e6 } else { 100.0 * n as f64 });
        assert!(size.timed_ns >= 1e6 && size.iterations >= 10_000, "{size:?}");
    }

    #[test]
    fn a_long_operation_is_tried_twice() {
        let mut batches = 0;
        let size = found(|batch, n| {
            batches = batch;
            2e6 * n as f64
        });
        assert_eq!((size.iterations, batches), (1, QUICKEST_OF));
    }

    #[test]
    fn what_takes_no_time_ends_at_the_largest_batch() {
        let size = found(|_, _| 0.0);
        assert!(size.iterations >= MOST || size.wall_ns >= ENOUGH.wall_ns, "{size:?}");
    }

    #[test]
    fn a_batch_is_filled_as_far_as_its_untimed_part_allows() {
        let filled = |timed_ns, wall_ns| {
            let size = BatchSize { iterations: 100, timed_ns, wall_ns };
            size.filled(Enough { timed_ns: 100e3, wall_ns: 800e3 })
        };
        assert_eq!(filled(50e3, 50e3), BatchSize { iterations: 200, timed_ns: 100e3, wall_ns: 100e3 });
        assert_eq!(filled(25e3, 400e3), BatchSize { iterations: 200, timed_ns: 50e3, wall_ns: 800e3 });
        assert_eq!(filled(1e3, 1.6e9).iterations, 1);
    }
}
