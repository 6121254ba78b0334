//! A case measured by what it displaces: runs of it covered by a fluid process, between calibrations of the fluid.
//!
//! The measuring process is the process under test. Beside it, on its CPU, the fluid uses up what it leaves, so that
//! the cost of an operation is what the fluid lost: whoever did the work, and whomever the kernel charged for it.
//! The whole of a run counts, what a case does outside its timed part included.

mod account;
mod outcome;
mod saturation;

use super::{Bench, CaseEnd, judge};
use crate::case::{Case, Repetition, Scale, Subject};
use crate::clock::{CalibrationPlan, Clock, Counters, Delta, FluidMeter, PartnerMonitor, Ticks};
use crate::environment::Accounting;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::signal;
use crate::record::Measured;
use crate::statistic::fluid_cost::{Covered, Totals};
use crate::statistic::fluid_cost::{Replicate, Summary};
use account::Account;
use saturation::{Saturated, saturate};
use std::time::Duration;

/// Runs without an operation, whose median is what it takes to begin and to end.
const EMPTY: usize = 5;
/// A run of so many iterations that takes less than it should has nothing in it.
const MOST: u64 = 1 << 27;
/// So often once more, to find a time in which nobody else had the CPU: by one in which somebody had, the runs would be so
/// short that most of them missed him.
const AGAIN: usize = 3;

/// How much is done.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Unspoilt runs.
    wanted: usize,
    /// Runs in all: a third of them may be spoilt, and fewer of a smoke run, whose numbers nobody keeps.
    most: usize,
    /// Length of a run.
    run: Duration,
    calibrating: CalibrationPlan,
}

impl Effort {
    fn of(scale: Scale, repetition: Option<Repetition>) -> Self {
        let (wanted, run, windows, each) = match scale {
            Scale::Smoke => (10, 4, 3, 1),
            Scale::Default => (10, 30, 4, 3),
            Scale::Full => (20, 60, 8, 4),
        };
        let [run, each] = [run, each].map(Duration::from_millis);
        let asked = repetition.filter(|_| scale != Scale::Smoke).and_then(|repetition| repetition.runs);
        let wanted = asked.unwrap_or(wanted);
        let most = if scale == Scale::Smoke { wanted + 2 } else { wanted + wanted / 2 };
        Self { wanted, most, run, calibrating: CalibrationPlan { windows, each } }
    }
}

/// One covered run, and what else happened.
struct Run {
    replicate: Replicate,
    delta: Delta,
    timed_ns: f64,
    elapsed_ns: f64,
    saturated: Option<Saturated>,
}

/// A case in the middle of being measured.
struct Displacement<'a> {
    case: &'a Case,
    clock: &'a Clock,
    pinned: usize,
    effort: Effort,
    subject: Box<dyn Subject>,
    meter: FluidMeter,
    account: Account,
    counters: Counters,
    partners: PartnerMonitor,
    iterations: u64,
    counted: Vec<String>,
}

/// Measures a case so. Its claims are asked as in any other measurement, those about the growth of time apart.
pub fn displaced(case: &Case, bench: Bench<'_>) -> Result<Measured, CaseEnd> {
    let Bench { place, clock, pinned } = bench;
    for need in &case.needs {
        need.ask(place).map_err(CaseEnd::Skipped)?;
    }
    let Some(pinned) = pinned else {
        let sentence = "displacement needs one CPU for the operation and the fluid, and the process could not be pinned: \
                        allow sched_setaffinity";
        return Err(CaseEnd::Skipped(sentence.into()));
    };
    clock.take_singles(); // what an attempt that was given up has left
    let mut subject = (case.set_up)(place).map_err(CaseEnd::of_set_up)?;
    let mut words = Vec::new();
    if case.claims.iter().any(crate::case::Claim::wants_witness) {
        words = judge::witness(case, &mut *subject, clock)?.1;
    }
    let accounting = Accounting::of(&KernelFiles::live());
    let partners = subject.report().partners;
    let mut displacement = Displacement {
        case,
        clock,
        pinned,
        effort: Effort::of(place.scale, case.displaced),
        meter: FluidMeter::start(pinned, clock, accounting.hides_interrupts(), 0)
            .map_err(CaseEnd::of_set_up)?,
        account: Account::open(&partners, pinned),
        counters: Counters::open(pinned),
        partners: PartnerMonitor::open(&partners, pinned).map_err(CaseEnd::of_set_up)?,
        subject,
        iterations: 1,
        counted: Vec::new(),
    };
    displacement.iterations = displacement.find_iterations()?;
    let empty = displacement.empty()?;
    let runs = displacement.runs()?;
    let replicates: Vec<_> = runs.iter().map(|run| run.replicate).collect();
    let summary = Summary::of(&replicates, &empty, displacement.effort.wanted);
    outcome::measured(&displacement, &runs, &summary, &empty, words)
}

impl Displacement<'_> {
    /// As many iterations as fill a run, unless the case says how many.
    fn find_iterations(&mut self) -> Result<u64, CaseEnd> {
        let asked = self.case.displaced.and_then(|repetition| repetition.iterations);
        // The first run touches pages and fills caches.
        self.subject.run(1, self.clock)?;
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let wanted = self.effort.run.as_nanos() as f64;
        let mut n = 1;
        loop {
            let mut elapsed = self.takes(n)?;
            if elapsed >= 0.25 * wanted {
                for _ in 0..AGAIN {
                    elapsed = elapsed.min(self.takes(n)?);
                }
                return Ok(((n as f64 * wanted / elapsed) as u64).max(1));
            }
            if n >= MOST {
                return Err(CaseEnd::Failed(format!(
                    "{n} iterations took {elapsed:.0} ns: nothing was done"
                )));
            }
            n *= 2;
        }
    }

    /// How long so many iterations take, ns.
    fn takes(&mut self, iterations: u64) -> Result<f64, CaseEnd> {
        let start = self.clock.start();
        self.subject.run(iterations, self.clock)?;
        Ok(self.clock.nanoseconds(self.clock.stop() - start).0)
    }

    /// What a run without operations shows.
    fn empty(&mut self) -> Result<Totals, CaseEnd> {
        let before = self.meter.calibrate(self.effort.calibrating)?;
        let mut all = Vec::with_capacity(EMPTY);
        for _ in 0..EMPTY {
            let (_, covered) = self.covered(0)?;
            all.push(Totals::of(&covered, &before));
        }
        Ok(Totals::median(&all))
    }

    /// Runs until enough of them are unspoilt, or patience ends.
    fn runs(&mut self) -> Result<Vec<Run>, CaseEnd> {
        let most = self.effort.most;
        let mut runs: Vec<Run> = Vec::with_capacity(most);
        let mut before = self.meter.calibrate(self.effort.calibrating)?;
        let mut kept = 0;
        while kept < self.effort.wanted && runs.len() < most {
            if signal::pending().is_some() {
                return Err(CaseEnd::Interrupted);
            }
            // Each run has a pair of its own: rows that shared one would not stand for themselves.
            let saturated_before = saturate(self)?;
            let stolen = self.meter.stolen_ticks();
            let ((delta, timed_ns, elapsed_ns), covered) = self.covered(self.iterations)?;
            let stolen_ticks = self.meter.stolen_ticks().saturating_sub(stolen);
            self.counted = judge::sample(self.case, &delta, self.iterations, Some(self.pinned))?;
            let after = self.meter.calibrate(self.effort.calibrating)?;
            let saturated_after = saturate(self)?;
            let saturated = Saturated::between(saturated_before, saturated_after);
            let replicate = Replicate { before, covered, after, stolen_ticks };
            kept += usize::from(replicate.spoilt().is_none());
            runs.push(Run { replicate, delta, timed_ns, elapsed_ns, saturated });
            before = after;
        }
        Ok(runs)
    }

    /// One run under the fluid; without iterations it is what is around one.
    #[allow(clippy::type_complexity, reason = "three readings of one run, named where they are taken apart")]
    fn covered(&mut self, iterations: u64) -> Result<((Delta, f64, f64), Covered), CaseEnd> {
        let Self { subject, clock, meter, account, counters, partners, .. } = self;
        let run = || {
            partners.read();
            let before = counters.read()?;
            let start = clock.start();
            let Ticks(timed) = if iterations > 0 { subject.run(iterations, clock)? } else { Ticks(0) };
            let elapsed = clock.nanoseconds(clock.stop() - start).0;
            let mut delta = Delta::between(&before, &counters.read()?);
            delta.partners = partners.read();
            Ok((delta, clock.nanoseconds(Ticks(timed)).0, elapsed))
        };
        let (seen, mut covered) = meter.cover(|| account.charge(), run)?;
        covered.operations = iterations as f64;
        Ok((seen, covered))
    }
}
