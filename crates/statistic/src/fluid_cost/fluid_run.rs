//! Several runs of one operation: selects the runs that count and combines their estimates.

use super::{Calibration, Cost, Covered, ErrorTerms, Estimate, Nonsense, QUIET, Totals, estimate_costs};
use crate::Interval;
use crate::student::{FEWEST, mean_interval};

/// The largest relative error of the cost, caused by a change of the fluid's turn between the calibrations before and after
/// a run. A change of a turn by x % changes the fluid's time in the run by x %. So a cost that took most of the run
/// tolerates a larger change.
const STEADY: f64 = 0.01;
/// The most interrupts that may hit other tasks, as a multiple of those that hit the fluid. Beyond it the estimate rests on
/// too few. An operation that never waits has no such interrupts, and may leave the fluid almost no time.
const UNMET: f64 = 1.0;
/// The unit of stolen time, ns: `USER_HZ` is 100 on every supported architecture.
const STOLEN_TICK: f64 = 1e7;
/// The beginning of the flag for a machine that was not quiet.
pub const NOT_QUIET: &str = "the machine was not quiet";
/// Estimates whose relative difference is at most this agree, whatever their intervals are.
const SAME: f64 = 0.01;
/// Largest relative difference of the gap and daemon-free estimates that counts on a machine that was not quiet, unless
/// their intervals overlap.
const VOUCHED: f64 = 0.05;

/// One run between two calibrations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replicate {
    /// The calibration before.
    pub before: Calibration,
    /// The run.
    pub covered: Covered,
    /// The calibration after.
    pub after: Calibration,
    /// Clock ticks (10 ms) that the hypervisor took from the CPU.
    pub stolen_ticks: u64,
    /// The totals of a run without operations, which are subtracted.
    pub empty: Totals,
}

/// The cause that disturbed a run. It is judged by covariates, never by the cost of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// Other tasks had the CPU.
    Others,
    /// The length of a turn of the fluid changed during the run, or from the calibration before to the one after.
    Drift,
    /// The hypervisor took time.
    Stolen,
    /// Other tasks met most of the interrupts, or the fluid had no uninterrupted turn.
    Uncovered,
}

impl Replicate {
    /// The cause that disturbed the run; `None` if it was undisturbed.
    pub fn disturbance(&self) -> Option<Spoilt> {
        let covered = &self.covered;
        // If the kernel charges interrupts to no task, they count as time of other tasks, which is then unknown.
        let others_known = !covered.interrupts_apart;
        match () {
            () if self.stolen_ns() > QUIET * covered.window.elapsed => Some(Spoilt::Stolen),
            () if covered.window.mean_undisturbed_turn().is_none() => Some(Spoilt::Uncovered),
            () if others_known
                && covered.unmet_interrupt_ratio() > UNMET
                && covered.others_share() > QUIET =>
            {
                Some(Spoilt::Uncovered)
            }
            () if others_known && covered.others_share() > QUIET => Some(Spoilt::Others),
            () if covered.window.is_uneven() || self.drift_error() > STEADY => Some(Spoilt::Drift),
            () => None,
        }
    }

    /// Time that the hypervisor took, ns. Its resolution is 10 ms, which is coarse for a short run.
    pub fn stolen_ns(&self) -> f64 {
        self.stolen_ticks as f64 * STOLEN_TICK
    }

    /// The estimates of the run, per operation.
    pub fn estimate(&self) -> Estimate {
        estimate_costs(&self.covered, &self.mean_calibration(), &self.empty)
    }

    /// The totals of the run, without subtracting the run without operations.
    pub fn totals(&self) -> Totals {
        Totals::from_run(&self.covered, &self.mean_calibration())
    }

    /// The relative uncertainty of the cost by a change of the fluid's speed. Half of the change counts, because the mean
    /// of both calibrations is used.
    fn drift_error(&self) -> f64 {
        let window = &self.covered.window;
        let drift = Calibration::drift(&self.before, &self.after);
        0.5 * drift * window.own / (window.elapsed - window.own).max(1.0)
    }

    fn mean_calibration(&self) -> Calibration {
        Calibration::average(&self.before, &self.after)
    }
}

/// The common estimates of several runs of one operation, ns. An estimate that cannot be a cost is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The number of undisturbed runs and the number of all runs.
    pub kept: (usize, usize),
    /// Whether enough runs were undisturbed. Otherwise gap, daemon-free and accounting use all runs that the fluid
    /// covered, and the paper's estimate is missing.
    pub quiet: bool,
    /// Number of runs disturbed by each cause: others, drift, stolen, uncovered.
    pub spoilt: [usize; 4],
    /// The median share of a run that other tasks used.
    pub others: f64,
    /// The paper's estimate.
    pub paper: Option<Interval>,
    /// The gap estimate.
    pub gap: Option<Interval>,
    /// The daemon-free estimate.
    pub daemon_free: Option<Interval>,
    /// The process clock.
    pub charged: Option<Interval>,
    /// `getrusage`.
    pub rusage: Option<Interval>,
    /// The share of the cost that accounting missed, run by run: 0.4 is two fifths; negative is an over-charge.
    pub missed: Option<Interval>,
    /// The cost divided by accounting, less 1, run by run, as the paper prints it: 0.46 is 46 %.
    pub difference: Option<Interval>,
    /// The gap estimates behind the interval, in order.
    pub each: Vec<f64>,
    /// The medians of the error terms.
    pub terms: ErrorTerms,
    /// Reasons why a column is missing or doubtful.
    pub flags: Vec<String>,
}

impl Summary {
    /// The summary of these runs. It counts as quiet if at least `wanted` of them were undisturbed.
    pub fn from_runs(runs: &[Replicate], wanted: usize) -> Self {
        let mut summary = Self { kept: (0, runs.len()), ..Self::default() };
        for run in runs {
            match run.disturbance() {
                Some(spoilt) => summary.spoilt[spoilt as usize] += 1,
                None => summary.kept.0 += 1,
            }
        }
        summary.quiet = summary.kept.0 >= wanted.max(FEWEST);
        let used: Vec<_> = runs.iter().filter(|run| summary.is_run_used(run)).collect();
        let shares: Vec<_> = runs.iter().map(|run| run.covered.others_share()).collect();
        summary.others = crate::median(&shares);
        summary.fill_columns(&used);
        summary.terms = median_error_terms(&used);
        summary.add_flags();
        summary
    }

    /// Whether the estimates use this run: it was undisturbed; or the machine was not quiet, the fluid covered the
    /// run, and the hypervisor took no time.
    pub fn is_run_used(&self, run: &Replicate) -> bool {
        match run.disturbance() {
            None => true,
            Some(spoilt) => !self.quiet && !matches!(spoilt, Spoilt::Uncovered | Spoilt::Stolen),
        }
    }

    fn fill_columns(&mut self, used: &[&Replicate]) {
        let estimates: Vec<_> = used.iter().map(|run| run.estimate()).collect();
        let mut column = |name: &str, field: &dyn Fn(&Estimate) -> Result<Cost, Nonsense>| {
            let costs: Result<Vec<_>, Nonsense> = estimates.iter().map(|e| field(e).map(Cost::ns)).collect();
            match costs {
                // An interval that contains zero does not show a cost.
                Ok(costs) => (mean_interval(&costs).filter(|interval| interval.low > 0.0), costs),
                Err(nonsense) => {
                    self.flags.push(format!("{name}: {nonsense}"));
                    (None, Vec::new())
                }
            }
        };
        let (gap, gaps) = column("gap", &|e| e.gap);
        let (charged, charges) = column("accounting", &|e| e.charged);
        let (rusage, _) = column("getrusage", &|e| e.rusage);
        let free = estimates.iter().all(|e| e.daemon_free.is_some());
        let daemon_free = if free {
            column("daemon-free", &|e| e.daemon_free.unwrap_or(Err(Nonsense::NoNumber))).0
        } else {
            None
        };
        let paper = if self.quiet { column("the paper's", &|e| e.paper).0 } else { None };
        let pairs = || gaps.iter().zip(&charges);
        self.missed = mean_interval(&pairs().map(|(gap, charged)| 1.0 - charged / gap).collect::<Vec<_>>());
        self.difference =
            mean_interval(&pairs().map(|(gap, charged)| gap / charged - 1.0).collect::<Vec<_>>());
        (self.gap, self.charged, self.rusage, self.daemon_free, self.paper) =
            (gap, charged, rusage, daemon_free, paper);
        self.each = gaps;
    }

    fn add_flags(&mut self) {
        if !self.quiet {
            self.flags.push(self.unquiet_reason());
            self.drop_contradicting_estimates();
        }
        let columns = [("gap", self.gap), ("daemon-free", self.daemon_free), ("the paper's", self.paper)];
        let present: Vec<_> =
            columns.into_iter().filter_map(|(name, column)| Some((name, column?))).collect();
        for (at, (name, one)) in present.iter().enumerate() {
            for (other_name, other) in &present[at + 1..] {
                if !intervals_agree(one, other) {
                    let ratio = 100.0 * (other.estimate / one.estimate - 1.0);
                    self.flags.push(format!(
                        "the estimators do not agree: {other_name} is {ratio:+.1} % off {name}, beyond both intervals"
                    ));
                }
            }
        }
    }

    /// Drops the gap and daemon-free estimates if they contradict each other, because no third estimate can decide.
    fn drop_contradicting_estimates(&mut self) {
        let Some((gap, free)) = self.gap.zip(self.daemon_free) else { return };
        let off = free.estimate / gap.estimate - 1.0;
        if off.abs() > VOUCHED && !intervals_agree(&gap, &free) {
            self.flags.push(format!(
                "the estimators contradict each other: daemon-free is {:+.1} % off gap, beyond both intervals, and on a \
                 machine that was not quiet there is no third",
                100.0 * off
            ));
            (self.gap, self.daemon_free, self.missed, self.difference) = (None, None, None, None);
        }
    }

    /// Why the machine was not quiet.
    fn unquiet_reason(&self) -> String {
        let [others, drift, stolen, uncovered] = self.spoilt;
        let (kept, all) = self.kept;
        let counted = [
            (others, "other tasks had the CPU"),
            (drift, "the processor changed its pace"),
            (stolen, "the hypervisor took time"),
            (uncovered, "they met most of its interrupts or left the fluid nothing"),
        ];
        let causes: Vec<_> =
            counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("in {n} {why}")).collect();
        format!(
            "{NOT_QUIET}: {kept} of {all} runs are unspoilt ({}; others had {:.1} % of the median run), \
             so there is no estimate by the paper's formula",
            causes.join(", "),
            100.0 * self.others
        )
    }
}

fn intervals_agree(one: &Interval, other: &Interval) -> bool {
    let near = (other.estimate / one.estimate - 1.0).abs() <= SAME;
    near || (one.low <= other.high && other.low <= one.high)
}

fn median_error_terms(used: &[&Replicate]) -> ErrorTerms {
    let each = |run: &&Replicate| ErrorTerms::from_run(&run.covered, &run.mean_calibration(), &run.empty);
    let all: Vec<_> = used.iter().map(each).collect();
    let median = |field: fn(&ErrorTerms) -> f64| crate::median(&all.iter().map(field).collect::<Vec<_>>());
    ErrorTerms {
        daemons: median(|t| t.daemons),
        start: median(|t| t.start),
        resolution: median(|t| t.resolution),
        cache: median(|t| t.cache),
        turns: [median(|t| t.turns[0]), median(|t| t.turns[1])],
    }
}

#[cfg(test)]
mod tests;
