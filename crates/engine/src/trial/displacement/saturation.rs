//! Throughput of a CPU that is never idle: the prediction of an estimate beside the observed rate.

use super::{CaseEnd, Displacement, Run, iterations_that_fill};
use crate::case::{Case, Place, Subject};
use crate::record::{Interval, Throughput};
use crate::statistic::student::{FEWEST, mean_interval};

/// On a CPU that is never idle, the process and its partners are charged for all of the time but this share, unless
/// other tasks had it.
const IDLE: f64 = 0.02;

/// The subject that shares the CPU with other tasks of its kind, set up.
pub(super) struct Saturation {
    pub(super) subject: Box<dyn Subject>,
    /// Iterations that fill a run.
    iterations: u64,
}

impl Saturation {
    /// Sets up the subject, if the case has one.
    ///
    /// # Errors
    /// Those of the set-up.
    pub(super) fn set_up(case: &Case, place: &Place) -> Result<Option<Self>, CaseEnd> {
        let set_up = case.displaced.as_ref().and_then(|repetition| repetition.saturated.as_ref());
        let subject = set_up.map(|set_up| set_up(place)).transpose().map_err(CaseEnd::from_set_up_error)?;
        Ok(subject.map(|subject| Self { subject, iterations: 0 }))
    }
}

/// What a shared CPU did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saturated {
    /// Time of an iteration of any of the tasks, ns.
    iteration: f64,
    /// The share of the time that the tasks were charged for.
    busy: f64,
}

impl Saturated {
    fn is_idle(&self) -> bool {
        self.busy < 1.0 - IDLE
    }

    /// The mean of before and after a run, so that a change of the machine's pace affects both sides alike.
    pub(super) fn mean_of(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        let (before, after) = before.zip(after)?;
        Some(Self {
            iteration: 0.5 * (before.iteration + after.iteration),
            busy: before.busy.min(after.busy),
        })
    }
}

/// Finds how many iterations of the shared subject fill a run, while the fluid stands still.
///
/// # Errors
/// Those of the subject and of the fluid.
pub(super) fn find_saturated_iterations(displacement: &mut Displacement<'_>) -> Result<(), CaseEnd> {
    let Displacement { saturation, clock, meter, effort, .. } = displacement;
    if let Some(Saturation { subject, iterations }) = saturation {
        let takes = |n| Ok(clock.nanoseconds(subject.run(n, clock)?).0);
        *iterations = meter.run_while_paused(|| iterations_that_fill(effort.run, takes))?;
    }
    Ok(())
}

/// Runs the shared subject while the fluid stands still. `None` for a case without one.
///
/// # Errors
/// Those of the subject and of the fluid.
pub(super) fn measure_saturated(displacement: &mut Displacement<'_>) -> Result<Option<Saturated>, CaseEnd> {
    let Displacement { saturation: Some(saturation), clock, meter, account, .. } = displacement else {
        return Ok(None);
    };
    let observed = meter.run_while_paused(|| {
        let (charged, start) = (account.total_charge()?.clock, clock.start());
        let ticks = saturation.subject.run(saturation.iterations, clock)?;
        let elapsed = clock.nanoseconds(clock.stop() - start).0;
        let done = saturation.subject.report().events.unwrap_or(saturation.iterations);
        let iteration = clock.nanoseconds(ticks).0 / done as f64;
        Ok(Saturated { iteration, busy: (account.total_charge()?.clock - charged) / elapsed })
    })?;
    Ok(Some(observed))
}

/// Why there is no rate although the case has a shared subject.
pub(super) fn no_rate_reason(runs: &[&Run]) -> Option<String> {
    let all: Vec<_> = runs.iter().filter_map(|run| run.saturated).collect();
    let idle = all.iter().filter(|saturated| saturated.is_idle()).count();
    (all.len() - idle < FEWEST && !all.is_empty()).then(|| {
        format!(
            "there is no rate of a CPU that never idles: beside {idle} of {} runs others had it, or all tasks that shared \
             it waited at once",
            all.len()
        )
    })
}

/// The rate over the runs in which the CPU was never idle.
pub(super) fn throughput(runs: &[&Run]) -> Option<Throughput> {
    let each = |run: &&Run| {
        let saturated = run.saturated.filter(|saturated| !saturated.is_idle())?;
        let estimate = run.replicate.estimate();
        let (gap, charged) = (estimate.gap.ok()?.ns(), estimate.charged.ok()?.ns());
        let rate = |ns: f64| 1e9 / ns;
        let [real, displaced, charged] = [saturated.iteration, gap, charged].map(rate);
        Some([real, displaced, displaced / real - 1.0, charged, charged / real - 1.0])
    };
    let rows: Vec<_> = runs.iter().filter_map(each).collect();
    let column = |at: usize| -> Option<Interval> {
        mean_interval(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())
    };
    Some(Throughput {
        real: column(0)?,
        displaced: column(1)?,
        displaced_off: column(2)?,
        charged: column(3)?,
        charged_off: column(4)?,
    })
}
