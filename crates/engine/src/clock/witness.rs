//! The witness: a few iterations of an operation, traced from outside (ptrace(2)): instruction by instruction where there
//! are few, and otherwise from one system call to the next.
//!
//! Two runs, of n and of 2n iterations, are traced in forked children. Everything around the iterations is the same in both, so
//! that the difference is exactly what n iterations execute, even where the machine has no PMU.

mod brackets;

use crate::platform::ptrace::{self, Sighting};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use crate::platform::ptrace::Call;
pub(crate) use brackets::watch_brackets;
#[doc(hidden)]
pub use brackets::{MANY_BRACKETED, count_each_behind, count_in_brackets, find_once};

/// Iterations of the shorter run. A multiple of the block of the unrolled chains, so that no remainder is
/// traced.
const FEW: u64 = 64;
/// Iterations of the two runs of a long operation. They differ by ten, so that a tenth that was left out is at least one
/// iteration.
const FEW_LONG: [u64; 2] = [1, 11];
/// Iterations of the two runs of an operation whose every instruction must be counted, if [`FEW_LONG`] iterations take too many
/// steps.
const FEW_STEPPED: [u64; 2] = [1, 3];
/// Most instructions of a run of [`FEW_LONG`] or [`FEW_STEPPED`]: half a second of single steps, and some seconds in a nested guest.
const STEPS_OF_FEW: u64 = 120_000;
/// An operation is long if the runs of [`FEW_LONG`], with two forks, take more than this.
const LONG: Duration = Duration::from_millis(20);

/// The instructions and system calls that iterations execute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WitnessReport {
    /// Iterations by which the two runs differ.
    pub iterations: u64,
    /// User-space instructions per iteration; `None` if there were too many to step through.
    pub instructions: Option<f64>,
    /// User-space instructions of the shorter run, with the code around its iterations, divided by their number. It is below
    /// `instructions` only if the run left out iterations; `None` as for `instructions`.
    pub instructions_of_shorter: Option<f64>,
    /// How often the given address was executed in `iterations`; `None` as for `instructions`, and if the iterations are so few
    /// that both runs may have left out one in ten.
    pub visits: Option<u64>,
    /// How often an iteration executes each instruction, by address; empty if brackets were counted.
    pub(crate) rates: BTreeMap<usize, f64>,
    /// The address of an instruction that each iteration executes once; `None` if there is none, or if no brackets were
    /// counted.
    pub(crate) once: Option<usize>,
    /// The system calls entered in `iterations`.
    pub entries: Vec<Call>,
    /// Readings of a clock in `iterations` that are left out of `entries`, because each enters the kernel here.
    pub clock_readings: u64,
}

/// The most iterations that a witness asks for.
pub const ITERATIONS: u64 = 2 * FEW;

/// How closely an operation is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Every instruction, unless a run has more than this number: then as [`Watch::Calls`]. An instruction takes 4 to 15 µs, and
    /// 25 in a nested guest.
    Steps(u64),
    /// As [`Watch::Steps`]; if a run has too many instructions, every instruction of ten iterations, or of two.
    FewSteps(u64),
    /// As [`Watch::FewSteps`], but nothing is watched if two iterations have too many instructions.
    StepsAlone(u64),
    /// The system calls.
    Calls,
    /// The system calls of ten iterations, for an operation whose preparation takes long.
    CallsOfTen,
}

/// Traces `run`, which is given a number of iterations, in forked children, and counts how often the instruction at `address`
/// is executed. System calls for which `counts` returns false are left out.
///
/// # Errors
/// The kernel or a sandbox refuses `ptrace`, or `run` fails under it.
pub fn watch_runs(
    mut run: impl FnMut(u64),
    address: Option<usize>,
    how: Watch,
    counts: &dyn Fn(&Call) -> bool,
) -> crate::error::Result<WitnessReport> {
    let runs = match how {
        Watch::Steps(most) => vec![([FEW, 2 * FEW], most)],
        Watch::FewSteps(most) | Watch::StepsAlone(most) => {
            vec![([FEW, 2 * FEW], most), (FEW_LONG, STEPS_OF_FEW), (FEW_STEPPED, STEPS_OF_FEW)]
        }
        Watch::Calls | Watch::CallsOfTen => Vec::new(),
    };
    // One closure for all, so that all run the same code.
    let mut step = |n, most| ptrace::step_through(|| run(n), most);
    for ([less, more], most) in runs {
        // The limit is that of the longer run: the shorter one gets its part of it.
        let few = step(less, most * less / more)?;
        let many = if few.is_some() { step(more, most)? } else { None };
        if let (Some(mut few), Some(mut many)) = (few, many) {
            [&mut few, &mut many].into_iter().for_each(|seen| seen.retain_counted(counts));
            return Ok(compare_runs(&few, &many, [less, more], address));
        }
    }
    if matches!(how, Watch::StepsAlone(_)) {
        return Ok(WitnessReport::default());
    }
    let begun = Instant::now();
    let ten = trace_calls_only(&mut run, FEW_LONG, counts)?;
    if how == Watch::CallsOfTen || begun.elapsed() > LONG {
        return Ok(ten);
    }
    trace_calls_only(&mut run, [FEW, 2 * FEW], counts)
}

/// Reports the difference of two runs of these numbers of iterations, including how often the instruction at `address` was
/// executed.
fn compare_runs(
    few: &Sighting,
    many: &Sighting,
    [less, more]: [u64; 2],
    address: Option<usize>,
) -> WitnessReport {
    let iterations = more - less;
    let visits = |seen: &Sighting| address.map_or(0, |address| seen.visits(address));
    // An operation that leaves out one iteration in ten, rounded up, leaves out one of one and one of three, so that the
    // difference is unchanged. Visits around the iterations hide it in each run.
    let shows_a_tenth = more.div_ceil(10) > less.div_ceil(10);
    WitnessReport {
        iterations,
        instructions: Some((many.instructions as f64 - few.instructions as f64) / iterations as f64),
        instructions_of_shorter: Some(few.instructions as f64 / less as f64),
        visits: shows_a_tenth.then(|| visits(many).saturating_sub(visits(few))),
        once: None,
        rates: extra_executions(few, many)
            .map(|(at, extra)| (at, extra as f64 / iterations as f64))
            .collect(),
        entries: extra_calls(few, many),
        clock_readings: many.left_out.saturating_sub(few.left_out),
    }
}

/// The instructions that the longer run executed more often, and how much more.
fn extra_executions<'a>(few: &'a Sighting, many: &'a Sighting) -> impl Iterator<Item = (usize, u64)> + 'a {
    let extra = |(at, times): (&usize, &u64)| (*at, times.saturating_sub(few.visits(*at)));
    many.executed.iter().map(extra).filter(|(_, extra)| *extra > 0)
}

/// Traces two runs of these numbers of iterations, and reports the system calls by which they differ.
fn trace_calls_only(
    run: &mut impl FnMut(u64),
    [few, many]: [u64; 2],
    counts: &dyn Fn(&Call) -> bool,
) -> crate::error::Result<WitnessReport> {
    let iterations = many - few;
    let mut list = |n| ptrace::list_syscalls(|| run(n), usize::MAX, counts);
    let (few, many) = (list(few)?, list(many)?);
    let clock_readings = many.left_out.saturating_sub(few.left_out);
    Ok(WitnessReport {
        iterations,
        entries: extra_calls(&few, &many),
        clock_readings,
        ..WitnessReport::default()
    })
}

/// The system calls of the longer run that the shorter one does not have.
fn extra_calls(few: &Sighting, many: &Sighting) -> Vec<Call> {
    let mut rest = many.entries.clone();
    for call in &few.entries {
        if let Some(at) = rest.iter().position(|other| other.number == call.number) {
            rest.remove(at);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::platform::arch::{self, Unfit};
    use crate::platform::time::{self, KernelClock};
    use syscost_platform::testing::print_skipped;

    /// The address of the callee in made-up runs.
    const CALLEE: usize = 64;

    #[test]
    fn a_chain_executes_one_instruction_per_link_and_its_loop() {
        let seen =
            watch_runs(|n| _ = arch::add_chain(n), None, Watch::Steps(30_000), &|_| true).expect("traced");
        assert_eq!(seen.instructions, Some(66.0 / 64.0));
    }

    #[test]
    fn an_iteration_left_out_of_both_runs_lowers_the_count_of_the_shorter_run() {
        let run = |done: u64| Sighting {
            executed: [(CALLEE, done)].into(),
            instructions: 40 + 5_000 * done,
            ..Sighting::default()
        };
        let honest = compare_runs(&run(1), &run(3), FEW_STEPPED, Some(CALLEE));
        assert_eq!((honest.visits, honest.instructions), (None, Some(5_000.0)));
        assert!(honest.instructions_of_shorter >= honest.instructions);
        let lie = compare_runs(&run(0), &run(2), FEW_STEPPED, Some(CALLEE));
        assert_eq!((lie.instructions, lie.instructions_of_shorter), (Some(5_000.0), Some(40.0)));
    }

    #[test]
    fn a_left_out_tenth_is_seen_in_the_visits_of_long_runs_only() {
        let lie =
            |n: u64| Sighting { executed: [(CALLEE, 2 + n - n.div_ceil(10))].into(), ..Sighting::default() };
        let visits =
            |[less, more]: [u64; 2]| compare_runs(&lie(less), &lie(more), [less, more], Some(CALLEE)).visits;
        assert_eq!([FEW_STEPPED, FEW_LONG, [FEW, 2 * FEW]].map(visits), [None, Some(9), Some(58)]);
    }

    #[test]
    fn an_operation_of_thousands_of_instructions_is_counted() {
        let run = |n| (0..n).for_each(|_| _ = arch::add_chain(6_400));
        let seen = |how| watch_runs(run, None, how, &|_| true).expect("traced");
        assert_eq!(seen(Watch::Steps(30_000)).instructions, None);
        let counted = seen(Watch::FewSteps(30_000));
        assert!(counted.instructions.is_some_and(|each| (6_600.0..6_700.0).contains(&each)), "{counted:?}");
    }

    #[test]
    fn a_clock_for_counting_adds_no_instruction() {
        for clock in [Clock::start_up(), Clock::fallback(Unfit::Declined)]
            .map(|clock| clock.for_instruction_counting())
        {
            let run = |n| _ = clock.time(|| arch::add_chain(n));
            let seen =
                || watch_runs(run, None, Watch::Steps(30_000), &|_| true).expect("traced").instructions;
            assert_eq!([(); 20].map(|()| seen()), [Some(66.0 / 64.0); 20]);
        }
    }

    fn numbers(seen: &WitnessReport) -> Vec<i64> {
        seen.entries.iter().map(|call| call.number).collect()
    }

    #[test]
    fn a_kernel_entry_is_seen_once_an_iteration() {
        let run = |n| (0..n).for_each(|_| _ = nix::unistd::getppid());
        let seen = watch_runs(run, None, Watch::Steps(30_000), &|_| true).expect("traced");
        assert_eq!(numbers(&seen), vec![libc::SYS_getppid; 64]);
    }

    #[test]
    fn a_vdso_clock_makes_no_system_call() {
        if time::enters_kernel(KernelClock::Precise) != Some(false) {
            print_skipped("reading this kernel's clock enters it");
            return;
        }
        let run = |n| (0..n).for_each(|_| _ = crate::platform::time::monotonic_raw_ns());
        assert_eq!(
            watch_runs(run, None, Watch::Steps(30_000), &|_| true).expect("traced").entries,
            Vec::new()
        );
    }

    #[test]
    fn calls_that_do_not_count_are_left_out_and_counted() {
        let run = |n| {
            for _ in 0..n {
                _ = nix::unistd::getppid();
                _ = crate::platform::time::clock_gettime_entry_ns(libc::CLOCK_MONOTONIC_RAW);
            }
        };
        let counts = |call: &Call| call.number == libc::SYS_getppid;
        for how in [Watch::Steps(30_000), Watch::Calls] {
            let seen = watch_runs(run, None, how, &counts).expect("traced");
            // On a busy machine the witness traces only ten iterations.
            let n = seen.iterations;
            assert_eq!(numbers(&seen), vec![libc::SYS_getppid; n as usize], "{how:?}");
            assert_eq!(seen.clock_readings, n, "{how:?}");
        }
    }

    #[test]
    fn a_long_operation_falls_back_to_listing_its_entries() {
        let each = |turns, how| {
            let run = |n| {
                for _ in 0..n {
                    arch::register_loop(turns);
                    _ = nix::unistd::getppid();
                }
            };
            let seen = watch_runs(run, None, how, &|_| true).expect("traced");
            (seen.instructions, numbers(&seen))
        };
        let calls = |n| (None, vec![libc::SYS_getppid; n]);
        assert_eq!(each(20_000_000, Watch::Steps(3_000)), calls(10));
        assert_eq!(each(10, Watch::CallsOfTen), calls(10));
        assert_eq!(each(10, Watch::Calls), calls(64));
    }
}
