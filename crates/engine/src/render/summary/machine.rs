//! Whose numbers these are: processor, kernel, hypervisor, mitigations, what the doctor found, and how long it took.

use super::{Line, Summary};
use crate::environment::Fingerprint;
use crate::record::Record;
use crate::render::cell;
use crate::render::tone::Tone;

pub fn machine_lines(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let record = summary.record;
    let plain = |text: String| Line::new(Tone::Plain, cell::cut_to_width(&text, width));
    let mut lines = vec![Line::new(Tone::Bold, cell::cut_to_width(&processor_line(record), width))];
    lines.push(plain(kernel_line(&record.fingerprint)));
    lines.extend(mitigation_lines(&record.fingerprint, width).into_iter().map(plain));
    lines.extend(summary.doctor.map(|found| doctor_line(found, summary.program, width)));
    lines.push(plain(run_line(record)));
    lines
}

fn or_unknown(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("unknown")
}

/// `Intel Xeon, 2 CPUs, core at 3.10 GHz, 8 GiB`.
fn processor_line(record: &Record) -> String {
    let known = &record.fingerprint;
    let cpus = known.cpu_count.map(|count| format!(", {count} CPU{}", if count == 1 { "" } else { "s" }));
    let hz = record.cases().find_map(|(_, case)| case.measured()?.quiet?.core_hz);
    let hz = hz.map(|hz| format!(", figures for a core at {:.2} GHz", hz / 1e9));
    let memory = known.memory_bytes.map(|bytes| format!(", {:.0} GiB", bytes as f64 / (1u64 << 30) as f64));
    let class = known.cpu_class.as_ref().map(|class| format!(", of class {class}"));
    let rest = [cpus, memory, hz, class].into_iter().flatten().collect::<String>();
    format!("{}{rest}", or_unknown(&known.cpu_model))
}

/// `Linux 6.8.0, a guest of KVM (product), clock tsc`.
fn kernel_line(known: &Fingerprint) -> String {
    let below = match (&known.hypervisor, &known.product) {
        (Some(hypervisor), Some(product)) if hypervisor != product => {
            format!("a guest of {hypervisor} ({product})")
        }
        (Some(hypervisor), _) if hypervisor == "unnamed" => "a guest of a hypervisor without a name".into(),
        (Some(hypervisor), _) => format!("a guest of {hypervisor}"),
        (None, Some(product)) => format!("no hypervisor seen ({product})"),
        (None, None) => "no hypervisor seen".into(),
    };
    let unoptimized = known.opt_level.as_deref() == Some("0");
    let build = if unoptimized { ", AN UNOPTIMISED BUILD" } else { "" };
    format!("Linux {}, {below}{build}", or_unknown(&known.kernel_release))
}

/// What the kernel does about the hardware, and what it does not: on a line of its own where there is no room.
fn mitigation_lines(known: &Fingerprint, width: usize) -> Vec<String> {
    let that = |beginning: &str| -> Vec<&str> {
        let found = known.mitigations.iter().filter(|(_, state)| state.starts_with(beginning));
        found.map(|(name, _)| name.as_str()).collect()
    };
    let (at_work, open) = (that("Mitigation"), that("Vulnerable"));
    let at_work = match at_work.len() {
        _ if known.mitigations.is_empty() => return vec!["mitigations: the kernel does not tell".into()],
        0 if open.is_empty() => return vec!["mitigations: none is needed".into()],
        0 => "mitigations: none".to_owned(),
        _ => format!("mitigations at work: {}", at_work.join(", ")),
    };
    if open.is_empty() {
        return vec![at_work];
    }
    let open = format!("vulnerable: {}", open.join(", "));
    match format!("{at_work}; {open}") {
        both if cell::display_width(&both) <= width => vec![both],
        _ => vec![at_work, open],
    }
}

fn doctor_line(found: &[String], program: &str, width: usize) -> Line {
    match found {
        [] => Line::new(Tone::Plain, "no disturbance was found"),
        found => {
            let s = if found.len() == 1 { "" } else { "s" };
            let head = format!("{} possible disturbance{s}: {}", found.len(), found.join("; "));
            let all = format!(" (all: `{program} doctor`)");
            Line::new(Tone::Yellow, cell::cut_before_suffix(&head, &all, width))
        }
    }
}

fn run_line(record: &Record) -> String {
    let executions =
        record.cases().filter_map(|(_, case)| case.measured()).flat_map(|measured| &measured.executions);
    let seconds = executions.map(|execution| execution.at).fold(0.0, f64::max);
    let took = if seconds > 0.0 { format!(", took {}", format_seconds(seconds)) } else { String::new() };
    let worth = if record.scale == "smoke" { ": too brief for numbers worth keeping" } else { "" };
    let unit = if record.unit == "ns" { String::new() } else { format!(", in {}", record.unit) };
    format!("run {}, scale {}{worth}{took}{unit}", record.run, record.scale)
}

/// `45 s`, `3 min 28 s`.
pub fn format_seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{} min {} s", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_tells_nothing_is_unknown_and_one_that_tells_is_told() {
        let nothing = Fingerprint::default();
        assert_eq!(kernel_line(&nothing), "Linux unknown, no hypervisor seen");
        assert_eq!(mitigation_lines(&nothing, 80), ["mitigations: the kernel does not tell"]);
        let pairs = [("mds", "Mitigation: Clear CPU buffers"), ("srbds", "Vulnerable: no microcode")];
        let mitigations_of = pairs.map(|(name, state)| (name.to_owned(), state.to_owned()));
        let known = Fingerprint { mitigations: mitigations_of.into(), ..Fingerprint::default() };
        assert_eq!(mitigation_lines(&known, 80), ["mitigations at work: mds; vulnerable: srbds"]);
        assert_eq!(mitigation_lines(&known, 30), ["mitigations at work: mds", "vulnerable: srbds"]);
    }

    #[test]
    fn a_time_is_as_one_says_it() {
        assert_eq!((format_seconds(45.2).as_str(), format_seconds(208.0).as_str()), ("45 s", "3 min 28 s"));
    }
}
