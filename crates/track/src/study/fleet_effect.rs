//! The effect of a kernel on many machines: first on each machine, against the first kernel, and then over all machines.
//!
//! # On a machine
//!
//! The effect is a difference of mean logarithms: the jobs under the other kernel less the jobs under the first, at one frequency
//! of the core if it is known. The variance of jobs within a machine and kernel is pooled over the machines of a [class](Class),
//! and gives the interval of the effect. The machine's own speed cancels out.
//!
//! # Over machines
//!
//! Each machine has an effect of its own. The mean over all machines, its interval and the spread between machines come from a model
//! of [random effects](syscost_statistic::random_effects). The verdict is *slower* if the whole interval lies beyond 1 % and the
//! one-sided p value, corrected over the cases (Benjamini and Hochberg), is at most q = 0.01. It is *same* if the interval lies
//! within ± 2 %.
//!
//! # Machines that stand out
//!
//! A machine stands out if its effect lies further from the median machine than a limit. By chance alone, any machine in any case
//! exceeds the limit in one of a hundred fleets. The limit is at least 1 %, and uses the median absolute deviation, which one
//! outlying machine in ten cannot widen. The machine's lowest jobs must deviate too, since a disturbance only lengthens a job.
//! The mean is taken over the other machines.

mod gathering;

pub use gathering::{Class, Gathering, Machine};

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::record::{Interval, Verdict};
use syscost_statistic::{
    Effect, adjusted_p_values, mean, median, random_effects, student_upper_quantile, student_upper_tail,
};

/// Effects up to this share are no findings.
pub const THRESHOLD: f64 = 0.01;
/// An effect whose interval lies within this share gets the verdict "same".
pub const MARGIN: f64 = 0.02;
/// The fewest machines among which one can stand out.
pub const FEWEST_TO_STAND_OUT: usize = 5;

/// The results of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct FleetAnswer {
    /// The name of the experiment.
    pub experiment: String,
    /// The kernels; the others are compared with the first.
    pub kernels: Vec<String>,
    /// The machines, in the order of the hosts. A host that changed during the experiment counts as several machines.
    pub machines: Vec<Machine>,
    /// The classes of like machines, in the order of the hosts.
    pub classes: Vec<Class>,
    /// Warnings about the whole experiment.
    pub warnings: Vec<String>,
    /// For each kernel but the first, its cases in order of the ids.
    pub columns: Vec<Column>,
}

/// One kernel against the first.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// The kernel.
    pub kernel: String,
    /// The cases.
    pub cases: Vec<CaseEffect>,
}

/// One case under one kernel against the first.
#[derive(Clone, Debug, Serialize)]
pub struct CaseEffect {
    /// `group/variant/parameter`.
    pub id: String,
    /// The verdict on the mean.
    pub verdict: Verdict,
    /// Why there is no stronger verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The mean ratio over the machines that do not stand out, with its 95 % interval. For a single machine it is the machine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// The standard deviation of the true effects between machines, a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// The number of machines in the mean.
    pub machines: usize,
    /// The number of machines for each verdict on a machine alone.
    pub alone: Alone,
    /// The machines that stand out, the one farthest from the mean first.
    pub standing_out: Vec<MachineEffect>,
    /// If there are several classes of machines: the index and the mean ratio of each class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<(usize, Interval)>,
    /// The effects on the machines of the selected host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<MachineEffect>,
}

/// One case on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MachineEffect {
    /// The index of the machine in the answer's machines.
    pub machine: usize,
    /// The ratio of the cost under the other kernel to that under the first.
    pub ratio: f64,
    /// The 95 % interval of the ratio; `None` if no machine of the class has repeated jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// The number of machines for each verdict on a machine alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// Machines whose whole interval lies above 1 + [`THRESHOLD`].
    pub slower: usize,
    /// Machines whose whole interval lies below 1 / (1 + [`THRESHOLD`]).
    pub faster: usize,
    /// Machines whose whole interval lies within [`MARGIN`].
    pub same: usize,
    /// All other machines.
    pub undecided: usize,
}

impl MachineEffect {
    /// The verdict on this machine alone.
    pub fn verdict(&self) -> Verdict {
        self.interval.map_or(Verdict::Inconclusive, verdict_of_interval)
    }
}

/// The verdict on a ratio with this interval.
fn verdict_of_interval([low, high]: [f64; 2]) -> Verdict {
    match () {
        () if low > 1.0 + THRESHOLD => Verdict::Slower,
        () if high < 1.0 / (1.0 + THRESHOLD) => Verdict::Faster,
        () if low > 1.0 / (1.0 + MARGIN) && high < 1.0 + MARGIN => Verdict::Same,
        () => Verdict::Inconclusive,
    }
}

// The verdict on each case, from the effects on machines.

/// The expected share of wrong findings among all findings of an answer.
const DISCOVERIES: f64 = 0.01;

/// The pooled variance of jobs within a machine and kernel: its sum of squares, and its degrees of freedom.
#[derive(Clone, Copy, Default)]
struct Pooled {
    squares: f64,
    degrees: usize,
}

impl Pooled {
    fn variance(self) -> Option<f64> {
        (self.degrees > 0).then(|| self.squares / self.degrees as f64)
    }
}

/// The judged cases; their p values are adjusted for the number of cases. They keep only the effects on the machines in `asked`.
fn judge_cases<'a>(
    cases: impl Iterator<Item = (&'a String, Vec<Observed>)>,
    classes: &[usize],
    asked: &[bool],
) -> Vec<CaseEffect> {
    let cases: Vec<_> = cases.collect();
    let tests = cases.iter().map(|(_, observed)| observed.len()).sum();
    let one = |(id, observed): (&String, Vec<Observed>)| {
        let (mut case, p) = judge_case(id, &observed, classes, tests);
        case.effects.retain(|effect| asked[effect.machine]);
        case.effects.shrink_to_fit();
        (case, p)
    };
    let (mut found, p): (Vec<_>, Vec<_>) = cases.into_iter().map(one).unzip();
    for (case, p) in found.iter_mut().zip(adjusted_p_values(&p)) {
        if case.verdict.is_change() && p > DISCOVERIES {
            case.verdict = Verdict::Inconclusive;
            case.reason = Some("an effect of this size can be chance among all these cases".into());
        }
    }
    found
}

/// The judged case and its p value: the chance of such an effect if the true effect were no larger than the threshold.
fn judge_case(id: &str, observed: &[Observed], classes: &[usize], tests: usize) -> (CaseEffect, f64) {
    let mut pooled: BTreeMap<usize, Pooled> = BTreeMap::new();
    for one in observed {
        let of_class = pooled.entry(classes[one.machine as usize]).or_default();
        of_class.squares += f64::from(one.squares);
        of_class.degrees += one.degrees_of_freedom();
    }
    let within = |one: &Observed| pooled[&classes[one.machine as usize]];
    let variance = |one: &Observed| within(one).variance().unwrap_or_default() * one.variance_factor();
    let effects: Vec<_> = observed.iter().map(|one| machine_effect(one, within(one))).collect();
    let out = find_outlying_machines(observed, &variance, pooled.values().map(|p| p.degrees).sum(), tests);
    let (others, standing_out): (Vec<_>, Vec<_>) = (0..observed.len()).partition(|at| !out.contains(at));
    let kept =
        |at: &usize| Effect { estimate: f64::from(observed[*at].log), variance: variance(&observed[*at]) };
    let mean = random_effects(&others.iter().map(kept).collect::<Vec<_>>());
    let by_class = class_effects(&others, observed, classes, &kept);
    let own = others.first().map(|at| effects[*at]).filter(|_| others.len() == 1);
    let ratio = mean.map(|found| found.mean.map(f64::exp)).or_else(|| {
        let [low, high] = own?.interval?;
        Some(Interval { estimate: own?.ratio, low, high })
    });
    let (verdict, reason) = judge_ratio(ratio, others.len());
    let mut case = CaseEffect {
        id: id.to_owned(),
        verdict,
        reason,
        ratio,
        between: mean.map(|found| found.between.exp_m1()),
        machines: others.len(),
        alone: count_verdicts(&effects),
        standing_out: standing_out.iter().map(|at| effects[*at]).collect(),
        by_class,
        effects,
    };
    let centre = ratio.map_or(1.0, |ratio| ratio.estimate);
    let distance = |effect: &MachineEffect| (effect.ratio / centre).ln().abs();
    case.standing_out.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let p = match (mean, others.first()) {
        (Some(found), _) => chance_of_effect(found.mean.estimate, found.error, others.len() - 1),
        (None, Some(at)) => {
            let one = &observed[*at];
            chance_of_effect(f64::from(one.log), variance(one).sqrt(), within(one).degrees)
        }
        (None, None) => 1.0,
    };
    (case, p)
}

/// The effect on one machine, with its interval from the pooled variance.
fn machine_effect(one: &Observed, pooled: Pooled) -> MachineEffect {
    let log = f64::from(one.log);
    let interval = pooled.variance().map(|variance| {
        let half = student_upper_quantile(0.025, pooled.degrees) * (variance * one.variance_factor()).sqrt();
        [(log - half).exp(), (log + half).exp()]
    });
    MachineEffect { machine: one.machine as usize, ratio: log.exp(), interval }
}

/// The index and the mean ratio of each class of the machines `others`; empty if there is only one class.
fn class_effects(
    others: &[usize],
    observed: &[Observed],
    classes: &[usize],
    effect: &impl Fn(&usize) -> Effect,
) -> Vec<(usize, Interval)> {
    let mut members: BTreeMap<usize, Vec<Effect>> = BTreeMap::new();
    for at in others {
        members.entry(classes[observed[*at].machine as usize]).or_default().push(effect(at));
    }
    let several = members.len() > 1;
    let mean =
        |(class, effects): (usize, Vec<Effect>)| Some((class, random_effects(&effects)?.mean.map(f64::exp)));
    members.into_iter().filter(|_| several).filter_map(mean).collect()
}

/// The verdict on the mean ratio over this number of machines, and the reason if it is undecided.
fn judge_ratio(ratio: Option<Interval>, machines: usize) -> (Verdict, Option<String>) {
    let Some(Interval { low, high, .. }) = ratio else {
        let why = "one machine with one job a kernel shows no spread: more repeats, or more machines";
        return (Verdict::Inconclusive, Some(why.into()));
    };
    let verdict = verdict_of_interval([low, high]);
    let why = || match machines {
        2..=4 => format!("{machines} machines leave the mean of all open: more of them narrow the interval"),
        _ => "the interval holds both a change and none".to_owned(),
    };
    (verdict, (verdict == Verdict::Inconclusive).then(why))
}

/// The one-sided p value: the chance of such an effect or a larger one, if the true effect were no larger than the threshold.
fn chance_of_effect(log: f64, error: f64, degrees: usize) -> f64 {
    let beyond = log.abs() - THRESHOLD.ln_1p();
    if error > 0.0 { student_upper_tail(beyond / error, degrees) } else { f64::from(u8::from(beyond <= 0.0)) }
}

fn count_verdicts(effects: &[MachineEffect]) -> Alone {
    let mut alone = Alone::default();
    for effect in effects {
        match effect.verdict() {
            Verdict::Slower => alone.slower += 1,
            Verdict::Faster => alone.faster += 1,
            Verdict::Same => alone.same += 1,
            Verdict::Inconclusive | Verdict::Incomparable => alone.undecided += 1,
        }
    }
    alone
}

// The effect of a kernel on one machine in one case, in a few bytes.

/// The effect on one case on one machine. There are millions of these values, so they are small.
#[derive(Clone, Copy, Debug)]
struct Observed {
    pub machine: u32,
    /// The other kernel's mean logarithm less the first one's.
    pub log: f32,
    /// The other kernel's lowest logarithm less the first one's.
    pub lowest: f32,
    /// The sum of squared distances of the jobs from the mean of their kernel.
    pub squares: f32,
    /// The number of jobs under the first kernel and under the other.
    jobs: [u16; 2],
}

impl Observed {
    /// The effect from the logarithms of the jobs under both kernels; `None` if a kernel has no job.
    fn from_logs(machine: u32, reference: &[f64], other: &[f64]) -> Option<Self> {
        let squares = |logs: &[f64]| logs.iter().map(|log| (log - mean(logs)).powi(2)).sum::<f64>();
        let lowest = |logs: &[f64]| logs.iter().copied().fold(f64::INFINITY, f64::min);
        (!reference.is_empty() && !other.is_empty()).then(|| Self {
            machine,
            log: (mean(other) - mean(reference)) as f32,
            lowest: (lowest(other) - lowest(reference)) as f32,
            squares: (squares(reference) + squares(other)) as f32,
            jobs: [reference, other].map(|logs| logs.len().min(usize::from(u16::MAX)) as u16),
        })
    }

    /// Degrees of freedom: the number of jobs less one for each kernel's mean.
    fn degrees_of_freedom(&self) -> usize {
        self.jobs.iter().map(|&jobs| usize::from(jobs) - 1).sum()
    }

    /// The variance of the effect, as a multiple of the variance of one job.
    fn variance_factor(&self) -> f64 {
        self.jobs.iter().map(|&jobs| 1.0 / f64::from(jobs)).sum()
    }
}

// The machines that stand out.

/// The chance that any machine stands out in any case of a fleet, if all effects differ only by chance.
const CHANCE: f64 = 0.01;
/// The factor from the median absolute deviation of a normal distribution to its standard deviation.
const NORMAL: f64 = 1.4826;
/// The degrees of freedom per value of a spread by the median absolute deviation, whose efficiency is 37 % of the standard
/// deviation's (Rousseeuw and Croux 1993).
const EFFICIENCY: f64 = 0.37;

/// The indexes in `observed` of the machines that stand out. `degrees` are the degrees of freedom of the variances within machines,
/// and `tests` is the number of pairs of machine and case in the answer.
fn find_outlying_machines(
    observed: &[Observed],
    variance: &impl Fn(&Observed) -> f64,
    degrees: usize,
    tests: usize,
) -> BTreeSet<usize> {
    if observed.len() < FEWEST_TO_STAND_OUT {
        return BTreeSet::new();
    }
    let centre = median(&observed.iter().map(|one| f64::from(one.log)).collect::<Vec<_>>());
    let lowest = median(&observed.iter().map(|one| f64::from(one.lowest)).collect::<Vec<_>>());
    let distances: Vec<f64> = observed.iter().map(|one| (f64::from(one.log) - centre).abs()).collect();
    let spread = NORMAL * median(&distances);
    let of_spread = (EFFICIENCY * (observed.len() - 1) as f64).floor().max(1.0) as usize;
    let chance = CHANCE / (2.0 * tests.max(1) as f64);
    let by_spread = student_upper_quantile(chance, of_spread) * spread;
    let by_jobs = student_upper_quantile(chance, degrees);
    let is_out = |at: &usize| {
        let one = &observed[*at];
        let within = variance(one).sqrt();
        let limit = by_spread.max(if within > 0.0 { by_jobs * within } else { 0.0 }).max(THRESHOLD.ln_1p());
        let (by_mean, by_lowest) = (f64::from(one.log) - centre, f64::from(one.lowest) - lowest);
        by_mean.abs() > limit && by_lowest * by_mean.signum() > by_mean.abs() / 2.0
    };
    (0..observed.len()).filter(is_out).collect()
}

#[cfg(test)]
mod tests;
