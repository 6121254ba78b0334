//! The reset of the branch predictor before a measurement, and its training by untimed iterations. Without a reset a process
//! may keep the first pattern that its predictor has learnt, and the next process may keep another one.

use crate::case::Subject;
use crate::clock::Clock;
use crate::error::Result;
use crate::platform::{cpu, process};

/// Length of a sample, ns, from which on the branch predictor learns enough within the sample itself.
pub(super) const LONG_NS: f64 = 3e6;

/// Time of the untimed batches before a round of the sweep, ns: as long as half a short sample. The reset of the branch
/// predictor displaces a megabyte from the caches. After one untimed batch of 10 µs, a file of 1 MiB cost 1.9 times as much in
/// small batches as in large ones, with a second-level cache of 2 MiB.
const WARM_NS: f64 = 100e3;

/// Longest untimed part before a batch, ns. A lap through 32 MiB of cache takes less. It does not bring back data that is too
/// large for the caches.
const LONGEST_LAP_NS: f64 = 10e6;

/// Resets the branch predictor before a batch of this many iterations, and runs half a batch untimed, at least a lap, which
/// brings back what the reset has displaced from the caches. If one operation fills a batch, nothing is done, because one more
/// would take as long as the batch.
///
/// # Errors
/// The subject fails.
pub(super) fn retrain_predictor(
    subject: &mut dyn Subject,
    batch: u64,
    lap: u64,
    clock: &Clock,
) -> Result<()> {
    if batch <= 1 && lap <= 1 {
        return Ok(());
    }
    // If the process may not execute code that it has written, nothing is reset; the untimed part still warms the caches.
    // Skipped under an emulator, which would translate the written code again and again.
    if !clock.is_marked() {
        cpu::flush_branch_predictor();
    }
    let began = clock.start();
    let mut left = (batch / 2).max(lap);
    while left > 0 && clock.nanoseconds(clock.stop() - began).0 < LONGEST_LAP_NS {
        let now = left.min(batch.max(1));
        subject.run(now, clock)?;
        left -= now;
    }
    Ok(())
}

/// Resets the predictors, and runs small batches of this number of iterations untimed, at least one.
///
/// # Errors
/// The subject fails.
pub(super) fn retrain_by_batches(subject: &mut dyn Subject, iterations: u64, clock: &Clock) -> Result<()> {
    cpu::flush_branch_predictor();
    let began = clock.start();
    loop {
        subject.run(iterations, clock)?;
        if clock.nanoseconds(clock.stop() - began).0 >= WARM_NS {
            return Ok(());
        }
    }
}

// Preparation of a process that measures.

/// Touches the stack and the code that resets the branch predictor, and locks all memory, so that no page fault interrupts a
/// sample. Returns a sentence for the record for each step that is refused; the numbers stay valid.
pub fn prepare_memory() -> Vec<String> {
    process::touch_stack();
    let learnt =
        "what is timed begins with what the branch predictor has learnt: written code may not be executed";
    let learnt = (!cpu::flush_branch_predictor()).then(|| learnt.to_owned());
    let unlocked = process::lock_memory().err().map(|error| format!("not locked in memory: {error}"));
    learnt.into_iter().chain(unlocked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Place, Scale, set_up};
    use crate::clock::Ticks;
    use crate::platform::arch;
    use crate::trial::sweep::Sweeper;
    use crate::trial::{Bench, Sample, Trial};
    use std::cell::RefCell;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<u64>>>;

    /// Additions that log the number of iterations of each run.
    struct Additions(Log);

    impl Subject for Additions {
        fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
            self.0.borrow_mut().push(iterations);
            Ok(clock.time(|| arch::add_chain(iterations)))
        }
    }

    fn case(log: &Log) -> Case {
        let log = log.clone();
        Case::new("additions", "additions", set_up(move |_| Ok(Additions(log.clone()))))
    }

    /// The iterations requested from the subject of this case while `act` uses its trial. They do not depend on other tasks.
    fn iterations_run(case: Case, log: &Log, act: impl Fn(&mut Trial)) -> Vec<u64> {
        iterations_run_at(Scale::Smoke, case, log, act)
    }

    fn iterations_run_at(scale: Scale, case: Case, log: &Log, act: impl Fn(&mut Trial)) -> Vec<u64> {
        let place = Place { scratch: "/".into(), scale, cpus: Default::default() };
        let clock = Clock::start_up();
        let bench = Bench { place: &place, clock: &clock, pinned: None, lent: None, other_copies: None };
        let mut trial = Trial::prepare(&case, bench, None).expect("no needs");
        log.borrow_mut().clear();
        act(&mut trial);
        log.take()
    }

    #[test]
    fn a_kept_sample_begins_with_half_a_batch_untimed() {
        let log = Log::default();
        let kept = |trial: &mut Trial| {
            trial.begin_sampling();
            let _ = trial.measure_sample(1000);
        };
        assert_eq!(iterations_run(case(&log), &log, kept), [500, 1000]);
        let warm_up = |trial: &mut Trial| drop(trial.measure_sample(1000));
        assert_eq!(
            iterations_run(case(&log), &log, warm_up),
            [1000],
            "Criterion finds out how long a batch takes"
        );
        assert_eq!(
            iterations_run(case(&log).one_by_one(), &log, kept),
            [1000],
            "its preparation would be paid twice"
        );
    }

    #[test]
    fn one_whole_lap_runs_untimed_before_a_sample() {
        let log = Log::default();
        let kept = |trial: &mut Trial| {
            trial.begin_sampling();
            let _ = trial.measure_sample(1000);
        };
        let at_default_scale = |case: Case| iterations_run_at(Scale::Default, case, &log, kept);
        assert_eq!(at_default_scale(case(&log).lap_length(2500)), [1000, 1000, 500, 1000]);
        assert_eq!(at_default_scale(case(&log).lap_length(200)), [500, 1000]);
        assert_eq!(
            iterations_run(case(&log).lap_length(2500), &log, kept),
            [500, 1000],
            "a smoke run has no laps"
        );
        let turn = |trial: &mut Trial| drop(trial.run_turn(1000, 1));
        assert_eq!(
            iterations_run_at(Scale::Default, case(&log).lap_length(2500), &log, turn),
            [1000, 1000, 500, 1000]
        );
    }

    #[test]
    fn an_operation_that_fills_a_batch_has_no_reset() {
        let log = Log::default();
        let single = |trial: &mut Trial| {
            trial.begin_sampling();
            let _ = trial.measure_sample(1);
        };
        assert_eq!(iterations_run(case(&log), &log, single), [1]);
    }

    #[test]
    fn sweep_rounds_after_long_samples_begin_without_a_reset() {
        let log = Log::default();
        let beside = |elapsed_ns| {
            iterations_run(case(&log), &log, |trial: &mut Trial| {
                trial.begin_sampling();
                trial.sweeper = Some(Sweeper::new(100));
                trial.samples.push(Sample { elapsed_ns, ..Sample::default() });
                let _ = trial.continue_sweep();
            })
        };
        let rounds = super::super::ROUNDS_BESIDE * 4;
        assert_eq!(beside(LONG_NS).len(), rounds, "four batches a round, and none untimed");
        assert!(beside(0.5 * LONG_NS).len() > rounds);
    }

    #[test]
    fn a_sample_after_a_long_one_has_no_untimed_part() {
        let log = Log::default();
        let after_a_long_one = |trial: &mut Trial| {
            trial.begin_sampling();
            trial.samples.push(Sample { elapsed_ns: LONG_NS, ..Sample::default() });
            let _ = trial.measure_sample(1000);
        };
        assert_eq!(iterations_run(case(&log), &log, after_a_long_one), [1000]);
    }

    #[test]
    fn a_turn_begins_with_half_a_batch_untimed() {
        let log = Log::default();
        let turn = |trial: &mut Trial| drop(trial.run_turn(1000, 2));
        assert_eq!(iterations_run(case(&log), &log, turn), [500, 1000, 1000]);
        assert_eq!(iterations_run(case(&log).one_by_one(), &log, turn), [1000, 1000]);
    }

    #[test]
    fn a_sweep_round_begins_with_untimed_batches_of_the_smallest_size() {
        let log = Log::default();
        let clock = Clock::start_up();
        Sweeper::new(100).run_round(&mut Additions(log.clone()), None, &clock, true).expect("additions");
        let mut untimed = log.take();
        let mut timed = untimed.split_off(untimed.len() - 4);
        timed.sort_unstable();
        assert!(!untimed.is_empty() && untimed.iter().all(|iterations| *iterations == 100), "{untimed:?}");
        assert_eq!(timed, [100, 200, 300, 400]);
    }
}
