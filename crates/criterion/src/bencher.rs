//! The loop of one batch. The loops are Criterion's, with syscost's clock around the same statements.

use criterion::BatchSize;
use criterion::measurement::{Measurement, WallTime};
use std::hint::black_box;
use std::time::Duration;
use syscost_engine::case::empty_loop_instructions;
use syscost_engine::clock::{Clock, Ticks};

/// Times one batch of a benchmark. A benchmark's closure calls one of its methods.
pub struct Bencher<'a, M: Measurement = WallTime> {
    pub(crate) iterations: u64,
    pub(crate) clock: &'a Clock,
    /// The time that a value is; `None` if it is none.
    pub(crate) to_time: fn(&M::Value) -> Option<Duration>,
    pub(crate) outcome: Outcome,
}

/// What a benchmark's closure has done with its [`Bencher`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Time of the last loop; `None` if no method was called.
    pub(crate) ticks: Option<Ticks>,
    /// Instructions that an iteration of that loop has without an operation; 0 if that is not known.
    pub(crate) empty_loop: f64,
    /// The loop took a value that is no time.
    pub(crate) is_foreign: bool,
}

impl<'a, M: Measurement> Bencher<'a, M> {
    pub(crate) fn new(iterations: u64, clock: &'a Clock, to_time: fn(&M::Value) -> Option<Duration>) -> Self {
        Self { iterations, clock, to_time, outcome: Outcome::default() }
    }

    /// Times `routine`, called again and again. Its results are dropped inside the timed part.
    #[inline(never)]
    pub fn iter<O, R: FnMut() -> O>(&mut self, mut routine: R) {
        let start = self.clock.start();
        for _ in 0..self.iterations {
            black_box(routine());
        }
        self.outcome.ticks = Some(self.clock.stop() - start);
        self.outcome.empty_loop = empty_loop_instructions::<O>();
    }

    /// Takes the time that `routine` says its argument of iterations took.
    #[inline(never)]
    pub fn iter_custom<R: FnMut(u64) -> M::Value>(&mut self, mut routine: R) {
        let value = routine(self.iterations);
        self.take_value(&value);
    }

    /// A time that the benchmark has measured itself.
    pub(crate) fn take_value(&mut self, value: &M::Value) {
        let time = (self.to_time)(value);
        self.outcome.ticks = time.map(|time| Ticks((time.as_secs_f64() * self.clock.hz()).round() as u64));
        self.outcome.is_foreign = time.is_none();
    }

    /// As [`Bencher::iter_batched`] with one input at a time.
    #[doc(hidden)]
    pub fn iter_with_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// As [`Bencher::iter_batched`] with all inputs at a time.
    #[doc(hidden)]
    pub fn iter_with_large_setup<I, O, S: FnMut() -> I, R: FnMut(I) -> O>(&mut self, setup: S, routine: R) {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// As [`Bencher::iter`], with the results dropped outside of the timed part.
    pub fn iter_with_large_drop<O, R: FnMut() -> O>(&mut self, mut routine: R) {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// Times `routine` on inputs of `setup`, which is not timed; nor is the drop of the results.
    #[inline(never)]
    pub fn iter_batched<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        let (is_single, mut ticks) = (inputs_at_once(size, self.iterations) == 1, Ticks(0));
        for count in input_counts(size, self.iterations) {
            if is_single {
                let input = black_box(setup());
                let start = self.clock.start();
                let output = routine(input);
                ticks += self.clock.stop() - start;
                drop(black_box(output));
                continue;
            }
            let inputs = make_inputs(count, &mut setup);
            let mut outputs = Vec::with_capacity(inputs.len());
            let start = self.clock.start();
            outputs.extend(inputs.into_iter().map(&mut routine));
            ticks += self.clock.stop() - start;
            black_box(outputs);
        }
        self.outcome.ticks = Some(ticks);
    }

    /// As [`Bencher::iter_batched`], with the inputs dropped outside of the timed part too.
    #[inline(never)]
    pub fn iter_batched_ref<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> O,
    {
        let (is_single, mut ticks) = (inputs_at_once(size, self.iterations) == 1, Ticks(0));
        for count in input_counts(size, self.iterations) {
            if is_single {
                let mut input = black_box(setup());
                let start = self.clock.start();
                let output = routine(&mut input);
                ticks += self.clock.stop() - start;
                drop(black_box(output));
                drop(black_box(input));
                continue;
            }
            let mut inputs = make_inputs(count, &mut setup);
            let mut outputs = Vec::with_capacity(inputs.len());
            let start = self.clock.start();
            outputs.extend(inputs.iter_mut().map(&mut routine));
            ticks += self.clock.stop() - start;
            black_box(outputs);
        }
        self.outcome.ticks = Some(ticks);
    }

    /// The same methods for routines that return futures, which `runner` runs.
    #[cfg(feature = "async")]
    pub fn to_async<'b, A: crate::async_executor::AsyncExecutor>(
        &'b mut self,
        runner: A,
    ) -> crate::AsyncBencher<'a, 'b, A, M> {
        crate::AsyncBencher { bencher: self, runner }
    }
}

// The inputs of a batched loop.

/// The inputs that are made at once for a loop of this many iterations, at least one. The numbers are Criterion's.
pub(crate) fn inputs_at_once(size: BatchSize, iterations: u64) -> u64 {
    let inputs = match size {
        BatchSize::SmallInput => iterations.div_ceil(10),
        BatchSize::LargeInput => iterations.div_ceil(1000),
        BatchSize::NumBatches(batches) => iterations.div_ceil(batches.max(1)),
        BatchSize::NumIterations(inputs) => inputs,
        _ => 1,
    };
    inputs.max(1)
}

/// The numbers of inputs that a loop of this many iterations makes, one after another.
pub(crate) fn input_counts(size: BatchSize, iterations: u64) -> impl Iterator<Item = u64> {
    let at_once = inputs_at_once(size, iterations);
    (0..iterations.div_ceil(at_once)).map(move |batch| at_once.min(iterations - batch * at_once))
}

/// Makes this many inputs.
pub(crate) fn make_inputs<I>(count: u64, setup: &mut impl FnMut() -> I) -> Vec<I> {
    black_box((0..count).map(|_| setup()).collect())
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

    #[test]
    fn all_iterations_have_an_input() {
        let counts = |size, iterations| input_counts(size, iterations).collect::<Vec<_>>();
        assert_eq!(counts(BatchSize::NumIterations(7), 16), [7, 7, 2]);
        assert_eq!(counts(BatchSize::NumBatches(2), 8), [4, 4]);
        assert_eq!(counts(BatchSize::PerIteration, 3), [1, 1, 1]);
        assert!(counts(BatchSize::SmallInput, 0).is_empty());
    }
}
