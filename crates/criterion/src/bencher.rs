//! The loop of one batch. The loops are Criterion's; syscost's clock brackets the same statements.

use crate::empty_loop::Shape;
use criterion::BatchSize;
use criterion::measurement::{Measurement, WallTime};
use std::hint::black_box;
use std::panic::Location;
use std::time::{Duration, Instant};
use syscost_engine::clock::{Clock, Ticks};

/// Times one batch of a benchmark. A benchmark's closure calls one of the methods.
pub struct Bencher<'a, M: Measurement = WallTime> {
    pub(crate) iterations: u64,
    pub(crate) clock: &'a Clock,
    /// Converts a value of the measurement to a time; `None` if the value is not a time.
    pub(crate) to_time: fn(&M::Value) -> Option<Duration>,
    pub(crate) outcome: Outcome,
}

/// The record of what a benchmark's closure did with its [`Bencher`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Time of the last loop; `None` if the closure called no method.
    pub(crate) ticks: Option<Ticks>,
    /// The properties of that loop that are known without a call of it; `None` if the closure timed its own loop.
    pub(crate) shape: Option<Shape>,
    /// The time that the closure returned for its own loop, and the time that passed during it.
    pub(crate) custom: Option<(Duration, Duration)>,
    /// Whether the loop returned a value that is not a time.
    pub(crate) is_foreign: bool,
}

impl<'a, M: Measurement> Bencher<'a, M> {
    pub(crate) fn new(iterations: u64, clock: &'a Clock, to_time: fn(&M::Value) -> Option<Duration>) -> Self {
        Self { iterations, clock, to_time, outcome: Outcome::default() }
    }

    /// Times `routine`, which is called repeatedly. Its results are dropped inside the timed part.
    #[inline(never)]
    #[track_caller]
    pub fn iter<O, R: FnMut() -> O>(&mut self, routine: R) {
        self.time_loop(routine);
        self.outcome.shape = Some(Shape::of_loop::<O>(Location::caller()));
    }

    /// The loop of [`Bencher::iter`], used with an operation and with an empty one.
    #[inline(never)]
    pub(crate) fn time_loop<O>(&mut self, mut routine: impl FnMut() -> O) {
        let start = self.clock.start();
        for _ in 0..self.iterations {
            black_box(routine());
        }
        self.outcome.ticks = Some(self.clock.stop() - start);
    }

    /// Takes the time that `routine` returns for its number of iterations.
    #[inline(never)]
    pub fn iter_custom<R: FnMut(u64) -> M::Value>(&mut self, mut routine: R) {
        let begun = Instant::now();
        let value = routine(self.iterations);
        self.take_value(&value, begun.elapsed());
    }

    /// Takes a time that the benchmark has measured itself, and the time that passed meanwhile.
    pub(crate) fn take_value(&mut self, value: &M::Value, passed: Duration) {
        let time = (self.to_time)(value);
        self.outcome.ticks = time.map(|time| Ticks((time.as_secs_f64() * self.clock.hz()).round() as u64));
        self.outcome.custom = time.map(|time| (time, passed));
        self.outcome.is_foreign = time.is_none();
    }

    /// Like [`Bencher::iter_batched`] with one input at a time.
    #[doc(hidden)]
    #[track_caller]
    pub fn iter_with_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// Like [`Bencher::iter_batched`] with all inputs at once.
    #[doc(hidden)]
    #[track_caller]
    pub fn iter_with_large_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// Like [`Bencher::iter`], with the results dropped outside of the timed part.
    #[track_caller]
    pub fn iter_with_large_drop<O, R: FnMut() -> O>(&mut self, mut routine: R) {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// Times `routine` on inputs from `setup`. Neither `setup` nor the drop of the results is timed.
    #[inline(never)]
    #[track_caller]
    pub fn iter_batched<I, O, S, R>(&mut self, setup: S, routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        self.time_batches(setup, routine, size);
        self.outcome.shape = Some(Shape::of_batches::<I, O>(size, Location::caller()));
    }

    /// The loop of [`Bencher::iter_batched`], used with an operation and with an empty one.
    #[inline(never)]
    pub(crate) fn time_batches<I, O>(
        &mut self,
        mut setup: impl FnMut() -> I,
        mut routine: impl FnMut(I) -> O,
        size: BatchSize,
    ) {
        let mut ticks = Ticks(0);
        if is_single(size) {
            for _ in 0..self.iterations {
                let input = black_box(setup());
                let start = self.clock.start();
                let output = routine(input);
                ticks += self.clock.stop() - start;
                drop(black_box(output));
            }
        } else {
            let mut batches = Batches::new(size, self.iterations, self.clock.counts_steps());
            while let Some(inputs) = batches.next_inputs(&mut setup) {
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = self.clock.start();
                outputs.extend(inputs.into_iter().map(&mut routine));
                ticks += self.clock.stop() - start;
                black_box(outputs);
            }
        }
        self.outcome.ticks = Some(ticks);
    }

    /// Like [`Bencher::iter_batched`], with the inputs also dropped outside of the timed part.
    #[inline(never)]
    #[track_caller]
    pub fn iter_batched_ref<I, O, S, R>(&mut self, setup: S, routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> O,
    {
        self.time_batches_by_reference(setup, routine, size);
        self.outcome.shape = Some(Shape::of_batches_by_reference::<I, O>(size, Location::caller()));
    }

    /// The loop of [`Bencher::iter_batched_ref`], used with an operation and with an empty one.
    #[inline(never)]
    pub(crate) fn time_batches_by_reference<I, O>(
        &mut self,
        mut setup: impl FnMut() -> I,
        mut routine: impl FnMut(&mut I) -> O,
        size: BatchSize,
    ) {
        let mut ticks = Ticks(0);
        if is_single(size) {
            for _ in 0..self.iterations {
                let mut input = black_box(setup());
                let start = self.clock.start();
                let output = routine(&mut input);
                ticks += self.clock.stop() - start;
                drop(black_box(output));
                drop(black_box(input));
            }
        } else {
            let mut batches = Batches::new(size, self.iterations, self.clock.counts_steps());
            while let Some(mut inputs) = batches.next_inputs(&mut setup) {
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = self.clock.start();
                outputs.extend(inputs.iter_mut().map(&mut routine));
                ticks += self.clock.stop() - start;
                black_box(outputs);
            }
        }
        self.outcome.ticks = Some(ticks);
    }

    /// Returns the same methods for routines that return futures, which `runner` runs.
    #[cfg(feature = "async")]
    pub fn to_async<'b, A: crate::async_executor::AsyncExecutor>(
        &'b mut self,
        runner: A,
    ) -> crate::AsyncBencher<'a, 'b, A, M> {
        crate::AsyncBencher { bencher: self, runner }
    }
}

// The inputs of a batched loop.

/// The lowest number of inputs per bracket if inputs are made quickly. The clock's own time is then a small part of the
/// bracket.
const QUICK_INPUTS: u64 = 64;
/// The longest time per input that counts as quick. An input of megabytes takes longer.
const QUICK_SETUP: Duration = Duration::from_micros(2);

/// Whether this size puts each iteration into a bracket of its own, for any number of iterations.
pub(crate) fn is_single(size: BatchSize) -> bool {
    matches!(size, BatchSize::PerIteration | BatchSize::NumIterations(1))
}

/// The inputs of a batched loop, made before each of its brackets.
pub(crate) struct Batches {
    at_once: u64,
    left: u64,
    /// Whether a large input is meant and the time that it takes is not known yet.
    is_untried: bool,
}

impl Batches {
    /// The inputs of a loop. With `in_one` all are in one bracket, unless the size fixes their number. Few iterations are
    /// thus counted in the same loop in which many are timed.
    pub(crate) fn new(size: BatchSize, iterations: u64, in_one: bool) -> Self {
        let is_fixed = is_single(size) || matches!(size, BatchSize::NumIterations(_));
        let at_once = if in_one && !is_fixed { iterations.max(1) } else { inputs_at_once(size, iterations) };
        Self { at_once, left: iterations, is_untried: matches!(size, BatchSize::LargeInput) }
    }

    /// Makes the inputs of the next bracket; `None` after the last.
    pub(crate) fn next_inputs<I>(&mut self, setup: &mut impl FnMut() -> I) -> Option<Vec<I>> {
        let count = self.at_once.min(self.left);
        if count == 0 {
            return None;
        }
        let begun = self.is_untried.then(Instant::now);
        let inputs = black_box((0..count).map(|_| setup()).collect());
        self.left -= count;
        if begun.is_some_and(|begun| begun.elapsed() <= QUICK_SETUP * count as u32) {
            self.at_once = self.at_once.max(QUICK_INPUTS);
        }
        self.is_untried = false;
        Some(inputs)
    }
}

/// The number of inputs that are made at once for a loop of this many iterations, at least one. The numbers are Criterion's.
fn inputs_at_once(size: BatchSize, iterations: u64) -> u64 {
    let inputs = match size {
        BatchSize::SmallInput => iterations.div_ceil(10),
        BatchSize::LargeInput => iterations.div_ceil(1000),
        BatchSize::NumBatches(batches) => iterations.div_ceil(batches.max(1)),
        BatchSize::NumIterations(inputs) => inputs,
        _ => 1,
    };
    inputs.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_as_many_as_criterion_makes() {
        let at_once = |size| [1, 9, 2_000].map(|iterations| inputs_at_once(size, iterations));
        assert_eq!(at_once(BatchSize::SmallInput), [1, 1, 200]);
        assert_eq!(at_once(BatchSize::LargeInput), [1, 1, 2]);
        assert_eq!(at_once(BatchSize::PerIteration), [1, 1, 1]);
        assert_eq!(at_once(BatchSize::NumBatches(4)), [1, 3, 500]);
        assert_eq!(at_once(BatchSize::NumIterations(7)), [7, 7, 7]);
    }

    fn counts(size: BatchSize, iterations: u64, in_one: bool) -> Vec<usize> {
        let mut batches = Batches::new(size, iterations, in_one);
        std::iter::from_fn(|| Some(batches.next_inputs(&mut || ())?.len())).collect()
    }

    #[test]
    fn all_iterations_have_an_input() {
        assert_eq!(counts(BatchSize::NumIterations(7), 16, false), [7, 7, 2]);
        assert_eq!(counts(BatchSize::NumBatches(2), 8, false), [4, 4]);
        assert_eq!(counts(BatchSize::PerIteration, 3, false), [1, 1, 1]);
        assert!(counts(BatchSize::SmallInput, 0, false).is_empty());
    }

    #[test]
    fn few_iterations_are_counted_in_one_bracket_unless_their_number_is_fixed() {
        assert_eq!(counts(BatchSize::SmallInput, 64, true), [64]);
        assert_eq!(counts(BatchSize::LargeInput, 64, true), [64]);
        assert_eq!(counts(BatchSize::NumIterations(7), 16, true), [7, 7, 2]);
    }

    #[test]
    fn large_inputs_that_are_made_slowly_are_made_one_by_one() {
        let mut slow = Batches::new(BatchSize::LargeInput, 100, false);
        let mut made = |setup: &mut dyn FnMut()| slow.next_inputs(&mut || setup()).map(|inputs| inputs.len());
        assert_eq!(made(&mut || std::thread::sleep(10 * QUICK_SETUP)), Some(1));
        assert_eq!(made(&mut || ()), Some(1), "as is found by the first");
    }
}
