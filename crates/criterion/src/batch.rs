//! The inputs of a batched loop.

use criterion::BatchSize;
use std::hint::black_box;

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
