//! How many iterations a batch has, found before anything is measured.

use super::{CaseEnd, Trial};
use crate::case::Subject;
use crate::clock::Clock;
use crate::error::Result;

/// Batches run for each size, of which the quickest counts. Another task may take the CPU for milliseconds during one of them,
/// and a single iteration would pass for a whole batch. While a build ran, that happened in 125 of 1700 executions sized by one
/// batch, and in 2 sized by the quicker of two.
const QUICKEST_OF: usize = 2;
/// Largest ratio of a sample's wall time to its timed part in a run.
pub const SAMPLE_STRETCH: f64 = 2.0;
/// Least length of a batch in steps of the clock: one step is then 0.4 % of it.
const LEAST_STEPS: f64 = 250.0;
/// Most iterations that are tried; they take longer than a batch with any operation.
const MOST_ITERATIONS: u64 = 1 << 27;
/// If a batch falls short by more than this factor, the next one has [`STRIDE`] times as many iterations, otherwise twice.
const FAR: f64 = 16.0;
/// See [`FAR`].
const STRIDE: u64 = 8;

/// When a batch is long enough: either of the two times suffices.
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
    /// Tries more and more iterations, and returns the first batch that takes long enough, or the largest. The operation is
    /// warm afterwards.
    ///
    /// # Errors
    /// The subject fails.
    pub(super) fn find(subject: &mut dyn Subject, clock: &Clock, enough: Enough) -> Result<Self> {
        let mut iterations = 1;
        loop {
            let size = Self::quickest_batch(subject, clock, enough, iterations)?;
            if size.is_long_enough(enough) || iterations >= MOST_ITERATIONS {
                return Ok(size);
            }
            let is_far = enough.exceeds_both(size.timed_ns * FAR, size.wall_ns * FAR);
            iterations *= if is_far { STRIDE } else { 2 };
        }
    }

    /// The shortest times of up to [`QUICKEST_OF`] batches; the first batch that is not long enough ends the search.
    fn quickest_batch(
        subject: &mut dyn Subject,
        clock: &Clock,
        enough: Enough,
        iterations: u64,
    ) -> Result<Self> {
        let mut quickest = Self { iterations, timed_ns: f64::MAX, wall_ns: f64::MAX };
        for _ in 0..QUICKEST_OF {
            let start = clock.start();
            let timed_ns = clock.nanoseconds(subject.run(iterations, clock)?).0;
            let wall_ns = clock.nanoseconds(clock.stop() - start).0;
            quickest.timed_ns = quickest.timed_ns.min(timed_ns);
            quickest.wall_ns = quickest.wall_ns.min(wall_ns);
            if !quickest.is_long_enough(enough) {
                break;
            }
        }
        Ok(quickest)
    }

    /// Whether it takes long enough.
    pub(super) fn is_long_enough(self, enough: Enough) -> bool {
        !enough.exceeds_both(self.timed_ns, self.wall_ns)
    }

    /// Scales the iterations to fill the timed part of `full`, or its wall time if that is reached earlier; at least one
    /// iteration.
    fn scale_to_fill(self, full: Enough) -> Self {
        let times = (full.timed_ns / self.timed_ns.max(1.0)).min(full.wall_ns / self.wall_ns.max(1.0));
        let iterations = (self.iterations as f64 * times).round().max(1.0);
        let times = iterations / self.iterations as f64;
        Self { iterations: iterations as u64, timed_ns: self.timed_ns * times, wall_ns: self.wall_ns * times }
    }
}

impl Enough {
    fn exceeds_both(self, timed_ns: f64, wall_ns: f64) -> bool {
        timed_ns < self.timed_ns && wall_ns < self.wall_ns
    }
}

impl Trial<'_> {
    /// Finds a batch whose timed part takes `timed_ns`. If little of a batch is timed, the batch is limited to
    /// `stretch` times as long in all. The result's `wall_ns` is an upper bound: it scales the untimed work before
    /// a batch with the iterations, although that work does not grow.
    ///
    /// # Errors
    /// The subject fails or takes no time.
    pub fn size_batch(&mut self, timed_ns: f64, stretch: f64) -> std::result::Result<BatchSize, CaseEnd> {
        let timed_ns = timed_ns.max(LEAST_STEPS * self.clock.step_ns());
        let wall_ns = stretch * timed_ns;
        let half = Enough { timed_ns: timed_ns / 2.0, wall_ns };
        let found = BatchSize::find(&mut *self.subject, self.clock, half)?;
        if found.timed_ns == 0.0 && found.iterations >= MOST_ITERATIONS {
            let sentence = format!("{MOST_ITERATIONS} iterations took no time at all: nothing was done");
            return Err(CaseEnd::Failed(sentence));
        }
        Ok(found.scale_to_fill(Enough { timed_ns, wall_ns }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ticks;

    const ENOUGH: Enough = Enough { timed_ns: 1e6, wall_ns: 4e6 };

    /// A subject whose time is a function of the number of batches so far and the iterations.
    struct FakeTime<F>(usize, F);

    impl<F: FnMut(usize, u64) -> f64> Subject for FakeTime<F> {
        fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
            self.0 += 1;
            Ok(Ticks(((self.1)(self.0, iterations) * clock.hz() / 1e9).round() as u64))
        }
    }

    fn found(time_ns: impl FnMut(usize, u64) -> f64) -> BatchSize {
        BatchSize::find(&mut FakeTime(0, time_ns), &Clock::start_up(), ENOUGH).expect("no failure")
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
    fn an_operation_that_takes_no_time_ends_at_the_largest_batch() {
        let size = found(|_, _| 0.0);
        assert!(size.iterations >= MOST_ITERATIONS || size.wall_ns >= ENOUGH.wall_ns, "{size:?}");
    }

    #[test]
    fn a_batch_is_filled_as_far_as_its_untimed_part_allows() {
        let filled = |timed_ns, wall_ns| {
            let size = BatchSize { iterations: 100, timed_ns, wall_ns };
            size.scale_to_fill(Enough { timed_ns: 100e3, wall_ns: 800e3 })
        };
        assert_eq!(filled(50e3, 50e3), BatchSize { iterations: 200, timed_ns: 100e3, wall_ns: 100e3 });
        assert_eq!(filled(25e3, 400e3), BatchSize { iterations: 200, timed_ns: 50e3, wall_ns: 800e3 });
        assert_eq!(filled(1e3, 1.6e9).iterations, 1);
    }
}
