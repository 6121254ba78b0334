//! Cases measured by displacement. Each run needs a calibration before and after it, so Criterion cannot arrange the runs;
//! it receives the result of each as a sample.

use super::{Attempt, Counted, Mode, Process, Shared};
use crate::record::{Measured, Outcome};
use crate::statistic::fluid_cost::NOT_QUIET;
use crate::trial::displaced;
use criterion::{Criterion, SamplingMode};
use std::time::Duration;

/// Criterion requires a warm-up.
const WARM_UP: Duration = Duration::from_millis(1);

impl Process<'_> {
    /// Measures a case and, in measuring mode, has Criterion write its files.
    pub(super) fn displaced<M: Counted>(
        &self,
        case: &crate::case::Case,
        criterion: &mut Criterion<Shared<M>>,
        measurement: &M,
    ) -> Attempt {
        let measured = displaced(case, self.bench)?;
        if self.arguments.mode == Mode::Measure {
            let silence = self.silence()?;
            self.hand_over(&case.name, &measured, criterion, measurement);
            drop(silence);
        }
        Ok(Box::new(measured))
    }

    /// Hands each run to Criterion as one sample. Criterion asks for its own number of iterations, close to that of the
    /// runs because of the measurement time set here, and receives the run's cost scaled to that number.
    fn hand_over<M: Counted>(
        &self,
        name: &str,
        measured: &Measured,
        criterion: &mut Criterion<Shared<M>>,
        measurement: &M,
    ) {
        let runs: Vec<_> = measured.iterations.iter().zip(&measured.counted).collect();
        let each = |&(&iterations, &counted): &(&u64, &u64)| counted as f64 / iterations.max(1) as f64;
        let costs: Vec<f64> = runs.iter().map(each).collect();
        let all_ns: f64 = measured.median.estimate * measured.iterations.iter().sum::<u64>() as f64;
        let mut group = criterion.benchmark_group(self.group.name);
        group.sampling_mode(SamplingMode::Flat);
        group.sample_size(costs.len());
        group.warm_up_time(WARM_UP);
        group.measurement_time(Duration::from_nanos(all_ns as u64));
        let first_phase = measurement.phase();
        let mut next = 0;
        group.bench_function(name, |b| {
            b.iter_custom(|n| {
                // See `Counted::phase`.
                let sampling = measurement.phase() >= first_phase + 2;
                if !sampling {
                    // Criterion repeats batches until the warm-up time is over: one is enough.
                    std::thread::sleep(2 * WARM_UP);
                }
                let cost = costs[next % costs.len()];
                next += usize::from(sampling);
                measurement.value(((cost * n as f64) as u64).max(1))
            });
        });
    }
}

/// Cases that ran while the machine was not quiet: one note for all.
#[derive(Default)]
pub(super) struct Unquiet {
    ids: Vec<String>,
    /// The largest share of a median run that other tasks had.
    most: f64,
}

impl Unquiet {
    /// Adds a case and returns its notes.
    pub(super) fn add(&mut self, id: &str, outcome: &Outcome) -> Vec<String> {
        let Outcome::Measured(measured) = outcome else { return Vec::new() };
        let Some(displaced) = &measured.displaced else { return Vec::new() };
        if !displaced.quiet {
            self.ids.push(id.to_owned());
            self.most = self.most.max(displaced.others);
        }
        // The flag that says how the machine was not quiet stays in the record; `note` sums these up.
        let flags = displaced.flags.iter().filter(|flag| !flag.starts_with(NOT_QUIET));
        flags.map(|flag| format!("{id}: {flag}")).collect()
    }

    /// The note, if there are such cases.
    pub(super) fn note(&self) -> Option<String> {
        (!self.ids.is_empty()).then(|| {
            format!(
                "{NOT_QUIET} in {} cases (other tasks had up to {:.0} % of the median run): they have no estimate by \
                 the paper's formula: {}",
                self.ids.len(),
                100.0 * self.most,
                self.ids.join(", ")
            )
        })
    }
}
