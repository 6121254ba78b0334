//! Cases that are measured by what they displace. Their runs are not Criterion's to arrange, since each stands
//! between two calibrations; it is handed the outcome of each as a sample.

use super::{CaseEnd, Counted, Mode, Process, Shared};
use crate::platform::output::Silence;
use crate::record::{Measured, Outcome};
use crate::statistic::fluid_cost::NOT_QUIET;
use crate::trial::displaced;
use criterion::{Criterion, SamplingMode};
use std::time::Duration;

/// Criterion wants one.
const WARM_UP: Duration = Duration::from_millis(1);

impl Process<'_> {
    /// Measures it and, where Criterion measures too, lets it write its files.
    pub(super) fn displaced<M: Counted>(
        &self,
        case: &crate::case::Case,
        criterion: &mut Criterion<Shared<M>>,
        measurement: &M,
    ) -> std::result::Result<Box<Measured>, CaseEnd> {
        let measured = displaced(case, self.bench)?;
        if self.arguments.mode == Mode::Measure {
            let silence = if self.arguments.loud { Silence::for_now()? } else { Silence::new()? };
            self.hand_over(&case.name, &measured, criterion, measurement);
            drop(silence);
        }
        Ok(Box::new(measured))
    }

    /// Each run is a sample of as many iterations. Criterion asks for a number of its own, which the time that it
    /// thinks it has brings near to that of the runs; it is given the run's cost for as many.
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
                // The warm-up is not sampling: see `Counted::phase`.
                let sampling = measurement.phase() >= first_phase + 2;
                if !sampling {
                    // Criterion doubles its batches until the warm-up has lasted: one is enough.
                    std::thread::sleep(2 * WARM_UP);
                }
                let cost = costs[next % costs.len()];
                next += usize::from(sampling);
                measurement.value(((cost * n as f64) as u64).max(1))
            });
        });
    }
}

/// Cases that were measured while the machine was not quiet: one note tells of all.
#[derive(Default)]
pub(super) struct Unquiet {
    ids: Vec<String>,
    most: f64,
}

impl Unquiet {
    /// What must be said at once of a case that was measured so.
    pub(super) fn flags(&mut self, id: &str, outcome: &Outcome) -> Vec<String> {
        let Outcome::Measured(measured) = outcome else { return Vec::new() };
        let Some(displaced) = &measured.displaced else { return Vec::new() };
        if !displaced.quiet {
            self.ids.push(id.to_owned());
            self.most = self.most.max(displaced.others);
        }
        // The first flag of a case that was not quiet says how it was not: it stays in the record.
        let flags = displaced.flags.iter().filter(|flag| !flag.starts_with(NOT_QUIET));
        flags.map(|flag| format!("{id}: {flag}")).collect()
    }

    /// What must be said at the end.
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
