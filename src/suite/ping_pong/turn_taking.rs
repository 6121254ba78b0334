//! `sched_yield` between two tasks: no token and no sleep, only the scheduler's choice of the next task.
//!
//! Between batches the partner sleeps: else it would use half of the CPU.

use super::{Kind, Placement, kind_plural};
use crate::case::{Case, Claim, Report, Rule, SetUp, Subject, set_up};
use crate::clock::{Clock, Delta, Ticks};
use crate::error::Result;
use crate::kit::round_trip::check_both_counts;
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Partner};
use crate::platform::process;
use crate::platform::shared::Words;
use crate::platform::syscall;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Index of the word that is 1 while the partner yields.
const GATE: usize = 0;

pub(super) fn yield_case(kind: Kind) -> Case {
    let title = format!("sched_yield of two {} to each other, on one CPU", kind_plural(kind));
    let name = format!("yield-{}/{}", kind_plural(kind), Placement::Same.name());
    let control = set_up(|_| Ok(|n: u64, clock: &Clock| Ok(clock.time(|| yield_repeatedly(n)))));
    Placement::Same
        .add_needs(Case::new(name, title, yield_set_up(kind)))
        .control_set_up(control)
        .derived_figure("switch", Rule::PerEvent)
        .claim(Claim::Regime(check_both_ran))
        .predict(2_000.0, 2_500.0, "two switches, and two calls of the scheduler that it chooses in")
}

#[inline(always)]
fn yield_repeatedly(n: u64) {
    for _ in 0..n {
        black_box(syscall::sched_yield());
    }
}

struct Yielding {
    partner: Partner,
    gate: Arc<Words>,
    /// Switches of the last run: each time this thread left the CPU, and each time it came back.
    switches: u64,
}

fn yield_set_up(kind: Kind) -> SetUp {
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
        let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
        Ok(Yielding { partner: Partner::start(kind, at, step, nudge)?, gate, switches: 0 })
    })
}

impl Subject for Yielding {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let gate = &self.gate[GATE].value;
        gate.store(1, SeqCst);
        wake(gate, Reach::Shared);
        let before = switches_so_far()?;
        let ticks = clock.time(|| yield_repeatedly(iterations));
        self.switches = 2 * (switches_so_far()? - before);
        gate.store(0, SeqCst);
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.partner.task()], events: Some(self.switches), ..Report::default() }
    }
}

/// How often this thread has left its CPU.
fn switches_so_far() -> Result<u64> {
    let usage = process::thread_usage()?;
    Ok(usage.voluntary_context_switches() as u64 + usage.involuntary_context_switches() as u64)
}

/// Yields of a batch that need not switch: those before the partner has woken.
const FIRST: u64 = 2;

/// Claim: both tasks ran in turn, so at least half of the yields were switches. The scheduler may continue the
/// task that yields: `pick_eevdf` chooses by deadlines, and `yield_task_fair` only moves that of the yielding
/// task. The case allows that, since its cost of a switch is computed from the switches that happened.
fn check_both_ran(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const LEAST: f64 = 0.5;
    let own = delta.counted.involuntary_switches + delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    check_both_counts("left the CPU", own + FIRST, partner + FIRST, iterations, LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::PartnerReport;

    #[test]
    fn a_yield_that_goes_on_is_no_fault_and_one_end_alone_is() {
        let judged = |own, partner, yields| {
            let mut delta = Delta::default();
            delta.counted.involuntary_switches = own;
            delta.partners = Some(PartnerReport { fewest_switches: partner, ..PartnerReport::default() });
            check_both_ran(&delta, yields)
        };
        assert!(judged(0, 0, 2).is_ok(), "the partner had not woken");
        assert!(judged(800, 790, 1000).is_ok());
        assert!(judged(1000, 3, 1000).is_err());
    }
}
