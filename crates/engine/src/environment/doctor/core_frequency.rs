//! Settings that let the core's frequency change during a measurement.

use super::{Finding, Patient};

pub(super) fn governor_is_not_performance(patient: &Patient) -> Option<Finding> {
    let governor = patient.fingerprint.governor.as_deref().filter(|&g| g != "performance")?;
    Some(Finding::new(
        format!("the frequency governor is {governor}"),
        "the core speeds up while it is measured, so the first samples cost more than the last",
        "scripts/quiet COMMAND, or: sudo cpupower frequency-set -g performance",
    ))
}

pub(super) fn turbo_is_on(patient: &Patient) -> Option<Finding> {
    patient.fingerprint.turbo.filter(|&on| on)?;
    Some(Finding::new(
        "turbo (boost) is on",
        "the frequency then depends on the temperature and on what the other cores do",
        format!("scripts/quiet COMMAND, or: {}", turbo_command(patient)),
    ))
}

fn turbo_command(patient: &Patient) -> &'static str {
    if patient.files.has("sys/devices/system/cpu/intel_pstate/no_turbo") {
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    } else {
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    }
}

/// A mouse has a battery too; the kernel gives it the scope `Device`.
pub(super) fn battery_discharges(patient: &Patient) -> Option<Finding> {
    let directory = "sys/class/power_supply";
    let says = |supply: &str, file: &str, word: &str| {
        patient
            .files
            .read_first_line(&format!("{directory}/{supply}/{file}"))
            .is_some_and(|line| line == word)
    };
    let supplies = patient.files.entry_names(directory);
    let supply = supplies
        .iter()
        .filter(|s| says(s, "type", "Battery") && !says(s, "scope", "Device"))
        .find(|s| says(s, "status", "Discharging"))?;
    Some(Finding::new(
        format!("the machine runs on its battery ({supply})"),
        "firmware lowers the power limit as the charge falls",
        "connect the power supply",
    ))
}
