//! An operation that is ready to run.

use super::SetUp;
use crate::clock::{Clock, Ticks};
use crate::environment::Wire;
use crate::error::Result;
use crate::platform::partner::Task;
use crate::record::EventRate;
use std::cell::RefCell;

/// An operation that has been set up and is ready to run. Closures of the type of [`Subject::run`] are subjects.
pub trait Subject {
    /// Does the operation `iterations` times. Returns only the time spent inside [`Clock::time`] or [`Clock::time_each`].
    ///
    /// # Errors
    /// [`Error::Disproved`](crate::Error::Disproved) if the operation did not do what it should,
    /// [`Error::Contradicted`](crate::Error::Contradicted) if two counts of the batch contradict each other and something other
    /// than the operation may have changed one of them, [`Error::Disturbed`](crate::Error::Disturbed) if the batch should be
    /// repeated, and any other error if the subject cannot continue. After an error no number is saved.
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks>;

    #[doc(hidden)]
    /// Events of an iteration that the subject counts by itself, each with its range over some iterations. Called once, in the process
    /// that proves the case, before anything is timed.
    ///
    /// # Errors
    /// As of [`Subject::run`].
    fn count(&mut self, _clock: &Clock) -> Result<Vec<EventRate>> {
        Ok(Vec::new())
    }

    /// The subject's results besides the time. Read after a run.
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
    /// Number of events in the timed part of the last run, if it differs from the number of iterations: one page fault, for
    /// example, may serve many accesses.
    pub events: Option<u64>,
    /// Multiplications of each operation, where their number was found in the set-up.
    pub computed: u64,
    /// Sentences that a reader of the number needs: a size that was reduced, operations that were repeated.
    pub evidence: Vec<String>,
    /// Sentences on what could not be checked: the case is *unwitnessed*.
    pub unchecked: Vec<String>,
    /// Why a witness may not run the operation in a forked copy of this process: threads or open files would be missing, or
    /// shared. `None` if it may.
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

    fn count(&mut self, clock: &Clock) -> Result<Vec<EventRate>> {
        (**self).count(clock)
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

// Figures beside the cost of an operation: computed from it, found by the operation, or one for each pair of CPUs.

/// One figure for each pair of CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The CPUs, in ascending order.
    pub cpus: Vec<usize>,
    /// Each pair, as indices into `cpus`, and the figure of every batch, ns.
    pub figures: Vec<((usize, usize), Vec<f64>)>,
}

/// A figure computed from the cost of a case, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// Its name: `switch`, `efficiency`.
    pub name: &'static str,
    /// How it is computed.
    pub rule: Rule,
}

/// How a figure is computed from the cost of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The net cost times this factor, ns: 0.5 for one of the two switches of a round trip.
    OfNet(f64),
    /// The cost times this factor, ns.
    OfCost(f64),
    /// The control's cost divided by the cost, without a unit: 1 if working at the same time as other tasks costs nothing.
    ControlOverCost,
    /// Iterations a second.
    Rate,
    /// Elements a second of an iteration that processes this many.
    Elements(u64),
    /// Bandwidth of an iteration that moves this many bytes, GB/s (10⁹ bytes).
    Bandwidth(u64),
    /// As [`Rule::Bandwidth`], summed over all CPUs, each of which moves this many bytes.
    BandwidthOfAll(u64),
    /// Bytes per core cycle of an iteration that moves this many.
    BytesPerCycle(u64),
    /// Bandwidth as a share of what the hardware could move.
    Share {
        /// Bytes that an iteration moves.
        bytes: u64,
        /// Whether every CPU moves that many.
        on_all: bool,
        /// Bytes a second that the hardware could move.
        of: f64,
    },
    /// Time of a sample divided by the events that the subject counted in it ([`Report::events`](super::Report)), such
    /// as page faults, of which one may serve many iterations. Left out if there was no event.
    PerEvent,
}

/// A figure that an operation found besides its time, such as what other tasks did meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its name: `fairness`.
    pub name: &'static str,
    /// `/s`, `MiB`, or empty for a ratio.
    pub unit: &'static str,
    /// The value of each observation.
    pub values: Vec<f64>,
}

impl Found {
    /// A figure with these values.
    pub fn new(name: &'static str, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, values }
    }
}

/// How often the displacement of a case is measured. The scale decides every number that is `None`.
#[derive(Default)]
pub struct Repetition {
    /// Iterations of one run.
    pub iterations: Option<u64>,
    /// Undisturbed runs.
    pub runs: Option<usize>,
    /// A further subject: several tasks that do the same operation and never leave the measuring CPU idle. Its `run` does the
    /// iterations by all tasks together; `events` in its report is their exact number.
    pub saturated: Option<SetUp>,
}
