//! `syscost doctor`: what would disturb a measurement here, why, and what to do. It changes nothing.

use super::flag::Form;
use super::page::{self, Tone};
use crate::driver::layout;
use crate::environment::Fingerprint;
use crate::environment::doctor::{Finding, examine};
use crate::error::Result;
use crate::platform::kernel_files::KernelFiles;
use crate::render::table::Layout;
use crate::trial::scratch;
use std::process::ExitCode;

/// Print what would disturb a measurement here, and what to do
///
/// Prints the hardware, and what would make the numbers of this machine jump or mislead: what was seen, what it does to
/// a measurement, and what to do about it. Changes nothing. Exit code 0: nothing was found.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (files, scratch) = (KernelFiles::live(), scratch::scratch_parent());
    let fingerprint = Fingerprint::take(&files, &scratch);
    let findings = examine(&files, &fingerprint, &scratch);
    if args.form.json {
        page::write_json(&findings)?
    } else {
        let layout = layout();
        page::write(&(render_hardware(&fingerprint, layout) + &render_findings(&findings, layout)))?;
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fields of the fingerprint that describe the hardware, in the order of a paper's description.
const HARDWARE: [&str; 7] =
    ["cpu_model", "nominal_clock", "caches", "cache_ways", "memory_modules", "disks", "network_cards"];

fn render_hardware(fingerprint: &Fingerprint, layout: Layout) -> String {
    let fields: Vec<_> = fingerprint.field_values().collect();
    let value =
        |name: &str| fields.iter().find(|(field, _)| *field == name).and_then(|(_, value)| value.clone());
    let unknown = |name: &str| match name {
        "memory_modules" => "unknown: the firmware has no table, or only root may read it".to_owned(),
        _ => "unknown: this machine does not show it".to_owned(),
    };
    let rows = HARDWARE.map(|name| [name.to_owned(), value(name).unwrap_or_else(|| unknown(name))]);
    page::columns_text(&rows, page::table_width(layout)) + "\n"
}

fn render_findings(findings: &[Finding], layout: Layout) -> String {
    let texts: Vec<_> = findings.iter().map(|finding| render_finding(finding, layout)).collect();
    texts.join("\n")
}

fn render_finding(Finding { fact, why, remedy }: &Finding, layout: Layout) -> String {
    let width = page::prose_width(layout);
    let fact = page::paint(Tone::Bold, &page::wrap("• ", fact, width), layout);
    let [why, remedy] = [("  ", why), ("  → ", remedy)].map(|(first, text)| page::wrap(first, text, width));
    format!("{fact}\n{why}\n{remedy}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_fact_reason_and_remedy() {
        let finding = Finding { fact: "it rains".into(), why: "one gets wet".into(), remedy: "go in".into() };
        let read = render_findings(&[finding.clone(), finding], Layout::default());
        let once = "• it rains\n  one gets wet\n  → go in\n";
        assert_eq!(read, format!("{once}\n{once}"));
    }

    #[test]
    fn hardware_facts_are_printed_and_unknown_ones_with_the_reason() {
        let mut fingerprint = Fingerprint::default();
        fingerprint.hardware.disks = Some("sda, rotating".into());
        let text = render_hardware(&fingerprint, Layout::default());
        assert!(
            text.lines().any(|line| line.starts_with("disks") && line.ends_with("sda, rotating")),
            "{text}"
        );
        assert!(text.contains("only root may read") && text.lines().count() == HARDWARE.len() + 1, "{text}");
    }

    #[test]
    fn without_findings_nothing_is_printed() {
        assert_eq!(render_findings(&[], Layout::default()), "");
    }
}
