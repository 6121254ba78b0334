//! Examines a machine before it is measured: finds what would disturb, why, and what to do. It changes nothing, because
//! the user decides about changes. `scripts/quiet` makes the usual changes for the duration of one command.
//!
//! A finding makes a number vary from run to run, or gives it another meaning than it seems to have. Mitigations, address
//! randomization and the kernel's own choices are no findings: they are part of what is measured.

mod machine_finding;

use super::Fingerprint;
use crate::platform::kernel_files::KernelFiles;
use machine_finding::{CHECKS, Check};
use serde::Serialize;
use std::path::Path;

/// Something that would disturb a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was found.
    pub fact: String,
    /// Its effect on a measurement.
    pub why: String,
    /// The remedy: a command, or an action.
    pub remedy: String,
}

/// The machine that the checks examine.
struct Patient<'a> {
    files: &'a KernelFiles,
    fingerprint: &'a Fingerprint,
    scratch: &'a Path,
}

impl Patient<'_> {
    fn is_x86(&self) -> bool {
        matches!(self.fingerprint.architecture.as_deref(), Some("x86_64" | "x86" | "i686"))
    }

    fn read_process_status(&self) -> String {
        self.files.read_text("proc/self/status").unwrap_or_default()
    }
}

/// Everything that would disturb a measurement on this machine, the worst first.
pub fn examine(files: &KernelFiles, fingerprint: &Fingerprint, scratch: &Path) -> Vec<Finding> {
    let patient = Patient { files, fingerprint, scratch };
    let class = fingerprint.cpu_class.as_deref().unwrap_or_default();
    let finding = |check: &Check| {
        let (why, remedy) = (check.why.replace("{class}", class), check.remedy.into());
        (check.fact)(&patient).map(|fact| Finding { fact, why, remedy })
    };
    CHECKS.iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests;
