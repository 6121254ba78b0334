//! How Criterion drives a case in a measuring process. This file and `replay` are all that knows Criterion's order of calls.
//!
//! **What Criterion does here**: it reads its own command line, and its group calls the closure in [`Batches::run_by_criterion`] again
//! and again, since its warm-up never ends: the first call is our warm-up, and each further one a sample. A test (`--test`) is one
//! call, which takes all samples.
//!
//! **What it does not do**: it sizes no batch (the trial does, from the share of the time that is timed), it runs no statistics,
//! and it writes no file of one execution, because one execution is not the run. After the last sample this process unwinds out
//! of Criterion's warm-up; that is the only way to end a case there. Out of Criterion's samples, and of its test, no process may unwind:
//! they are called through a function of C, for which a compiler of RISC-V writes no unwind table. `replay` gives Criterion the samples
//! of all executions at once: then it computes, compares and writes its files.
//!
//! Source: criterion 0.8, `routine.rs` (`warm_up`, `bench`, `test`); crate `alloca` 0.4.

use super::sampling::Sampling;
use crate::harness::measurement::Counted;
use crate::platform::perf_event::Event;
use crate::record::Measured;
use crate::trial::{CaseEnd, Trial};
use criterion::Criterion;
use criterion::measurement::Measurement;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The payload of the unwinding that ends a case, with or without all of its samples.
struct Complete;

/// A new Criterion for one case. One Criterion would give a repeated id another directory.
pub(super) fn configured_criterion<M: Measurement + 'static>(
    sampling: &Sampling,
    measurement: M,
    home: &Path,
) -> Criterion<M> {
    // Set here and not on a group, where it would override the command line.
    criterion_without_plots()
        .sample_size(sampling.samples)
        .measurement_time(sampling.measurement)
        .nresamples(sampling.resamples)
        .output_directory(home)
        // Before the measurement, so that the program has this function once.
        .configure_from_args()
        .with_measurement(measurement)
        // The driver has chosen the cases, by their own names.
        .with_filter("")
}

/// The default Criterion without plots.
pub(super) fn criterion_without_plots() -> Criterion {
    Criterion::default().without_plots()
}

/// A case that Criterion drives.
pub(super) struct Batches<'a> {
    /// The case, set up and proven.
    pub(super) trial: Trial<'a>,
    /// Iterations of a sample.
    pub(super) iterations: u64,
    /// Number of samples.
    pub(super) samples: usize,
    /// How long the warm-up is at least.
    pub(super) warm_up: Duration,
    /// Events that are counted when all samples are there.
    pub(super) events: &'a [Event],
}

impl Batches<'_> {
    /// Has Criterion drive the case to its end.
    ///
    /// # Errors
    /// The end of a case that was not measured completely.
    pub(super) fn run_by_criterion<M: Counted>(
        mut self,
        criterion: &mut Criterion<M>,
        (group, name): (&str, &str),
        is_test: bool,
    ) -> Result<Box<Measured>, CaseEnd> {
        let mut group = criterion.benchmark_group(group);
        group.warm_up_time(Duration::MAX);
        let (mut calls, mut ended) = (0, Err(CaseEnd::Failed("Criterion called no batch".into())));
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            group.bench_function(name, |b| {
                b.iter_custom(|n| {
                    ended = match (is_test, calls) {
                        // One batch says little about disturbances: a test takes all samples at once.
                        (true, _) => (0..self.samples).try_for_each(|taken| self.take_sample(taken)),
                        (false, 0) => self.run_warm_up(n),
                        (false, _) => self.take_sample(calls - 1),
                    };
                    calls += 1;
                    if !is_test && (ended.is_err() || calls > self.samples) {
                        resume_unwind(Box::new(Complete));
                    }
                    M::value_from_count(1)
                });
            });
        }));
        drop(group);
        match unwound {
            Err(payload) if payload.is::<Complete>() => {}
            Err(payload) => resume_unwind(payload),
            Ok(()) if is_test => {}
            Ok(()) => {
                let sentence =
                    "Criterion ended the case before its last sample: its order of calls has changed";
                return Err(CaseEnd::Failed(sentence.into()));
            }
        }
        ended?;
        self.trial.count_events(self.events)?;
        self.trial.count_allocations()?;
        Ok(Box::new(self.trial.conclude(self.samples)?))
    }

    /// One small batch, and batches of a sample until the time of the warm-up is over.
    fn run_warm_up(&mut self, iterations: u64) -> Result<(), CaseEnd> {
        let begun = Instant::now();
        self.trial.measure_sample(iterations)?;
        while begun.elapsed() < self.warm_up {
            self.trial.measure_sample(self.iterations)?;
        }
        Ok(())
    }

    /// The sample behind those `taken`.
    fn take_sample(&mut self, taken: usize) -> Result<(), CaseEnd> {
        self.trial.begin_sampling();
        self.trial.measure_sample(self.iterations)?;
        if taken + 1 < self.samples { self.trial.continue_sweep() } else { Ok(()) }
    }
}
