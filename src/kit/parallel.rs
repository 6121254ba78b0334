//! One operation on several CPUs at the same time, the measuring thread's among them: from the signal until the last
//! task has finished.

use crate::case::{Place, Report, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::error::{Error, Result};
use crate::kit::crew::Crew;
use crate::kit::kernel_call::check_granted;
use crate::platform::partner::Kind;

/// How many tasks work, each on a CPU of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// This many, the measuring thread included.
    Count(usize),
    /// One on each CPU.
    All,
}

impl Parallelism {
    /// The last part of an id.
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
/// Those of `make`, and of [`Crew::start`].
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

/// The claim that partners ran on their own CPUs. The trial ends a case whose partner strayed, so what is left to
/// check is that there are partners.
///
/// # Errors
/// A sentence, where there is none.
pub fn all_partners_stayed(delta: &Delta, _: u64) -> std::result::Result<String, String> {
    match delta.partners.map_or(0, |partners| partners.answering) {
        0 => Err("there is no partner".into()),
        1 => Ok("the partner stayed on its CPU".into()),
        partners => Ok(format!("{partners} partners stayed on their CPUs")),
    }
}
