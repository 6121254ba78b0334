//! How this binary was compiled.

use super::{Finding, Patient};

const REMEDY: &str = "measure with `cargo bench`, or build with `cargo build --release`";

pub(super) fn is_unoptimized(patient: &Patient) -> Option<Finding> {
    let level = patient.fingerprint.opt_level.as_deref().filter(|&level| level == "0")?;
    Some(Finding::new(
        format!("this binary was built with opt-level {level}"),
        "the loop around an operation then costs more than many of the operations",
        REMEDY,
    ))
}

pub(super) fn has_debug_assertions(patient: &Patient) -> Option<Finding> {
    patient.fingerprint.debug_assertions.then(|| {
        Finding::new(
            "this binary checks debug assertions",
            "overflow and bounds checks run inside what is timed",
            REMEDY,
        )
    })
}
