//! Judges claims by the witness, which traces some iterations in a child: which calls were made, what the kernel answered,
//! and how many instructions were executed.

use super::{Judgement, Judgements};
use crate::case::{Case, Claim, Subject};
use crate::clock::Clock;
use crate::clock::witness::{self, Call, Watch, WitnessReport};
use crate::error::Error;
use crate::platform::ptrace::PANICKED;
use crate::platform::time::{self, KernelClock};
use crate::record::HELD_LATE;
use crate::trial::CaseEnd;

/// Attempts of the witness before a contradicted claim is believed. A timer tick disturbs an operation that reads
/// the time through the vDSO, and single-stepping is so slow that every third attempt is disturbed.
const TESTIMONIES: u32 = 8;
/// Most instructions of a run that is stepped through. If a run has more, and a claim is about instructions, a run of fewer
/// iterations is stepped through.
const STEPS: u64 = 3_000;
/// Attempts before a contradicted claim about calls is believed. Timer ticks do not disturb these, but an
/// operation that fails in the child does.
const CALL_TESTIMONIES: u32 = 4;

/// The report of the witness, if it could be called, and the judgements from it.
type Testified = Result<(Option<WitnessReport>, Judgements), CaseEnd>;

/// Calls the witness and judges the claims about its testimony; no testimony if it cannot be called.
///
/// # Errors
/// A claim does not hold, or the operation died under the witness.
pub(in crate::trial) fn judge_by_witness(case: &Case, subject: &mut dyn Subject, clock: &Clock) -> Testified {
    if counts_instructions(case) {
        // Run once here: otherwise one-time initialisation would be repeated, and counted, in every child.
        subject.run(1, clock)?;
    }
    let is_alone =
        case.claims.iter().all(|claim| matches!(claim, Claim::KeepsWorking(_)) || !claim.wants_witness());
    let bracketed = if is_alone { judge_by_brackets(case, subject, clock) } else { None };
    bracketed.unwrap_or_else(|| judge_by_tracing(case, subject, clock, is_alone))
}

fn judge_by_tracing(case: &Case, subject: &mut dyn Subject, clock: &Clock, is_alone: bool) -> Testified {
    let callee = claimed_callee(case);
    let (mut judged, mut contradicted) = (Err(CaseEnd::Failed(String::new())), 0);
    let counting = clock.for_instruction_counting();
    let read = if counts_instructions(case) { &counting } else { clock };
    let mut how = first_watch(case, is_alone);
    let counts = call_filter(case);
    for attempt in 1..=TESTIMONIES {
        // An error in the forked child occurs again, and is reported, when the subject runs here.
        let run = |n| drop(subject.run(n, read));
        let testimony = match witness::watch_runs(run, callee, how, &counts) {
            Ok(testimony) => testimony,
            Err(died @ Error::Died(_)) => return Err(case_end_after_death(subject, clock, &died)),
            // An operation too slow for single steps may be quick enough for stops at calls. Slowness disproves nothing.
            Err(Error::Disturbed(_)) if counts_steps(how) && !is_alone => {
                how = Watch::Calls;
                continue;
            }
            // A sandbox may forbid ptrace: the other claims are judged without it.
            Err(error) => {
                let sentence = format!("no witness could be called: {error}");
                return Ok((None, vec![Judgement::Unasked(sentence)]));
            }
        };
        // A tick may have made the call longer than usual.
        if callee.is_some() && testimony.visits.is_none() && counts_steps(how) && attempt < CALL_TESTIMONIES {
            continue;
        }
        // A run that was too long to step through is too long in the next attempt as well.
        if testimony.instructions.is_none() && counts_steps(how) {
            how = Watch::Calls;
        }
        let sentences =
            case.claims.iter().filter_map(|claim| judge_claim(case, claim, &testimony).transpose());
        match sentences.collect::<Result<Judgements, _>>() {
            Ok(mut sentences) => {
                sentences.extend(held_late(contradicted));
                return Ok((Some(testimony), sentences));
            }
            Err(sentence) => judged = Err(CaseEnd::Failed(sentence)),
        }
        contradicted += 1;
        // If the operation failed in the child, it made fewer calls. It then fails here too, and its error is returned.
        subject.run(witness::ITERATIONS, clock)?;
        if attempt >= CALL_TESTIMONIES && has_broken_call_claim(case, &testimony) {
            break;
        }
    }
    judged
}

/// Judges by the instructions inside brackets, so that preparing a batch and dropping its results do not count. `None` if the
/// subject opens no bracket, or its brackets cannot be watched.
fn judge_by_brackets(case: &Case, subject: &mut dyn Subject, clock: &Clock) -> Option<Testified> {
    let (mut judged, mut contradicted) = (None, 0);
    while contradicted < CALL_TESTIMONIES {
        let seen =
            witness::watch_brackets(|n, counting| subject.run(n, counting), clock, 4 * STEPS).ok()??;
        let sentences = case.claims.iter().filter_map(|claim| judge_claim(case, claim, &seen).transpose());
        match sentences.collect::<Result<Judgements, _>>() {
            Ok(mut sentences) => {
                sentences.extend(held_late(contradicted));
                return Some(Ok((Some(seen), sentences)));
            }
            Err(sentence) => judged = Some(Err(CaseEnd::Failed(sentence))),
        }
        contradicted += 1;
    }
    judged
}

fn first_watch(case: &Case, is_alone: bool) -> Watch {
    match counts_instructions(case) {
        true if is_alone => Watch::StepsAlone(STEPS),
        true => Watch::FewSteps(STEPS),
        false if case.one_by_one => Watch::CallsOfTen,
        false => Watch::Steps(STEPS),
    }
}

/// Says how many testimonies contradicted the claims before one fulfilled them; `None` if none did.
fn held_late(contradicted: u32) -> Option<Judgement> {
    let all = contradicted + 1;
    let sentence = format!("the witness's claims {HELD_LATE}{contradicted} of {all} testimonies");
    (contradicted > 0).then_some(Judgement::Held(sentence))
}

/// Returns a filter for the system calls that belong to the operation. If reading the clock enters the kernel,
/// those readings are left out, because the timing itself makes them. Calls that the case claims always count.
pub(super) fn call_filter(case: &Case) -> impl Fn(&Call) -> bool {
    let enters = time::enters_kernel(KernelClock::Precise) == Some(true);
    let claimed: Vec<i64> = case.claims.iter().flat_map(claimed_call_numbers).collect();
    move |call| !enters || claimed.contains(&call.number) || !time::is_clock_reading(call)
}

fn claimed_call_numbers(claim: &Claim) -> Vec<i64> {
    match claim {
        Claim::Enters(calls) => calls.iter().map(|(_, number)| *number).collect(),
        Claim::Answers(number, _) => vec![*number],
        _ => Vec::new(),
    }
}

/// The address of the function that the case claims to call.
pub(super) fn claimed_callee(case: &Case) -> Option<usize> {
    case.claims.iter().find_map(|claim| if let Claim::Calls(at) = claim { Some(at()) } else { None })
}

fn counts_steps(how: Watch) -> bool {
    !matches!(how, Watch::Calls | Watch::CallsOfTen)
}

/// Whether a claim is judged by the instructions that were executed.
pub(super) fn counts_instructions(case: &Case) -> bool {
    case.claims
        .iter()
        .any(|claim| matches!(claim, Claim::Calls(_) | Claim::Executes(_) | Claim::KeepsWorking(_)))
}

/// Whether a claim that is not about instructions does not hold.
fn has_broken_call_claim(case: &Case, testimony: &WitnessReport) -> bool {
    let others =
        case.claims.iter().filter(|claim| !matches!(claim, Claim::Executes(_) | Claim::KeepsWorking(_)));
    others.into_iter().any(|claim| judge_claim(case, claim, testimony).is_err())
}

/// The end of a case whose operation died under the witness. If it panicked there, it runs here too, so that the panic's
/// message is recorded.
fn case_end_after_death(subject: &mut dyn Subject, clock: &Clock, died: &Error) -> CaseEnd {
    if matches!(died, Error::Died(how) if how == PANICKED) {
        drop(subject.run(witness::ITERATIONS, clock));
    }
    CaseEnd::Failed(died.to_string())
}

/// Judges a claim by a testimony; `None` if the claim is not about testimonies.
fn judge_claim(case: &Case, claim: &Claim, seen: &WitnessReport) -> Result<Option<Judgement>, String> {
    let held = |sentence: Result<String, String>| sentence.map(|sentence| Some(Judgement::Held(sentence)));
    match claim {
        Claim::Calls(_) => judge_callee_visits(seen).map(Some),
        Claim::Enters(calls) => held(judge_entries(calls, seen).and_then(|sentence| {
            check_calls_granted(case, &seen.entries)?;
            Ok(sentence)
        })),
        Claim::Answers(number, answer) => held(judge_answers(*number, *answer, &seen.entries)),
        Claim::NeverEnters => judge_never_entered(seen).map(Some),
        Claim::Executes(least) => judge_executed(*least, seen).map(Some),
        Claim::KeepsWorking(empty) => judge_remaining_work(*empty, seen),
        _ => Ok(None),
    }
}

fn judge_callee_visits(seen: &WitnessReport) -> Result<Judgement, String> {
    match (seen.visits, seen.iterations) {
        (None, _) => {
            Ok(Judgement::Unasked("the call could not be followed: it is too long to step through".into()))
        }
        (Some(visits), n) if visits == n => {
            Ok(Judgement::Held(format!("the callee was entered {n} times in {n} iterations")))
        }
        (Some(visits), n) => Err(format!(
            "the call was inlined or skipped: the callee was entered {visits} times in {n} iterations; \
             keep the compiler from seeing into it"
        )),
    }
}

fn judge_entries(calls: &[(&'static str, i64)], seen: &WitnessReport) -> Result<String, String> {
    let n = seen.iterations as usize;
    let times = |number| seen.entries.iter().filter(|call| call.number == number).count();
    for (name, number) in calls {
        // A call that is listed twice is made twice per iteration.
        let claimed = n * calls.iter().filter(|(_, other)| other == number).count();
        if times(*number) != claimed {
            return Err(format!(
                "the kernel was not entered as claimed: {name} {} times in {n} iterations, claimed were {claimed}",
                times(*number)
            ));
        }
    }
    if seen.entries.len() != n * calls.len() {
        let others = seen.entries.len() - n * calls.len();
        return Err(format!("the kernel was entered {others} times more than claimed in {n} iterations"));
    }
    let names: Vec<_> = calls.iter().map(|(name, _)| *name).collect();
    let clock = match seen.clock_readings {
        0 => String::new(),
        times => format!(", beside {times} readings of the clock, each of which enters the kernel here"),
    };
    Ok(format!("{} entered the kernel {n} times each in {n} iterations{clock}", names.join(" and ")))
}

fn judge_never_entered(seen: &WitnessReport) -> Result<Judgement, String> {
    let WitnessReport { iterations, clock_readings, .. } = seen;
    if seen.entries.is_empty() && *clock_readings > 0 {
        return Ok(Judgement::Unasked(format!(
            "each reading of the kernel's clock enters the kernel here, {clock_readings} times in {iterations} iterations; no other \
             call was made, and whether the operation reads the clock itself is not known"
        )));
    }
    if seen.entries.is_empty() {
        return Ok(Judgement::Held(format!("the kernel was not entered in {iterations} iterations")));
    }
    Err(format!(
        "the kernel was entered {} times in {} iterations, which was claimed not to happen (call {})",
        seen.entries.len(),
        seen.iterations,
        seen.entries[0].number
    ))
}

/// Checks that no call was refused, other than those of which the case claims a refusal.
pub(super) fn check_calls_granted(case: &Case, entries: &[Call]) -> Result<(), String> {
    let expected = |call: &Call| {
        let is_it = |claim: &Claim| matches!(claim, Claim::Answers(number, _) if *number == call.number);
        case.claims.iter().any(is_it)
    };
    let refused = entries.iter().find(|call| call.is_refused() && !expected(call));
    let Some(call) = refused else { return Ok(()) };
    let errno = Error::decode_errno(call.answer);
    Err(format!(
        "the kernel refused a call that the operation makes (call {}): {}",
        call.number,
        errno.desc()
    ))
}

pub(super) fn judge_answers(number: i64, answer: i64, entries: &[Call]) -> Result<String, String> {
    let calls = entries.iter().filter(|call| call.number == number);
    let wrong = calls.clone().find(|call| call.answer != answer);
    match (calls.count(), wrong) {
        (0, _) => Err(format!("call {number} was not made, and its answer was claimed to be {answer}")),
        (_, Some(call)) => Err(format!("the kernel answered {} where {answer} was claimed", call.answer)),
        (count, None) => Ok(format!("the kernel answered {answer}, {count} times")),
    }
}

/// Judges that an iteration is more than the empty loop, where that is known; no judgement if it was too long to count.
fn judge_remaining_work(empty: f64, seen: &WitnessReport) -> Result<Option<Judgement>, String> {
    // The runs may differ by an instruction outside the iterations.
    const OUTSIDE: f64 = 0.1;
    match seen.instructions {
        Some(count) if empty <= 0.0 && count < OUTSIDE => Ok(Some(Judgement::Unasked(
            "its iterations execute no instruction in this thread: what works elsewhere is not counted"
                .into(),
        ))),
        Some(count) if count < empty + OUTSIDE => Err(format!(
            "nothing is left of this operation: its result is not used, or the compiler removed it (the operation was optimised away: \
             an iteration executes {count:.2} instructions, no more than the empty loop); pass what it reads and what it returns \
             through black_box"
        )),
        Some(count) => Ok(Some(Judgement::Held(format!("{count:.2} instructions an iteration")))),
        None => Ok(None),
    }
}

fn judge_executed(least: f64, seen: &WitnessReport) -> Result<Judgement, String> {
    let fewest = |count: f64| seen.instructions_of_shorter.map_or(count, |other| other.min(count));
    match seen.instructions {
        Some(count) if fewest(count) < least => Err(format!(
            "the loop was optimised away: {:.2} instructions an iteration where at least {least} are claimed",
            fewest(count)
        )),
        Some(count) => Ok(Judgement::Held(format!("{count:.2} instructions an iteration"))),
        None => {
            let sentence = format!("too many instructions to count: {}", Claim::Executes(least));
            Ok(Judgement::Unasked(sentence))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_run_must_execute_the_claimed_instructions_too() {
        let seen = |shorter| WitnessReport {
            iterations: 2,
            instructions: Some(5_000.0),
            instructions_of_shorter: shorter,
            ..WitnessReport::default()
        };
        assert!(matches!(judge_executed(4_000.0, &seen(Some(5_040.0))), Ok(Judgement::Held(_))));
        assert!(judge_executed(4_000.0, &seen(Some(40.0))).is_err());
    }

    #[test]
    fn a_call_that_could_not_be_followed_is_not_judged() {
        let seen = |visits| {
            judge_callee_visits(&WitnessReport { iterations: 10, visits, ..WitnessReport::default() })
        };
        assert!(matches!(seen(None), Ok(Judgement::Unasked(sentence)) if sentence.contains("too long")));
        assert!(matches!(seen(Some(10)), Ok(Judgement::Held(_))));
        assert!(seen(Some(9)).is_err());
    }
}
