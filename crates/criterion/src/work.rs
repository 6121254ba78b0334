//! Whether anything is left of an operation, and whether it goes on: what its iterations execute, counted in copies of this process.

use crate::bencher::is_single;
use crate::operation::Operation;
use criterion::measurement::Measurement;
use std::time::{Duration, Instant};
use syscost_engine::clock::witness::{
    MANY_BRACKETED as MANY, count_each_behind, count_in_brackets, find_once,
};
use syscost_engine::clock::{Clock, Ticks};
use syscost_engine::{Error, Result, libc};
use syscost_platform::bracket_steps::StepCount;
use syscost_platform::ptrace::{self, Call};

/// Instructions of the first iteration up to which it is followed.
const FOLLOWED: u64 = 30_000;
/// Instructions up to which many iterations are followed.
const FOLLOWED_MANY: u64 = 40_000;
/// The first iteration has made something that is kept if it executes this many times as many instructions as a later one …
const FIRST_TIMES: f64 = 10.0;
/// … and this many more: reading what the processor can do takes some thousand.
const FIRST_MORE: f64 = 10_000.0;
/// The first iteration of every batch has done what later ones need not if it executes this many times as many instructions …
const ONCE_TIMES: f64 = 2.0;
/// … and this many more: to allocate takes some hundred.
const ONCE_MORE: f64 = 500.0;
/// Likewise by time, if it cannot be followed: cold caches and new pages make a first iteration several times as long.
const ONCE_TIMES_LONGER: f64 = 10.0;
/// Longest first iteration that is compared by time, ns.
const ONCE_LONGEST_NS: f64 = 50e6;
/// Iterations by which the early work of a process is compared with its later work: no collection that doubles grows between these.
const WINDOWS: [[u64; 2]; 2] = [[9, 13], [34, 42]];
/// Early iterations do more if they execute this many times as many instructions …
const EARLY_TIMES: f64 = 1.5;
/// … and this many more.
const EARLY_MORE: f64 = 3.0;
/// Later windows, of which that with the most instructions counts: inputs may go round.
const LATER: u64 = 3;
/// Longest batch that is counted: what prepares its iterations runs too, at full speed.
const LONGEST: Duration = Duration::from_secs(2);
/// Two counts of one code differ by less.
const SAME: f64 = 0.1;
/// An operation of an instruction or two is one if it takes this many core cycles more than its empty loop.
const CYCLES_MORE: f64 = 3.0;
/// Iterations by which an operation of a few instructions is timed.
const TIMED: u64 = 4_000;
/// Batches of which the quickest counts.
const TRIES: usize = 9;

/// What the iterations of a process that has just begun execute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyWork {
    /// The first; [`u64::MAX`] if it cannot be followed to its end.
    first: Option<u64>,
    /// Each in [`WINDOWS`].
    each: [Option<f64>; 2],
}

impl EarlyWork {
    /// Says that early iterations executed more than `later` ones did at the same places.
    fn fall_sentence(self, later: [f64; 2]) -> Option<String> {
        self.each.into_iter().zip(later).find_map(|(early, later)| {
            let early = early.filter(|&early| exceeds(early, later, EARLY_TIMES, EARLY_MORE))?;
            Some(format!(
                "an early iteration of the process executed {early:.1} instructions and a later one {later:.1}: what it works on is \
                 used up or remembered, and the figure is of what comes after"
            ))
        })
    }
}

impl<M: Measurement + 'static> Operation<'_, M> {
    /// Looks at the first iterations, before any is run in this process.
    pub(crate) fn early_work(&mut self, clock: &Clock) -> EarlyWork {
        // Most of it is tracing, unless the preparation is long.
        const TRACING: u32 = 16;
        let begun = Instant::now();
        let first = self.follow(clock);
        self.each = begun.elapsed() / TRACING;
        self.once = self.find_once(clock);
        EarlyWork { first, each: self.count_windows(clock) }
    }

    /// Judges an operation that is warm.
    ///
    /// # Errors
    /// Nothing is left of it.
    pub(crate) fn judge_work(&mut self, early: EarlyWork, clock: &Clock) -> Result<()> {
        let later = self.follow(clock);
        self.compare_first(early, later);
        let is_long = early.each[0].is_none() && later.is_none_or(|later| later >= FOLLOWED_MANY / MANY[1]);
        let each = if is_long { None } else { self.count_many(clock) };
        self.judge_remains(each, clock)?;
        self.compare_windows(early, clock)?;
        self.compare_in_batch(each, clock)?;
        self.find_refusals(clock);
        Ok(())
    }

    /// Instructions in the brackets of a batch, traced in a copy of this process; [`u64::MAX`] if there are too many.
    fn count(&mut self, iterations: u64, limit: u64, clock: &Clock) -> Option<u64> {
        Some(self.count_steps(iterations, limit, clock)?.map_or(u64::MAX, |count| count.instructions))
    }

    /// Likewise; `None` in the place of too many.
    fn count_steps(&mut self, iterations: u64, limit: u64, clock: &Clock) -> Option<Option<StepCount>> {
        if self.each * iterations as u32 > LONGEST {
            return None;
        }
        let counted = count_in_brackets(|counting| self.run_once(iterations, counting), clock, limit).ok();
        counted.filter(|counted| counted.as_ref().is_none_or(|count| count.brackets > 0))
    }

    /// An instruction that each iteration executes once.
    fn find_once(&mut self, clock: &Clock) -> Option<usize> {
        const RUNS: [u64; 2] = [1, 3];
        let [one, three] = RUNS.map(|n| self.count_steps(n, FOLLOWED_MANY, clock).flatten());
        find_once([one?, three?], RUNS)
    }

    fn count_windows(&mut self, clock: &Clock) -> [Option<f64>; 2] {
        let [near, far] = WINDOWS;
        let each = self.count_each(near, clock);
        // If these are too many, or are not counted, so are those of a longer batch.
        [each, each.and_then(|_| self.count_each(far, clock))]
    }

    /// Instructions of an iteration between these two numbers of them; `None` if they could not be followed.
    fn count_each(&mut self, window: [u64; 2], clock: &Clock) -> Option<f64> {
        let [less, more] = window;
        if self.each * more as u32 > LONGEST {
            return None;
        }
        if let Some(once) = self.once {
            let run = |n, counting: &Clock| self.run_once(n, counting);
            if let Ok(counted) = count_each_behind(run, once, window, clock, FOLLOWED_MANY) {
                return counted;
            }
        }
        // The longer batch first: if that is too long, the shorter one need not be counted.
        let many = self.count_steps(more, FOLLOWED_MANY, clock)??;
        let few = self.count_steps(less, FOLLOWED_MANY, clock)??;
        Some((many.instructions as f64 - few.instructions as f64) / (more - less) as f64)
    }

    /// The instructions of one iteration: in its bracket, or where there is none with all around it.
    fn follow(&mut self, clock: &Clock) -> Option<u64> {
        self.count(1, FOLLOWED, clock).or_else(|| {
            let followed = ptrace::step_through(|| drop(self.run_once(1, clock)), FOLLOWED).ok()?;
            Some(followed.map_or(u64::MAX, |seen| seen.instructions))
        })
    }

    /// Compares the first iteration with one that comes later.
    fn compare_first(&mut self, early: EarlyWork, later: Option<u64>) {
        let (Some(first), Some(later)) = (early.first, later.filter(|&later| later < u64::MAX)) else {
            return;
        };
        if exceeds(first as f64, later as f64, FIRST_TIMES, FIRST_MORE) {
            let executed = match first {
                u64::MAX => format!("could not be followed to its end within {FOLLOWED} instructions,"),
                _ => format!("executed {first} instructions"),
            };
            self.unchecked.push(format!(
                "the first iteration {executed} and a later one executed {later}: what the first one made is kept, and whether \
                 that is the answer itself is not known"
            ));
        }
    }

    /// Compares the first iterations of the process with those at the same places of later batches.
    fn compare_windows(&mut self, early: EarlyWork, clock: &Clock) -> Result<()> {
        let mut most = [0.0_f64; 2];
        // Nothing to compare.
        if early.fall_sentence(most).is_none() {
            return Ok(());
        }
        for turn in 1..=LATER {
            for (most, later) in most.iter_mut().zip(self.count_windows(clock)) {
                *most = most.max(later.unwrap_or(f64::INFINITY));
            }
            // Further windows can only add to the most.
            if early.fall_sentence(most).is_none() {
                return Ok(());
            }
            // Elsewhere in its inputs, if these go round.
            self.run_once(7 * turn, clock)?;
        }
        self.unchecked.extend(early.fall_sentence(most));
        Ok(())
    }

    /// Compares the first iteration of each batch with the others.
    fn compare_in_batch(&mut self, each: Option<f64>, clock: &Clock) -> Result<()> {
        let around = self
            .outcome
            .shape
            .and_then(|shape| count_batch(1, |n, counting| shape.run_empty(n, counting), clock));
        let found = match self.count(1, FOLLOWED, clock) {
            None => None,
            Some(u64::MAX) => self.first_by_time(clock)?,
            Some(first) => each
                .map(|later| later + around.unwrap_or(0) as f64)
                .filter(|&later| exceeds(first as f64, later, ONCE_TIMES, ONCE_MORE))
                .map(|later| format!("executes {first} instructions and a later one {later:.0}")),
        };
        self.unchecked.extend(found.map(|found| {
            format!(
                "the first iteration of every batch {found}: it works once, and the figure is a mean that depends on the number of \
                 iterations"
            )
        }));
        Ok(())
    }

    /// How much longer the first iteration of each batch takes, if it does.
    fn first_by_time(&mut self, clock: &Clock) -> Result<Option<String>> {
        const FEW: u64 = 5;
        let (mut one, mut few) = (f64::MAX, f64::MAX);
        for _ in 0..TRIES {
            one = one.min(clock.nanoseconds(self.run_once(1, clock)?).0);
            if one > ONCE_LONGEST_NS {
                return Ok(None);
            }
            few = few.min(clock.nanoseconds(self.run_once(FEW, clock)?).0);
        }
        let later = ((few - one) / (FEW - 1) as f64).max(1.0);
        let is_longer = one >= ONCE_TIMES_LONGER * later;
        Ok(is_longer.then(|| format!("takes {:.1} µs and a later one {:.2} µs", one / 1e3, later / 1e3)))
    }

    /// Instructions of an iteration of a long batch: the fewer of two counts, since a signal adds instructions to either.
    fn count_many(&mut self, clock: &Clock) -> Option<f64> {
        Some(self.count_each(MANY, clock)?.min(self.count_each(MANY, clock)?))
    }

    /// Compares what an iteration executes, if that could be counted, with the same loop without an operation.
    ///
    /// # Errors
    /// It executes no more.
    fn judge_remains(&mut self, each: Option<f64>, clock: &Clock) -> Result<()> {
        let Some(shape) = self.outcome.shape else { return Ok(()) };
        if let Some(lazy) = shape.lazy {
            self.unchecked.push(format!(
                "its result is lazy ({lazy}): what it stands for is not done unless it is called, awaited or collected"
            ));
        }
        // Without optimisation an empty loop has calls of its own.
        if cfg!(debug_assertions) {
            return Ok(());
        }
        let Some(empty) = count_loop(|n, counting| shape.run_empty(n, counting), clock) else {
            return Ok(());
        };
        // A bracket around each iteration has dozens of instructions of its own, and not the same in both.
        let is_exact = !is_single(shape.size);
        self.empty_loop = if is_exact { empty } else { 0.0 };
        let Some(each) = each else { return Ok(()) };
        let counts = format!(
            "{}: an iteration executes {each:.2} instructions, and the same loop without an operation {empty:.2}",
            shape.line
        );
        let removed_allocation =
            || count_loop(|n, counting| shape.run_removed_allocation(n, counting), clock);
        let is_removed = || removed_allocation().is_some_and(|allocation| (each - allocation).abs() <= SAME);
        let doubt = format!(
            "{counts}, as much as to copy a result that is ready, or as is left of a removed allocation: whether the operation is done each time is not known"
        );
        if each > empty + shape.copy_instructions() + SAME {
            self.unchecked.extend(Some(doubt).filter(|_| is_removed()));
            return Ok(());
        }
        if is_exact && each <= empty + SAME {
            return Err(Error::Disproved(format!(
                "nothing is left of this operation: its result is not used, or the compiler removed it ({counts}); return its result, \
                 and pass what it reads through black_box"
            )));
        }
        let more_ns = quickest_ns(clock, || self.run_once(TIMED, clock))?
            - quickest_ns(clock, || shape.run_empty(TIMED, clock))?;
        let is_longer = more_ns * clock.core_hz() / 1e9 >= CYCLES_MORE * TIMED as f64;
        self.unchecked.extend(Some(doubt).filter(|_| !is_longer));
        Ok(())
    }

    /// Says that the kernel refuses a call in every iteration: the operation may be an error.
    fn find_refusals(&mut self, clock: &Clock) {
        const ITERATIONS: usize = 8;
        let seen = ptrace::list_syscalls(|| drop(self.run_once(ITERATIONS as u64, clock)), 1_000, |_| true);
        let calls = seen.unwrap_or_default().entries;
        if let Some(call) = calls.iter().filter(|call| is_refused(call)).nth(ITERATIONS - 1) {
            self.unchecked.push(format!(
                "the kernel refuses a system call in every iteration (number {}: {}): an error may be all that was measured",
                call.number,
                Error::decode_errno(call.answer).desc()
            ));
        }
    }
}

/// Whether the kernel refused this call by another answer than "not now".
fn is_refused(call: &Call) -> bool {
    let is_later =
        [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT].iter().any(|&errno| call.answer == -i64::from(errno));
    call.is_refused() && !is_later
}

/// Whether it is this many times as much, and this much more.
fn exceeds(early: f64, later: f64, times: f64, more: f64) -> bool {
    early >= times * later && early >= later + more
}

/// Instructions of a batch without an operation.
fn count_batch(n: u64, run: impl Fn(u64, &Clock) -> Result<Ticks>, clock: &Clock) -> Option<u64> {
    Some(count_in_brackets(|counting| run(n, counting), clock, FOLLOWED_MANY).ok()??.instructions)
}

/// Instructions of an iteration of a loop without an operation.
fn count_loop(run: impl Fn(u64, &Clock) -> Result<Ticks>, clock: &Clock) -> Option<f64> {
    let [few, many] = MANY.map(|n| count_batch(n, &run, clock));
    Some((many? as f64 - few? as f64) / (MANY[1] - MANY[0]) as f64)
}

/// The quickest of some batches, ns.
fn quickest_ns(clock: &Clock, mut batch: impl FnMut() -> Result<Ticks>) -> Result<f64> {
    let mut quickest = f64::MAX;
    for _ in 0..TRIES {
        quickest = quickest.min(clock.nanoseconds(batch()?).0);
    }
    Ok(quickest)
}

#[cfg(test)]
mod tests;
