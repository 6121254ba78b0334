//! Looks at a machine before it is measured, says what would disturb, why, and what to do. Never touches
//! anything: what a person should decide, a person should type. `scripts/quiet` does the usual part for
//! the time of one command.
//!
//! Mitigations, address randomization and the kernel's own choices are no findings: they belong to what is
//! measured. A finding is what makes a number jump from run to run, or mean something else than it says.

mod build;
mod frequency;
mod memory;
mod neighbour;
mod processor;
mod scratch;

use super::Fingerprint;
use crate::platform::kernel_files::KernelFiles;
use std::path::Path;

/// Something that would disturb a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was seen.
    pub fact: String,
    /// What it does to a measurement.
    pub why: String,
    /// What to do: a command, or an action.
    pub remedy: String,
}

impl Finding {
    fn new(fact: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { fact: fact.into(), why: why.into(), remedy: remedy.into() }
    }
}

/// What the checks may look at.
struct Patient<'a> {
    files: &'a KernelFiles,
    fingerprint: &'a Fingerprint,
    scratch: &'a Path,
}

impl Patient<'_> {
    /// CPUs that the kernel runs; one when it does not tell.
    fn cpus(&self) -> f64 {
        self.fingerprint.cpu_count.unwrap_or(1).max(1) as f64
    }

    fn is_x86(&self) -> bool {
        matches!(self.fingerprint.architecture.as_deref(), Some("x86_64" | "x86" | "i686"))
    }

    fn status(&self) -> String {
        self.files.text("proc/self/status").unwrap_or_default()
    }
}

type Check = fn(&Patient) -> Option<Finding>;

/// All checks: first what is wrong with the binary, then what disturbs most.
const CHECKS: &[Check] = &[
    build::is_unoptimized,
    build::has_debug_assertions,
    neighbour::other_work_runs,
    neighbour::hypervisor_is_present,
    neighbour::time_was_stolen,
    neighbour::quota_limits,
    frequency::governor_is_not_performance,
    frequency::turbo_is_on,
    frequency::battery_discharges,
    processor::smt_is_active,
    processor::one_cpu_is_allowed,
    processor::clock_source_is_slow,
    processor::counter_is_not_constant,
    processor::mitigations_are_off,
    processor::perf_is_forbidden,
    processor::counters_are_missing,
    memory::huge_pages_are_always,
    memory::little_is_available,
    memory::swap_is_in_use,
    memory::locking_is_limited,
    scratch::has_no_disk,
];

/// What would disturb a measurement on this machine, the worst first; empty when all is well.
pub fn examine(files: &KernelFiles, fingerprint: &Fingerprint, scratch: &Path) -> Vec<Finding> {
    let patient = Patient { files, fingerprint, scratch };
    CHECKS.iter().filter_map(|check| check(&patient)).collect()
}

#[cfg(test)]
mod tests;
