//! A case measured by what it displaces: runs covered by a fluid process, between calibrations of the fluid.
//!
//! The measuring process is the process under test. The fluid uses the CPU time that it leaves on the same CPU. The
//! cost of an operation is what the fluid lost, whichever task did the work and whichever the kernel charged for it.
//! The whole run counts, including what a case does outside its timed part.

mod outcome;

use super::{Bench, CaseEnd, judge};
use crate::case::{Case, Repetition, Scale, Subject};
use crate::clock::{CalibrationPlan, Charge, Clock, Counters, Delta, FluidMeter, PartnerMonitor, Ticks};
use crate::environment::Accounting;
use crate::error::{self, Error};
use crate::platform::kernel_files::KernelFiles;
use crate::platform::partner::{Role, Task};
use crate::platform::{proc, process, signal, time};
use crate::record::Measured;
use crate::statistic::fluid_cost::{Covered, Replicate, Summary, Totals};
use outcome::{Saturated, Saturation, measure_saturated};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Runs without an operation; their median is the cost of beginning and ending a run.
const EMPTY_RUNS: usize = 5;
/// Most iterations of a run. If it is still too short, the operation does nothing.
const MOST_ITERATIONS: u64 = 1 << 27;
/// Repetitions to find a run without other tasks on the CPU. Sized by a run that other tasks lengthened, the runs would be too
/// short: most of them would miss these tasks.
const SIZING_REPETITIONS: usize = 3;

/// How many runs are made, and how long they are.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Unspoilt runs.
    wanted: usize,
    /// Most runs in all: a third of them may be spoilt. In a smoke run, whose numbers are not kept, two may be.
    most: usize,
    /// Length of a run.
    run: Duration,
    calibrating: CalibrationPlan,
}

impl Effort {
    fn for_scale(scale: Scale, repetition: Option<&Repetition>) -> Self {
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

/// One covered run.
struct Run {
    replicate: Replicate,
    delta: Delta,
    timed_ns: f64,
    elapsed_ns: f64,
    saturated: Option<Saturated>,
}

/// A case that is being measured.
struct Displacement<'a> {
    case: &'a Case,
    clock: &'a Clock,
    pinned: usize,
    effort: Effort,
    subject: Box<dyn Subject + 'a>,
    saturation: Option<Saturation>,
    meter: FluidMeter,
    account: Account,
    counters: Counters,
    partners: PartnerMonitor,
    iterations: u64,
    counted: Vec<String>,
}

/// Measures what a case displaces. Its claims are judged as in any other measurement, except those about how time
/// grows.
///
/// # Errors
/// A need is not met, a claim does not hold, the machine was disturbed, or a signal came.
pub fn measure_displaced(case: &Case, bench: Bench<'_>) -> Result<Measured, CaseEnd> {
    let Bench { place, clock, pinned, .. } = bench;
    if let Some(sentence) = case.missing_need(place) {
        return Err(CaseEnd::Skipped(sentence));
    }
    let Some(pinned) = pinned else {
        let sentence = "displacement needs one CPU for the operation and the fluid, and the process could not be pinned: \
                        allow sched_setaffinity";
        return Err(CaseEnd::Skipped(sentence.into()));
    };
    clock.take_single_times(); // leftovers of an attempt that was given up
    let mut subject = bench.set_up(case).map_err(CaseEnd::from_set_up_error)?;
    let mut judgements = Vec::new();
    if case.claims.iter().any(crate::case::Claim::wants_witness) {
        judgements = judge::judge_by_witness(case, &mut *subject, clock)?.1;
    }
    let accounting = Accounting::read(&KernelFiles::live());
    let saturation = Saturation::set_up(case, place)?;
    let mut partners = subject.report().partners;
    partners.extend(saturation.iter().flat_map(|saturation| saturation.subject.report().partners));
    let monitor = PartnerMonitor::open(&partners, pinned).map_err(CaseEnd::from_set_up_error)?;
    judgements.extend(monitor.hidden_sentence().map(judge::Judgement::Unasked));
    let mut displacement = Displacement {
        case,
        clock,
        pinned,
        effort: Effort::for_scale(place.scale, case.displaced.as_ref()),
        meter: FluidMeter::start(pinned, clock, accounting.hides_interrupts(), 0)
            .map_err(CaseEnd::from_set_up_error)?,
        account: Account::open(&partners, pinned),
        counters: Counters::open(pinned),
        partners: monitor,
        subject,
        saturation,
        iterations: 1,
        counted: Vec::new(),
    };
    displacement.iterations = displacement.find_iterations()?;
    outcome::find_saturated_iterations(&mut displacement)?;
    let empty = displacement.measure_empty_runs()?;
    let runs = displacement.measure_runs(empty)?;
    let replicates: Vec<_> = runs.iter().map(|run| run.replicate).collect();
    let summary = Summary::from_runs(&replicates, displacement.effort.wanted);
    outcome::measured_outcome(&displacement, &runs, &summary, judgements)
}

impl Displacement<'_> {
    /// Iterations of a run: those of the case's configuration, or else as many as fill a run.
    fn find_iterations(&mut self) -> Result<u64, CaseEnd> {
        let asked = self.case.displaced.as_ref().and_then(|repetition| repetition.iterations);
        // The first run touches pages and fills caches.
        self.subject.run(1, self.clock)?;
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let Self { subject, clock, effort, .. } = self;
        let takes = |n| {
            let start = clock.start();
            subject.run(n, clock)?;
            Ok(clock.nanoseconds(clock.stop() - start).0)
        };
        Ok(iterations_that_fill(effort.run, takes)?)
    }

    /// The median totals of runs without operations.
    fn measure_empty_runs(&mut self) -> Result<Totals, CaseEnd> {
        let before = self.meter.calibrate(self.effort.calibrating)?;
        let mut all = Vec::with_capacity(EMPTY_RUNS);
        for _ in 0..EMPTY_RUNS {
            let (_, covered) = self.run_covered(0)?;
            all.push(Totals::from_run(&covered, &before));
        }
        Ok(Totals::median(&all))
    }

    /// Measures until there are enough undisturbed runs, or as many runs as are allowed. `empty` is subtracted from each.
    fn measure_runs(&mut self, empty: Totals) -> Result<Vec<Run>, CaseEnd> {
        let most = self.effort.most;
        let mut runs: Vec<Run> = Vec::with_capacity(most);
        let mut before = self.meter.calibrate(self.effort.calibrating)?;
        let mut kept = 0;
        while kept < self.effort.wanted && runs.len() < most {
            if signal::pending().is_some() {
                return Err(CaseEnd::Interrupted);
            }
            // Each run has its own pair of measurements, since runs that shared one would not be independent.
            let saturated_before = measure_saturated(self)?;
            let stolen = self.meter.stolen_ticks();
            let ((delta, timed_ns, elapsed_ns), covered) = self.run_covered(self.iterations)?;
            let stolen_ticks = self.meter.stolen_ticks().saturating_sub(stolen);
            judge::check_reported_time(timed_ns, elapsed_ns, self.iterations)?;
            self.counted = judge::judge_sample(self.case, &delta, self.iterations, Some(self.pinned))?;
            let after = self.meter.calibrate(self.effort.calibrating)?;
            let saturated_after = measure_saturated(self)?;
            let saturated = Saturated::mean_of(saturated_before, saturated_after);
            let replicate = Replicate { before, covered, after, stolen_ticks, empty };
            kept += usize::from(replicate.disturbance().is_none());
            runs.push(Run { replicate, delta, timed_ns, elapsed_ns, saturated });
            before = after;
        }
        Ok(runs)
    }

    /// Covers one run with the fluid. Without iterations, only the code around a run is covered.
    #[allow(clippy::type_complexity, reason = "three readings of one run, named where they are taken apart")]
    fn run_covered(&mut self, iterations: u64) -> Result<((Delta, f64, f64), Covered), CaseEnd> {
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
        let (seen, mut covered) = meter.cover_run(|| account.total_charge(), run)?;
        covered.operations = iterations as f64;
        Ok((seen, covered))
    }
}

/// How many iterations take as long as `run`; `takes` returns the time of a number of them, ns.
fn iterations_that_fill(
    run: Duration,
    mut takes: impl FnMut(u64) -> error::Result<f64>,
) -> error::Result<u64> {
    let wanted = run.as_nanos() as f64;
    let mut n = 1;
    loop {
        let mut elapsed = takes(n)?;
        if elapsed >= 0.25 * wanted {
            for _ in 0..SIZING_REPETITIONS {
                elapsed = elapsed.min(takes(n)?);
            }
            return Ok(((n as f64 * wanted / elapsed) as u64).max(1));
        }
        if n >= MOST_ITERATIONS {
            return Err(Error::Disproved(format!("{n} iterations took {elapsed:.0} ns: nothing was done")));
        }
        n *= 2;
    }
}

// The CPU time of a case by the kernel's accounts: of the measuring process, of the children that it has waited for,
// and of its partners on the same CPU. The time of a partner on another CPU is not displaced here.

/// The accounts of a case: open files.
struct Account {
    /// Partners on the measuring CPU that are processes of their own.
    beside: Vec<File>,
    /// Threads of this process on other CPUs.
    elsewhere: Vec<File>,
    buffer: [u8; 256],
}

impl Account {
    /// Opens the accounts of these partners. A partner without one in `/proc` is not counted.
    fn open(partners: &[Task], here: usize) -> Self {
        let own = nix::unistd::getpid();
        let open =
            |task: &&Task| File::open(format!("/proc/{}/task/{}/schedstat", task.process, task.thread)).ok();
        let answering = partners.iter().filter(|task| task.role == Role::Answers);
        let beside = answering.filter(|task| task.cpu == here && task.process != own);
        let elsewhere = partners.iter().filter(|task| task.cpu != here && task.process == own);
        Self {
            beside: beside.filter_map(|task| open(&task)).collect(),
            elsewhere: elsewhere.filter_map(|task| open(&task)).collect(),
            buffer: [0; 256],
        }
    }

    /// The sum of all accounts so far.
    ///
    /// # Errors
    /// getrusage(2) fails.
    fn total_charge(&mut self) -> error::Result<Charge> {
        let partners = self.sum_run_time(true) - self.sum_run_time(false);
        let usages = process::process_usage()?;
        let [own, children] = usages.map(|usage| 1e3 * process::cpu_time_us(&usage) as f64);
        let waits = usages.map(|u| u.voluntary_context_switches() as f64).iter().sum();
        let clock = time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID) as f64;
        Ok(Charge { clock: clock + children + partners, rusage: own + children + partners, waits })
    }

    fn sum_run_time(&mut self, beside: bool) -> f64 {
        let buffer = &mut self.buffer;
        let files = if beside { &self.beside } else { &self.elsewhere };
        let read = |file: &File| {
            let length = file.read_at(buffer, 0).ok()?;
            proc::parse_schedstat(std::str::from_utf8(&buffer[..length]).ok()?).map(|read| read.ran_ns as f64)
        };
        files.iter().filter_map(read).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;
    use crate::platform::partner::{Class, start_spinner};

    #[test]
    fn computation_and_children_are_charged_and_a_spinner_is_not() {
        let here = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        let burner = start_spinner(here, Class::Ordinary).expect("started");
        let mut account = Account::open(&[burner.task()], here);
        assert!(account.beside.is_empty() && account.elsewhere.is_empty());
        let before = account.total_charge().expect("an account");
        crate::platform::arch::multiply_chain(10_000_000);
        std::process::Command::new("true").status().expect("a child");
        let after = account.total_charge().expect("an account");
        assert!(after.clock > before.clock + 1e6 && after.rusage >= before.rusage, "{before:?} {after:?}");
    }
}
