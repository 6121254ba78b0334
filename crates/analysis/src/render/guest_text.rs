//! Describes kernels that ran as guests: their identities and their differences.

use crate::record::paired::PairedGuests;
use syscost_engine::record::guest_side::{GuestSide, Identity};

/// The name of a kernel, with the release and build that it reports.
pub fn describe_guest(side: &GuestSide) -> String {
    match &side.identity {
        None => format!("{}: no boot of it stated its identity", side.name),
        Some(Identity { release, build, .. }) => format!("{}: Linux {release} {build}", side.name),
    }
}

/// A line for each difference: configuration, command line, clock source, page size, program in the guest,
/// mitigations.
pub fn difference_lines(sides: &[GuestSide; 2], configurations: &[String]) -> Vec<String> {
    let mut said = configurations.to_vec();
    let [Some(a), Some(b)] = sides.each_ref().map(|side| side.identity.as_ref()) else { return said };
    let pairs = [
        (
            "command line",
            words_only_in(&a.command_line, &b.command_line),
            words_only_in(&b.command_line, &a.command_line),
        ),
        (
            "features and bugs of the processor",
            words_only_in(&a.processor_flags.join(" "), &b.processor_flags.join(" ")),
            words_only_in(&b.processor_flags.join(" "), &a.processor_flags.join(" ")),
        ),
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

/// The words of the command line `line` that `other` lacks; `nothing more` if there are none.
fn words_only_in(line: &str, other: &str) -> String {
    let theirs: Vec<_> = other.split_whitespace().collect();
    let own: Vec<_> = line.split_whitespace().filter(|word| !theirs.contains(word)).collect();
    if own.is_empty() { "nothing more".into() } else { own.join(" ") }
}

/// The lines above the verdicts on two guests that took turns: the clock of the times, the identities of the kernels, the
/// reasons for failed boots, and the differences.
pub fn heading_lines(guests: &PairedGuests) -> Vec<String> {
    let mut said: Vec<String> = guests
        .clock
        .clock_warning()
        .map(|caution| format!("measured: {caution}; {}", guests.machine))
        .into_iter()
        .collect();
    for (label, side) in ["A", "B"].iter().zip(&guests.sides) {
        let booted = if side.boots == 1 { "boot" } else { "boots" };
        said.push(format!("{label}: {}, {} {booted}", describe_guest(side), side.boots));
        said.extend(side.faults.iter().cloned());
    }
    said.extend(
        difference_lines(&guests.sides, &guests.differences).iter().map(|what| format!("differs: {what}")),
    );
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::guest_side::ClockKind;

    fn guests() -> PairedGuests {
        let side = |name: &str, command_line: &str| GuestSide {
            name: name.into(),
            identity: Some(Identity { command_line: command_line.into(), ..Identity::default() }),
            boots: 8,
            faults: Vec::new(),
        };
        let sides = [side("6.1", "quiet"), side("6.1@pti=on", "quiet pti=on")];
        PairedGuests {
            clock: ClockKind::Tcg,
            machine: "QEMU 7".into(),
            sides,
            differences: vec!["HZ: 250".into()],
        }
    }

    #[test]
    fn the_clock_the_kernels_and_their_differences_stand_above_the_verdicts() {
        let said = heading_lines(&guests()).join("\n");
        assert!(said.starts_with("measured: time of an emulator (tcg)") && said.contains("QEMU 7"), "{said}");
        assert!(said.contains("A: 6.1: Linux") && said.contains("8 boots"), "{said}");
        assert!(said.contains("differs: HZ: 250"), "{said}");
        assert!(said.contains("differs: command line: nothing more, then pti=on"), "{said}");
    }

    #[test]
    fn a_failed_boot_is_printed_with_its_kernel() {
        let mut guests = guests();
        guests.sides[1].faults.push("it panicked".into());
        assert!(heading_lines(&guests).contains(&"it panicked".to_owned()));
    }
}
