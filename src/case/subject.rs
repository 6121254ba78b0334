//! The operation, ready to run.

use super::{Found, Matrix};
use crate::Result;
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::platform::partner::Task;

/// The live thing under measurement.
pub trait Subject {
    /// Does the operation `iterations` times; returns only the time spent inside [`Clock::time`].
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks>;

    /// What else it knows: who must be watched beside it, what it found and counted, what a reader must know.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// What a subject knows beside the time of its runs.
#[derive(Debug, Default)]
pub struct Report {
    /// Tasks that it lives with. They are watched during every sample, and must stay on their CPUs.
    pub partners: Vec<Task>,
    /// Figures that it found: what others did meanwhile, what the kernel held.
    pub found: Vec<Found>,
    /// The way to the machine at its other end, if that is another.
    pub wire: Option<Wire>,
    /// What it found between every two CPUs, if it went to all of them, ns.
    pub matrix: Option<Matrix>,
    /// What it counted in the timed part of its last run, where an iteration is no measure of it: page faults, of
    /// which one may serve many touches.
    pub events: Option<u64>,
    /// Sentences without which its numbers would mislead: a size that had to shrink, operations that were repeated.
    pub evidence: Vec<String>,
}

impl<F: FnMut(u64, &Clock) -> Result<Ticks>> Subject for F {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self(iterations, clock)
    }
}

impl Subject for Box<dyn Subject> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        (**self).run(iterations, clock)
    }

    fn report(&self) -> Report {
        (**self).report()
    }
}
