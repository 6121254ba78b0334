//! Instructions of an iteration in user space, of what stands in the clock's brackets. They are the same in every run of a
//! deterministic operation, on a busy machine too, and need no PMU. They are no time.
//!
//! Two batches, of n and of 2n iterations: what a batch executes whatever its length cancels out, and an empty bracket is taken
//! off for each bracket. By single steps each batch runs in a forked copy of this process, and begins in the same state.

use super::{Bench, CaseEnd, Trial, judge};
use crate::case::{Case, Subject};
use crate::clock::Clock;
use crate::error::{self, Error};
use crate::platform::bracket_steps::{self, count_steps};
use crate::platform::callgrind;
use crate::record::{Derived, Execution, Interval, Measured, NEVER_ASKED};
use std::path::Path;
use std::time::Instant;

/// Most steps of a batch: some ten seconds.
const MOST_STEPS: u64 = 1_000_000;
/// Instructions of a short batch that are enough: a tenth of a second by single steps.
const ENOUGH: u64 = 30_000;
/// Most iterations of a short batch.
const FEW: u64 = 32;

/// Counts the instructions of an iteration of this case: by single steps, or if this process runs under callgrind by that, which
/// names its files by the path `counts`. An earlier process may have `proven` the case.
///
/// # Errors
/// It cannot be traced, an iteration is too long, or a claim does not hold.
pub fn measure_instructions(
    case: &Case,
    bench: Bench<'_>,
    proven: bool,
    counts: Option<&Path>,
) -> Result<Measured, CaseEnd> {
    let mut trial = Trial::prepare(case, bench, None)?;
    if let (Some(why), None) = (trial.subject.report().untraced, counts) {
        return Err(CaseEnd::Skipped(format!(
            "its instructions cannot be counted by single steps ({why}), but by Valgrind: --instructions=callgrind"
        )));
    }
    match counts {
        // Valgrind is what would be traced.
        Some(_) => trial.unasked.extend(unwitnessed_claims(case)),
        None if proven => {}
        None => trial.call_witness()?,
    }
    let how = counts.map_or(Method::Steps, Method::Callgrind);
    let counted = count_iterations(&mut *trial.subject, trial.clock, how)?;
    trial.count_allocations()?;
    let report = trial.subject.report();
    let (each, figure) = (counted.each, Interval::exactly(counted.each));
    let rate = Derived {
        name: if counts.is_some() { "instructions" } else { "steps" }.into(),
        unit: "/s".into(),
        value: Interval::exactly(counted.rate().round()),
    };
    let mut unasked = trial.unasked;
    unasked.extend(report.unchecked);
    unasked.extend(judge::unchecked_time_claims(case, "a count"));
    Ok(Measured {
        executions: vec![Execution { samples: 1, low: each, median: each, ..Execution::default() }],
        iterations: vec![counted.iterations],
        counted: vec![counted.difference],
        median: figure,
        ticks: each,
        slope: figure,
        instructions: Some(each),
        evidence: trial
            .evidence
            .into_iter()
            .chain(report.evidence)
            .chain([counted.cost_sentence()])
            .collect(),
        unasked,
        derived: vec![rate],
        events: trial.rates,
        ..Measured::default()
    })
}

fn unwitnessed_claims(case: &Case) -> impl Iterator<Item = String> {
    let claims = case.claims.iter().filter(|claim| claim.wants_witness());
    claims.map(|claim| format!("{NEVER_ASKED}a count by callgrind: {claim}"))
}

/// How instructions are counted.
#[derive(Clone, Copy)]
enum Method<'a> {
    Steps,
    Callgrind(&'a Path),
}

/// What a batch executed in its brackets.
#[derive(Clone, Copy)]
struct Batch {
    brackets: u64,
    instructions: u64,
    steps: u64,
}

impl Method<'_> {
    fn clock(self, clock: &Clock) -> Clock {
        match self {
            Self::Steps => clock.for_step_counting(),
            Self::Callgrind(_) => clock.for_callgrind(),
        }
    }

    fn count(self, body: impl FnOnce() -> error::Result<()>) -> Result<Batch, CaseEnd> {
        match self {
            Self::Steps => count_by_steps(body),
            Self::Callgrind(file) => {
                let callgrind::Counts { brackets, instructions } = callgrind::count(body, file)?;
                Ok(Batch { brackets, instructions, steps: instructions })
            }
        }
    }
}

fn count_by_steps(body: impl FnOnce() -> error::Result<()>) -> Result<Batch, CaseEnd> {
    // An error ends the copy of this process by a panic that prints nothing.
    let body = || body().unwrap_or_else(|_| std::panic::resume_unwind(Box::new(())));
    match count_steps(body, MOST_STEPS) {
        Ok(Some(bracket_steps::StepCount { brackets, instructions, steps })) => {
            Ok(Batch { brackets, instructions, steps })
        }
        Ok(None) | Err(Error::Disturbed(_)) => Err(CaseEnd::Skipped(format!(
            "an iteration takes more than {MOST_STEPS} single steps, or more than 20 s: Valgrind is faster \
             (--instructions=callgrind)"
        ))),
        Err(died @ Error::Died(_)) => Err(CaseEnd::Failed(died.to_string())),
        Err(error) => Err(CaseEnd::Skipped(format!("this process may not be traced: {error}"))),
    }
}

/// The instructions of an iteration, and what counting them cost.
struct Counted {
    each: f64,
    /// Iterations by which the batches differ.
    iterations: u64,
    /// Instructions by which they differ.
    difference: u64,
    /// Steps, or instructions under callgrind, in all batches.
    steps: u64,
    seconds: f64,
}

impl Counted {
    fn rate(&self) -> f64 {
        self.steps as f64 / self.seconds.max(1e-9)
    }

    fn cost_sentence(&self) -> String {
        let Self { steps, seconds, .. } = self;
        format!("{steps} instructions were counted in {seconds:.1} s, {:.0} a second", self.rate())
    }
}

fn count_iterations(subject: &mut dyn Subject, clock: &Clock, how: Method<'_>) -> Result<Counted, CaseEnd> {
    // What is made once is made here, and not in every copy of this process.
    subject.run(1, clock)?;
    let begun = Instant::now();
    let counting = how.clock(clock);
    let empty = how.count(|| {
        counting.time(|| ());
        Ok(())
    })?;
    let mut steps = 0;
    let mut batch = |iterations| -> Result<Batch, CaseEnd> {
        let count = match how.count(|| subject.run(iterations, &counting).map(drop)) {
            Err(CaseEnd::Failed(how)) => {
                // An operation that fails has its reason here too. One that runs well has a bracket that no tracer follows.
                subject.run(iterations, clock)?;
                return Err(CaseEnd::Skipped(format!(
                    "its instructions cannot be counted: it runs well untraced, and with marks at its brackets {how}; a child \
                     process may open them"
                )));
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
    let few = (ENOUGH / one.steps.max(1)).clamp(1, FEW);
    let short = if few == 1 { one } else { batch(few)? };
    let [short, long] = [short, batch(2 * few)?]
        .map(|count| count.instructions.saturating_sub(empty.instructions * count.brackets));
    let difference = long.saturating_sub(short);
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Counted { each: difference as f64 / few as f64, iterations: few, difference, steps, seconds })
}
