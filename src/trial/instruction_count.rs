//! Instructions of an iteration in user space, counted by single steps in the clock's brackets. They are the same in every run of
//! a deterministic operation, on a busy machine too, and need no PMU. They are no time.
//!
//! Two batches, of n and of 2n iterations, each in a forked copy of this process: what a batch executes whatever its length
//! cancels out, and an empty bracket is taken off for each bracket. Every pair of batches begins in the same state.

use super::{Bench, CaseEnd, Trial, judge};
use crate::case::{Case, Subject};
use crate::clock::Clock;
use crate::error;
use crate::platform::bracket_steps::{StepCount, count_steps};
use crate::record::{Derived, Execution, Interval, Measured};
use crate::statistic::median_interval;
use std::time::Instant;

/// Most steps of a batch: some ten seconds.
const MOST_STEPS: u64 = 3_000_000;
/// Steps of a short batch that are enough: a tenth of a second.
const ENOUGH_STEPS: u64 = 30_000;
/// Most iterations of a short batch.
const FEW: u64 = 32;
/// Pairs of batches, which show whether the count repeats.
const PAIRS: usize = 2;

/// Counts the instructions of an iteration of this case.
///
/// # Errors
/// It cannot be traced, an iteration is too long, or a claim does not hold.
pub fn measure_instructions(case: &Case, bench: Bench<'_>) -> Result<Measured, CaseEnd> {
    if let Some(why) = &case.untraced {
        return Err(CaseEnd::Skipped(format!("its instructions cannot be counted by single steps: {why}")));
    }
    let mut trial = Trial::prepare(case, bench, None)?;
    trial.call_witness()?;
    // What is made once is made here, and not in every copy.
    trial.subject.run(1, trial.clock)?;
    let counted = count_iterations(&mut *trial.subject, trial.clock)?;
    trial.count_allocations()?;
    let report = trial.subject.report();
    let (figure, cost) = (counted.each, counted.cost_sentence());
    let steps_a_second = Interval::exactly(counted.steps_a_second().round());
    let mut unasked = trial.unasked;
    unasked.extend(report.unchecked);
    unasked.extend(judge::unchecked_time_claims(case, "a count"));
    let Interval { estimate, .. } = figure;
    Ok(Measured {
        executions: vec![Execution {
            samples: PAIRS,
            low: figure.low,
            median: estimate,
            ..Execution::default()
        }],
        iterations: vec![counted.iterations; PAIRS],
        counted: counted.differences,
        median: figure,
        ticks: estimate,
        slope: figure,
        instructions: Some(estimate),
        evidence: trial.evidence.into_iter().chain(report.evidence).chain([cost]).collect(),
        unasked,
        derived: vec![Derived { name: "steps".into(), unit: "/s".into(), value: steps_a_second }],
        events: trial.rates,
        ..Measured::default()
    })
}

/// The instructions of an iteration, and what counting them cost.
struct Counted {
    each: Interval,
    /// Iterations by which the batches of a pair differ.
    iterations: u64,
    /// Instructions by which they differ.
    differences: Vec<u64>,
    steps: u64,
    seconds: f64,
}

impl Counted {
    fn steps_a_second(&self) -> f64 {
        self.steps as f64 / self.seconds.max(1e-9)
    }

    fn cost_sentence(&self) -> String {
        format!(
            "{} instructions were stepped through in {:.1} s, {:.0} a second",
            self.steps,
            self.seconds,
            self.steps_a_second()
        )
    }
}

fn count_iterations(subject: &mut dyn Subject, clock: &Clock) -> Result<Counted, CaseEnd> {
    let begun = Instant::now();
    let stepped = clock.for_step_counting();
    let empty = step(|| _ = stepped.time(|| ()))?.instructions;
    let mut steps = 0;
    let mut batch = |iterations| -> Result<StepCount, CaseEnd> {
        let count = match step(|| run_or_unwind(subject, iterations, &stepped)) {
            Err(end @ CaseEnd::Failed(_)) => {
                // Here too, for the reason.
                subject.run(iterations, clock)?;
                return Err(end);
            }
            counted => counted?,
        };
        steps += count.steps;
        if count.brackets == 0 {
            return Err(CaseEnd::Skipped(
                "its instructions cannot be counted: it measures its own time, and opens no bracket of the clock".into(),
            ));
        }
        Ok(count)
    };
    let one = batch(1)?;
    let few = (ENOUGH_STEPS / one.steps.max(1)).clamp(1, FEW);
    let (mut differences, mut each) = (Vec::new(), [0.0; PAIRS]);
    for each in &mut each {
        let [short, long] = [batch(few)?, batch(2 * few)?]
            .map(|count| count.instructions.saturating_sub(empty * count.brackets));
        differences.push(long.saturating_sub(short));
        *each = (long as f64 - short as f64) / few as f64;
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Counted { each: median_interval(&each), iterations: few, differences, steps, seconds })
}

/// Ends the copy of this process by a panic that prints nothing if the operation fails.
fn run_or_unwind(subject: &mut dyn Subject, iterations: u64, clock: &Clock) {
    if subject.run(iterations, clock).is_err() {
        std::panic::resume_unwind(Box::new(()));
    }
}

fn step(body: impl FnOnce()) -> Result<StepCount, CaseEnd> {
    match count_steps(body, MOST_STEPS) {
        Ok(Some(count)) => Ok(count),
        Ok(None) => Err(CaseEnd::Skipped(format!(
            "an iteration executes more than {MOST_STEPS} instructions, which would be stepped through for longer than ten seconds"
        ))),
        Err(error @ (error::Error::Died(_) | error::Error::Disturbed(_))) => Err(error.into()),
        Err(error) => Err(CaseEnd::Skipped(format!("this process may not be traced: {error}"))),
    }
}
