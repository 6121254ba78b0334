//! Counts perf events, allocations and instructions in separate batches after the timed ones.
//!
//! A perf counter slows the event that it counts, because each fault or switch calls it. So no counter is open while anything
//! is timed, and the counted batches are not timed. A count covers the measuring thread, the partners of the case, and the
//! children that either makes, over a whole batch, including the code that prepares and checks its operations.

use super::{Bench, CaseEnd, Trial, judge};
use crate::case::{Case, Subject};
use crate::clock::Clock;
use crate::error::{self, Error};
use crate::platform::allocation::{self, Counts};
use crate::platform::bracket_steps::{StepCount, count_steps};
use crate::platform::callgrind;
use crate::platform::perf_event::{Counter, Event};
use crate::record::{
    ALLOCATED_BYTES, ALLOCATIONS, Derived, EventRate, Execution, Interval, Measured, NEVER_ASKED, PEAK_BYTES,
};
use crate::statistic::median_interval;
use std::path::Path;
use std::time::Instant;

/// Batches for each event of an execution.
const BATCHES: usize = 3;

/// Why a count leaves something out.
const USER_SPACE: &str = "counted in user space only: perf_event_paranoid keeps the kernel's";

/// The counters of one event: of this thread, and of each partner.
struct Count {
    counters: Vec<Counter>,
}

impl Count {
    fn open(event: Event, partners: &[i32]) -> error::Result<Self> {
        let threads = std::iter::once(0).chain(partners.iter().copied());
        let counters =
            threads.map(|thread| Counter::open_with_children(event, thread)).collect::<error::Result<_>>()?;
        Ok(Self { counters })
    }

    fn read(&self) -> error::Result<Vec<u64>> {
        self.counters.iter().map(Counter::read).collect()
    }

    /// Number of events that all counters together have counted since `before`.
    fn count_since(&self, before: &[u64]) -> error::Result<u64> {
        self.counters.iter().zip(before).map(|(counter, before)| counter.count_since(*before)).sum()
    }
}

impl Trial<'_> {
    /// Counts these events, each over batches as long as the last timed one. For an event that this machine does
    /// not have, the result is a sentence in place of a count.
    ///
    /// # Errors
    /// The subject fails.
    pub fn count_events(&mut self, events: &[Event]) -> Result<(), CaseEnd> {
        let iterations = self.samples.last().map_or(1, |sample| sample.iterations);
        // Single times of these batches are dropped.
        let unrecorded = Clock::with_scale(self.clock.scale());
        let partners: Vec<i32> =
            self.subject.report().partners.iter().map(|task| task.thread.as_raw()).collect();
        for event in events {
            let counted = match Count::open(*event, &partners) {
                Ok(count) => self.event_rate(&count, iterations, &unrecorded)?,
                Err(error) => (None, Some(event.refusal_message(&error))),
            };
            let (rate, remark) = counted;
            self.rates.push(EventRate { name: event.name.into(), rate, remark });
        }
        Ok(())
    }

    fn event_rate(
        &mut self,
        count: &Count,
        iterations: u64,
        clock: &Clock,
    ) -> Result<(Option<Interval>, Option<String>), CaseEnd> {
        let mut rates = [0.0; BATCHES];
        for rate in &mut rates {
            let before = match count.read() {
                Ok(before) => before,
                Err(error) => return Ok((None, Some(error.to_string()))),
            };
            self.subject.run(iterations, clock)?;
            match count.count_since(&before) {
                Ok(events) => *rate = events as f64 / iterations.max(1) as f64,
                // An unreliable counter does not fail the case.
                Err(error) => return Ok((None, Some(error.to_string()))),
            }
        }
        let is_partial = count.counters.iter().any(|counter| counter.user_space_only);
        Ok((Some(median_interval(&rates)), is_partial.then(|| USER_SPACE.into())))
    }
}

// Allocations per iteration, if the program declares a counting allocator ([`syscost::alloc`](crate::alloc)). They are counted
// in separate batches after the timed ones, inside the clock's brackets.

/// Pairs of batches. All agree, unless the operation allocates at random or once in a while.
const PAIRS: usize = 3;
/// Iterations of the shorter batch of a pair; the longer one has twice as many. Allocations that do not depend on the length of
/// a batch cancel out. The number is fixed, since the lengths of the samples differ from run to run.
const FEW: u64 = 16;

impl Trial<'_> {
    /// Counts the allocations of an iteration. Nothing is counted in a program without a counting allocator.
    ///
    /// # Errors
    /// The subject fails.
    pub fn count_allocations(&mut self) -> Result<(), CaseEnd> {
        if !allocation::is_declared() {
            return Ok(());
        }
        let clock = self.clock.for_allocation_counting();
        let few = self.samples.last().map_or(FEW, |sample| sample.iterations.clamp(1, FEW));
        let mut counts = |iterations| -> Result<Counts, CaseEnd> {
            allocation::take_counts();
            self.subject.run(iterations, &clock)?;
            Ok(allocation::take_counts())
        };
        let one = counts(1)?;
        let (mut blocks, mut bytes) = ([0.0; PAIRS], [0.0; PAIRS]);
        for pair in 0..PAIRS {
            let (short, long) = (counts(few)?, counts(2 * few)?);
            let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / few as f64;
            blocks[pair] = each(long.allocations, short.allocations);
            bytes[pair] = each(long.bytes, short.bytes);
        }
        self.rates.extend(match one.brackets {
            0 => vec![EventRate {
                name: ALLOCATIONS.into(),
                rate: None,
                remark: Some("allocations of an operation that measures its own time".into()),
            }],
            _ => {
                rates([median_interval(&blocks), median_interval(&bytes), Interval::exactly(one.peak as f64)])
            }
        });
        Ok(())
    }
}

fn rates(found: [Interval; 3]) -> Vec<EventRate> {
    let names = [ALLOCATIONS, ALLOCATED_BYTES, PEAK_BYTES].into_iter().zip(found);
    names.map(|(name, rate)| EventRate { name: name.into(), rate: Some(rate), remark: None }).collect()
}

// User-space instructions per iteration, inside the clock's brackets. The count is the same in every run of a deterministic
// operation, even on a busy machine, and needs no PMU. It is not a time.
//
// Two batches have n and 2n iterations: instructions that do not depend on the length cancel out, and those of an empty bracket
// are subtracted for each bracket. If it is counted by single steps, each batch runs in a forked copy of this process, and
// begins in the same state.

/// Most steps of a batch: some ten seconds.
const MOST_STEPS: u64 = 1_000_000;
/// Instructions of a short batch that are enough: a tenth of a second by single steps.
const ENOUGH_INSTRUCTIONS: u64 = 30_000;
/// Most iterations of a short batch.
const MOST_SHORT_ITERATIONS: u64 = 32;

/// Counts the instructions per iteration of this case by single steps, or by callgrind if `counts` is given: this process then
/// runs under callgrind, which names its files by that path. If an earlier process has `proven` the case, no witness is called.
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
        // A witness would trace Valgrind and not the operation.
        Some(_) => trial.unasked.extend(unwitnessed_claims(case)),
        None if proven => {}
        None => trial.call_witness()?,
    }
    let counted = count_iterations(&mut *trial.subject, trial.clock, counts)?;
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

/// Counts the instructions that a batch executes in its brackets: by callgrind if `counts` is given, the path by which it names
/// its files, else by single steps.
fn count_batch(
    body: impl FnOnce() -> error::Result<()>,
    counts: Option<&Path>,
) -> Result<StepCount, CaseEnd> {
    let Some(file) = counts else { return count_by_steps(body) };
    let callgrind::Counts { brackets, instructions } = callgrind::count(body, file)?;
    Ok(StepCount { brackets, instructions, steps: instructions, ..StepCount::default() })
}

fn count_by_steps(body: impl FnOnce() -> error::Result<()>) -> Result<StepCount, CaseEnd> {
    // An error ends the copy of this process by a panic that prints nothing.
    let body = || body().unwrap_or_else(|_| std::panic::resume_unwind(Box::new(())));
    match count_steps(body, MOST_STEPS) {
        Ok(Some(counted)) => Ok(counted),
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

fn count_iterations(
    subject: &mut dyn Subject,
    clock: &Clock,
    counts: Option<&Path>,
) -> Result<Counted, CaseEnd> {
    // Objects that the operation makes once are made here, and not in every copy of this process.
    subject.run(1, clock)?;
    let begun = Instant::now();
    let counting = if counts.is_some() { clock.for_callgrind() } else { clock.for_step_counting() };
    let bracket = || {
        counting.time(|| ());
        Ok(())
    };
    let empty = count_batch(bracket, counts)?;
    let mut steps = 0;
    let mut batch = |iterations| -> Result<StepCount, CaseEnd> {
        let count = match count_batch(|| subject.run(iterations, &counting).map(drop), counts) {
            Err(CaseEnd::Failed(how)) => {
                // If the operation itself fails, this run returns the reason. If it succeeds, the tracer cannot follow one of
                // its brackets.
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
    let few = (ENOUGH_INSTRUCTIONS / one.steps.max(1)).clamp(1, MOST_SHORT_ITERATIONS);
    let short = if few == 1 { one } else { batch(few)? };
    let [short, long] = [short, batch(2 * few)?]
        .map(|count| count.instructions.saturating_sub(empty.instructions * count.brackets));
    let difference = long.saturating_sub(short);
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Counted { each: difference as f64 / few as f64, iterations: few, difference, steps, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn faults_of_this_thread_and_of_its_children_are_counted() {
        let event = Event::from_name("minor-faults").expect("in the table");
        let Ok(count) = Count::open(event, &[]) else {
            print_skipped("this kernel or sandbox refuses perf_event_open");
            return;
        };
        let touch = || {
            let mut memory = MmapMut::map_anon(64 * 4096).expect("mapped");
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        };
        let before = count.read().expect("read");
        touch();
        let own = count.count_since(&before).expect("read");
        let child = crate::platform::child::Child::start(touch).expect("forked");
        child.wait_for_success(std::time::Duration::from_secs(20)).expect("ended");
        let both = count.count_since(&before).expect("read");
        assert!(own >= 1 && both > own, "{own} {both}");
    }

    #[test]
    fn a_refused_event_is_explained_in_a_sentence() {
        let cycles = Event::from_name("cpu-cycles").expect("in the table");
        for (errno, words) in [
            (libc::ENOENT, "processor's PMU"),
            (libc::EACCES, "perf_event_paranoid"),
            (libc::EMFILE, "ulimit -n"),
        ] {
            let cause = std::io::Error::from_raw_os_error(errno);
            let sentence = cycles
                .refusal_message(&crate::error::Error::Kernel { call: "perf_event_open".into(), cause });
            assert!(sentence.contains(words), "{sentence}");
            assert_eq!(sentence.contains("PMU"), errno == libc::ENOENT, "{sentence}");
        }
    }
}
