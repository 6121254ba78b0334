//! What to look at: a line for each kind of problem, with the command that shows more.

use super::{Line, Summary};
use crate::environment::Fingerprint;
use crate::record::quantity::{format_ratio, format_size};
use crate::record::{CurveRecord, LevelRecord, Record};
use crate::render::cell::{self, Tone};
use crate::study::standout::{FAR, Standouts, find_standouts};

/// The most cases that are named as farthest from their prediction.
const NAMED: usize = 3;

pub fn look_lines(summary: &Summary<'_>, width: usize) -> Vec<Line> {
    let found = find_standouts(summary.record);
    let line = |item| look_line(item, summary.program, width);
    let before = [
        disputed_clock_look(summary),
        first_case_look(&found.failed, Tone::Red, "disproved or broken"),
        first_case_look(&found.disturbed, Tone::Yellow, "disturbed"),
        first_case_look(&found.unwitnessed, Tone::Yellow, "unwitnessed (a claim could not be asked)"),
        unsettled_look(&found),
        far_from_expected_look(&found),
    ];
    let names = farthest_line(&found, width).map(|names| Line::new(Tone::Plain, names));
    let lines = before.into_iter().flatten().map(line).chain(names);
    let lines: Vec<Line> = lines.chain(level_look(&found.levels).map(line)).collect();
    let heading = if lines.is_empty() {
        format!("Nothing to look at: every number is settled and within {FAR} times what was expected.")
    } else {
        "Look at these:".into()
    };
    std::iter::once(Line::new(Tone::Bold, cell::cut_to_width(&heading, width))).chain(lines).collect()
}

/// A line on the worst problem, if numbers are missing or in doubt because of it.
pub fn worst_line(summary: &Summary<'_>, width: usize) -> Option<Line> {
    let found = find_standouts(summary.record);
    let worst = disputed_clock_look(summary)
        .or_else(|| first_case_look(&found.failed, Tone::Red, "disproved or broken"))
        .or_else(|| first_case_look(&found.disturbed, Tone::Yellow, "disturbed"));
    Some(look_line(worst?, summary.program, width))
}

fn look_line((tone, texts, command): (Tone, Vec<String>, String), program: &str, width: usize) -> Line {
    let behind = format!("  `{program} {command}`");
    let room = width.saturating_sub(2 + cell::display_width(&behind));
    Line::new(tone, cell::cut_to_width(&format!("  {}{behind}", super::fit_text(&texts, room)), width))
}

/// One line of the list: its tone, its text in several lengths, the longest first, and the command for more.
type Look = Option<(Tone, Vec<String>, String)>;

/// The command that shows the table of a case's group.
fn report_command(id: &str) -> String {
    format!("report --group {}", id.split('/').next().unwrap_or(id))
}

fn first_case_look(list: &[(&str, &str)], tone: Tone, word: &str) -> Look {
    let (id, sentence) = list.first()?;
    Some((tone, vec![format!("{} {word}: {id}: {sentence}", list.len())], report_command(id)))
}

/// The line on clocks that contradict each other.
fn disputed_clock_look(summary: &Summary<'_>) -> Look {
    let group = summary.record.groups.iter().find(|group| group.clock.disputed.is_some())?;
    let (other, by) = group.clock.disputed.as_ref()?;
    let texts = [
        format!(
            "the clocks contradict each other by {:.1} % ({other}): every time is in doubt",
            100.0 * by.abs()
        ),
        format!("the clocks contradict each other by {:.1} %", 100.0 * by.abs()),
    ];
    Some((Tone::Red, texts.into(), format!("report --group {}", group.name)))
}

fn unsettled_look(found: &Standouts<'_>) -> Look {
    let (id, half) = found.unsettled.first()?;
    let width = if *half < 1.0 {
        format!("±{:.0} %", 100.0 * half)
    } else {
        format!("≤{}", format_ratio(1.0 + half))
    };
    let open = found.unsettled.len();
    let texts = [
        format!("{open} not settled (the next run may be over 10 % away), most {id} {width}"),
        format!("{open} not settled, most {id} {width}"),
        format!("{open} not settled"),
    ];
    Some((Tone::Plain, texts.into(), report_command(id)))
}

fn far_from_expected_look(found: &Standouts<'_>) -> Look {
    let farthest = found.far_cases().next()?;
    let (far, all) = (found.far_cases().count(), found.predicted.len());
    let texts = [
        format!("{far} of {all} with an expectation are over {FAR:.0}× off it, the farthest:"),
        format!("{far} of {all} over {FAR:.0}× off the expected:"),
        format!("{far} of {all} over {FAR:.0}× off:"),
    ];
    Some((Tone::Plain, texts.into(), report_command(farthest.id)))
}

/// A line with the cases farthest from their prediction. Only ids that fit whole are listed, since a cut id is useless.
fn farthest_line(found: &Standouts<'_>, width: usize) -> Option<String> {
    let named = found.far_cases().take(NAMED).map(|case| format!("{} {}", format_ratio(case.ratio), case.id));
    let line = named.fold(String::new(), |line, name| {
        let longer = if line.is_empty() { format!("    {name}") } else { format!("{line}, {name}") };
        if cell::display_width(&longer) <= width { longer } else { line }
    });
    (!line.is_empty()).then_some(line)
}

fn level_look(levels: &[(&CurveRecord, &LevelRecord)]) -> Look {
    let (curve, level) = levels.first()?;
    let (held, beyond) = level.step?;
    let name = level.name.as_deref().unwrap_or("a level");
    let reported = level.reported.map(format_size).unwrap_or_default();
    let ends = format!(
        "{name} ends between {} and {}, the kernel says {reported}",
        format_size(held),
        format_size(beyond)
    );
    let short = format!("{name} ends by {}, not {reported}", format_size(beyond));
    Some((Tone::Plain, vec![ends, short], report_command(&curve.prefix)))
}

// The machine and the run: processor, kernel, hypervisor, mitigations, the doctor's findings, and the duration.

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

/// `Intel Xeon, 2 CPUs, 8 GiB, figures for a core at 3.10 GHz`, and the class of the CPU on a hybrid processor.
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

/// `Linux 6.8.0, a guest of KVM (product)`, and a warning if the build is not optimised.
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

/// The mitigations at work and the open vulnerabilities: on one line, or on two if one is too narrow.
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

/// Formats a duration in seconds: `45 s`, `3 min 28 s`.
pub fn format_seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{} min {} s", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_properties_are_shown_as_unknown_and_known_mitigations_are_listed() {
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
    fn a_duration_is_shown_in_minutes_and_seconds() {
        assert_eq!((format_seconds(45.2).as_str(), format_seconds(208.0).as_str()), ("45 s", "3 min 28 s"));
    }
}
