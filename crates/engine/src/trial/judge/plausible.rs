//! Checks of every operation: it reports no more time than has passed, and uses no CPU time of threads that it does not
//! declare.

use super::super::{CaseEnd, Sample};
use super::Judgement;
use super::interference::is_quiet;
use crate::case::{Case, OwnTasks, Subject, TIMED_SHARE};
use crate::clock::{Clock, Ticks};
use crate::error;
use crate::statistic;

/// Largest ratio of the time that a subject reports to the time that passed. Some subjects read a clock of the kernel's,
/// whose rate may differ from the raw counter's by 500 ppm.
const CLOCK_RATIO: f64 = 1.001;
/// Allowance in addition to the ratio, ns: two readings of the clock.
const READINGS_NS: f64 = 1_000.0;
/// Largest CPU time of other threads of this process, as a share of the time that passed …
const THREADS_SHARE: f64 = 0.05;
/// … or this time, ns, if it is longer: a thread may end or begin between two batches.
const THREADS_NS: f64 = 200_000.0;

/// Judges one sample; `reported_ns` is the time that the subject returned, if time was measured.
///
/// Both counts are exact: an honest case that declares its threads never fails by chance.
///
/// # Errors
/// [`CaseEnd::Failed`]: the time was made up, or another thread did the work.
pub(in crate::trial) fn judge_plausible(
    case: &Case,
    sample: &Sample,
    reported_ns: Option<f64>,
) -> Result<(), CaseEnd> {
    let passed_ns = sample.elapsed_ns;
    if let Some(reported_ns) = reported_ns {
        check_reported_time(reported_ns, passed_ns, sample.iterations)?;
    }
    if let Some(noted) = sample.noted.filter(|_| case.one_by_one) {
        check_all_timed(noted, sample.iterations)?;
    }
    let others_ns = sample.delta.other_threads_ns as f64;
    if !has_tasks(case, sample) && others_ns > (passed_ns * THREADS_SHARE).max(THREADS_NS) {
        return Err(CaseEnd::Failed(format!(
            "other threads of this process ran for {others_ns:.0} ns in a batch of {passed_ns:.0} ns: work was left to \
             them; declare them as partners or by own_tasks if they belong to the operation"
        )));
    }
    Ok(())
}

/// Whether tasks of the case take part.
fn has_tasks(case: &Case, sample: &Sample) -> bool {
    case.own_tasks != OwnTasks::None || sample.delta.partners.is_some()
}

/// Judges that a subject reports no more time than has passed.
///
/// # Errors
/// [`CaseEnd::Failed`]: the time was made up.
pub(in crate::trial) fn check_reported_time(
    reported_ns: f64,
    passed_ns: f64,
    iterations: u64,
) -> Result<(), CaseEnd> {
    if reported_ns <= passed_ns * CLOCK_RATIO + READINGS_NS {
        return Ok(());
    }
    Err(CaseEnd::Failed(format!(
        "{iterations} iterations are said to have taken {reported_ns:.0} ns, and only {passed_ns:.0} ns passed: the time was \
         made up or remembered"
    )))
}

/// Judges that no single operation of a sample is left out. There may be more: some are in flight when a sample ends.
fn check_all_timed(noted: usize, iterations: u64) -> Result<(), CaseEnd> {
    if noted as u64 >= iterations {
        return Ok(());
    }
    Err(CaseEnd::Failed(format!("only {noted} of {iterations} operations were timed one by one")))
}

/// Fewest steps of the counter in a batch: one step is 2 % of it.
const FEWEST_STEPS: f64 = 50.0;
/// Shortest batch, ns: the bracket of the clock, some 15 ns, is 0.3 % of it.
const SHORTEST_NS: f64 = 5e3;
/// Wall time of a batch, ns, far below every length that is wanted of one. A batch with long untimed parts lasts longer.
const SHORT_NS: f64 = 50e3;

/// Judges that the batches are long enough for the clock, by the quickest: another task may have lengthened most of them, as
/// it did those by which their length was chosen.
///
/// # Errors
/// [`CaseEnd::Disturbed`]: the measured time is the step of the counter, or the clock's own bracket.
pub(in crate::trial) fn check_batch_length(samples: &[(f64, &Sample)], step_ns: f64) -> Result<(), CaseEnd> {
    let Some((batch, quickest)) = samples.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { return Ok(()) };
    let shortest = SHORTEST_NS.max(FEWEST_STEPS * step_ns);
    if *batch >= shortest || quickest.elapsed_ns > SHORT_NS {
        return Ok(());
    }
    Err(CaseEnd::Disturbed(format!(
        "batches of {} iterations take {batch:.0} ns, which the clock cannot tell apart from its own, since something \
         interrupted those by which their length was chosen: run again",
        quickest.iterations
    )))
}

/// Fewest iterations for which the full timed share is required. The code around a batch is untimed, and with fewer iterations
/// is a larger part of it.
const FULL_SHARE_ITERATIONS: u64 = 8;
/// Timed share that is enough where tasks of the case take part: starting and joining them is untimed, and may take any time.
const SHARE_BESIDE_TASKS: f64 = 0.02;

/// Timed share below which, in a case that declares none, it is unknown whether the untimed rest belongs to the
/// operation.
const UNDECLARED_SHARE: f64 = 0.8;

/// The least timed share of batches of this many iterations, if the same untimed code leaves `share` to batches of
/// [`FULL_SHARE_ITERATIONS`] iterations.
fn share_of_batch(share: f64, iterations: u64) -> f64 {
    let timed = iterations.min(FULL_SHARE_ITERATIONS) as f64;
    timed / (timed + FULL_SHARE_ITERATIONS as f64 * (1.0 - share) / share)
}

fn undeclared_sentence(share: f64) -> String {
    format!(
        "{:.1} % of the time around the batches is timed, and the case does not say why: what happens in the rest was not \
         asked; a case with untimed parts says so by timed_share",
        100.0 * share
    )
}

/// Judges that the timed share of the wall time is at least the share that the case declares. It uses the median
/// of the samples that no other task disturbed: a task inside a bracket raises the share, a task outside lowers
/// it.
///
/// # Errors
/// [`CaseEnd::Contradicted`]: most of the operation may happen outside of what is timed.
pub(in crate::trial) fn judge_timed_share(
    case: &Case,
    samples: &[(f64, &Sample)],
) -> Result<Option<Judgement>, CaseEnd> {
    let has_tasks = |(_, sample): &(f64, &Sample)| has_tasks(case, sample);
    let least = if samples.iter().any(has_tasks) {
        case.timed_share.min(SHARE_BESIDE_TASKS)
    } else {
        case.timed_share
    };
    let share = |(reported_ns, sample): &(f64, &Sample)| {
        reported_ns / (sample.elapsed_ns - READINGS_NS).max(*reported_ns).max(1.0)
    };
    let shares: Vec<f64> = samples.iter().filter(|(_, sample)| is_quiet(case, sample)).map(share).collect();
    let Some(iterations) = samples.iter().map(|(_, sample)| sample.iterations).min() else { return Ok(None) };
    if shares.is_empty() {
        return Ok(None);
    }
    let share = statistic::median(&shares);
    let expected = share_of_batch(least, iterations);
    if share >= expected {
        let is_open = least == TIMED_SHARE && share < share_of_batch(UNDECLARED_SHARE, iterations);
        return Ok(is_open.then(|| Judgement::Unasked(undeclared_sentence(share))));
    }
    Err(CaseEnd::Contradicted(format!(
        "{:.1} % of the time around the batches is timed, and with {iterations} iterations a batch the case says at least \
         {:.1} %: the operation, or part of it, is outside of the brackets; a case with untimed parts says so by timed_share",
        100.0 * share,
        100.0 * expected
    )))
}

// Judges that a subject returns the times of its clock, by a further batch on another clock, which keeps every bracket. A
// subject that returns 70 % of the time, or the best single time for each, contradicts the brackets.

/// Number of batches whose brackets must all contradict the returned time.
const BATCHES: usize = 3;
/// Two sums of times agree if the smaller is at least this share of the larger.
const SAME_SUM_RATIO: f64 = 0.95;
/// Difference between two sums of times that is ignored, ns: a few readings of the clock.
const NOTHING_NS: f64 = 1_000.0;
/// Most iterations of such a batch, so that all of its brackets are kept.
const MOST_BRACKETS: u64 = Clock::SINGLES as u64 / 2;

/// The time that a batch returned, and the sum of its brackets.
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
) -> Result<(), CaseEnd> {
    let iterations = iterations.clamp(1, MOST_BRACKETS);
    let mut judged = Ok(());
    for _ in 0..BATCHES {
        let Some(batch) = run_batch(subject, clock, iterations)? else { return Ok(()) };
        judged = bracket_contradiction(case, batch, declares_tasks(case, subject)).map_or(Ok(()), Err);
        if judged.is_ok() {
            break;
        }
    }
    judged.map_err(|sentence| CaseEnd::Failed(format!("in a batch of {iterations} iterations {sentence}")))
}

/// Whether tasks of the case take part: these may time the operation by clocks of their own.
fn declares_tasks(case: &Case, subject: &dyn Subject) -> bool {
    case.own_tasks != OwnTasks::None || !subject.report().partners.is_empty()
}

/// Runs one batch and sums up its brackets. `None` if the clock did not keep every bracket, or if there was none
/// because the subject read another clock.
fn run_batch(subject: &mut dyn Subject, clock: &Clock, iterations: u64) -> error::Result<Option<Batch>> {
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
        // Operations in flight at the same time add up to more than the time that passed, and never to less.
        true if bracketed_ns + NOTHING_NS < SAME_SUM_RATIO * returned_ns => {
            Some(format!("{sums}: not the times that were measured are kept of single operations"))
        }
        false if !has_tasks && returned_ns + NOTHING_NS < SAME_SUM_RATIO * bracketed_ns => {
            Some(format!("{sums}: a part of what was timed is left out"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Delta, PartnerReport, Reading};

    fn judged(case: &Case, reported_ns: f64, other_threads_ns: u64, partners: bool) -> Result<(), CaseEnd> {
        let partners = partners.then(PartnerReport::default);
        let delta = Delta { other_threads_ns, partners, ..Delta::default() };
        let sample = Sample { iterations: 9, counted: 1, elapsed_ns: 1e7, delta, ..Sample::default() };
        judge_plausible(case, &sample, Some(reported_ns))
    }

    fn case() -> Case {
        Case::looped("case", "a case", |_| {})
    }

    #[test]
    fn a_batch_of_a_few_clock_steps_is_disturbed() {
        let (long, sample) = (sample(1, 0), Sample { elapsed_ns: 900.0, ..sample(1, 0) });
        let judged = |reported: f64, step| {
            check_batch_length(&[reported, 9e6, 9e6].map(|reported| (reported, &sample)), step)
        };
        assert_eq!((judged(5e3, 10.0), check_batch_length(&[(20.0, &long)], 10.0)), (Ok(()), Ok(())));
        for (reported, step) in [(20.0, 10.0), (59.0, 0.9), (5e3, 1e3)] {
            let Err(CaseEnd::Disturbed(sentence)) = judged(reported, step) else {
                panic!("{reported} was believed")
            };
            assert!(
                sentence.starts_with(&format!("batches of 1 iterations take {reported} ns")),
                "{sentence}"
            );
        }
    }

    fn sample(iterations: u64, waited_ns: u64) -> Sample {
        let counted = Reading { waited_ns: Some(waited_ns), ..Reading::default() };
        let delta = Delta { counted, ..Delta::default() };
        Sample { iterations, counted: 1, elapsed_ns: 1e7, delta, ..Sample::default() }
    }

    #[test]
    fn an_operation_outside_of_its_bracket_is_caught() {
        let (quiet, disturbed, short) = (sample(9, 0), sample(9, 5_000_000), sample(1, 0));
        let judged = |case: Case, reported: [f64; 3], sample| {
            judge_timed_share(&case, &reported.map(|reported| (reported, sample)))
        };
        assert_eq!(judged(case(), [9e6, 9e6, 1e6], &quiet), Ok(None), "one sample says nothing");
        let Err(CaseEnd::Contradicted(sentence)) = judged(case(), [5e6; 3], &quiet) else {
            panic!("believed")
        };
        assert!(sentence.contains("50.0 %") && sentence.contains("at least 60.0 %"), "{sentence}");
        assert_eq!(judged(case(), [5e6; 3], &disturbed), Ok(None), "a stranger had the CPU meanwhile");
        assert_eq!(
            judged(case(), [5e6; 3], &short),
            Ok(None),
            "what surrounds a batch is half of a short one"
        );
        assert!(
            judged(case().timed_share(0.05), [3e4; 3], &short).is_err(),
            "a short one has work beside it, too"
        );
        assert_eq!(judged(case().timed_share(0.05), [3e5; 3], &short), Ok(None));
        let open = judged(case(), [7e6; 3], &quiet);
        assert!(matches!(open, Ok(Some(Judgement::Unasked(text))) if text.contains("70.0 %")));
        assert_eq!(judged(case(), [9e6; 3], &quiet), Ok(None));
        assert_eq!(judged(case().timed_share(0.4), [5e6; 3], &quiet), Ok(None));
        assert_eq!(judged(case().own_tasks(OwnTasks::Elsewhere), [5e6; 3], &quiet), Ok(None));
        assert!(judged(case().own_tasks(OwnTasks::Elsewhere), [1e4; 3], &quiet).is_err());
        assert_eq!(judged(case().one_by_one(), [1.0; 3], &quiet), Ok(None));
    }

    #[test]
    fn a_single_time_that_was_left_out_is_caught() {
        assert!(check_all_timed(10, 10).is_ok() && check_all_timed(12, 10).is_ok());
        assert!(check_all_timed(9, 10).is_err());
    }

    #[test]
    fn a_reported_time_longer_than_the_passed_one_is_caught() {
        assert_eq!(judged(&case(), 1e7, 0, false), Ok(()));
        let Err(CaseEnd::Failed(sentence)) = judged(&case(), 1.1e7, 0, false) else { panic!("believed") };
        assert!(sentence.contains("11000000 ns, and only 10000000 ns passed"), "{sentence}");
    }

    #[test]
    fn work_of_a_thread_that_was_not_declared_is_caught() {
        assert_eq!(judged(&case(), 1.0, 100_000, false), Ok(()));
        assert!(judged(&case(), 1.0, 9_000_000, false).is_err());
        assert_eq!(judged(&case(), 1.0, 9_000_000, true), Ok(()), "a partner is declared");
        assert_eq!(judged(&case().own_tasks(OwnTasks::Elsewhere), 1.0, 9_000_000, false), Ok(()));
    }
}

#[cfg(test)]
mod brackets_tests {
    use super::*;
    use crate::platform::arch;

    /// A subject that returns `share` of its true time, and records single times by `note`.
    struct ScaledTime {
        share: f64,
        note: fn(&[Ticks], &Clock),
    }

    impl Subject for ScaledTime {
        fn run(&mut self, iterations: u64, clock: &Clock) -> error::Result<Ticks> {
            let own = Clock::with_scale(clock.scale());
            let times: Vec<_> = (0..iterations).map(|_| own.time(|| arch::add_chain(100_000))).collect();
            (self.note)(&times, clock);
            let sum: u64 = times.iter().map(|ticks| ticks.0).sum();
            Ok(Ticks((self.share * sum as f64) as u64))
        }
    }

    fn judged(case: Case, share: f64, note: fn(&[Ticks], &Clock)) -> Result<(), CaseEnd> {
        judge_brackets(&case, &mut ScaledTime { share, note }, &Clock::start_up(), 8)
    }

    fn record_all(times: &[Ticks], clock: &Clock) {
        times.iter().for_each(|ticks| _ = clock.record_bracket(*ticks));
    }

    fn looped() -> Case {
        Case::looped("case", "a case", |_| {})
    }

    #[test]
    fn a_sum_that_leaves_out_a_part_is_caught() {
        assert_eq!(judged(looped(), 1.0, record_all), Ok(()));
        let Err(CaseEnd::Failed(sentence)) = judged(looped(), 0.7, record_all) else { panic!("believed") };
        assert!(sentence.contains("left out") && sentence.contains("8 iterations"), "{sentence}");
        assert_eq!(
            judged(looped().own_tasks(OwnTasks::Elsewhere), 0.7, record_all),
            Ok(()),
            "they have other clocks"
        );
        assert_eq!(judged(looped(), 0.7, |_, _| ()), Ok(()), "it reads a clock of its own: nothing is known");
    }

    #[test]
    fn single_times_shorter_than_the_returned_time_are_caught() {
        let halves = |times: &[Ticks], clock: &Clock| {
            times.iter().for_each(|ticks| _ = clock.record_bracket(Ticks(ticks.0 / 2)));
        };
        let twice = |times: &[Ticks], clock: &Clock| {
            times.iter().for_each(|ticks| _ = clock.record_bracket(Ticks(ticks.0 * 2)));
        };
        assert!(judged(looped().one_by_one(), 1.0, halves).is_err());
        assert_eq!(judged(looped().one_by_one(), 1.0, record_all), Ok(()));
        assert_eq!(judged(looped().one_by_one(), 1.0, twice), Ok(()), "in flight at the same time");
    }
}
