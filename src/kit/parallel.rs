//! One operation on several CPUs at the same time, one of them the measuring thread's. The time runs from the signal until
//! the last task has finished. [`in_threads`] measures an operation of the caller's own in this way.

use crate::kit::contract::*;
use crate::kit::crew::Crew;
use crate::kit::kernel_call::check_granted;
use crate::platform::partner::Kind;
use std::hint::black_box;
use std::sync::Arc;

/// The number of tasks that work, each on a CPU of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// This many tasks, the measuring thread included.
    Count(usize),
    /// One task on each CPU.
    All,
}

impl Parallelism {
    /// The last part of the case's id.
    pub fn name(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::All => "all".into(),
        }
    }

    /// The CPUs of all tasks but the measuring thread.
    pub fn partner_cpus(self, place: &Place) -> &[usize] {
        let others = &place.cpus.others;
        let wanted = match self {
            Self::Count(count) => count.saturating_sub(1),
            Self::All => usize::MAX,
        };
        &others[..others.len().min(wanted)]
    }
}

/// The measuring thread's own work and the crew that does the same.
struct Parallel<W> {
    crew: Crew,
    work: W,
    /// Called after each batch with the number of operations of all tasks together.
    check: Box<dyn FnMut(u64) -> std::result::Result<(), String>>,
}

/// Sets up the tasks with the work that `make` returns for each index; the measuring thread has the last index.
/// `check` is called after each batch with the number of operations of all tasks together.
///
/// # Errors
/// The errors of `make`, and of [`Crew::start`].
pub fn parallel_subject<W: FnMut(u64) -> i64 + Send + 'static>(
    kind: Kind,
    parallelism: Parallelism,
    place: &Place,
    make: impl Fn(usize) -> Result<W>,
    check: impl FnMut(u64) -> std::result::Result<(), String> + 'static,
) -> Result<Box<dyn Subject>> {
    let cpus = parallelism.partner_cpus(place);
    let crew = Crew::start(kind, cpus, &make)?;
    Ok(Box::new(Parallel { crew, work: make(cpus.len())?, check: Box::new(check) }))
}

impl<W: FnMut(u64) -> i64> Subject for Parallel<W> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let turn = self.crew.wake_and_wait(iterations)?;
        let mut own = 0;
        let mut ended = Ok(());
        let ticks = clock.time(|| {
            self.crew.signal_start(turn);
            own = (self.work)(iterations);
            ended = self.crew.wait_until_finished();
        });
        ended?;
        check_granted("an operation, in the timed loop", own)?;
        let all = iterations * (self.crew.partner_tasks().len() as u64 + 1);
        (self.check)(all).map_err(Error::Disproved)?;
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: self.crew.partner_tasks(), ..Report::default() }
    }
}

/// The claim that partners ran on their own CPUs. The trial ends a case whose partner has left its CPU, so this
/// claim only checks that there are partners.
///
/// # Errors
/// A sentence, if there is no partner.
pub fn all_partners_stayed(delta: &Delta, _: u64) -> Judged {
    match delta.partners.map_or(0, |partners| partners.answering) {
        0 => Err("there is no partner".into()),
        1 => Ok("the partner stayed on its CPU".into()),
        partners => Ok(format!("{partners} partners stayed on their CPUs")),
    }
}

/// The case of an operation that this number of threads (at least one) does at the same time, each on a CPU of its own. `prepare` makes it
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
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn place() -> Place {
        let cpus = Cpus::for_measuring_process();
        Place { scratch: std::env::temp_dir(), scale: Scale::Smoke, cpus }
    }

    #[test]
    fn all_threads_share_the_prepared_operation_and_call_it_equally_often() {
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
    fn more_threads_than_cpus_are_an_error() {
        let case = in_threads("add", "an addition", 1 << 20, |_| || ());
        let error = (case.set_up)(&place()).err().expect("too many").to_string();
        assert!(error.contains("a CPU of its own"), "{error}");
    }
}
