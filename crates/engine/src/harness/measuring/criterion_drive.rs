//! How Criterion drives a case in a measuring process. Only this file and `replay` depend on Criterion's order of calls.
//!
//! **What Criterion does here**: it reads its own command line, and its group calls the closure in [`Batches::run_by_criterion`] again
//! and again, since its warm-up never ends: the first call is our warm-up, and each further one a sample. A test (`--test`) is one
//! call, which takes all samples.
//!
//! **What it does not do**: it sizes no batch (the trial does, from the share of the time that is timed), it runs no
//! statistics, and it writes no file of one execution, because one execution is not the run. After the last sample this process
//! unwinds out of Criterion's warm-up; that is the only way to end a case there. A process may not unwind out of Criterion's
//! samples or its test: these are called through a C function, for which a RISC-V compiler writes no unwind table. `replay`
//! gives Criterion the samples of all executions at once: then it computes, compares and writes its files.
//!
//! Source: criterion 0.8, `routine.rs` (`warm_up`, `bench`, `test`); crate `alloca` 0.4.

use crate::case::{Case, Scale};
use crate::harness::measurement::Counted;
use crate::platform::perf_event::Event;
use crate::record::Measured;
use crate::trial::{CaseEnd, SAMPLE_STRETCH, Trial};
use criterion::Criterion;
use criterion::measurement::Measurement;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The panic payload that ends a case, whether or not it has all of its samples.
struct Complete;

/// Returns a new Criterion for one case. A single one for all cases would give a repeated id another directory.
pub(super) fn configured_criterion<M: Measurement + 'static>(
    sampling: &Sampling,
    measurement: M,
    home: &Path,
) -> Criterion<M> {
    // Set here and not on a group, whose settings would override the command line.
    criterion_without_plots()
        .sample_size(sampling.samples)
        .measurement_time(sampling.measurement)
        .nresamples(sampling.resamples)
        .output_directory(home)
        // Called before the measurement is set, so that the program contains one instance of this generic function.
        .configure_from_args()
        .with_measurement(measurement)
        // No filter: the driver has already chosen the cases, by their own names.
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
    /// Least duration of the warm-up.
    pub(super) warm_up: Duration,
    /// Events that are counted after the last sample.
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
                        // A test takes all samples in this one call, since a single batch shows little of disturbances.
                        (true, _) => (0..self.samples).try_for_each(|taken| self.take_sample(taken)),
                        (false, 0) => self.run_warm_up(n),
                        (false, _) => self.take_sample(calls - 1),
                    };
                    calls += 1;
                    if !is_test && (ended.is_err() || calls > self.samples) {
                        resume_unwind(Box::new(Complete));
                    }
                    1_u64.into()
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

    /// Runs one small batch, then batches as long as a sample until the time of the warm-up is over.
    fn run_warm_up(&mut self, iterations: u64) -> Result<(), CaseEnd> {
        let begun = Instant::now();
        self.trial.measure_sample(iterations)?;
        while begun.elapsed() < self.warm_up {
            self.trial.measure_sample(self.iterations)?;
        }
        Ok(())
    }

    /// Takes the next sample; `taken` samples were taken before.
    fn take_sample(&mut self, taken: usize) -> Result<(), CaseEnd> {
        self.trial.begin_sampling();
        self.trial.measure_sample(self.iterations)?;
        if taken + 1 < self.samples { self.trial.continue_sweep() } else { Ok(()) }
    }
}

// How many samples an execution has, and how long they are.

/// Timed part of a short sample, ns. The branch predictor is reset before a sample, and often learns another pattern at the
/// next interrupt; a short sample mostly ends before that. Between two runs of 21 system calls with samples of 800 µs, a tenth
/// of the calls differed by 6 to 34 %; with these samples, by 1 or 2 %.
const SHORT_NS: f64 = 200e3;
/// Fewest iterations of a short sample: with fewer, the full timed share is not required.
const FEWEST_SHORT_ITERATIONS: u64 = 8;
/// The share of the sampling time that is timed: half a batch runs untimed before each batch.
const TIMED_PART: f64 = 2.0 / 3.0;

/// Sampling time of an execution of several copies: ten samples of 4 ms. A reading of the counters takes some 30 µs.
const MEASUREMENT_OF_COPIES: Duration = Duration::from_millis(60);

/// Criterion's settings for one scale.
pub(super) struct Sampling {
    pub(super) samples: usize,
    /// Duration of the warm-up before the first sample, unless the user gives another.
    pub(super) warm_up: Duration,
    pub(super) measurement: Duration,
    pub(super) resamples: usize,
    /// Whether short operations have short samples.
    is_short: bool,
}

impl Sampling {
    /// The settings of one execution. Criterion requires ten samples and warns below a thousand resamples; its
    /// statistics of one execution are discarded.
    pub(super) fn for_scale(scale: Scale) -> Self {
        let (samples, warm_up, measurement, resamples) = match scale {
            Scale::Smoke => (10, 0, 10, 1_001),
            Scale::Default => (10, 0, 12, 1_001),
            Scale::Full => (20, 100, 600, 1_001),
        };
        let [warm_up, measurement] = [warm_up, measurement].map(Duration::from_millis);
        Self { samples, warm_up, measurement, resamples, is_short: scale == Scale::Default }
    }

    /// The settings for several copies that begin their samples together. Their samples are longer: each copy reads its
    /// counters before and after a sample at its own pace, and these readings must be a small part of it.
    pub(super) fn for_copies(self) -> Self {
        Self { measurement: self.measurement.max(MEASUREMENT_OF_COPIES), is_short: false, ..self }
    }

    /// Returns the number of samples of an execution, and the iterations of each, a multiple of `lap`. Samples are short if the
    /// operation or its lap is short and the user gives neither a number nor a time. `sized` returns the iterations that take a
    /// given number of nanoseconds.
    ///
    /// # Errors
    /// Those of `sized`.
    pub(super) fn size_samples<E>(
        &self,
        (samples, seconds): (Option<usize>, Option<f64>),
        lap: u64,
        mut sized: impl FnMut(f64) -> Result<u64, E>,
    ) -> Result<(usize, u64), E> {
        // The timed part of each sample.
        let whole = seconds.unwrap_or(self.measurement.as_secs_f64());
        let wanted_ns = TIMED_PART * 1e9 * whole / samples.unwrap_or(self.samples).max(1) as f64;
        if self.is_short && samples.is_none() && seconds.is_none() {
            // This size is not scaled up for a longer sample: untimed work before a batch, such as a walk round a ring, may be
            // most of a short batch.
            let iterations = sized(SHORT_NS)?;
            if iterations >= FEWEST_SHORT_ITERATIONS.max(lap) {
                return Ok((2 * self.samples, iterations.next_multiple_of(lap)));
            }
        }
        Ok((samples.unwrap_or(self.samples), sized(wanted_ns)?.next_multiple_of(lap)))
    }
}

/// Returns the number of samples of an execution, and the iterations of each, as in a run at default scale on a machine
/// `slowness` times as slow.
///
/// # Errors
/// Those of [`Trial::size_batch`].
pub fn size_as_run(trial: &mut Trial<'_>, case: &Case, slowness: f64) -> Result<(usize, u64), CaseEnd> {
    let sized = |ns: f64| Ok(trial.size_batch(ns / slowness, SAMPLE_STRETCH)?.iterations);
    Sampling::for_scale(Scale::Default).size_samples((None, None), case.lap_at(Scale::Smoke), sized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_operations_have_short_samples_unless_the_user_asks_for_others() {
        let at = |scale, asked, each_ns: f64| {
            let sized = |ns: f64| Ok::<_, ()>((ns / each_ns).round().max(1.0) as u64);
            Sampling::for_scale(scale).size_samples(asked, 1, sized).expect("sized")
        };
        let at_default = |asked, each_ns| at(Scale::Default, asked, each_ns);
        assert_eq!(at(Scale::Full, (None, None), 100.0), (20, 200_000));
        assert_eq!(at_default((None, None), 100.0), (20, 2_000));
        assert_eq!(at_default((None, None), 100e3), (10, 8));
        assert_eq!(at_default((None, None), 5e6), (10, 1));
        assert_eq!(at_default((Some(50), None), 100.0), (50, 1_600));
        assert_eq!(at_default((None, Some(0.3)), 100.0), (10, 200_000));
    }

    #[test]
    fn untimed_work_that_fills_a_short_sample_does_not_shorten_a_long_one() {
        let sized = |ns: f64| Ok::<_, ()>(if ns < 700e3 { 3 } else { (ns / 25.0) as u64 });
        let sampling = Sampling::for_scale(Scale::Default);
        assert_eq!(sampling.size_samples((None, None), 1, sized), Ok((10, 32_000)));
    }

    #[test]
    fn a_sample_is_a_whole_number_of_laps() {
        let batches_of_laps = |lap| {
            let sized = |ns: f64| Ok::<_, ()>((ns / 100.0) as u64);
            Sampling::for_scale(Scale::Default).size_samples((None, None), lap, sized).expect("sized")
        };
        assert_eq!(batches_of_laps(1), (20, 2_000));
        assert_eq!(batches_of_laps(300), (20, 2_100));
        assert_eq!(batches_of_laps(3_000), (10, 9_000));
        assert_eq!(batches_of_laps(100_000), (10, 100_000));
    }
}
