//! The outcome of a run as plain data. It depends neither on the measured code nor on types of Criterion, so a record of
//! one machine can be studied on another machine, by newer code.
//!
//! A [`Record`] is one run. It holds a [`GroupRun`] for each group, which holds a [`CaseRecord`] for each case. A case is
//! measured, skipped (with the missing need), disturbed (with what was seen), or failed (with the claim that did not
//! hold). Durations are in nanoseconds, times in Unix seconds.

pub mod baseline;
mod curve_record;
mod execution;
pub mod fixture_run;
pub mod guest_side;
pub mod quantity;
pub mod soundness;
pub mod store;
pub mod verdict;

pub use crate::statistic::Interval;
pub use curve_record::{Axis, Curve, CurveRecord, FallRecord, Headline, LevelRecord, Point, Study};
pub use execution::{
    ALLOCATED_BYTES, ALLOCATIONS, Contamination, Displaced, EventRate, Execution, Meanwhile, PEAK_BYTES,
    Quiet, Throughput,
};
pub use verdict::{Tally, Verdict};

use crate::environment::{Fingerprint, Wire};
use serde::{Deserialize, Serialize};

/// Version of the record's layout. Records of other versions are refused, because none of those versions was released.
pub const FORMAT: u32 = 3;

/// How a sentence in [`Measured::unasked`] begins if the claim has no meaning in the run's unit: a claim about time
/// where events are counted, for example.
pub const NEVER_ASKED: &str = "not asked of ";
/// Marks the evidence of a claim that held although some attempts contradicted it; `1 of 3 watches` follows, for example.
pub const HELD_LATE: &str = "held, and did not in ";

/// Name of the derived figure for the share of its time that an operation waits, %.
pub const WAITS: &str = "waits";

/// One run of the tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Layout version, [`FORMAT`].
    pub format: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// Unique name of the run: its start and random characters, as in `20261120T134405-217k3x9q`.
    pub run: String,
    /// The session that the run belongs to, if several runs were made by one command.
    pub session: Option<String>,
    /// The kernel's own name of this boot (`/proc/sys/kernel/random/boot_id`).
    pub boot: Option<String>,
    /// When the run began, Unix seconds.
    pub started: u64,
    /// `smoke`, `default` or `full`.
    pub scale: String,
    /// What a value counts: `ns`, or the name of a perf event.
    pub unit: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// The machine, kernel and build.
    pub fingerprint: Fingerprint,
    /// Whether the run is incomplete: it was saved before its end and never finished, or a signal interrupted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// One entry per group, in the order in which the groups ran.
    pub groups: Vec<GroupRun>,
}

/// One group, measured by one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupRun {
    /// The group's name.
    pub name: String,
    /// Version of the group's operations, set by hand. Figures of two versions belong to different series.
    pub version: String,
    /// The clock of that process.
    pub clock: ClockRun,
    /// The CPU to which that process was pinned; `None` if it was not pinned.
    pub cpu: Option<usize>,
    /// Notes on the whole group: not pinned, not locked in memory, …
    pub notes: Vec<String>,
    /// The cases, in table order.
    pub cases: Vec<CaseRecord>,
    /// Straight lines through the cases' parameter, such as the cost of one argument more.
    pub fits: Vec<FitRecord>,
    /// Cases that are points of a curve, and what the curve shows.
    #[serde(default)]
    pub curves: Vec<CurveRecord>,
    /// The network path to the peer, if some cases were measured against one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Box<Wire>>,
}

/// The clock as one process calibrated it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockRun {
    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub source: String,
    /// Frequency of the counter, Hz.
    pub hz: f64,
    /// Half-width of that frequency's interval, parts per million.
    pub uncertainty_ppm: f64,
    /// Granularity of the counter, ticks.
    #[serde(default)]
    pub step: u64,
    /// Frequency of the counter by a second calibration at the end of the process, Hz.
    pub hz_at_end: Option<f64>,
    /// Frequency that the kernel or the hypervisor publishes, Hz, and its source.
    pub published: Option<(f64, String)>,
    /// Why the hardware counter was not used.
    pub unfit: Option<String>,
    /// A clock that deviates from this one by more than 1 %: its name, and the share by which it measures more time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputed: Option<(String, f64)>,
}

/// One case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRecord {
    /// `group/variant/parameter`.
    pub id: String,
    /// A description for people.
    pub title: String,
    /// How the case ended.
    pub outcome: Outcome,
}

/// How a case ended. Only a measured one carries a number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The case ran and every claim held.
    Measured(Box<Measured>),
    /// The machine lacks what the case needs. The sentence names the missing need and the remedy.
    Skipped(String),
    /// Other tasks, the hypervisor or a late partner prevented the measurement. The sentence says what was seen and what
    /// would help. The case itself is not at fault.
    Disturbed(String),
    /// A claim is disproved, or the operation itself failed; the sentence says which.
    Failed(String),
}

/// A measured case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// The executions, in the order in which they were made.
    #[serde(default)]
    pub executions: Vec<Execution>,
    /// The cost without disturbance; `None` from a single execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    /// A sentence for each execution that has no samples here because it was disturbed or contradicted a claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Iterations of each sample.
    pub iterations: Vec<u64>,
    /// Counter difference of each sample: ticks, or events if the unit is not time.
    pub counted: Vec<u64>,
    /// The core's frequency around each sample, MHz; empty where the cost does not follow the core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_mhz: Vec<u32>,
    /// Median of the samples per iteration, in the record's unit (ns). The interval spans the medians of all executions;
    /// for a single execution it is the 95 % confidence interval of the median.
    pub median: Interval,
    /// Standard deviation of the samples per iteration, in the record's unit.
    pub standard_deviation: f64,
    /// The cost in ticks, as counted: the quiet cost, or the median if there is no quiet cost.
    pub ticks: f64,
    /// Slope of time against iterations: the cost without any constant overhead, ns.
    pub slope: Interval,
    /// Intercept of the same line: the constant cost of a batch of any size, ns. May be negative.
    pub intercept: Interval,
    /// Cost of the same loop without the operation, ns.
    pub control: Option<Interval>,
    /// Slope minus control, both from the same rounds, ns. May be negative.
    pub net: Option<Interval>,
    /// The prediction, if there was one.
    pub predicted: Option<Predicted>,
    /// Instructions per iteration in user space, counted by single-stepping; `None` if there are many and no claim concerns
    /// them.
    pub instructions: Option<f64>,
    /// Core frequency just before and just after, Hz, inferred from a chain of additions.
    pub core_hz: Option<(f64, f64)>,
    /// A sentence for each claim that held.
    pub evidence: Vec<String>,
    /// A sentence for each claim that was not checked, with the reason. It begins with [`NEVER_ASKED`] if the claim has no
    /// meaning in this unit; any other sentence makes the case unwitnessed.
    #[serde(default)]
    pub unasked: Vec<String>,
    /// Other activity on the CPU during each sample.
    pub contamination: Contamination,
    /// Other work on the machine at the same time, where the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
    /// Distribution of operations that were timed one by one, ns, for cases that are about it.
    pub distribution: Option<Distribution>,
    /// Figures derived from those above.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// Events per iteration, if the user asked for them, and allocations per iteration, if the allocator counts them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRate>,
    /// Values between every two CPUs, for a case that measures all of them.
    pub matrix: Option<Matrix>,
    /// CPU time that the operation displaced, if the case was measured by displacement.
    pub displaced: Option<Displaced>,
    /// The peer and the transport, as the `Wire::key` of the group's wire. Values against different peers are not
    /// comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The network path to that peer. The driver moves it to [`GroupRun::wire`], once for the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Box<Wire>>,
}

/// Figures of every two CPUs, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The CPUs, in order.
    pub cpus: Vec<usize>,
    /// One row per CPU, with a value for each CPU before it: row 2 holds the values between the third CPU and the
    /// first, and between the third and the second.
    pub rows: Vec<Vec<f64>>,
}

/// A figure that follows from those of its case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// Its name, such as `switch` or `efficiency`.
    pub name: String,
    /// `ns`, `/s`, or nothing for a ratio.
    pub unit: String,
    /// The figure.
    pub value: Interval,
}

/// The cost that was expected before the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// The part that the hardware charges, ns.
    pub hardware: f64,
    /// The part that the software adds, ns.
    pub software: f64,
    /// The reason for these numbers.
    pub why: String,
    /// Whether the prediction covers everything that is timed; otherwise it covers the cost minus the control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
}

/// A distribution of single operations, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of operations that were timed one by one.
    pub count: usize,
    /// Pairs of percentile and value: 0 is the minimum, 100 the maximum.
    pub percentiles: Vec<(f64, f64)>,
    /// The bars of a histogram with two significant digits, without the empty ones.
    #[serde(default)]
    pub histogram: Vec<Bar>,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The least value that falls into it, ns.
    pub low: f64,
    /// Number of values.
    pub count: u64,
}

impl Distribution {
    /// The percentiles to report for `count` operations, with the minimum and the maximum. A percentile is reported only if
    /// at least one operation is expected above it.
    pub fn percentiles_of_count(count: usize) -> impl Iterator<Item = f64> {
        const ALL: [f64; 11] = [0.0, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 99.99, 100.0];
        ALL.into_iter().filter(move |p| *p >= 100.0 || count as f64 * (100.0 - p) >= 100.0)
    }

    /// The value at this percentile, ns; `None` if the percentile is not recorded.
    pub fn value_at(&self, percentile: f64) -> Option<f64> {
        self.percentiles.iter().find(|(p, _)| *p == percentile).map(|(_, ns)| *ns)
    }
}

/// A straight line through the cases of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitRecord {
    /// What one step of the parameter is: "a further u64 argument".
    pub step: String,
    /// Cost of one step, ns.
    pub slope: Interval,
    /// The value at parameter 0, ns.
    pub intercept: Interval,
    /// Number of cases on the line.
    pub cases: usize,
    /// Slopes of two lines through the predictions, ns: of the hardware's part and of the software's. `None` in older records
    /// and for cases without predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<[f64; 2]>,
    /// For a sweep: the largest distance of a case from the fitted law, as a share of the case's cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
}

impl Outcome {
    /// The kind of the outcome in one word.
    pub fn status_word(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Skipped(_) => "skipped",
            Self::Disturbed(_) => "disturbed",
            Self::Failed(_) => "failed",
        }
    }

    /// Why the case has no number; `None` for a measured case.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Skipped(sentence) | Self::Disturbed(sentence) | Self::Failed(sentence) => Some(sentence),
        }
    }
}

impl Record {
    /// Every case with its group, in order.
    pub fn cases(&self) -> impl Iterator<Item = (&GroupRun, &CaseRecord)> {
        self.groups.iter().flat_map(|g| g.cases.iter().map(move |c| (g, c)))
    }

    /// The measured cases whose figures are not settled ([`Measured::is_settled`]).
    pub fn unsettled_cases(&self) -> impl Iterator<Item = &CaseRecord> {
        let is_open = |case: &&CaseRecord| case.measured().is_some_and(|measured| !measured.is_settled());
        self.cases().map(|(_, case)| case).filter(is_open)
    }

    /// The number of cases that ended in each way.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.cases().for_each(|(_, case)| tally.add(&case.outcome));
        tally
    }
}

impl CaseRecord {
    /// How the case ended, in one word: `unwitnessed` if a claim about the number could not be checked, else
    /// [`Outcome::status_word`].
    pub fn status_word(&self) -> &'static str {
        let is_unwitnessed = self.measured().is_some_and(Measured::is_unwitnessed);
        if is_unwitnessed { "unwitnessed" } else { self.outcome.status_word() }
    }

    /// The measurement, if there is one.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(m) => Some(m),
            _ => None,
        }
    }

    /// The measurement as a mutable reference, if there is one.
    pub fn measured_mut(&mut self) -> Option<&mut Measured> {
        match &mut self.outcome {
            Outcome::Measured(m) => Some(m),
            _ => None,
        }
    }
}

impl Measured {
    /// Whether a claim could not be checked on this machine: the number lacks a proof that other cases have.
    pub fn is_unwitnessed(&self) -> bool {
        self.unwitnessed_claims().next().is_some()
    }

    /// The sentences on claims that could not be checked on this machine.
    pub fn unwitnessed_claims(&self) -> impl Iterator<Item = &String> {
        self.unasked.iter().filter(|sentence| !sentence.starts_with(NEVER_ASKED))
    }

    /// Whether the figure's interval is narrow enough to count as settled ([`Quiet::is_settled`]). A single execution
    /// counts as settled, unless other executions were left out.
    pub fn is_settled(&self) -> bool {
        self.quiet.map_or(self.left_out.is_empty(), |quiet| quiet.is_settled())
    }

    /// The figure that is shown and compared: the quiet figure, or the median of a single execution.
    pub fn figure(&self) -> Interval {
        self.quiet.map_or(self.median, |quiet| quiet.figure)
    }
}
