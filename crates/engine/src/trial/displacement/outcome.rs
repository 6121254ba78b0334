//! The record of a displaced case.

use super::saturation::{no_rate_reason, throughput};
use super::{CaseEnd, Displacement, Run};
use crate::record::quantity::NANOSECONDS;
use crate::record::{Contamination, Derived, Displaced, Execution, Interval, Measured};
use crate::statistic::fluid_cost::{Spoilt, Summary};
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
        derived: derived_figures(summary),
        displaced: Some(displaced_summary(displacement, (runs, &used), summary)),
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
    match summary.flags.is_empty() {
        true => "the cost is below what the runs can resolve: there were too few runs, or their results differ too much".into(),
        false => summary.flags.join("; "),
    }
}

/// Ticks displaced by each run.
fn displaced_ticks(displacement: &Displacement<'_>, summary: &Summary) -> Vec<u64> {
    let ticks_per_ns = displacement.clock.hz() / 1e9;
    summary.each.iter().map(|ns| (ns * displacement.iterations as f64 * ticks_per_ns) as u64).collect()
}

fn derived_figures(summary: &Summary) -> Vec<Derived> {
    let figure = |name: &str, unit: &str, value: Option<Interval>| {
        Some(Derived { name: name.into(), unit: unit.into(), value: value? })
    };
    let figures = [
        figure("paper", NANOSECONDS, summary.paper),
        figure("daemon-free", NANOSECONDS, summary.daemon_free),
        figure("accounting", NANOSECONDS, summary.charged),
        figure("getrusage", NANOSECONDS, summary.rusage),
        figure("missed", "", summary.missed),
    ];
    figures.into_iter().flatten().collect()
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
        // A wait for the CPU beside the fluid is no disturbance: the accounts show other tasks.
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
