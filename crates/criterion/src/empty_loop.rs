//! The loop of a benchmark without its operation. It is the control that shows whether the compiler left anything of the
//! operation.

use crate::Bencher;
use criterion::BatchSize;
use std::any::type_name;
use std::mem::MaybeUninit;
use std::panic::Location;
use syscost_engine::Result;
use syscost_engine::clock::{Clock, Ticks};

/// The properties of the loop that timed a benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Runs the same loop, with the same types and sizes, without an operation. Each result is a constant.
    empty: fn(&mut Bencher<'_>, BatchSize),
    /// The size of the batches; arbitrary for a loop without batches.
    pub(crate) size: BatchSize,
    /// The size of a result, bytes.
    result_bytes: usize,
    /// The type of the results if it stands for work that is not done yet.
    pub(crate) lazy: Option<&'static str>,
    /// The line that calls the method of the [`Bencher`].
    pub(crate) line: &'static Location<'static>,
}

impl Shape {
    /// The shape of the loop of [`Bencher::iter`].
    pub(crate) fn of_loop<O>(line: &'static Location<'static>) -> Self {
        Self::new::<O>(|bencher, _| bencher.time_loop(nothing::<O>), BatchSize::SmallInput, line)
    }

    /// The shape of the loop of [`Bencher::iter_batched`].
    pub(crate) fn of_batches<I, O>(size: BatchSize, line: &'static Location<'static>) -> Self {
        let empty: fn(&mut Bencher<'_>, BatchSize) =
            |bencher, size| bencher.time_batches(nothing::<I>, |_| nothing::<O>(), size);
        Self::new::<O>(empty, size, line)
    }

    /// The shape of the loop of [`Bencher::iter_batched_ref`].
    pub(crate) fn of_batches_by_reference<I, O>(size: BatchSize, line: &'static Location<'static>) -> Self {
        let empty: fn(&mut Bencher<'_>, BatchSize) =
            |bencher, size| bencher.time_batches_by_reference(nothing::<I>, |_| nothing::<O>(), size);
        Self::new::<O>(empty, size, line)
    }

    /// The shape of a loop with results of the type `O`.
    pub(crate) fn new<O>(
        empty: fn(&mut Bencher<'_>, BatchSize),
        size: BatchSize,
        line: &'static Location<'static>,
    ) -> Self {
        let lazy = Some(type_name::<O>()).filter(|name| is_lazy(name));
        Self { empty, size, result_bytes: size_of::<O>(), lazy, line }
    }

    /// Runs the loop without an operation, and returns its time.
    pub(crate) fn run_empty(&self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut bencher = Bencher::new(iterations, clock, |_| None);
        (self.empty)(&mut bencher, self.size);
        Ok(bencher.outcome.ticks.unwrap_or_default())
    }

    /// Runs a loop without results from which the compiler removed an allocation. The allocator's marker is still read.
    pub(crate) fn run_removed_allocation(&self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let empty = |bencher: &mut Bencher<'_>, _| bencher.time_loop(|| drop(Box::new(0u8)));
        Self { empty, ..*self }.run_empty(iterations, clock)
    }

    /// The number of instructions that an iteration has more than the empty loop if it only copies a ready result. It has a
    /// load and a store per word in place of a store per two words; for a large result it has a load per two words.
    pub(crate) fn copy_instructions(&self) -> f64 {
        let stores = |bytes: usize| self.result_bytes.div_ceil(bytes) as f64;
        (2.0 * stores(8) - stores(16)).min(stores(16) + 3.0).max(1.0)
    }
}

/// A constant that replaces a result or an input.
pub(crate) fn nothing<T>() -> MaybeUninit<T> {
    MaybeUninit::zeroed()
}

/// Whether a type of this name is lazy: its value does its work when it is called, awaited or asked for the next item, not
/// when it is made.
fn is_lazy(name: &str) -> bool {
    const ITERATORS: [&str; 3] = ["core::iter::", "core::slice::iter::", "core::str::iter::"];
    const FUNCTIONS: [&str; 3] = ["fn(", "unsafe fn(", "extern "];
    name.ends_with("{{closure}}")
        || ITERATORS.into_iter().chain(FUNCTIONS).any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lazy<T>(_: T) -> bool {
        is_lazy(type_name::<T>())
    }

    #[test]
    fn closures_futures_and_iterators_are_lazy() {
        async fn later() -> u64 {
            1
        }
        let numbers = [1, 2, 3];
        assert!(
            lazy(numbers.iter().map(|number| number + 1)) && lazy(numbers.iter()) && lazy("a b".split(' '))
        );
        assert!(lazy(|| 1) && lazy(later()) && lazy(async { 1 }) && lazy(lazy::<u64> as fn(u64) -> bool));
        assert!(!lazy(1) && !lazy(vec![1]) && !lazy(Some("text")) && !lazy(Box::new([0u8; 3])));
    }

    #[test]
    fn copying_a_result_takes_a_load_more_than_a_constant() {
        let line = Location::caller();
        let copies = |shape: Shape| shape.copy_instructions();
        assert_eq!(copies(Shape::of_loop::<()>(line)), 1.0);
        assert_eq!(copies(Shape::of_loop::<u64>(line)), 1.0);
        assert_eq!(copies(Shape::of_loop::<(u64, u64)>(line)), 3.0);
        assert_eq!(copies(Shape::of_loop::<[u8; 256]>(line)), 19.0);
    }
}
