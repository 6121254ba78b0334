//! The executions of a case: each is what one fresh process measured of it. A run makes several of each case, spread over
//! its whole time, because a process is measured in one mood of the machine and the next process in another.

use super::Interval;
use serde::{Deserialize, Serialize};

/// What one fresh process measured of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// When it ended, seconds after its run began.
    pub at: f64,
    /// Number of its samples. In [`Measured::counted`](super::Measured::counted) they follow those of the execution before.
    pub samples: usize,
    /// Lower quartile of its samples, one iteration, in the record's unit, each converted to `core_hz` from the frequency
    /// around it ([`Measured::core_mhz`](super::Measured::core_mhz)).
    pub low: f64,
    /// Median of its samples, likewise.
    pub median: f64,
    /// The core's mean frequency around its samples, Hz, inferred from chains of additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
}

/// The cost without interference, found from several executions. A neighbour on the same processor slows the
/// core, too, so times are converted to the frequency that it has when it is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// The figure, in the record's unit, and the interval in which the next run's figure lies, 19 times in 20.
    pub figure: Interval,
    /// The core's frequency for which the figure holds, Hz; `None` of a case that waits for memory, and where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
    /// The figure of a faster mode that too few executions met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster: Option<f64>,
    /// Number of earlier runs of this machine that its interval rests on, too.
    #[serde(default)]
    pub earlier: usize,
}

/// Half of the widest interval of a settled figure, as a share of it: beyond it a change by a tenth may be chance.
const SETTLED: f64 = 0.1;

impl Quiet {
    /// Whether the next run's figure lies within a tenth of this one.
    pub fn is_settled(&self) -> bool {
        self.figure.relative_half_width() <= SETTLED
    }

    /// The factor that converts this figure to the frequency of another; 1 where one of them has none.
    pub fn frequency_factor_to(&self, other: &Self) -> f64 {
        self.core_hz.zip(other.core_hz).map_or(1.0, |(own, wanted)| own / wanted)
    }
}

// Other activity on the machine while a case was measured.

/// Other activity during each sample. Vectors have one entry for each sample; an empty one means that the kernel does
/// not report it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Contamination {
    /// Nanoseconds that the thread was ready but another ran.
    pub waited_ns: Vec<u64>,
    /// Clock ticks (10 ms) that the hypervisor took from this CPU.
    pub stolen_ticks: Vec<u64>,
    /// Involuntary context switches.
    pub involuntary_switches: Vec<u64>,
    /// Minor and major page faults.
    pub faults: Vec<u64>,
    /// Whether the sample ended on another CPU.
    pub migrated: Vec<bool>,
    /// Whether the thread was held up in the sample: stopped by a signal, frozen with its control group. Older records do
    /// not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_up: Vec<bool>,
    /// For a case that waits for memory: mean number of busy CPUs that ran none of its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_beside: Option<f64>,
}

impl Contamination {
    /// The number of samples in which another task ran, the hypervisor stole time, or the thread moved or was held up.
    pub fn count_disturbed(&self) -> usize {
        (0..self.involuntary_switches.len())
            .filter(|&i| {
                self.involuntary_switches[i] > 0
                    || self.stolen_ticks.get(i).is_some_and(|&t| t > 0)
                    || [&self.migrated, &self.held_up].iter().any(|each| each.get(i) == Some(&true))
            })
            .count()
    }
}

/// Activity of the whole machine from the beginning of a case to its end, set-up and warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meanwhile {
    /// Duration of the case.
    pub seconds: f64,
    /// CPU time of all CPUs that the case and its children were not charged with, as the timer's ticks saw it.
    pub others_seconds: f64,
    /// Time that the hypervisor took from all CPUs.
    pub stolen_seconds: f64,
    /// Interrupts.
    pub interrupts: u64,
    /// Page faults of everybody else.
    pub others_faults: Option<u64>,
    /// Free memory before and after, bytes, with what lies in the lists of each CPU where that can be seen.
    pub free_bytes: (u64, u64),
    /// Bytes that disks read for others.
    pub others_disk_read: u64,
    /// Bytes that disks wrote for others.
    pub others_disk_written: u64,
    /// Bytes that all interfaces but the loop sent and received.
    pub network_bytes: u64,
}

// Events beside the time: why an operation costs what it does.

/// The name of the blocks of memory that are allocated. A block that is given another size counts as a new one.
pub const ALLOCATIONS: &str = "allocations";
/// The name of their bytes.
pub const ALLOCATED_BYTES: &str = "allocated-bytes";
/// The name of the most bytes that one iteration alone has allocated and not yet freed.
pub const PEAK_BYTES: &str = "peak-bytes";

/// How often an event happens in an iteration, or why its rate is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRate {
    /// Its name as in `perf list`, or one of those above.
    pub name: String,
    /// Events an iteration: the median over batches of their own, and the range of the executions'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Interval>,
    /// Why it was not counted, or what is missing in the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

// The CPU time that an operation displaced, by four estimators, with its error terms.

/// An operation's cost in CPU time as four estimators see it; nanoseconds an operation. A column is missing where
/// what was computed could not be a cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Displaced {
    /// Number of undisturbed runs, and of all runs.
    pub kept: (usize, usize),
    /// Whether the machine was quiet: else the paper's column is missing.
    pub quiet: bool,
    /// The median share of a run that other tasks had the CPU.
    pub others: f64,
    /// Operations a run.
    pub operations: u64,
    /// Multiplications of each operation, by which a sender computes; 0 for other cases and in records before they were kept.
    #[serde(default)]
    pub computed: u64,
    /// Wall time of an operation.
    pub wall: f64,
    /// By the paper's formula.
    pub paper: Option<Interval>,
    /// From the gaps that the fluid saw.
    pub gap: Option<Interval>,
    /// Without the time that other tasks had.
    pub daemon_free: Option<Interval>,
    /// By the process clock.
    pub charged: Option<Interval>,
    /// By `getrusage`.
    pub rusage: Option<Interval>,
    /// The share of the cost that accounting missed; negative is an over-charge.
    pub missed: Option<Interval>,
    /// The cost over accounting, less 1.
    pub difference: Option<Interval>,
    /// Standard deviation of the gap estimate over the runs.
    pub deviation: f64,
    /// Time of daemons during the operation beyond that during the calibration.
    pub error_daemons: f64,
    /// Beginning and ending a run, which was taken off.
    pub error_start: f64,
    /// Half-width from counting whole turns of the fluid.
    pub error_resolution: f64,
    /// The fluid's turns in one window of the calibration and in the run, L(1) and L(2); 0 in records before they were kept.
    #[serde(default)]
    pub turns: [f64; 2],
    /// Extra time of the fluid after each interruption, caused by its own caches.
    pub error_cache: f64,
    /// Reasons to doubt a column, or why it is missing.
    pub flags: Vec<String>,
    /// Throughput of a CPU that never idles, where that was measured as well.
    pub throughput: Option<Throughput>,
    /// What each execution found, of a case that several measured; in records before they were kept, the columns above are those of
    /// the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Self>,
}

/// Iterations a second of a CPU that several share and that never idles, as measured and as predicted from each
/// estimate of the cost of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// As measured.
    pub real: Interval,
    /// Predicted from the gap estimate.
    pub displaced: Interval,
    /// Its relative error, run by run: 0.02 is 2 % more than real.
    pub displaced_off: Interval,
    /// Predicted from accounting.
    pub charged: Interval,
    /// Its relative error.
    pub charged_off: Interval,
}
