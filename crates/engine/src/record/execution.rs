//! The executions of a case: each is the measurement of the case by one fresh process. A run makes several executions of each
//! case, spread over its whole time, because the state of the machine differs from one process to the next.

use super::Interval;
use serde::{Deserialize, Serialize};

/// The measurement of a case by one fresh process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// When the execution ended, seconds after its run began.
    pub at: f64,
    /// Number of its samples. In [`Measured::counted`](super::Measured::counted) they follow those of the previous execution.
    pub samples: usize,
    /// Lower quartile of its samples per iteration, in the record's unit. Each sample is converted to `core_hz` from the
    /// core's frequency around the sample ([`Measured::core_mhz`](super::Measured::core_mhz)).
    pub low: f64,
    /// Median of its samples, with the same unit and conversion.
    pub median: f64,
    /// The core's mean frequency around its samples, Hz, inferred from chains of additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
}

/// The cost without interference, determined from several executions. A neighbour on the same processor also lowers the
/// core's frequency, so times are converted to the frequency of the undisturbed core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// The figure, in the record's unit. The next run's figure lies in its interval 19 times in 20.
    pub figure: Interval,
    /// The core's frequency for which the figure holds, Hz; `None` if the case waits for memory or the frequency is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
    /// The figure of a faster mode that only one execution met and that is left out of `figure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster: Option<f64>,
    /// Number of earlier runs of this machine whose figures were used for the interval.
    #[serde(default)]
    pub earlier: usize,
}

/// Largest relative half width of a settled figure's interval. With a wider interval a change by a tenth may be chance.
const SETTLED_HALF_WIDTH: f64 = 0.1;

impl Quiet {
    /// Whether the next run's figure is expected within a tenth of this one.
    pub fn is_settled(&self) -> bool {
        self.figure.relative_half_width() <= SETTLED_HALF_WIDTH
    }

    /// The factor that converts this figure to the frequency of another; 1 if one of them has no frequency.
    pub fn frequency_factor_to(&self, other: &Self) -> f64 {
        self.core_hz.zip(other.core_hz).map_or(1.0, |(own, wanted)| own / wanted)
    }
}

// Other activity on the machine while a case was measured.

/// Other activity during each sample. Each vector has one entry per sample; it is empty if the kernel does not
/// report the value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Contamination {
    /// Nanoseconds during which the thread was runnable but another thread ran.
    pub waited_ns: Vec<u64>,
    /// Clock ticks (10 ms) that the hypervisor took from this CPU.
    pub stolen_ticks: Vec<u64>,
    /// Involuntary context switches.
    pub involuntary_switches: Vec<u64>,
    /// Minor and major page faults.
    pub faults: Vec<u64>,
    /// Whether the sample ended on another CPU.
    pub migrated: Vec<bool>,
    /// Whether the thread was stopped by a signal or frozen with its control group during the sample. Empty in older
    /// records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_up: Vec<bool>,
    /// For a case that waits for memory: mean number of CPUs that were busy with tasks of others; `None` for other cases.
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
    /// Duration of the case, seconds.
    pub seconds: f64,
    /// CPU time of all CPUs that was not charged to the case and its children, as sampled by timer ticks, seconds.
    pub others_seconds: f64,
    /// Time that the hypervisor took from all CPUs, seconds.
    pub stolen_seconds: f64,
    /// Number of interrupts.
    pub interrupts: u64,
    /// Page faults of other processes; `None` if unknown.
    pub others_faults: Option<u64>,
    /// Free memory before and after, bytes. It includes the per-CPU page lists if the kernel shows them.
    pub free_bytes: (u64, u64),
    /// Bytes that disks read for others.
    pub others_disk_read: u64,
    /// Bytes that disks wrote for others.
    pub others_disk_written: u64,
    /// Bytes that all interfaces except the loopback interface sent and received.
    pub network_bytes: u64,
}

// Events counted beside the time, which explain the cost of an operation.

/// Name of the count of memory blocks that were allocated. A block that is resized counts as a new one.
pub const ALLOCATIONS: &str = "allocations";
/// Name of the count of bytes in these blocks.
pub const ALLOCATED_BYTES: &str = "allocated-bytes";
/// Name of the largest number of bytes that one iteration alone has allocated and not yet freed.
pub const PEAK_BYTES: &str = "peak-bytes";

/// How often an event happens in an iteration, or why its rate is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRate {
    /// Its name as in `perf list`, or one of the constants above.
    pub name: String,
    /// Events per iteration: the median over separate batches, with the range of the executions as its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Interval>,
    /// Why the event was not counted, or what the count lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

// The CPU time that an operation displaced, by four estimators, with its error terms.

/// An operation's cost in CPU time by several estimators, nanoseconds per operation. A column is `None` if the computed
/// value could not be a cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Displaced {
    /// Number of undisturbed runs, and of all runs.
    pub kept: (usize, usize),
    /// Whether the machine was quiet. If it was not, the paper's column is missing.
    pub quiet: bool,
    /// The share of a run's time in which other tasks had the CPU, median over the runs.
    pub others: f64,
    /// Operations a run.
    pub operations: u64,
    /// Multiplications that a sender computes in each operation; 0 for other cases and in older records.
    #[serde(default)]
    pub computed: u64,
    /// Wall time of an operation, ns.
    pub wall: f64,
    /// The cost by the paper's formula.
    pub paper: Option<Interval>,
    /// The cost from the gaps in the fluid's execution.
    pub gap: Option<Interval>,
    /// The cost without the time that other tasks had.
    pub daemon_free: Option<Interval>,
    /// The cost by the process clock.
    pub charged: Option<Interval>,
    /// The cost by `getrusage`.
    pub rusage: Option<Interval>,
    /// The share of the cost that accounting missed. A negative share is an over-charge.
    pub missed: Option<Interval>,
    /// The cost divided by the accounted time, minus 1.
    pub difference: Option<Interval>,
    /// Standard deviation of the gap estimate over the runs.
    pub deviation: f64,
    /// Error term: time of daemons during the operation that exceeds their time during the calibration.
    pub error_daemons: f64,
    /// Error term: the cost of beginning and ending a run, which was subtracted.
    pub error_start: f64,
    /// Error term: half width due to counting whole turns of the fluid.
    pub error_resolution: f64,
    /// Turns of the fluid in one window of the calibration, L(1), and in the run, L(2); 0 in older records.
    #[serde(default)]
    pub turns: [f64; 2],
    /// Error term: extra time of the fluid after each interruption, while it refills its caches.
    pub error_cache: f64,
    /// Reasons to doubt a column, or why it is missing.
    pub flags: Vec<String>,
    /// Throughput of a CPU that never idles, if it was measured as well.
    pub throughput: Option<Throughput>,
    /// The results of each execution, if there were several. Older records lack them, and their columns above are those of the first
    /// execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<Self>,
}

/// Iterations per second of a CPU that several tasks share and that never idles: as measured, and as predicted from each
/// estimate of the cost of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// The measured throughput.
    pub real: Interval,
    /// The throughput predicted from the gap estimate.
    pub displaced: Interval,
    /// The relative error of that prediction, run by run: 0.02 is 2 % more than measured.
    pub displaced_off: Interval,
    /// The throughput predicted from accounting.
    pub charged: Interval,
    /// The relative error of that prediction.
    pub charged_off: Interval,
}
