//! `sched_yield` between two tasks: no token and no sleep, only the scheduler's choice of the next task.
//!
//! Between batches the partner sleeps: else it would use half of the CPU.

use super::{Kind, Placement, named};
use crate::case::{Case, Claim, Report, Rule, SetUp, Subject, set_up};
use crate::clock::{Clock, Delta, Ticks};
use crate::error::Result;
use crate::kit::round_trip::enough;
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Partner};
use crate::platform::shared::Words;
use crate::platform::syscall;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Index of the word that is 1 while the partner yields.
const GATE: usize = 0;

pub(super) fn case(kind: Kind) -> Case {
    let title = format!("sched_yield of two {} to each other, on one CPU", named(kind));
    let name = format!("yield-{}/{}", named(kind), Placement::Same.name());
    let control = set_up(|_| Ok(|n: u64, clock: &Clock| Ok(clock.time(|| yields(n)))));
    Placement::Same
        .needed(Case::new(name, title, yielding(kind)))
        .control_set_up(control)
        .derive("switch", Rule::OfCost(0.5))
        .claim(Claim::Counted(both_ran))
        .predict(2_000.0, 2_500.0, "two switches, and two calls of the scheduler that it chooses in")
}

#[inline(always)]
fn yields(n: u64) {
    for _ in 0..n {
        black_box(syscall::sched_yield());
    }
}

struct Yielding {
    partner: Partner,
    gate: Arc<Words>,
}

fn yielding(kind: Kind) -> SetUp {
    set_up(move |place| {
        let gate = Arc::new(Words::new()?);
        let (theirs, nudged) = (Arc::clone(&gate), Arc::clone(&gate));
        let step = move || {
            let gate = &theirs[GATE].value;
            if gate.load(SeqCst) == 0 {
                wait(gate, 0, Reach::Shared);
            } else {
                syscall::sched_yield();
            }
            0
        };
        let nudge = move || {
            nudged[GATE].value.store(1, SeqCst);
            wake(&nudged[GATE].value, Reach::Shared);
        };
        let at = (Placement::Same.cpu(place)?, Class::Ordinary);
        Ok(Yielding { partner: Partner::start(kind, at, step, nudge)?, gate })
    })
}

impl Subject for Yielding {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let gate = &self.gate[GATE].value;
        gate.store(1, SeqCst);
        wake(gate, Reach::Shared);
        let ticks = clock.time(|| yields(iterations));
        gate.store(0, SeqCst);
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.partner.task()], ..Report::default() }
    }
}

/// The claim that nine in ten yields were switches. The scheduler may continue the task that yields, which is no
/// switch.
fn both_ran(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const MOST: f64 = 0.9;
    let own = delta.counted.involuntary_switches + delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    enough("left the CPU", own, partner, iterations, MOST)
}
