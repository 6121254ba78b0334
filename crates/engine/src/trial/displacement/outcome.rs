//! The record of a displaced case.

use super::{CaseEnd, Displacement, Run, iterations_that_fill};
use crate::case::{Case, Place, Subject};
use crate::record::{Contamination, Displaced, Execution, Interval, Measured, Throughput};
use crate::statistic::fluid_cost::{Spoilt, Summary};
use crate::statistic::student::{self, mean_interval};
use crate::statistic::{median, standard_deviation};
use crate::trial::judge::{Judgement, unchecked_time_claims};

/// Below this share of a run's time in the timed part, the evidence says that the cost includes the rest.
const MOSTLY_TIMED: f64 = 0.9;
/// Samples that Criterion needs at least.
const FEWEST: usize = 10;

/// The record of a case.
///
/// # Errors
/// [`CaseEnd::Disturbed`] without an estimate from enough runs.
pub(super) fn measured_outcome(
    displacement: &Displacement<'_>,
    runs: &[Run],
    summary: &Summary,
    judgements: Vec<Judgement>,
) -> Result<Measured, CaseEnd> {
    let Some(gap) = summary.gap.filter(|_| summary.each.len() >= FEWEST) else {
        return Err(CaseEnd::Disturbed(no_number_reason(summary)));
    };
    let Displacement { case, clock, counted, .. } = displacement;
    let used: Vec<_> = runs.iter().filter(|run| summary.is_run_used(&run.replicate)).collect();
    let wire = displacement.subject.report().wire;
    let displaced = displaced_summary(displacement, (runs, &used), summary);
    let mut outcome = Measured {
        executions: vec![Execution {
            at: 0.0, // the driver adds it: it knows when the run began
            samples: used.len(),
            low: gap.estimate,
            median: gap.estimate,
            core_hz: None,
        }],
        iterations: used.iter().map(|run| run.replicate.covered.operations as u64).collect(),
        counted: displaced_ticks(displacement, summary),
        median: gap,
        standard_deviation: standard_deviation(&summary.each),
        ticks: gap.estimate * clock.hz() / 1e9,
        slope: gap,
        derived: displaced.derived_figures(),
        displaced: Some(displaced),
        contamination: contamination(&used),
        peer: wire.as_ref().map(crate::environment::Wire::comparison_key),
        wire: wire.map(Box::new),
        ..Measured::default()
    };
    for judgement in judgements {
        judgement.sort_sentence_into(&mut outcome.evidence, &mut outcome.unasked);
    }
    outcome.evidence.extend(counted.iter().cloned());
    outcome.evidence.push(coverage_sentence(runs, summary));
    outcome.evidence.extend(partly_timed_sentence(&used));
    outcome.unasked.extend(unchecked_time_claims(case, "displaced time"));
    Ok(outcome)
}

fn no_number_reason(summary: &Summary) -> String {
    if summary.flags.is_empty() {
        "the cost is below what the runs can resolve: there were too few runs, or their results differ too much".into()
    } else {
        summary.flags.join("; ")
    }
}

/// Ticks displaced by each run.
fn displaced_ticks(displacement: &Displacement<'_>, summary: &Summary) -> Vec<u64> {
    let ticks_per_ns = displacement.clock.hz() / 1e9;
    summary.each.iter().map(|ns| (ns * displacement.iterations as f64 * ticks_per_ns) as u64).collect()
}

fn displaced_summary(
    displacement: &Displacement<'_>,
    (runs, used): (&[Run], &[&Run]),
    summary: &Summary,
) -> Displaced {
    let per_operation = |run: &Run| run.elapsed_ns / run.replicate.covered.operations.max(1.0);
    Displaced {
        kept: summary.kept,
        quiet: summary.quiet,
        others: summary.others,
        operations: displacement.iterations,
        computed: displacement.subject.report().computed,
        wall: median(&runs.iter().map(per_operation).collect::<Vec<_>>()),
        paper: summary.paper,
        gap: summary.gap,
        daemon_free: summary.daemon_free,
        charged: summary.charged,
        rusage: summary.rusage,
        missed: summary.missed,
        difference: summary.difference,
        deviation: standard_deviation(&summary.each),
        error_daemons: summary.terms.daemons,
        error_start: summary.terms.start,
        error_resolution: summary.terms.resolution,
        turns: summary.terms.turns,
        error_cache: summary.terms.cache,
        flags: summary.flags.iter().cloned().chain(no_rate_reason(used)).collect(),
        throughput: throughput(used),
        executions: Vec::new(),
    }
}

fn coverage_sentence(runs: &[Run], summary: &Summary) -> String {
    let fluid = median(&runs.iter().map(|run| run.replicate.covered.fluid_share()).collect::<Vec<_>>());
    let (kept, all) = summary.kept;
    format!(
        "the fluid covered each of {all} runs on the same CPU and had {:.0} % of the median one; {kept} were unspoilt, \
         others had {:.2} %",
        100.0 * fluid,
        100.0 * summary.others
    )
}

fn partly_timed_sentence(used: &[&Run]) -> Option<String> {
    let share = median(&used.iter().map(|run| run.timed_ns / run.elapsed_ns.max(1.0)).collect::<Vec<_>>());
    (share < MOSTLY_TIMED).then(|| {
        format!(
            "{:.0} % of a run stood in the timed part of the case; what is around it is in this cost as well",
            100.0 * share
        )
    })
}

fn contamination(used: &[&Run]) -> Contamination {
    let each = |field: fn(&Run) -> Option<u64>| used.iter().filter_map(|run| field(run)).collect();
    Contamination {
        // Waiting while the fluid has the CPU is no disturbance. The accounts show the time of other tasks.
        waited_ns: each(|run| Some(run.replicate.covered.others_time().max(0.0) as u64)),
        stolen_ticks: each(|run| Some(run.replicate.stolen_ticks)),
        involuntary_switches: each(|run| {
            Some(u64::from(run.replicate.disturbance() == Some(Spoilt::Others)))
        }),
        faults: each(|run| Some(run.delta.counted.minor_faults + run.delta.counted.major_faults)),
        migrated: used.iter().map(|run| run.delta.migrated).collect(),
        held_up: Vec::new(),
        busy_beside: None,
    }
}

// Throughput of a CPU that is never idle: the rates that the estimates predict, and the observed rate.

/// Largest share of the time for which neither the process nor its partners are charged on a CPU that is never idle, unless
/// other tasks had the CPU.
const MOST_IDLE: f64 = 0.02;

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

/// Measurements of a CPU that the tasks of the shared subject used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saturated {
    /// Time per iteration, with the iterations of all tasks together, ns.
    iteration: f64,
    /// The share of the time that the tasks were charged for.
    busy: f64,
}

impl Saturated {
    fn is_idle(&self) -> bool {
        self.busy < 1.0 - MOST_IDLE
    }

    /// The mean of the measurements before and after a run, so that a change of the machine's speed affects these and the run
    /// alike.
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
    (all.len() - idle < student::FEWEST && !all.is_empty()).then(|| {
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
