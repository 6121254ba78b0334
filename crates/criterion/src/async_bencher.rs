//! The loops of [`Bencher`], with a wait for the future of each iteration inside the timed part.

use crate::Bencher;
use crate::bencher::{input_counts, make_inputs};
use criterion::BatchSize;
use criterion::async_executor::AsyncExecutor;
use criterion::measurement::{Measurement, WallTime};
use std::future::Future;
use std::hint::black_box;
use syscost_engine::clock::Ticks;

/// Times one batch of an asynchronous benchmark ([`Bencher::to_async`]).
pub struct AsyncBencher<'a, 'b, A: AsyncExecutor, M: Measurement = WallTime> {
    pub(crate) bencher: &'b mut Bencher<'a, M>,
    pub(crate) runner: A,
}

impl<A: AsyncExecutor, M: Measurement> AsyncBencher<'_, '_, A, M> {
    /// As [`Bencher::iter`].
    #[inline(never)]
    pub fn iter<O, R: FnMut() -> F, F: Future<Output = O>>(&mut self, mut routine: R) {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let start = bencher.clock.start();
            for _ in 0..bencher.iterations {
                black_box(routine().await);
            }
            bencher.outcome.ticks = Some(bencher.clock.stop() - start);
        });
    }

    /// As [`Bencher::iter_custom`].
    #[inline(never)]
    pub fn iter_custom<R: FnMut(u64) -> F, F: Future<Output = M::Value>>(&mut self, mut routine: R) {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let value = routine(bencher.iterations).await;
            bencher.take_value(&value);
        });
    }

    /// As [`Bencher::iter_with_setup`].
    #[doc(hidden)]
    pub fn iter_with_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// As [`Bencher::iter_with_large_setup`].
    #[doc(hidden)]
    pub fn iter_with_large_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// As [`Bencher::iter_with_large_drop`].
    pub fn iter_with_large_drop<O, R: FnMut() -> F, F: Future<Output = O>>(&mut self, mut routine: R) {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// As [`Bencher::iter_batched`].
    #[inline(never)]
    pub fn iter_batched<I, O, S, R, F>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let mut ticks = Ticks(0);
            for count in input_counts(size, bencher.iterations) {
                let inputs = make_inputs(count, &mut setup);
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = bencher.clock.start();
                for input in inputs {
                    outputs.push(routine(input).await);
                }
                ticks += bencher.clock.stop() - start;
                black_box(outputs);
            }
            bencher.outcome.ticks = Some(ticks);
        });
    }

    /// As [`Bencher::iter_batched_ref`].
    #[inline(never)]
    pub fn iter_batched_ref<I, O, S, R, F>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> F,
        F: Future<Output = O>,
    {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let mut ticks = Ticks(0);
            for count in input_counts(size, bencher.iterations) {
                let mut inputs = make_inputs(count, &mut setup);
                let mut outputs = Vec::with_capacity(inputs.len());
                let start = bencher.clock.start();
                for input in &mut inputs {
                    outputs.push(routine(input).await);
                }
                ticks += bencher.clock.stop() - start;
                black_box(outputs);
            }
            bencher.outcome.ticks = Some(ticks);
        });
    }
}
