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
pub mod technique;
pub mod thread;
pub mod wait;
pub mod wake_up;

mod blocks;
mod case;
mod claim;
mod crowd;
mod figure;
mod found;
mod need;
mod placement;
mod remote;
mod repeated;
mod repetition;

pub use case::{Case, Family, Prediction, SetUp};
pub use claim::Claim;
pub use figure::{Derived, Matrix, Rule};
pub use found::Found;
pub use need::{Cpus, Need, Place, Scale};
pub use repetition::Repetition;

use crate::Result;
use crate::environment::Wire;
use crate::instrument::{Clock, Ticks};
use crate::machine::partner::Task;
use std::time::Duration;

/// The groups of this crate, in the order in which they run.
pub const GROUPS: &[Group] = &[
    clock_read::GROUP,
    empty_loop::GROUP,
    known_work::GROUP,
    call::GROUP,
    syscall::GROUP,
    chase::GROUP,
    bandwidth::GROUP,
    page_fault::GROUP,
    mapping::GROUP,
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
    socket_round_trip::GROUP,
    socket_bandwidth::GROUP,
    socket_connect::GROUP,
    direct_read::GROUP,
    cached_read::GROUP,
    file_ops::GROUP,
    contention::GROUP,
    remote_read::GROUP,
    displacement::GROUP,
    counters::GROUP,
    technique::GROUP,
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

    /// As one of several that do the same on one CPU for so long and leave it no idle moment: how many iterations all
    /// of them did together, and how long it took. For who predicts a throughput from a cost.
    fn saturated(&mut self, _lasting: Duration, _clock: &Clock) -> Option<Result<(u64, Ticks)>> {
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
