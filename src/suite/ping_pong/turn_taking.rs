//! `sched_yield` to and fro: no token, no sleep, only the scheduler's choice of who is next.
//!
//! Between batches the partner sleeps, since otherwise it would have the CPU half of the time that is not ours.

use super::{Kind, Placement, named};
use crate::Result;
use crate::case::{Case, Claim, Place, Report, Rule, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Partner, Task};
use crate::platform::shared::Words;
use crate::platform::syscall;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// The word that is 1 while the partner is to yield.
const GATE: usize = 0;

pub(super) fn case(kind: Kind) -> Case {
    let title = format!("sched_yield of two {} to each other, on one CPU", named(kind));
    let name = format!("yield-{}/{}", named(kind), Placement::Same.name());
    let control: SetUp = Box::new(|_: &Place| {
        Ok(Box::new(|n: u64, clock: &Clock| Ok(clock.time(|| yields(n)))) as Box<dyn Subject>)
    });
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
    Box::new(move |place: &Place| {
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
        Ok(Box::new(Yielding { partner: Partner::start(kind, at, step, nudge)?, gate }) as Box<dyn Subject>)
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

/// A yield that the scheduler answers with the same task is no switch. It does now and then, and then the number
/// is no switch's: nine in ten must have been.
fn both_ran(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const MOST: f64 = 0.9;
    let own = delta.counted.involuntary_switches + delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    crate::kit::token::enough("left the CPU", own, partner, iterations, MOST)
}
