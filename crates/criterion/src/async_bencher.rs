//! The loops of [`Bencher`], in which the timed part waits for the future of each iteration.

use crate::Bencher;
use crate::bencher::Batches;
use crate::empty_loop::{Shape, nothing};
use criterion::BatchSize;
use criterion::async_executor::AsyncExecutor;
use criterion::measurement::{Measurement, WallTime};
use std::future::Future;
use std::hint::black_box;
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Instant;
use syscost_engine::clock::Ticks;

/// Times one batch of an asynchronous benchmark ([`Bencher::to_async`]).
pub struct AsyncBencher<'a, 'b, A: AsyncExecutor, M: Measurement = WallTime> {
    pub(crate) bencher: &'b mut Bencher<'a, M>,
    pub(crate) runner: A,
}

impl<A: AsyncExecutor, M: Measurement> AsyncBencher<'_, '_, A, M> {
    /// Like [`Bencher::iter`], for a routine that returns a future.
    #[inline(never)]
    #[track_caller]
    pub fn iter<O, R: FnMut() -> F, F: Future<Output = O>>(&mut self, routine: R) {
        let Self { bencher, runner } = self;
        runner.block_on(time_loop(bencher, routine));
        let line = Location::caller();
        bencher.outcome.shape = Some(Shape::new::<O>(run_empty_loop::<O>, BatchSize::SmallInput, line));
    }

    /// Like [`Bencher::iter_custom`], for a routine that returns a future.
    #[inline(never)]
    pub fn iter_custom<R: FnMut(u64) -> F, F: Future<Output = M::Value>>(&mut self, mut routine: R) {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let begun = Instant::now();
            let value = routine(bencher.iterations).await;
            bencher.take_value(&value, begun.elapsed());
        });
    }

    /// Like [`Bencher::iter_with_setup`], for a routine that returns a future.
    #[doc(hidden)]
    #[track_caller]
    pub fn iter_with_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// Like [`Bencher::iter_with_large_setup`], for a routine that returns a future.
    #[doc(hidden)]
    #[track_caller]
    pub fn iter_with_large_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// Like [`Bencher::iter_with_large_drop`], for a routine that returns a future.
    #[track_caller]
    pub fn iter_with_large_drop<O, R: FnMut() -> F, F: Future<Output = O>>(&mut self, mut routine: R) {
        self.iter_batched(|| (), |()| routine(), BatchSize::SmallInput);
    }

    /// Like [`Bencher::iter_batched`], for a routine that returns a future.
    #[inline(never)]
    #[track_caller]
    pub fn iter_batched<I, O, S, R, F>(&mut self, setup: S, routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> F,
        F: Future<Output = O>,
    {
        let Self { bencher, runner } = self;
        runner.block_on(time_batches(bencher, setup, routine, size));
        bencher.outcome.shape = Some(Shape::new::<O>(run_empty_batches::<I, O>, size, Location::caller()));
    }

    /// Like [`Bencher::iter_batched_ref`], for a routine that returns a future.
    #[inline(never)]
    #[track_caller]
    pub fn iter_batched_ref<I, O, S, R, F>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> F,
        F: Future<Output = O>,
    {
        let Self { bencher, runner } = self;
        runner.block_on(async {
            let mut ticks = Ticks(0);
            let mut batches = Batches::new(size, bencher.iterations, bencher.clock.counts_steps());
            while let Some(mut inputs) = batches.next_inputs(&mut setup) {
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
        bencher.outcome.shape = Some(Shape::new::<O>(run_empty_batches::<I, O>, size, Location::caller()));
    }
}

/// The loop of [`AsyncBencher::iter`], with and without an operation.
async fn time_loop<M: Measurement, F: Future>(bencher: &mut Bencher<'_, M>, mut routine: impl FnMut() -> F) {
    let start = bencher.clock.start();
    for _ in 0..bencher.iterations {
        black_box(routine().await);
    }
    bencher.outcome.ticks = Some(bencher.clock.stop() - start);
}

/// The loop of [`AsyncBencher::iter_batched`], with and without an operation.
async fn time_batches<M: Measurement, I, F: Future>(
    bencher: &mut Bencher<'_, M>,
    mut setup: impl FnMut() -> I,
    mut routine: impl FnMut(I) -> F,
    size: BatchSize,
) {
    let mut ticks = Ticks(0);
    let mut batches = Batches::new(size, bencher.iterations, bencher.clock.counts_steps());
    while let Some(inputs) = batches.next_inputs(&mut setup) {
        let mut outputs = Vec::with_capacity(inputs.len());
        let start = bencher.clock.start();
        for input in inputs {
            outputs.push(routine(input).await);
        }
        ticks += bencher.clock.stop() - start;
        black_box(outputs);
    }
    bencher.outcome.ticks = Some(ticks);
}

fn run_empty_loop<O>(bencher: &mut Bencher<'_>, _: BatchSize) {
    run_ready(time_loop(bencher, || async { nothing::<O>() }));
}

fn run_empty_batches<I, O>(bencher: &mut Bencher<'_>, size: BatchSize) {
    run_ready(time_batches(bencher, nothing::<I>, |_| async { nothing::<O>() }, size));
}

/// Runs a future that never waits.
fn run_ready(future: impl Future<Output = ()>) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}
