//! What is read: one file a group, with the operation, its claims and its manual.
//!
//! A [`Subject`] is the live thing under measurement; what is timed is exactly what stands inside
//! [`Clock::time`]. A [`Case`] is one row of a group's table: an id, what it needs, what must be true if
//! it happened, and how it is set up. A [`Group`] is a bench target and a process.
//!
//! Adding a case is one line. Adding a group is one file and three lines of wiring, which
//! `scripts/new-group` stamps and the crate's own tests check.

pub mod bandwidth;
pub mod cached_read;
pub mod call;
pub mod chase;
pub mod clock_read;
pub mod contention;
pub mod context_switch;
pub mod core_to_core;
pub mod counters;
pub mod curve;
pub mod direct_read;
pub mod displacement;
pub mod empty_loop;
pub mod file_ops;
pub mod fork;
pub mod known_work;
pub mod lock;
pub mod mapping;
pub mod page_fault;
pub mod ping_pong;
pub mod remote_read;
pub mod scale;
pub mod signal;
pub mod socket_bandwidth;
pub mod socket_connect;
pub mod socket_round_trip;
pub mod syscall;
pub mod thread;
pub mod wait;
pub mod wake_up;

mod blocks;
mod claim;
mod crowd;
mod found;
mod need;
mod placement;
mod remote;
mod repetition;

pub use claim::Claim;
pub use found::Found;
pub use need::{Cpus, Need, Place, Scale};
pub use repetition::Repetition;

use crate::Result;
use crate::environment::Wire;
use crate::instrument::{Clock, Ticks};
use crate::machine::partner::Task;

/// The groups of this crate, in the order in which they run.
pub const GROUPS: &[Group] = &[
    clock_read::GROUP,
    empty_loop::GROUP,
    known_work::GROUP,
    call::GROUP,
    syscall::GROUP,
    chase::GROUP,
    mapping::GROUP,
    bandwidth::GROUP,
    ping_pong::GROUP,
    context_switch::GROUP,
    core_to_core::GROUP,
    wake_up::GROUP,
    lock::GROUP,
    scale::GROUP,
    fork::GROUP,
    thread::GROUP,
    signal::GROUP,
    wait::GROUP,
    counters::GROUP,
    page_fault::GROUP,
    socket_round_trip::GROUP,
    socket_bandwidth::GROUP,
    socket_connect::GROUP,
    direct_read::GROUP,
    cached_read::GROUP,
    file_ops::GROUP,
    contention::GROUP,
    remote_read::GROUP,
    displacement::GROUP,
];

/// The live thing under measurement.
pub trait Subject {
    /// Does the operation `iterations` times; returns only the time spent inside [`Clock::time`].
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks>;

    /// The partners that it lives with. They are watched during every sample, and must stay where they are.
    fn partners(&self) -> Vec<Task> {
        Vec::new()
    }

    /// Figures that it found beside the time, if there are any.
    fn found(&self) -> Vec<Found> {
        Vec::new()
    }

    /// The same so many times with computation between, so that the CPU never idles: how long all of it takes, and
    /// how long the computation takes alone. For who predicts a throughput from a cost.
    fn saturated(&mut self, _iterations: u64, _clock: &Clock) -> Option<Result<[Ticks; 2]>> {
        None
    }

    /// The way to the machine at its other end, if that is another.
    fn wire(&self) -> Option<Wire> {
        None
    }

    /// What it found between every two CPUs, if it went to all of them.
    fn matrix(&self) -> Option<Matrix> {
        None
    }

    /// What it counted in the timed part of its last run, where an iteration is no measure of it: page faults, of
    /// which one may serve many touches.
    fn events(&self) -> Option<u64> {
        None
    }

    /// What a reader must know of its numbers and only it can tell: a size that had to shrink, operations that were
    /// done again.
    fn evidence(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(u64, &Clock) -> Result<Ticks>> Subject for F {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self(iterations, clock)
    }
}

/// How a case comes to life. It may allocate, open and touch: none of that is timed.
pub type SetUp = Box<dyn Fn(&Place) -> Result<Box<dyn Subject>>>;

/// One row of a group's table.
pub struct Case {
    /// `variant` or `variant/parameter`; the group's name goes before it.
    pub name: String,
    /// Plain words for a reader who has not met the id.
    pub title: String,
    /// What the machine must offer.
    pub needs: Vec<Need>,
    /// What must be true if the operation happened.
    pub claims: Vec<Claim>,
    /// What to expect, written before the measurement.
    pub prediction: Option<Prediction>,
    /// The operation.
    pub set_up: SetUp,
    /// The same loop with the operation left out.
    pub control: Option<SetUp>,
    /// Figures that follow from its own and are what a reader looks for.
    pub derived: Vec<Derived>,
    /// Every iteration is timed by itself and the distribution is the answer.
    pub one_by_one: bool,
    /// Where tasks of its own run.
    pub family: Family,
    /// It is measured by what it displaces, whatever is asked for, and so often.
    pub displaced: Option<Repetition>,
}

/// Tasks that a case starts and that run beside the measuring thread: its own, and no disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// There are none: whoever has the CPU meanwhile is a stranger.
    #[default]
    None,
    /// Children that it waits for, and threads, on the measuring CPU, which is never idle meanwhile. What was
    /// charged neither to them nor to the measuring thread, strangers had.
    SameCpu,
    /// Some that outlive a batch, or run elsewhere: what strangers had cannot be told.
    Elsewhere,
}

/// What one iteration should cost: the hardware's part and the software's, in core cycles, since that is
/// what processors of different frequency share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Core cycles that the hardware charges.
    pub hardware: f64,
    /// Core cycles that the kernel or the compiler's code adds.
    pub software: f64,
    /// Why.
    pub why: &'static str,
}

/// Figures of every two CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The CPUs, in order.
    pub cpus: Vec<usize>,
    /// Two of them, by their place in that order, and what each batch found of them, ns.
    pub figures: Vec<((usize, usize), Vec<f64>)>,
}

/// A figure that follows from those of a case, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// What it is: `switch`, `efficiency`.
    pub name: &'static str,
    /// How it follows.
    pub rule: Rule,
}

/// How a figure follows from those of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// So many times the cost beyond the control: a round trip's is that of two switches, and one is half of it.
    OfNet(f64),
    /// So many times the cost.
    OfCost(f64),
    /// The control's cost over the case's own: 1 where company costs nothing.
    ControlOverCost,
    /// How many of them there are in a second.
    Rate,
    /// So many bytes in the time of one: gigabytes (10⁹ bytes) a second.
    Bandwidth(u64),
    /// The same of a case in which every CPU moves so many.
    BandwidthOfAll(u64),
    /// So many bytes in the time of one, by the core cycle.
    BytesPerCycle(u64),
    /// What share of this many bytes a second they are: so many in the time of one, on each CPU.
    Share {
        /// Bytes in the time of one.
        bytes: u64,
        /// Whether every CPU moves so many.
        on_all: bool,
        /// Bytes a second that could be moved.
        of: f64,
    },
    /// The time of a sample over the events that the subject counted in it: page faults, of which one may serve
    /// many iterations. Left out where there was none.
    PerEvent,
}

/// A set of cases measured by one process.
#[derive(Clone, Copy)]
pub struct Group {
    /// Name: of the group, its source file, its bench target and its manual.
    pub name: &'static str,
    /// The manual: the source file itself, of which the `//!` lines are shown.
    pub manual: &'static str,
    /// Other sources that the operation is made of, for the version of its body.
    pub sources: &'static [&'static str],
    /// Its cases.
    pub cases: fn() -> Vec<Case>,
    /// Straight lines to draw through its cases.
    pub fits: &'static [Fit],
}

/// A line through the cases whose names begin with `prefix` and end in a number.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// What one step is: "a further u64 argument".
    pub step: &'static str,
    /// The ids' common beginning, with the group: `call/u64/`.
    pub prefix: &'static str,
}

impl Case {
    /// A case whose operation is `run`: given a number of iterations and the clock, it returns the time.
    pub fn new(name: impl Into<String>, title: impl Into<String>, set_up: SetUp) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            needs: Vec::new(),
            claims: Vec::new(),
            prediction: None,
            set_up,
            control: None,
            derived: Vec::new(),
            one_by_one: false,
            family: Family::None,
            displaced: None,
        }
    }

    /// A case that times a loop as a whole. The function is given the number of turns.
    ///
    /// ```
    /// use syscost::subject::{Case, Claim};
    /// let case = Case::looped("hash", "hash of a word", |n| {
    ///     for i in 0..n {
    ///         std::hint::black_box(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ///     }
    /// })
    /// .claim(Claim::Linear);
    /// assert_eq!(case.name, "hash");
    /// ```
    pub fn looped(
        name: impl Into<String>,
        title: impl Into<String>,
        turns: impl Fn(u64) + Copy + 'static,
    ) -> Self {
        Self::new(name, title, whole(turns))
    }

    /// Adds something that the machine must offer.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Adds something that must be true if the operation happened.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Measures `turns` beside it, the same loop with the operation left out.
    pub fn control(mut self, turns: impl Fn(u64) + Copy + 'static) -> Self {
        self.control = Some(whole(turns));
        self
    }

    /// The same with a set-up of its own, for a control that is not a plain loop.
    pub fn control_set_up(mut self, set_up: SetUp) -> Self {
        self.control = Some(set_up);
        self
    }

    /// Writes down what to expect, in core cycles.
    pub fn predict(mut self, hardware: f64, software: f64, why: &'static str) -> Self {
        self.prediction = Some(Prediction { hardware, software, why });
        self
    }

    /// Adds a figure that follows from the others.
    pub fn derive(mut self, name: &'static str, rule: Rule) -> Self {
        self.derived.push(Derived { name, rule });
        self
    }

    /// Says where tasks of its own run.
    pub fn family(mut self, family: Family) -> Self {
        self.family = family;
        self
    }

    /// Measures what it displaces instead of how long it takes.
    pub fn displaced(mut self, repetition: Repetition) -> Self {
        self.displaced = Some(repetition);
        self
    }

    /// Times every iteration by itself and reports the distribution.
    pub fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        self
    }
}

/// A loop timed as a whole.
fn whole(turns: impl Fn(u64) + Copy + 'static) -> SetUp {
    Box::new(move |_| Ok(Box::new(move |n: u64, clock: &Clock| Ok(clock.time(|| turns(n))))))
}

impl Group {
    /// A group of a reader's own. `manual` stands for the operation in the version of its body: the source
    /// itself (`include_str!("mine.rs")`) changes whenever the operation does.
    pub const fn new(name: &'static str, manual: &'static str, cases: fn() -> Vec<Case>) -> Self {
        Self { name, manual, sources: &[], cases, fits: &[] }
    }

    /// The full id of one of its cases.
    pub fn id(&self, case: &Case) -> String {
        format!("{}/{}", self.name, case.name)
    }

    /// The version of what is measured: a hash of its sources (FNV-1a, 64 bits). Numbers of another body
    /// belong to another series.
    pub fn body(&self) -> String {
        let texts = std::iter::once(self.manual).chain(self.sources.iter().copied());
        let hash = texts.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }

    /// The manual's text: the `//!` lines of its source without their marks.
    pub fn manual_text(&self) -> String {
        let lines = self.manual.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    }
}

/// The group of this name.
pub fn find(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fixtures/ids.txt` holds the ids of x86-64. The other list says by what those of AArch64 differ: `-` is
    /// not there, and the `+` of a group stand at its beginning. It is asked on x86-64 too that every `-` is in
    /// the first list, so that a rename which forgets the second is noticed on either.
    fn written_down() -> String {
        let mut ids: Vec<_> = include_str!("../fixtures/ids.txt").lines().collect();
        let differences = include_str!("../fixtures/ids-aarch64.txt");
        let marked = |mark| differences.lines().filter_map(move |line| line.strip_prefix(mark));
        let absent: Vec<_> = marked('-').collect();
        for id in &absent {
            assert!(
                ids.contains(id),
                "{id} is taken away in fixtures/ids-aarch64.txt and not in fixtures/ids.txt"
            );
        }
        if cfg!(target_arch = "aarch64") {
            ids.retain(|id| !absent.contains(id));
            let group = |id: &str| id.split('/').next().map(str::to_owned);
            for id in marked('+').collect::<Vec<_>>().into_iter().rev() {
                let at = ids.iter().position(|other| group(other) == group(id));
                ids.insert(at.unwrap_or(ids.len()), id);
            }
        }
        ids.into_iter().map(|id| format!("{id}\n")).collect()
    }

    #[test]
    fn ids_are_the_ones_written_down() {
        let ids: String = GROUPS
            .iter()
            .flat_map(|g| (g.cases)().iter().map(|c| g.id(c) + "\n").collect::<Vec<_>>())
            .collect();
        let written = written_down();
        assert_eq!(ids, written, "ids are a wire format: a rename orphans old records (fixtures/ids.txt)");
    }

    #[test]
    fn every_case_proves_something_and_predicts_something() {
        for group in GROUPS {
            for case in (group.cases)() {
                assert!(!case.claims.is_empty(), "{}/{} has no claim", group.name, case.name);
                assert!(case.prediction.is_some(), "{}/{} has no prediction", group.name, case.name);
            }
        }
    }

    #[test]
    fn criterion_would_not_cut_an_id() {
        for group in GROUPS {
            for case in (group.cases)() {
                assert!(case.name.len() <= 64 && group.id(&case).is_ascii(), "{}", case.name);
            }
        }
    }
}
