//! Examines a machine before it is measured: what would disturb, why, and what to do. It changes nothing, because that
//! is for the user to decide. `scripts/quiet` makes the usual changes for the time of one command.
//!
//! A finding is what makes a number vary from run to run, or mean something else than it says. Mitigations, address
//! randomization and the kernel's own choices are no findings: they belong to what is measured.

mod machine_finding;

use super::Fingerprint;
use crate::platform::kernel_files::KernelFiles;
use serde::Serialize;
use std::path::Path;

/// Something that would disturb a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was found.
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

/// The finding, if `is_found`.
fn finding_if(
    is_found: bool,
    fact: impl Into<String>,
    why: impl Into<String>,
    remedy: impl Into<String>,
) -> Option<Finding> {
    is_found.then(|| Finding::new(fact, why, remedy))
}

/// The machine that the checks examine.
struct Patient<'a> {
    files: &'a KernelFiles,
    fingerprint: &'a Fingerprint,
    scratch: &'a Path,
}

impl Patient<'_> {
    /// How many CPUs are online; one where the kernel does not tell.
    fn online_cpu_count(&self) -> f64 {
        self.fingerprint.cpu_count.unwrap_or(1).max(1) as f64
    }

    fn is_x86(&self) -> bool {
        matches!(self.fingerprint.architecture.as_deref(), Some("x86_64" | "x86" | "i686"))
    }

    fn read_process_status(&self) -> String {
        self.files.read_text("proc/self/status").unwrap_or_default()
    }
}

type Check = fn(&Patient) -> Option<Finding>;

/// All checks: first those of the binary, then by how much the finding disturbs.
const CHECKS: &[Check] = &[
    machine_finding::is_unoptimized,
    machine_finding::has_debug_assertions,
    machine_finding::other_work_runs,
    machine_finding::hypervisor_is_present,
    machine_finding::time_was_stolen,
    machine_finding::cpu_quota_is_set,
    machine_finding::io_limit_is_set,
    machine_finding::process_is_traced,
    machine_finding::governor_is_not_performance,
    machine_finding::turbo_is_on,
    machine_finding::battery_discharges,
    machine_finding::cpus_are_of_several_classes,
    machine_finding::smt_is_active,
    machine_finding::one_cpu_is_allowed,
    machine_finding::clock_source_is_slow,
    machine_finding::tsc_is_not_constant,
    machine_finding::mitigations_are_off,
    machine_finding::perf_is_forbidden,
    machine_finding::core_counters_are_missing,
    machine_finding::huge_pages_are_always,
    machine_finding::little_memory_is_available,
    machine_finding::swap_is_in_use,
    machine_finding::memory_locking_is_limited,
    machine_finding::scratch_has_no_disk,
];

/// Everything that would disturb a measurement on this machine, the worst first.
pub fn examine(files: &KernelFiles, fingerprint: &Fingerprint, scratch: &Path) -> Vec<Finding> {
    let patient = Patient { files, fingerprint, scratch };
    CHECKS.iter().filter_map(|check| check(&patient)).collect()
}

#[cfg(test)]
mod tests;
