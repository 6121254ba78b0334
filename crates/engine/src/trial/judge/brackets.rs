//! Judges that a subject returns the times of its clock, by one batch more on a clock of the witness that keeps every bracket.
//! A subject that returns 70 % of the time, or the best single time for each, contradicts the brackets.

use crate::case::{Case, OwnTasks, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::trial::CaseEnd;

/// Batches that must all contradict.
const BATCHES: usize = 3;
/// Two sums of times agree if the smaller is at least this share of the larger.
const SAME: f64 = 0.95;
/// Difference between two sums of times that is ignored, ns: a few readings of the clock.
const NOTHING_NS: f64 = 1_000.0;
/// Brackets of a batch: all of them are kept.
const MOST: u64 = Clock::SINGLES as u64 / 2;

/// What one batch returned, and what its brackets say.
#[derive(Clone, Copy, Debug)]
struct Batch {
    returned_ns: f64,
    bracketed_ns: f64,
}

/// Judges batches of `iterations`, or as many as the clock can keep brackets of.
///
/// # Errors
/// [`CaseEnd::Failed`]: the time is not that of the brackets; or the subject fails.
pub(in crate::trial) fn judge_brackets(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    iterations: u64,
) -> std::result::Result<(), CaseEnd> {
    let iterations = iterations.clamp(1, MOST);
    let mut judged = Ok(());
    for _ in 0..BATCHES {
        let Some(batch) = run_batch(subject, clock, iterations)? else { return Ok(()) };
        judged = bracket_contradiction(case, batch, has_tasks(case, subject)).map_or(Ok(()), Err);
        if judged.is_ok() {
            break;
        }
    }
    judged.map_err(|sentence| CaseEnd::Failed(format!("in a batch of {iterations} iterations {sentence}")))
}

/// Tasks that take part may time for the subject, by clocks of their own.
fn has_tasks(case: &Case, subject: &dyn Subject) -> bool {
    case.own_tasks != OwnTasks::None || !subject.report().partners.is_empty()
}

/// Runs one batch and sums up its brackets. `None` if the clock did not keep every bracket, or if there was none
/// because the subject read another clock.
fn run_batch(subject: &mut dyn Subject, clock: &Clock, iterations: u64) -> Result<Option<Batch>> {
    let keeping = Clock::with_scale(clock.scale());
    keeping.keep_single_times();
    let Ticks(ticks) = subject.run(iterations, &keeping)?;
    let is_whole = keeping.count_single_times().is_some_and(|kept| kept > 0);
    let bracketed_ns = keeping.take_single_times().iter().sum();
    Ok(is_whole.then(|| Batch { returned_ns: clock.nanoseconds(Ticks(ticks)).0, bracketed_ns }))
}

fn bracket_contradiction(case: &Case, batch: Batch, has_tasks: bool) -> Option<String> {
    let Batch { returned_ns, bracketed_ns } = batch;
    let sums =
        format!("the brackets of the clock hold {bracketed_ns:.0} ns, and {returned_ns:.0} ns were returned");
    match case.one_by_one {
        // Operations in flight at the same time take longer than the time that passed, and never less.
        true if bracketed_ns + NOTHING_NS < SAME * returned_ns => {
            Some(format!("{sums}: not the times that were measured are kept of single operations"))
        }
        false if !has_tasks && returned_ns + NOTHING_NS < SAME * bracketed_ns => {
            Some(format!("{sums}: a part of what was timed is left out"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::arch;

    /// Returns a share of a true time, and notes single times by `note`.
    struct Teller {
        share: f64,
        note: fn(&[Ticks], &Clock),
    }

    impl Subject for Teller {
        fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
            let own = Clock::with_scale(clock.scale());
            let times: Vec<_> = (0..iterations).map(|_| own.time(|| arch::add_chain(100_000))).collect();
            (self.note)(&times, clock);
            let sum: u64 = times.iter().map(|ticks| ticks.0).sum();
            Ok(Ticks((self.share * sum as f64) as u64))
        }
    }

    fn judged(case: Case, share: f64, note: fn(&[Ticks], &Clock)) -> std::result::Result<(), CaseEnd> {
        judge_brackets(&case, &mut Teller { share, note }, &Clock::start_up(), 8)
    }

    fn truly(times: &[Ticks], clock: &Clock) {
        times.iter().for_each(|ticks| _ = clock.record_bracket(*ticks));
    }

    fn looped() -> Case {
        Case::looped("case", "a case", |_| {})
    }

    #[test]
    fn a_sum_that_leaves_out_a_part_is_caught() {
        assert_eq!(judged(looped(), 1.0, truly), Ok(()));
        let Err(CaseEnd::Failed(sentence)) = judged(looped(), 0.7, truly) else { panic!("believed") };
        assert!(sentence.contains("left out") && sentence.contains("8 iterations"), "{sentence}");
        assert_eq!(
            judged(looped().own_tasks(OwnTasks::Elsewhere), 0.7, truly),
            Ok(()),
            "they have other clocks"
        );
        assert_eq!(judged(looped(), 0.7, |_, _| ()), Ok(()), "it reads a clock of its own: nothing is known");
    }

    #[test]
    fn the_best_single_time_for_all_is_caught() {
        let halves = |times: &[Ticks], clock: &Clock| {
            times.iter().for_each(|ticks| _ = clock.record_bracket(Ticks(ticks.0 / 2)));
        };
        let twice = |times: &[Ticks], clock: &Clock| {
            times.iter().for_each(|ticks| _ = clock.record_bracket(Ticks(ticks.0 * 2)));
        };
        assert!(judged(looped().one_by_one(), 1.0, halves).is_err());
        assert_eq!(judged(looped().one_by_one(), 1.0, truly), Ok(()));
        assert_eq!(judged(looped().one_by_one(), 1.0, twice), Ok(()), "in flight at the same time");
    }
}
