//! The outcome of a run as plain data. It uses no subject and no type of Criterion, so that a record of one machine can
//! be studied on another, by newer code.
//!
//! A [`Record`] is one run. It holds a [`GroupRun`] for each group (a process of its own), and each of
//! those a [`CaseRecord`] for each case: measured, skipped with the missing need, or failed with the
//! claim that did not hold. All durations are nanoseconds, all times Unix seconds.

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

/// The version of the record's layout. Other versions are refused: none was released.
pub const FORMAT: u32 = 3;

/// Beginning of the sentence on a claim that has no meaning in the unit of the run, such as a claim about time in
/// a count of events.
pub const NEVER_ASKED: &str = "not asked of ";
/// In the evidence of a claim that held, and in some attempts did not; followed by `1 of 3 watches`, for example.
pub const HELD_LATE: &str = "held, and did not in ";

/// Name of the figure of an operation that waits: the share of its time, %.
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
    /// The session that it belongs to, when several runs were made in one go.
    pub session: Option<String>,
    /// The kernel's own name of this boot (`/proc/sys/kernel/random/boot_id`).
    pub boot: Option<String>,
    /// When it began, Unix seconds.
    pub started: u64,
    /// Smoke, default or full.
    pub scale: String,
    /// What a value counts: `ns`, or the name of a perf event.
    pub unit: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// The machine, kernel and build.
    pub fingerprint: Fingerprint,
    /// Whether it was saved on the way and never ended, or was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// One entry a group, in the order in which they ran.
    pub groups: Vec<GroupRun>,
}

/// One group, measured by one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupRun {
    /// The group's name.
    pub name: String,
    /// The version of its operations, which a person decides: another version is another series.
    pub version: String,
    /// The clock of that process.
    pub clock: ClockRun,
    /// The CPU that it was pinned to, if it could be.
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
    /// The way to the peer, if some of them were measured against one.
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
    /// The step in which the counter moves, ticks.
    #[serde(default)]
    pub step: u64,
    /// Frequency found again at the end of the process, Hz.
    pub hz_at_end: Option<f64>,
    /// What the kernel or the hypervisor publishes, Hz, and where.
    pub published: Option<(f64, String)>,
    /// Why the hardware counter was not used.
    pub unfit: Option<String>,
    /// A clock that contradicts this one by more than 1 %, and how much more time passes by the other, as a share.
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
    /// How it ended.
    pub outcome: Outcome,
}

/// How a case ended. Only a measured one carries a number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran and every claim held.
    Measured(Box<Measured>),
    /// The machine lacks what the case needs; the sentence says what and what to do.
    Skipped(String),
    /// The machine did not let it be measured: other tasks, the hypervisor or a late partner; the sentence says what was
    /// seen and what would help. Nothing is wrong with the case.
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
    /// Why further executions have no samples here: a sentence for each that was disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Iterations of each sample.
    pub iterations: Vec<u64>,
    /// What the counter counted in each sample: ticks, or events in another unit.
    pub counted: Vec<u64>,
    /// The core's frequency around each sample, MHz; empty where the cost does not follow the core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_mhz: Vec<u32>,
    /// Median over the samples, a single iteration, in the record's unit (ns). Its interval holds the medians of all
    /// executions; of one execution it is the 95 % interval of the median.
    pub median: Interval,
    /// Standard deviation over the samples, a single iteration.
    pub standard_deviation: f64,
    /// Ticks of the cost (counted, not converted): of the quiet one, else of the median.
    pub ticks: f64,
    /// Slope of time against iterations: the cost without any constant overhead, ns.
    pub slope: Interval,
    /// Intercept of the same line: what a batch costs whatever its size, ns. May be negative.
    pub intercept: Interval,
    /// Cost of the same loop without the operation, ns.
    pub control: Option<Interval>,
    /// Slope less control, both from the same rounds, ns. May be negative.
    pub net: Option<Interval>,
    /// The prediction, if there was one.
    pub predicted: Option<Predicted>,
    /// Instructions an iteration in user space, counted by single-stepping; `None` where there are many and no claim is about
    /// them.
    pub instructions: Option<f64>,
    /// Core frequency just before and just after, Hz, inferred from a chain of additions.
    pub core_hz: Option<(f64, f64)>,
    /// A sentence for each claim that held.
    pub evidence: Vec<String>,
    /// A sentence for each claim that was not asked, with the reason. One that could not be asked here makes the case
    /// unwitnessed; one that begins with `NEVER_ASKED` has no meaning in this unit.
    #[serde(default)]
    pub unasked: Vec<String>,
    /// Other activity on the CPU during each sample.
    pub contamination: Contamination,
    /// Other work on the machine at the same time, where the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
    /// Single timed operations, where the distribution is the answer, ns.
    pub distribution: Option<Distribution>,
    /// Figures that follow from those above.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// Events an iteration, where they were asked for, and allocations, where the allocator counts them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRate>,
    /// Values between every two CPUs, for a case that measures all of them.
    pub matrix: Option<Matrix>,
    /// CPU time that it displaced, if it was measured by displacement.
    pub displaced: Option<Displaced>,
    /// The peer and the transport, as the `Wire::key` of the group's wire. Values against different peers are not
    /// comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The way to that peer. The driver moves it to [`GroupRun::wire`], once for the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Box<Wire>>,
}

/// Figures of every two CPUs, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The CPUs, in order.
    pub cpus: Vec<usize>,
    /// A row for each of them, as long as there are CPUs before it: row 2 holds what lies between the third and
    /// the first, and between the third and the second.
    pub rows: Vec<Vec<f64>>,
}

/// A figure that follows from those of its case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// What it is: `switch`, `efficiency`.
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
    /// Why.
    pub why: String,
    /// Whether it is of all that is timed, and not of what remains when the control is taken off.
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
    /// The percentiles of this number of operations, with the minimum and the maximum: each only if at least one operation can be
    /// expected beyond it.
    pub fn percentiles_of_count(count: usize) -> impl Iterator<Item = f64> {
        const ALL: [f64; 11] = [0.0, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 99.99, 100.0];
        ALL.into_iter().filter(move |p| *p >= 100.0 || count as f64 * (100.0 - p) >= 100.0)
    }

    /// The value at this percentile, if it is recorded.
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
    /// The slopes of the lines through what the hardware and the software were predicted to take, ns; `None` in older records and of
    /// cases without predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<[f64; 2]>,
    /// Of the law of a sweep: the largest distance of a case from it, as a share of its cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
}

impl Outcome {
    /// How it ended, in a word.
    pub fn status_word(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Skipped(_) => "skipped",
            Self::Disturbed(_) => "disturbed",
            Self::Failed(_) => "failed",
        }
    }

    /// Why there is no number; `None` where there is one.
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
    /// How it ended, in a word: as [`Outcome::word`], or `unwitnessed` if a claim about the number could not be
    /// checked.
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

    /// The measurement, to be changed.
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

    /// Whether its figure was confirmed, by executions that agree or by the run before ([`Quiet::is_settled`]). A
    /// single execution counts as settled, unless disturbed executions were left out.
    pub fn is_settled(&self) -> bool {
        self.quiet.map_or(self.left_out.is_empty(), |quiet| quiet.is_settled())
    }

    /// The figure that is shown and compared: the quiet one, or of a single execution the median.
    pub fn figure(&self) -> Interval {
        self.quiet.map_or(self.median, |quiet| quiet.figure)
    }
}
