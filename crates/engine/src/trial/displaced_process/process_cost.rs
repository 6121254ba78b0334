//! The cost of a covered process by each estimator, or the reason why an estimator gives none.

use super::Covered;
use crate::statistic::Interval;
use crate::statistic::fluid_cost::{Cost, Nonsense, QUIET, Replicate, Spoilt, Summary};
use crate::statistic::student::FEWEST;

/// An estimate in ns, or the sentence on why there is none.
pub type Found = Result<Interval, String>;

/// Note on every service.
const NEVER_ALONE: &str = "the process ran before it was watched: the interrupts that work for it look like those \
                           that come anyway, such as the tick. The lower ends leave out whatever came as often before, \
                           the estimates nothing";
/// Why a service has no estimate if other tasks ran beside it.
const AMONG_OTHERS: &str = "other tasks ran beside the process: interrupts that worked for it look like interrupts that worked \
                            for them; stop the other tasks";
/// Why a service has no estimate if the processor's frequency moved.
const UNEVEN: &str = "the processor changed its frequency meanwhile: a slower fluid looks like an interrupted one; fix the frequency";
/// Why there is no daemon-free estimate on some kernels.
const NOT_APART: &str = "the kernel charges interrupts to no task: they look like the time of other tasks";
/// Two estimates of one run that differ by more than this share disagree.
const SAME_SHARE: f64 = 0.03;

/// The cost by each estimator: of a run, or of one operation where operations are counted. The interval of a single run has the
/// run's value at both ends.
pub struct Costs {
    /// By Woodside, Courtois and Schramm (1997): includes everything else that ran.
    pub paper: Found,
    /// Without the time of other tasks.
    pub gap: Found,
    /// Without the time of other tasks and of the interrupts that worked for them.
    pub daemon_free: Found,
    /// CPU time that the kernel's accounting charged.
    pub charged: Found,
    /// Sentences that a reader of these figures must know.
    pub flags: Vec<String>,
}

impl Costs {
    /// The costs of one or several runs of the same command, or of one stretch of a service.
    pub fn from_runs(runs: &[Covered]) -> Self {
        let mut costs = match runs {
            [Covered { replicate, least: Some(least), .. }] => {
                Self::from_one_run(replicate).lower_bounds_to(least)
            }
            [one] => Self::from_one_run(&one.replicate),
            _ => Self::from_several_runs(&runs.iter().map(|run| run.replicate).collect::<Vec<_>>()),
        };
        costs.flags.extend(disturbed_empty_runs_flag(runs));
        costs
    }

    /// The share of the cost that accounting missed; negative if it charged more than the process took.
    pub fn missed_share(&self) -> Option<f64> {
        let (gap, charged) = (self.gap.as_ref().ok()?, self.charged.as_ref().ok()?);
        Some(1.0 - charged.estimate / gap.estimate)
    }

    fn from_one_run(run: &Replicate) -> Self {
        let estimate = run.estimate();
        let found = |cost: Result<Cost, Nonsense>| {
            cost.map(|cost| Interval::exactly(cost.ns())).map_err(|nonsense| nonsense.to_string())
        };
        let spoilt = run.disturbance().map(|spoilt| spoilt_sentence(spoilt, run));
        let paper = spoilt.clone().map_or_else(|| found(estimate.paper), Err);
        let gap = found(estimate.gap);
        let daemon_free = estimate.daemon_free.map(found);
        let flags = spoilt.into_iter().chain(disagreement_flag(&gap, daemon_free.as_ref())).collect();
        Self {
            paper,
            gap,
            daemon_free: daemon_free.unwrap_or_else(|| Err(NOT_APART.into())),
            charged: found(estimate.charged).map_err(|_| "nothing was charged to it".into()),
            flags,
        }
    }

    fn from_several_runs(runs: &[Replicate]) -> Self {
        let summary = Summary::from_runs(runs, runs.len() - runs.len() / 3);
        let why = |column: Option<Interval>| {
            column.ok_or_else(|| {
                if runs.len() < FEWEST {
                    format!("an interval takes {FEWEST} runs, and there are {}", runs.len())
                } else {
                    summary
                        .flags
                        .first()
                        .cloned()
                        .unwrap_or_else(|| "the cost is below what the runs can resolve".into())
                }
            })
        };
        Self {
            paper: why(summary.paper),
            gap: why(summary.gap),
            daemon_free: why(summary.daemon_free),
            charged: why(summary.charged),
            flags: summary.flags.clone(),
        }
    }

    /// For a service: sets the lower ends of the intervals to the least cost, that of `least`.
    fn lower_bounds_to(self, least: &Replicate) -> Self {
        let found = least.estimate();
        let window = &least.covered.window;
        let quiet = least.covered.others_share() <= QUIET && least.stolen_ns() <= QUIET * window.elapsed;
        // The fluid cannot distinguish time that the hypervisor took from interrupts.
        let least_of = |cost: Cost| Some(cost.ns() - least.stolen_ns()).filter(|low| *low > 0.0);
        let bounded = |column: Found, least: Option<Result<Cost, Nonsense>>| match least
            .and_then(Result::ok)
            .and_then(least_of)
        {
            _ if window.is_uneven() => Err(UNEVEN.into()),
            _ if !quiet => Err(AMONG_OTHERS.into()),
            Some(low) => column.map(|found| Interval { low: low.min(found.estimate), ..found }),
            None => column.and(Err("the cost is below what the runs can resolve".into())),
        };
        Self {
            paper: bounded(self.paper, Some(found.paper)),
            gap: bounded(self.gap, Some(found.gap)),
            daemon_free: bounded(self.daemon_free, found.daemon_free),
            flags: self.flags.into_iter().chain([NEVER_ALONE.into()]).collect(),
            ..self
        }
    }
}

/// The flag of a single run whose two best estimates differ.
fn disagreement_flag(gap: &Found, daemon_free: Option<&Found>) -> Option<String> {
    let (gap, free) = (gap.as_ref().ok()?, daemon_free?.as_ref().ok()?);
    let off = free.estimate / gap.estimate - 1.0;
    (off.abs() > SAME_SHARE).then(|| {
        format!(
            "the estimators do not agree: daemon-free is {:+.1} % off gap; --runs 5 tells how much of it is chance",
            100.0 * off
        )
    })
}

/// The flag of empty runs that were disturbed: what is subtracted is then wrong.
fn disturbed_empty_runs_flag(runs: &[Covered]) -> Option<String> {
    let all: Vec<_> = runs.iter().filter_map(|run| run.empty).collect();
    let disturbed = all.iter().filter(|empty| empty.disturbance().is_some()).count();
    (disturbed > 0).then(|| {
        format!(
            "{disturbed} of {} empty runs were disturbed, by other tasks, a change of the processor's pace or the \
             hypervisor: what is subtracted may be wrong; more operations make it matter less",
            all.len()
        )
    })
}

fn spoilt_sentence(spoilt: Spoilt, run: &Replicate) -> String {
    let others = 100.0 * run.covered.others_share();
    match spoilt {
        Spoilt::Others => format!("the machine was not quiet: other tasks had {others:.1} % of the CPU"),
        Spoilt::Drift => "the machine was not quiet: the processor changed its pace meanwhile".into(),
        Spoilt::Stolen => "the machine was not quiet: the hypervisor took time from the CPU".into(),
        Spoilt::Uncovered => format!(
            "the machine was not quiet: other tasks had {others:.1} % of the CPU and left the fluid hardly any"
        ),
    }
}
