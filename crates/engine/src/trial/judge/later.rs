//! The second witness. The first witness watches an operation at the start, in batches of at most [`ITERATIONS`], and misses an
//! operation that does less later. So the second witness watches further batches after the samples, of the same length, or of a
//! random length if the same would take too long. It counts system calls by stopping at calls, and instructions by single
//! steps. If one bracket holds the whole batch, it steps through some iterations in the middle.

use super::{Judgement, mid_batch, testimony};
use crate::case::{Case, Claim, Subject};
use crate::clock::Clock;
use crate::clock::witness::{self, Call, ITERATIONS, WitnessReport};
use crate::error::Error;
use crate::platform::ptrace::{self, Sighting};
use crate::record::HELD_LATE;
use crate::statistic::Random;
use crate::trial::CaseEnd;

/// Least accepted share of the declared number. The code around the iterations only adds to the count, and an honest operation
/// makes each call, so that an operation which leaves out a twentieth is caught.
pub(super) const LEAST: f64 = 0.96;
/// As [`LEAST`], where no number is declared: the iterations of an honest operation may differ, such as by the length of their
/// input.
const LEAST_UNDECLARED: f64 = 0.25;
/// Share below which the record says that later iterations do less than early ones, where no number is declared.
const LESS_UNDECLARED: f64 = 0.5;
/// System calls of the longest batch: two stops each, some 10 µs.
const CALLS: f64 = 2_048.0;
/// Instructions of the longest batch, at a step each: the code around the iterations executes some 300 …
const STEPS: f64 = 12_000.0;
/// … unless this many iterations take more, since the first witness has seen a sixteenth of them.
pub(super) const MORE: f64 = 16.0 * ITERATIONS as f64;
/// Instructions of a batch of [`MORE`] iterations at most.
const MOST_STEPS: f64 = 60_000.0;
/// Instructions after which stepping gives up: the code around the iterations is stepped through too.
const STEPS_IN_ALL: u64 = 100_000;
/// The last iterations of a batch, by which all are judged, if an instruction is known that each executes once.
const LAST_ITERATIONS: u64 = 32;
/// System calls that a batch may make outside its iterations if the iterations claim to make none.
const CALLS_AROUND: usize = 16;
/// A claim holds if this many watches have seen the expected number, and is contradicted if this many have seen less. A signal
/// or a lost partner disturbs a watch: if that happens to one in twenty, an honest case is contradicted once in 140 executions
/// (3p² - 2p³), and all executions must contradict it.
const DECIDING_WATCHES: u32 = 2;
/// Number of watches that must all see less before one execution disproves the claim.
const UNANIMOUS_WATCHES: u32 = 4;

/// Watches `subject`, whose samples had `iterations`; `seen` is what the first witness saw. `None` if no claim can be judged in
/// this way.
///
/// # Errors
/// The operation does less than it claims: [`CaseEnd::Failed`] if in every watch, [`CaseEnd::Contradicted`] if in most.
pub(in crate::trial) fn judge_later_batch(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    iterations: u64,
    seen: &WitnessReport,
) -> Result<Option<Judgement>, CaseEnd> {
    // The subject cannot predict the length; nothing else depends on the seed.
    let mut random = Random::new(crate::platform::time::monotonic_raw_ns() ^ u64::from(std::process::id()));
    let mut length = |longest| draw_length(longest, iterations, &mut random);
    let (mut held, mut contradicted) = (0, 0);
    loop {
        let sentence = match watch_batch(case, subject, clock, &mut length, seen) {
            Ok(Some(Judgement::Held(sentence))) => sentence,
            Ok(unjudged) => return Ok(unjudged),
            Err(sentence) => {
                contradicted += 1;
                match (held, contradicted) {
                    (0, UNANIMOUS_WATCHES) => return Err(CaseEnd::Failed(sentence)),
                    (1.., DECIDING_WATCHES..) => return Err(CaseEnd::Contradicted(sentence)),
                    _ => {}
                }
                // Moves the operation to other inputs, if it goes through them in a cycle.
                subject.run(length(iterations as f64), clock)?;
                continue;
            }
        };
        held += 1;
        if held == DECIDING_WATCHES {
            let late = format!("; {HELD_LATE}{contradicted} of {} watches", held + contradicted);
            return Ok(Some(Judgement::Held(sentence + if contradicted > 0 { &late } else { "" })));
        }
        if contradicted >= DECIDING_WATCHES {
            return Err(CaseEnd::Contradicted(format!(
                "{contradicted} of {} watches of batches behind the samples saw less than what is due",
                held + contradicted
            )));
        }
    }
}

fn not_watched_sentence(error: &Error) -> String {
    format!("no witness could be called behind the samples: {error}")
}

/// The length of a watched batch: that of the samples, by which the subject cannot recognise the watch, or if that exceeds
/// `longest`, a random one a little below `longest`.
fn draw_length(longest: f64, iterations: u64, random: &mut Random) -> u64 {
    let longest = (longest as u64).clamp(1, iterations.max(1));
    if longest == iterations {
        return iterations;
    }
    longest - random.number_below((longest / 8 + 1) as usize) as u64
}

/// Watches one batch. `None` if no claim can be judged in this way.
fn watch_batch(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    length: &mut dyn FnMut(f64) -> u64,
    seen: &WitnessReport,
) -> Result<Option<Judgement>, String> {
    let mut sentences = Vec::new();
    if let Some(each) = claimed_calls_each(case) {
        let n = length(if each > 0 { CALLS / each as f64 } else { f64::MAX });
        let most = 2 * each * n as usize + 2 * CALLS_AROUND + n as usize / 2;
        let run = || drop(subject.run(n, clock));
        // A process that could be traced before, and now cannot, has lost a permission meanwhile. That disproves nothing.
        match ptrace::list_syscalls(run, most, testimony::call_filter(case)) {
            Ok(Sighting { entries, .. }) => sentences.push(judge_listed_calls(case, &entries, n)?),
            Err(error) => return Ok(Some(Judgement::Unasked(not_watched_sentence(&error)))),
        }
    }
    match judge_watched_instructions(case, subject, clock, length, seen)? {
        Some(Judgement::Held(sentence)) => sentences.push(sentence),
        None => {}
        unasked => return Ok(unasked),
    }
    Ok((!sentences.is_empty()).then(|| Judgement::Held(sentences.join("; "))))
}

/// Watches the instructions of a batch: by its middle if it is one loop, and otherwise all of them.
fn judge_watched_instructions(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    length: &mut dyn FnMut(f64) -> u64,
    seen: &WitnessReport,
) -> Result<Option<Judgement>, String> {
    let not_watched = |error| Ok(Some(Judgement::Unasked(not_watched_sentence(&error))));
    let each = seen.instructions.filter(|each| testimony::counts_instructions(case) && *each > 0.0);
    let Some(each) = each else { return Ok(None) };
    match mid_batch::watch_one_loop(case, subject, clock, length, seen) {
        Ok(Some(said)) => return said.map(|sentence| Some(Judgement::Held(sentence))),
        Ok(None) => {}
        Err(error) => return not_watched(error),
    }
    // The usual clock, by which a subject cannot tell the watch from a sample. Where it is read for each operation, its
    // readings must not be counted.
    let counting = clock.for_instruction_counting();
    let clock = if case.one_by_one { &counting } else { clock };
    let n = length((STEPS / each).max(MORE).min(MOST_STEPS / each));
    match watch_instructions(case, subject, clock, n, seen) {
        Ok(Some(sighting)) => {
            let sentence = judge_instructions(case, &sighting, n, each)?;
            let falling = falling_work_sentence(case, &sighting, n, each);
            Ok(Some(falling.map_or(Judgement::Held(sentence), Judgement::Unasked)))
        }
        // The batch executes more than the first witness saw.
        Ok(None) => Ok(None),
        Err(error) => not_watched(error),
    }
}

/// Steps through a batch of `n`. If the case claims to keep working, the instructions inside brackets are counted, if there are
/// any, as by the first witness. Only the last iterations are counted, if an instruction is known that each executes once.
fn watch_instructions(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    n: u64,
    seen: &WitnessReport,
) -> crate::error::Result<Option<Sighting>> {
    if case.keeps_working() {
        let run = |n, counting: &Clock| subject.run(n, counting);
        let behind = seen.once.filter(|_| n > LAST_ITERATIONS).map(|once| {
            witness::count_each_behind(run, once, [n - LAST_ITERATIONS, n - 1], clock, STEPS_IN_ALL)
        });
        if let Some(Ok(Some(each))) = behind {
            let instructions = (each * n as f64) as u64;
            return Ok(Some(Sighting { instructions, ..Sighting::default() }));
        }
        let counted = witness::count_in_brackets(|counting| subject.run(n, counting), clock, STEPS_IN_ALL);
        match counted {
            Ok(Some(count)) if count.brackets > 0 => {
                return Ok(Some(Sighting { instructions: count.instructions, ..Sighting::default() }));
            }
            Ok(None) => return Ok(None),
            _ => {}
        }
    }
    ptrace::step_through(|| drop(subject.run(n, clock)), STEPS_IN_ALL)
}

/// A sentence if iterations after the samples do less than early ones, but too much to disprove the claim: their inputs may
/// differ.
fn falling_work_sentence(case: &Case, sighting: &Sighting, n: u64, each: f64) -> Option<String> {
    let later = sighting.instructions as f64 / n as f64;
    (case.keeps_working() && later < LESS_UNDECLARED * each).then(|| {
        format!(
            "an early iteration executed {each:.1} instructions and one behind the samples {later:.1}: it does less with time, or its inputs differ"
        )
    })
}

/// System calls an iteration, if claimed.
fn claimed_calls_each(case: &Case) -> Option<usize> {
    case.claims.iter().find_map(|claim| match claim {
        Claim::Enters(calls) => Some(calls.len()),
        Claim::NeverEnters => Some(0),
        _ => None,
    })
}

/// Judges the calls of a batch of `n`.
fn judge_listed_calls(case: &Case, entries: &[Call], n: u64) -> Result<String, String> {
    let times = |number: i64| entries.iter().filter(|call| call.number == number).count();
    for claim in &case.claims {
        match claim {
            Claim::NeverEnters if entries.len() > CALLS_AROUND + n as usize / 10 => {
                return Err(format!(
                    "behind the samples, in a batch of {n} iterations, the kernel was entered {} times or more, which was \
                     claimed not to happen",
                    entries.len()
                ));
            }
            Claim::Enters(calls) => {
                for (name, number) in calls {
                    let declared = n * calls.iter().filter(|(_, other)| other == number).count() as u64;
                    check_at_least(&format!("{name} was called"), times(*number) as f64, declared as f64, n)?;
                }
                testimony::check_calls_granted(case, entries)?;
            }
            Claim::Answers(number, answer) => drop(testimony::judge_answers(*number, *answer, entries)?),
            _ => {}
        }
    }
    Ok(format!("a batch of {n} behind the samples made {} system calls", entries.len()))
}

/// Judges the instructions of a batch of `n`, of which the first witness saw `each` an iteration.
fn judge_instructions(case: &Case, sighting: &Sighting, n: u64, each: f64) -> Result<String, String> {
    for claim in &case.claims {
        match claim {
            Claim::Calls(at) => {
                check_at_least("the callee was entered", sighting.visits(at()) as f64, n as f64, n)?
            }
            Claim::Executes(_) => {
                let (seen, due) = (sighting.instructions as f64, each * n as f64);
                check_at_least("an instruction was executed", seen, due, n)?;
            }
            Claim::KeepsWorking(_) => {
                let (seen, due) = (sighting.instructions as f64, LEAST_UNDECLARED * each * n as f64 / LEAST);
                check_at_least("an instruction was executed", seen, due, n)?;
            }
            _ => {}
        }
    }
    Ok(format!("a batch of {n} behind the samples executed {} instructions", sighting.instructions))
}

pub(super) fn check_at_least(what: &str, times: f64, declared: f64, n: u64) -> Result<(), String> {
    if times >= LEAST * declared {
        return Ok(());
    }
    Err(format!(
        "behind the samples, in a batch of {n} iterations, {what} {times:.0} times where {declared:.0} are due: the \
         operation does less in long batches, or later, than what the witness saw at the start"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_work_in_later_iterations_is_reported_where_no_number_is_declared() {
        let keeps = Case::prepared("queue", "", |_| || ());
        let seen = |instructions| Sighting { instructions, ..Sighting::default() };
        let said = |case: &Case, instructions| falling_work_sentence(case, &seen(instructions), 100, 12.0);
        assert_eq!(said(&keeps, 1_100), None);
        let sentence = said(&keeps, 500).expect("less than half");
        assert!(sentence.contains("12.0 instructions and one behind the samples 5.0"), "{sentence}");
        assert_eq!(said(&Case::looped("declared", "", |_| ()), 500), None);
    }
}
