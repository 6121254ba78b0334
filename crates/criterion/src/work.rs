//! Checks that something is left of an operation, and that the operation goes on. The instructions of its iterations are
//! counted in copies of this process.

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

/// The maximum number of instructions up to which the first iteration is traced.
const FOLLOWED: u64 = 30_000;
/// The maximum number of instructions up to which many iterations are traced.
const FOLLOWED_MANY: u64 = 40_000;
/// The first iteration has made something that is kept if it executes this many times the instructions of a later one …
const FIRST_TIMES: f64 = 10.0;
/// … and this many more. To read the processor's features takes some thousand.
const FIRST_MORE: f64 = 10_000.0;
/// The first iteration of every batch does work that later ones skip if it executes this many times their instructions …
const ONCE_TIMES: f64 = 2.0;
/// … and this many more. An allocation takes some hundred.
const ONCE_MORE: f64 = 500.0;
/// The same factor by time, if the iteration cannot be traced. Cold caches and new pages make a first iteration several times
/// as long.
const ONCE_TIMES_LONGER: f64 = 10.0;
/// The longest first iteration that is compared by time, ns.
const ONCE_LONGEST_NS: f64 = 50e6;
/// Iterations at which early and later work of a process are compared: no collection that doubles its capacity grows between
/// them.
const WINDOWS: [[u64; 2]; 2] = [[9, 13], [34, 42]];
/// Early iterations do more if they execute this many times the instructions of later ones …
const EARLY_TIMES: f64 = 1.5;
/// … and this many more.
const EARLY_MORE: f64 = 3.0;
/// The number of later windows, of which the one with the most instructions is used, since inputs may repeat in a cycle.
const LATER: u64 = 3;
/// The longest batch whose instructions are counted. The preparation of its iterations runs too, at full speed.
const LONGEST: Duration = Duration::from_secs(2);
/// Two counts of the same code differ by less than this.
const SAME: f64 = 0.1;
/// An operation of one or two instructions counts as present if it takes this many core cycles more than its empty loop.
const CYCLES_MORE: f64 = 3.0;
/// The number of iterations by which an operation of a few instructions is timed.
const TIMED: u64 = 4_000;
/// The number of batches, of which the fastest is used.
const TRIES: usize = 9;

/// The instructions of the first iterations of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyWork {
    /// Instructions of the first iteration; [`u64::MAX`] if it cannot be traced to its end.
    first: Option<u64>,
    /// Instructions per iteration in each of [`WINDOWS`].
    each: [Option<f64>; 2],
}

impl EarlyWork {
    /// The sentence that early iterations executed more instructions than `later` ones at the same places; `None` if they did
    /// not.
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
    /// Counts the instructions of the first iterations, before any iteration runs in this process.
    pub(crate) fn early_work(&mut self, clock: &Clock) -> EarlyWork {
        // Most of the elapsed time is tracing, unless the preparation is long.
        const TRACING: u32 = 16;
        let begun = Instant::now();
        let first = self.follow(clock);
        self.each = begun.elapsed() / TRACING;
        self.once = self.find_once(clock);
        EarlyWork { first, each: self.count_windows(clock) }
    }

    /// Judges a warm operation.
    ///
    /// # Errors
    /// An error where nothing is left of the operation.
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

    /// Instructions in the brackets of a batch, traced in a copy of this process; [`u64::MAX`] if there are more than
    /// `limit`.
    fn count(&mut self, iterations: u64, limit: u64, clock: &Clock) -> Option<u64> {
        Some(self.count_steps(iterations, limit, clock)?.map_or(u64::MAX, |count| count.instructions))
    }

    /// The steps in the brackets of a batch; `Some(None)` if there are more than `limit`, `None` if they cannot be counted.
    fn count_steps(&mut self, iterations: u64, limit: u64, clock: &Clock) -> Option<Option<StepCount>> {
        if self.each * iterations as u32 > LONGEST {
            return None;
        }
        let counted = count_in_brackets(|counting| self.run_once(iterations, counting), clock, limit).ok();
        counted.filter(|counted| counted.as_ref().is_none_or(|count| count.brackets > 0))
    }

    /// The address of an instruction that each iteration executes exactly once.
    fn find_once(&mut self, clock: &Clock) -> Option<usize> {
        const RUNS: [u64; 2] = [1, 3];
        let [one, three] = RUNS.map(|n| self.count_steps(n, FOLLOWED_MANY, clock).flatten());
        find_once([one?, three?], RUNS)
    }

    fn count_windows(&mut self, clock: &Clock) -> [Option<f64>; 2] {
        let [near, far] = WINDOWS;
        let each = self.count_each(near, clock);
        // If the near window cannot be counted, a longer batch cannot be counted either.
        [each, each.and_then(|_| self.count_each(far, clock))]
    }

    /// Instructions per iteration between these two numbers of iterations; `None` if they cannot be traced.
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
        // The longer batch is counted first: if it is too long, the shorter one need not be counted.
        let many = self.count_steps(more, FOLLOWED_MANY, clock)??;
        let few = self.count_steps(less, FOLLOWED_MANY, clock)??;
        Some((many.instructions as f64 - few.instructions as f64) / (more - less) as f64)
    }

    /// The instructions of one iteration: in its bracket, or, without a bracket, including all code around it.
    fn follow(&mut self, clock: &Clock) -> Option<u64> {
        self.count(1, FOLLOWED, clock).or_else(|| {
            let followed = ptrace::step_through(|| drop(self.run_once(1, clock)), FOLLOWED).ok()?;
            Some(followed.map_or(u64::MAX, |seen| seen.instructions))
        })
    }

    /// Compares the first iteration with a later one.
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

    /// Compares the first iterations of the process with those at the same places in later batches.
    fn compare_windows(&mut self, early: EarlyWork, clock: &Clock) -> Result<()> {
        let mut most = [0.0_f64; 2];
        // There is nothing to compare: early iterations were not counted, or executed hardly any instructions.
        if early.fall_sentence(most).is_none() {
            return Ok(());
        }
        for turn in 1..=LATER {
            for (most, later) in most.iter_mut().zip(self.count_windows(clock)) {
                *most = most.max(later.unwrap_or(f64::INFINITY));
            }
            // Further windows can only increase the maximum.
            if early.fall_sentence(most).is_none() {
                return Ok(());
            }
            // Moves to another place in its inputs, if these repeat in a cycle.
            self.run_once(7 * turn, clock)?;
        }
        self.unchecked.extend(early.fall_sentence(most));
        Ok(())
    }

    /// Compares the first iteration of each batch with the others of that batch.
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

    /// Times the first iteration of each batch. Returns a phrase with both times if the first one takes at least ten times as
    /// long.
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

    /// Instructions per iteration of a long batch: the lower of two counts, since a signal adds instructions to one of them.
    fn count_many(&mut self, clock: &Clock) -> Option<f64> {
        Some(self.count_each(MANY, clock)?.min(self.count_each(MANY, clock)?))
    }

    /// Compares the instructions of an iteration, if they could be counted, with those of the same loop without an operation.
    ///
    /// # Errors
    /// An error where the iteration executes exactly what that loop does. Where it executes less, the compiler has made another loop
    /// of it, and the two counts say nothing about each other.
    fn judge_remains(&mut self, each: Option<f64>, clock: &Clock) -> Result<()> {
        let Some(shape) = self.outcome.shape else { return Ok(()) };
        if let Some(lazy) = shape.lazy {
            self.unchecked.push(format!(
                "its result is lazy ({lazy}): what it stands for is not done unless it is called, awaited or collected"
            ));
        }
        // Without optimisation an empty loop also executes calls.
        if cfg!(debug_assertions) {
            return Ok(());
        }
        let Some(empty) = count_loop(|n, counting| shape.run_empty(n, counting), clock) else {
            return Ok(());
        };
        // A bracket around each iteration has dozens of instructions of its own, whose number differs between the two loops.
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
        if is_exact && (each - empty).abs() <= SAME {
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

    /// Notes that the kernel refuses a call in every iteration, since the operation may then be only an error.
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

/// Whether the kernel refused this call with an error other than "not now".
fn is_refused(call: &Call) -> bool {
    let is_later =
        [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT].iter().any(|&errno| call.answer == -i64::from(errno));
    call.is_refused() && !is_later
}

/// Whether `early` is at least `times` times `later`, and at least `more` more than it.
fn exceeds(early: f64, later: f64, times: f64, more: f64) -> bool {
    early >= times * later && early >= later + more
}

/// Instructions of a batch of `n` iterations without an operation.
fn count_batch(n: u64, run: impl Fn(u64, &Clock) -> Result<Ticks>, clock: &Clock) -> Option<u64> {
    Some(count_in_brackets(|counting| run(n, counting), clock, FOLLOWED_MANY).ok()??.instructions)
}

/// Instructions per iteration of a loop without an operation.
fn count_loop(run: impl Fn(u64, &Clock) -> Result<Ticks>, clock: &Clock) -> Option<f64> {
    let [few, many] = MANY.map(|n| count_batch(n, &run, clock));
    Some((many? as f64 - few? as f64) / (MANY[1] - MANY[0]) as f64)
}

/// The time of the fastest batch, ns.
fn quickest_ns(clock: &Clock, mut batch: impl FnMut() -> Result<Ticks>) -> Result<f64> {
    let mut quickest = f64::MAX;
    for _ in 0..TRIES {
        quickest = quickest.min(clock.nanoseconds(batch()?).0);
    }
    Ok(quickest)
}

#[cfg(test)]
mod tests;
