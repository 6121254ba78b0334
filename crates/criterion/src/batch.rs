//! How many inputs of a batched loop live at the same time.

use criterion::BatchSize;

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
}
