//! Kernels that ran as guests, in words: who they are, and what they differ by.

use crate::record::guest_side::{GuestSide, Identity};
use crate::record::paired::PairedGuests;

/// A kernel by its name and by what it says it is.
pub(super) fn described(side: &GuestSide) -> String {
    match &side.identity {
        None => format!("{}: no boot of it said who it is", side.name),
        Some(Identity { release, build, .. }) => format!("{}: Linux {release} {build}", side.name),
    }
}

/// Configurations, command lines, page sizes, clock sources and mitigations, where they are not the same.
pub(super) fn differences(sides: &[GuestSide; 2], configurations: &[String]) -> Vec<String> {
    let mut said = configurations.to_vec();
    let [Some(a), Some(b)] = sides.each_ref().map(|side| side.identity.as_ref()) else { return said };
    let pairs = [
        ("command line", a.command_line.clone(), b.command_line.clone()),
        ("clock source", a.clocksource.clone(), b.clocksource.clone()),
        ("page size", a.page_size.to_string(), b.page_size.to_string()),
        ("program in the guest", a.tool.clone(), b.tool.clone()),
    ];
    let mut tell = |what: &str, a: &str, b: &str| {
        if a != b {
            said.push(format!("{what}: {a}, then {b}"));
        }
    };
    pairs.iter().for_each(|(what, a, b)| tell(what, a, b));
    for (name, state) in &b.mitigations {
        let before = a.mitigations.iter().find(|(other, _)| other == name);
        tell(&format!("mitigation of {name}"), before.map_or("unknown to it", |(_, state)| state), state);
    }
    said
}

/// What is said above the verdicts on two guests that took turns: what the times are of, who the kernels are, why one did not
/// come, what they differ by.
pub(super) fn heading(guests: &PairedGuests) -> Vec<String> {
    let mut said: Vec<String> =
        guests.clock.caution().map(|caution| format!("measured: {caution}; {}", guests.machine)).into_iter().collect();
    for (label, side) in ["A", "B"].iter().zip(&guests.sides) {
        let booted = if side.boots == 1 { "boot" } else { "boots" };
        said.push(format!("{label}: {}, {} {booted}", described(side), side.boots));
        said.extend(side.faults.iter().cloned());
    }
    said.extend(differences(&guests.sides, &guests.differences).iter().map(|what| format!("differs: {what}")));
    said
}
