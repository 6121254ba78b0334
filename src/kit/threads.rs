//! An operation of a bench of one's own, by several threads at once.

use super::parallel::{Parallelism, all_partners_stayed, parallel_subject};
use crate::case::need::PINNED;
use crate::case::{Case, Claim, Place, Rule, Subject, set_up};
use crate::error::{Error, Result};
use crate::platform::partner::Kind;
use std::hint::black_box;
use std::sync::Arc;

/// An operation that this number of threads (at least one) does at the same time, each on a CPU of its own. `prepare` makes it
/// once, in the measuring process: all threads share what it owns. An iteration is one call by each thread, from the signal
/// until the last thread has finished.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use syscost::{Case, in_threads};
/// let cases = Case::over("threads", 1..=4, |threads| {
///     in_threads("count", "an addition to a shared number", threads, |_| {
///         let number = AtomicU64::new(0);
///         move || number.fetch_add(1, Relaxed)
///     })
/// });
/// assert_eq!(cases[3].name, "count/4");
/// ```
///
/// `throughput` is what all threads do in a second, and `efficiency` the time of one thread alone over the time of all: 1
/// if the threads do not hinder each other. A case with more threads than CPUs is skipped.
pub fn in_threads<F, O>(
    name: impl Into<String>,
    title: impl Into<String>,
    threads: u64,
    prepare: impl Fn(&Place) -> F + Clone + 'static,
) -> Case
where
    F: Fn() -> O + Send + Sync + 'static,
    O: 'static,
{
    let of_one = prepare.clone();
    let alone = Case::prepared(name, title, move |preparation| of_one(preparation.place));
    if threads <= 1 {
        return alone.elements(1);
    }
    let several = set_up(move |place| start_threads(threads, place, prepare(place)));
    Case::new(alone.name, alone.title, several)
        .control_set_up(alone.set_up)
        .need(PINNED)
        .elements(threads)
        .derived_figure("efficiency", Rule::ControlOverCost)
        .claim(Claim::Counted(all_partners_stayed))
}

/// Starts the other threads, each of which calls `operation` as often as the measuring thread.
fn start_threads<O: 'static>(
    threads: u64,
    place: &Place,
    operation: impl Fn() -> O + Send + Sync + 'static,
) -> Result<Box<dyn Subject>> {
    place.cpus.check_count(threads as usize).map_err(Error::Missing)?;
    let operation = Arc::new(operation);
    let work = |_| {
        let operation = Arc::clone(&operation);
        Ok(move |n: u64| {
            for _ in 0..n {
                black_box(operation());
            }
            0
        })
    };
    parallel_subject(Kind::Thread, Parallelism::Count(threads as usize), place, work, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};
    use crate::clock::Clock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn place() -> Place {
        let cpus = Cpus::for_measuring_process();
        Place { scratch: std::env::temp_dir(), scale: Scale::Smoke, cpus }
    }

    #[test]
    fn all_threads_share_what_was_prepared_and_call_it_as_often() {
        if place().cpus.others.is_empty() {
            return crate::platform::testing::print_skipped("there is one CPU");
        }
        let calls = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&calls);
        let case = in_threads("add", "an addition", 2, move |_| {
            let shared = Arc::clone(&shared);
            move || shared.fetch_add(1, Relaxed)
        });
        let mut subject = (case.set_up)(&place()).expect("set up");
        subject.run(1_000, &Clock::start_up()).expect("a batch");
        assert_eq!(calls.load(Relaxed), 2_000);
        assert_eq!(subject.report().partners.len(), 1);
    }

    #[test]
    fn more_threads_than_cpus_are_a_missing_thing() {
        let case = in_threads("add", "an addition", 1 << 20, |_| || ());
        let error = (case.set_up)(&place()).err().expect("too many").to_string();
        assert!(error.contains("a CPU of its own"), "{error}");
    }
}
