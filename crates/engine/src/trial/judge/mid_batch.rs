//! The second witness where a batch is one loop. It steps through some iterations in the middle of a batch, after thousands
//! that ran at full speed, and counts the iterations of another batch by a breakpoint.
//!
//! Instructions that the first witness saw once per iteration show where iterations begin: the distance from one execution to
//! the next is one iteration. If an iteration does less, the distance is shorter, or the instruction is no longer executed.

use super::{later, testimony};
use crate::case::{Case, Subject};
use crate::clock::Clock;
use crate::clock::witness::WitnessReport;
use crate::error::{Error, Result};
use crate::platform::ptrace;
use crate::statistic::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Iterations that are stepped through, at least …
const ITERATIONS: f64 = 8.0;
/// … and instructions, at least and at most.
const STEPS: [f64; 2] = [1_500.0, 16_000.0];
/// Least time of a batch: a forked child uses some tenths of a millisecond before it begins.
const LEAST: Duration = Duration::from_millis(4);
/// Most batches of growing length that are tried until one takes that long.
const LENGTHS_TRIED: usize = 4;
/// Least share of a batch's time that must lie inside the bracket of the clock.
const LEAST_BRACKET_SHARE: f64 = 0.9;
/// Stepping begins at a random time between this share of a batch and three times this share.
const EARLIEST_START: f64 = 0.25;
/// Counting gives up after twice the expected executions and this many more.
const EXCESS_EXECUTIONS: u64 = 64;

/// The result of a watch: a sentence of evidence, or one that contradicts the claim.
type Said = std::result::Result<String, String>;

/// Watches the middle of a batch that is as long as a sample, or a multiple of it, and counts the iterations of another batch.
/// `length` draws the length of a batch, up to the one that it is given. `None` if an iteration is too long for that, much of a
/// batch lies outside of its bracket, the batch ends too early, or there is no breakpoint.
///
/// # Errors
/// The kernel refuses a child or `ptrace`, or the operation fails.
pub(super) fn watch_one_loop(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
    length: &mut dyn FnMut(f64) -> u64,
    seen: &WitnessReport,
) -> Result<Option<Said>> {
    let steps = (ITERATIONS * seen.instructions.unwrap_or(0.0)).max(STEPS[0]);
    if case.one_by_one || case.keeps_working() || seen.rates.is_empty() || steps > STEPS[1] {
        return Ok(None);
    }
    let Some((n, time)) = time_batch(subject, clock, length(f64::MAX))? else { return Ok(None) };
    let mut random = Random::new(crate::platform::time::monotonic_raw_ns());
    let after = time.mul_f64(EARLIEST_START + 2.0 * EARLIEST_START * random.unit());
    let Some(addresses) = ptrace::step_mid_run(|| drop(subject.run(n, clock)), after, steps as usize)? else {
        return Ok(None);
    };
    let middle =
        match judge_steps(testimony::claimed_callee(case), &addresses, n, &seen.rates, seen.instructions) {
            Ok(middle) => middle,
            Err(sentence) => return Ok(Some(Err(sentence))),
        };
    let n = length(later::MORE / middle.rate.min(1.0));
    let due = middle.rate * n as f64;
    match ptrace::count_executions(
        || drop(subject.run(n, clock)),
        middle.at,
        2 * due as u64 + EXCESS_EXECUTIONS,
    ) {
        Ok(Some(times)) => Ok(Some(
            later::check_at_least(
                "what belongs to each iteration was executed",
                times as f64 / middle.rate,
                n as f64,
                n,
            )
            .map(|()| format!("{}, and one of {n} executed all of them", middle.sentence)),
        )),
        // The batch does more than the first witness saw, or never reaches the breakpoint.
        Ok(None) | Err(Error::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The iterations of a batch that takes long enough, and its time; `None` if less than [`LEAST_BRACKET_SHARE`] of the time lies
/// inside the bracket, or no batch takes long enough.
fn time_batch(subject: &mut dyn Subject, clock: &Clock, iterations: u64) -> Result<Option<(u64, Duration)>> {
    let mut n = iterations;
    for _ in 0..LENGTHS_TRIED {
        let begun = Instant::now();
        let bracket_ns = clock.nanoseconds(subject.run(n, clock)?).0;
        let time = begun.elapsed().max(Duration::from_nanos(1));
        if bracket_ns < LEAST_BRACKET_SHARE * time.as_nanos() as f64 {
            return Ok(None);
        }
        if time >= LEAST {
            return Ok(Some((n, time)));
        }
        n = n.saturating_mul((2.0 * LEAST.div_duration_f64(time)).ceil() as u64);
    }
    Ok(None)
}

/// Evidence from the middle of a batch.
#[derive(Debug)]
struct Middle {
    sentence: String,
    /// The address of an instruction by which iterations can be counted, and how often an iteration executes it.
    at: usize,
    rate: f64,
}

/// Judges the instructions at `addresses`, in the order of execution, from the middle of a batch of `n` iterations. The first
/// witness saw how often an iteration executes each (`rates`), and all of them together (`instructions`).
fn judge_steps(
    callee: Option<usize>,
    addresses: &[usize],
    n: u64,
    rates: &BTreeMap<usize, f64>,
    instructions: Option<f64>,
) -> std::result::Result<Middle, String> {
    let distance = |at: usize| distance(addresses, at).unwrap_or(0.0);
    let is_steady = |rate: &f64| *rate >= 1.0 && rate.fract() == 0.0;
    let has_once = rates.values().any(|rate| *rate == 1.0);
    // In an unrolled loop, each instruction belongs to several iterations.
    let known = rates.iter().filter(|(_, rate)| **rate == 1.0 || !has_once);
    let mut known: Vec<(f64, usize, f64)> =
        known.map(|(at, rate)| (rate * distance(*at), *at, *rate)).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (each, at, rate) = known[known.len() / 2];
    // Instructions that depend on the time or on the input are not executed equally often in each iteration.
    let due = if has_once {
        rates.values().filter(|rate| is_steady(rate)).sum()
    } else {
        instructions.unwrap_or(0.0)
    };
    if each < later::LEAST * due {
        return Err(format!(
            "behind the samples, in the middle of a batch of {n} iterations, {each:.1} instructions were executed an iteration where \
             {due:.1} are due: the operation does less in long batches, or later, than what the witness saw at the start"
        ));
    }
    match callee.map(distance) {
        Some(apart) if apart == 0.0 || apart > each / later::LEAST => Err(format!(
            "behind the samples, in the middle of a batch of {n} iterations, the callee was not entered in each of them: once in \
             {apart:.0} instructions, where an iteration has {each:.1}"
        )),
        _ => {
            let sentence = format!(
                "in the middle of a batch of {n} behind the samples an iteration executed {each:.1} instructions"
            );
            Ok(Middle { sentence, at, rate })
        }
    }
}

/// Mean number of instructions from one execution of the address `at` to the next; `None` if it was executed fewer than twice.
fn distance(addresses: &[usize], at: usize) -> Option<f64> {
    let is_it = |address: &usize| *address == at;
    let (first, last) = (addresses.iter().position(is_it)?, addresses.iter().rposition(is_it)?);
    let times = addresses[first..last].iter().filter(|address| is_it(address)).count();
    (times > 0).then(|| (last - first) as f64 / times as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses executed by a loop of these instructions in `times` iterations.
    fn turns(each: &[usize], times: usize) -> Vec<usize> {
        each.repeat(times)
    }

    /// The judgement of an operation whose first iterations executed these instructions as often as said.
    fn judged(
        callee: Option<usize>,
        rates: &[(usize, f64)],
        addresses: &[usize],
    ) -> std::result::Result<Middle, String> {
        let rates: BTreeMap<usize, f64> = rates.iter().copied().collect();
        judge_steps(callee, addresses, 9, &rates, Some(rates.values().sum()))
    }

    #[test]
    fn a_middle_that_skips_a_part_or_runs_elsewhere_is_contradicted() {
        let rates = [1, 2, 3, 4, 5].map(|at| (at, 1.0));
        let judged = |callee, each: &[usize]| judged(callee, &rates, &turns(each, 20));
        assert!(judged(Some(3), &[1, 2, 3, 4, 5]).is_ok());
        let sentence = judged(None, &[1, 4, 5]).expect_err("two of five are missing");
        assert!(sentence.contains("3.0 instructions were executed an iteration where 5.0"), "{sentence}");
        assert!(judged(None, &[7, 8, 9, 10, 11, 12]).is_err(), "as many instructions of another loop");
        let sentence = judged(Some(3), &[1, 2, 9, 4, 5]).expect_err("something else is called");
        assert!(sentence.contains("the callee was not entered"), "{sentence}");
    }

    #[test]
    fn instructions_that_not_every_iteration_executes_do_not_count() {
        let rates = [(1, 1.0), (2, 0.5), (3, 2.0)];
        let both = [1, 2, 3, 3, 1, 3, 3];
        assert!(judged(None, &rates, &turns(&both, 20)).is_ok());
        assert!(judged(None, &rates, &turns(&[1, 3, 3], 20)).is_ok(), "what depends on the time is not due");
    }

    #[test]
    fn an_unrolled_loop_is_judged_by_instructions_of_several_iterations() {
        let rates = [1, 2, 3, 4, 5].map(|at| (at, 0.25));
        let middle = judged(None, &rates, &turns(&[1, 2, 3, 4, 5], 20)).expect("as at the start");
        assert!((1..=5).contains(&middle.at) && middle.rate == 0.25, "{middle:?}");
        assert!(judged(None, &rates, &turns(&[1, 5], 20)).is_err());
    }
}
