//! An operation that is ready to run.

use super::{Found, Matrix};
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::error::Result;
use crate::platform::partner::Task;
use std::cell::RefCell;

/// An operation that has been set up and is ready to run. Closures of the type of [`Subject::run`] are subjects.
pub trait Subject {
    /// Does the operation `iterations` times. Returns the time spent inside [`Clock::time`] or [`Clock::time_each`], and none
    /// of what happens outside.
    ///
    /// # Errors
    /// [`Error::Disproved`](crate::Error::Disproved) if the operation did not do what it should,
    /// [`Error::Contradicted`](crate::Error::Contradicted) if two accounts of the batch contradict each other and something else may
    /// have changed one of them, [`Error::Disturbed`](crate::Error::Disturbed) if the batch should be repeated, and any other error if it cannot
    /// go on. No number is saved in either case.
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks>;

    /// What the subject knows besides the time. Read after a run.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// Results of a subject besides the time of its runs. Each field is optional.
#[derive(Debug, Default)]
pub struct Report {
    /// Tasks that take part in the operation. They are observed during every sample and must stay on their CPUs.
    pub partners: Vec<Task>,
    /// Figures that it found besides the time.
    pub found: Vec<Found>,
    /// The network path to the other end, if that is on another machine.
    #[doc(hidden)]
    pub wire: Option<Wire>,
    /// A figure for each pair of CPUs, ns.
    pub matrix: Option<Matrix>,
    /// Events in the timed part of its last run, where they are not one an iteration: page faults, of which one may
    /// serve many accesses.
    pub events: Option<u64>,
    /// Multiplications of each operation, where their number was found in the set-up.
    pub computed: u64,
    /// Sentences that a reader of the number needs: a size that was reduced, operations that were repeated.
    pub evidence: Vec<String>,
    /// Sentences on what could not be checked: the case is *unwitnessed*.
    pub unchecked: Vec<String>,
    /// Why no witness may run it in a copy of this process: other threads or open files would be missing, or shared.
    pub untraced: Option<String>,
}

impl<F: FnMut(u64, &Clock) -> Result<Ticks>> Subject for F {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self(iterations, clock)
    }
}

impl Subject for Box<dyn Subject + '_> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        (**self).run(iterations, clock)
    }

    fn report(&self) -> Report {
        (**self).report()
    }
}

/// An operation that lives on the stack of the code that made it, and is lent to a measurement.
#[derive(Clone, Copy)]
pub struct Lent<'a>(pub &'a dyn Lend);

/// A subject behind a shared reference: several attempts at one measurement borrow it one after another.
pub trait Lend {
    /// As [`Subject::run`].
    ///
    /// # Errors
    /// As of [`Subject::run`].
    fn run_lent(&self, iterations: u64, clock: &Clock) -> Result<Ticks>;
    /// As [`Subject::report`].
    fn report_lent(&self) -> Report;
}

impl<S: Subject> Lend for RefCell<S> {
    fn run_lent(&self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.borrow_mut().run(iterations, clock)
    }

    fn report_lent(&self) -> Report {
        self.borrow().report()
    }
}

impl Subject for Lent<'_> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.0.run_lent(iterations, clock)
    }

    fn report(&self) -> Report {
        self.0.report_lent()
    }
}
