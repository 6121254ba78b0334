//! Other activity on the machine while a case was measured.

use serde::{Deserialize, Serialize};

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
    #[serde(default)]
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
