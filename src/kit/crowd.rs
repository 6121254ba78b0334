//! The live thing of a case that is done by several at the same time, each on a CPU of its own, the measuring
//! thread among them: from the signal until the last has finished.

use crate::case::{Place, Report, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::crew::Crew;
use crate::platform::partner::{Kind, Task};
use crate::{Error, Result};

/// How many take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// So many, the measuring thread among them.
    Count(usize),
    /// One on each CPU.
    All,
}

impl Crowd {
    pub fn name(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::All => "all".into(),
        }
    }

    /// The CPUs of the others.
    pub fn cpus(self, place: &Place) -> &[usize] {
        let others = &place.cpus.others;
        let wanted = match self {
            Self::Count(count) => count.saturating_sub(1),
            Self::All => usize::MAX,
        };
        &others[..others.len().min(wanted)]
    }
}

/// The measuring thread's own work and the crew that does the same.
struct Together<W> {
    crew: Crew,
    work: W,
    /// Asked after each batch with the number of operations that all did together.
    check: Box<dyn FnMut(u64) -> std::result::Result<(), String>>,
}

/// Sets up a crowd with the work that `make` gives to each; the measuring thread gets the last number.
pub fn together<W: FnMut(u64) -> i64 + Send + 'static>(
    kind: Kind,
    crowd: Crowd,
    place: &Place,
    make: impl Fn(usize) -> Result<W>,
    check: impl FnMut(u64) -> std::result::Result<(), String> + 'static,
) -> Result<Box<dyn Subject>> {
    let cpus = crowd.cpus(place);
    let crew = Crew::start(kind, cpus, &make)?;
    Ok(Box::new(Together { crew, work: make(cpus.len())?, check: Box::new(check) }))
}

impl<W: FnMut(u64) -> i64> Subject for Together<W> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let turn = self.crew.call(iterations)?;
        let mut own = 0;
        let mut ended = Ok(());
        let ticks = clock.time(|| {
            self.crew.go(turn);
            own = (self.work)(iterations);
            ended = self.crew.finish();
        });
        ended?;
        if own < 0 {
            return Err(Error::refused("an operation, in the timed loop", Error::errno(own)));
        }
        let all = iterations * (self.crew.tasks().len() as u64 + 1);
        (self.check)(all).map_err(Error::Usage)?;
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: self.crew.tasks(), ..Report::default() }
    }
}

/// The trial ends a case whose partner strayed; what is left to say is that they were there.
pub fn all_stayed(delta: &Delta, _: u64) -> std::result::Result<String, String> {
    match delta.partners.map_or(0, |partners| partners.answering) {
        0 => Err("there is no partner".into()),
        1 => Ok("the partner stayed on its CPU".into()),
        partners => Ok(format!("{partners} partners stayed on their CPUs")),
    }
}
