//! Counts the instructions inside the brackets of the clock, without the set-up and the drop of a batch around them.

use super::{FEW_STEPPED, STEPS_OF_FEW, WitnessReport, compare_runs};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::platform::bracket_steps::{Executions, StepCount, count_steps, count_steps_behind};
use crate::platform::ptrace::Sighting;

/// Iterations of the two runs that are counted in brackets: whole blocks of an unrolled loop. Between the two numbers, a
/// collection that doubles its size does not grow.
pub const MANY_BRACKETED: [u64; 2] = [80, 96];
/// As [`MANY_BRACKETED`], for a long operation.
const FEW_BRACKETED: [u64; 2] = [10, 14];

/// Counts the instructions that `run` executes in the brackets of the clock that it is given, in a forked copy of this process.
/// `None` if that takes more than `limit` steps.
///
/// # Errors
/// The kernel or a sandbox refuses `ptrace`, this processor has no marks, or `run` fails under it.
pub fn count_in_brackets(
    run: impl FnOnce(&Clock) -> Result<Ticks>,
    clock: &Clock,
    limit: u64,
) -> Result<Option<StepCount>> {
    count_steps(counting_body(run, clock), limit)
}

fn counting_body(run: impl FnOnce(&Clock) -> Result<Ticks>, clock: &Clock) -> impl FnOnce() {
    let counting = clock.for_step_counting();
    // An error ends the copy of this process by a panic that prints nothing.
    move || _ = run(&counting).unwrap_or_else(|_| std::panic::resume_unwind(Box::new(())))
}

/// Instructions per iteration in brackets, counted from iteration `less` to iteration `more`. A breakpoint at the address
/// `once`, which each iteration executes once, lets earlier iterations run at full speed. `None` if counting takes more than
/// `limit` steps.
///
/// # Errors
/// As of [`count_in_brackets`]; [`Error::Missing`] where there is no breakpoint, or not every
/// iteration executes that instruction once.
pub fn count_each_behind(
    run: impl FnOnce(u64, &Clock) -> Result<Ticks>,
    once: usize,
    [less, more]: [u64; 2],
    clock: &Clock,
    limit: u64,
) -> Result<Option<f64>> {
    // Counts from iteration `less` + 1 to `more` + 1, since memory may grow for the last time in iteration `less`.
    let body = counting_body(|counting| run(more + 1, counting), clock);
    let counted = count_steps_behind(body, once, less + 1, limit)?;
    let Some(count) = counted else { return Ok(None) };
    match count.executions(once) {
        Some(seen) if is_once(seen.times, more - less) => {
            Ok(Some(seen.before_last as f64 / seen.times as f64))
        }
        _ => Err(Error::Missing("an instruction is not executed once an iteration".into())),
    }
}

/// The address of an instruction that each iteration of two batches executed once, if there is one. The second argument is the
/// batches' numbers of iterations.
pub fn find_once([few, many]: [StepCount; 2], [less, more]: [u64; 2]) -> Option<usize> {
    let is_each = |seen: &Executions| {
        let many = many.executions(seen.address);
        is_once(seen.times, less) && many.is_some_and(|many| many.times == seen.times + more - less)
    };
    few.executed.into_iter().find(is_each).map(|seen| seen.address)
}

/// Whether an instruction that was executed this many times is executed once per iteration. The head of a loop is executed once
/// more, when no iteration is left.
fn is_once(times: u64, iterations: u64) -> bool {
    (iterations..=iterations + 1).contains(&times)
}

/// As [`watch_runs`](super::watch_runs) by [`Watch::StepsAlone`](super::Watch::StepsAlone), for the code inside brackets.
/// `None` if `run` opens no bracket.
///
/// # Errors
/// As of [`count_in_brackets`].
pub(crate) fn watch_brackets(
    mut run: impl FnMut(u64, &Clock) -> Result<Ticks>,
    clock: &Clock,
    most: u64,
) -> Result<Option<WitnessReport>> {
    let mut report = WitnessReport::default();
    for (window, limit) in
        [(FEW_STEPPED, STEPS_OF_FEW), (FEW_BRACKETED, STEPS_OF_FEW), (MANY_BRACKETED, most)]
    {
        let mut count = |n| count_in_brackets(|counting| run(n, counting), clock, limit);
        let Some(many) = count(window[1])? else { break };
        let Some(few) = count(window[0])? else { break };
        if few.brackets == 0 {
            return Ok(None);
        }
        // More iterations executed fewer instructions: the runs allocated memory differently, and show nothing about an
        // iteration.
        if few.instructions > many.instructions {
            continue;
        }
        let once = find_once([few, many], window);
        let [few, many] =
            [few, many].map(|count| Sighting { instructions: count.instructions, ..Sighting::default() });
        report = WitnessReport { visits: None, once, ..compare_runs(&few, &many, window, None) };
        for (window, limit) in [(MANY_BRACKETED, most), (FEW_BRACKETED, STEPS_OF_FEW)] {
            let behind = once.map(|once| count_each_behind(&mut run, once, window, clock, limit));
            if let Some(Ok(Some(each))) = behind {
                let iterations = window[1] - window[0];
                return Ok(Some(WitnessReport { iterations, instructions: Some(each), ..report }));
            }
        }
    }
    Ok(Some(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::arch;

    #[test]
    fn code_around_brackets_is_not_counted() {
        let clock = Clock::start_up();
        let prepared = |n: u64, clock: &Clock| {
            arch::register_loop(1_000 * n);
            Ok(clock.time(|| arch::register_loop(n)))
        };
        let seen = watch_brackets(prepared, &clock, 30_000).expect("traced").expect("a bracket");
        assert_eq!((seen.iterations, seen.instructions), (16, Some(2.0)));
        let without = |n: u64, _: &Clock| Ok(Ticks(arch::add_chain(n)));
        assert_eq!(watch_brackets(without, &clock, 30_000).expect("traced"), None);
    }

    #[test]
    fn a_longer_batch_that_executes_less_gives_an_empty_report() {
        let clock = Clock::start_up();
        let falling = |n: u64, clock: &Clock| Ok(clock.time(|| arch::register_loop(10_000 / n)));
        let seen = watch_brackets(falling, &clock, 30_000).expect("traced").expect("a bracket");
        assert_eq!(seen, WitnessReport::default());
    }
}
