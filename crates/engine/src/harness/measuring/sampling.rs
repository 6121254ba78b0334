//! How many samples an execution has, and how long they are.

use crate::case::{Case, Scale};
use crate::trial::{CaseEnd, SAMPLE_STRETCH, Trial};
use std::time::Duration;

/// What is timed of a short sample, ns. The branch predictor is made to forget before a sample, and often learns otherwise at the
/// next interrupt, before which a short one mostly ends: of two runs of 21 system calls with samples of 800 µs a tenth differed by
/// 6 to 34 %, with these by 1 or 2 %.
const SHORT_NS: f64 = 200e3;
/// Fewest iterations of a short sample. Fewer are not asked for the share of their time that is timed.
const SHORT: u64 = 8;
/// The share of the sampling time that is timed: half a batch goes before each.
const TIMED: f64 = 2.0 / 3.0;

/// Sampling time of an execution of several copies: ten samples of 4 ms. A reading of the counters takes some 30 µs.
const MEASUREMENT_OF_COPIES: Duration = Duration::from_millis(60);

/// Criterion's settings for one scale.
pub(super) struct Sampling {
    pub(super) samples: usize,
    /// Untimed batches before the first sample, where the user gives no other time.
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

    /// The same for several copies that begin their samples together: longer ones, of which the readings of the counters
    /// before and after them, which each copy makes at its own pace, are a small part.
    pub(super) fn for_copies(self) -> Self {
        Self { measurement: self.measurement.max(MEASUREMENT_OF_COPIES), is_short: false, ..self }
    }

    /// The timed part of each of `samples`, ns; `seconds` is the user's time for all of them.
    fn sample_ns(&self, samples: usize, seconds: Option<f64>) -> f64 {
        let seconds = seconds.unwrap_or(self.measurement.as_secs_f64());
        TIMED * 1e9 * seconds / samples.max(1) as f64
    }

    /// How many samples an execution has, and of how many iterations, a multiple of `lap`: short ones where an operation, or a
    /// lap, is short and the user asks for nothing else. `sized` finds the iterations that take a number of nanoseconds.
    ///
    /// # Errors
    /// Those of `sized`.
    pub(super) fn size_samples<E>(
        &self,
        (samples, seconds): (Option<usize>, Option<f64>),
        lap: u64,
        mut sized: impl FnMut(f64) -> Result<u64, E>,
    ) -> Result<(usize, u64), E> {
        let wanted_ns = self.sample_ns(samples.unwrap_or(self.samples), seconds);
        if self.is_short && samples.is_none() && seconds.is_none() {
            // Not scaled to a longer one: what comes before a batch, like a walk round a ring, may be most of a short one.
            let iterations = sized(SHORT_NS)?;
            if iterations >= SHORT.max(lap) {
                return Ok((2 * self.samples, iterations.next_multiple_of(lap)));
            }
        }
        Ok((samples.unwrap_or(self.samples), sized(wanted_ns)?.next_multiple_of(lap)))
    }
}

/// Samples of an execution, and iterations of each, as a run at default scale has them on a machine `slowness` times as slow.
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
    fn a_short_operation_has_short_samples_and_a_user_what_is_asked_for() {
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
    fn a_walk_before_each_batch_that_fills_a_short_sample_leaves_a_long_one_its_iterations() {
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
