//! `syscost explain`: the manual of a group, which is the head of its source file, what its cases claim, and what else
//! happened when one of them was last measured.

use super::archive::Archive;
use super::flag::Home;
use super::list::missing;
use super::page::{self, Tone};
use crate::case::{Case, Cpus, Group, Place, Prediction, Scale};
use crate::driver::{layout, nearest};
use crate::record::store::Store;
use crate::render::table::Layout;
use crate::suite::{GROUPS, find};
use crate::trial::scratch;
use crate::{Error, Result};
use clap::Args;
use std::process::ExitCode;

/// Print the manual of a group, or what a case claims and predicts
///
/// Prints the manual of a group (what is timed, what is not, how we know, what fools it, how to read the
/// number, where it comes from) and its cases with what they should cost. For the id of a case, also what
/// must be true for its number to be kept, and what else the machine did when it was last measured here.
#[derive(Args)]
pub(super) struct Asked {
    /// A group such as `call`, the beginning of ids such as `call/u64`, or a whole id such as `call/u64/3`
    #[arg(value_name = "GROUP|ID")]
    subject: String,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(asked: &Asked) -> Result<ExitCode> {
    let layout = layout();
    let group = group(&asked.subject)?;
    let cases = (group.cases)();
    let alone = cases.iter().find(|case| group.id(case) == asked.subject);
    let beside = match alone {
        Some(_) => cases.iter().collect(),
        None => below(group, &cases, &asked.subject)?,
    };
    let mut text = manual(&group.manual_text(), layout) + "\n" + &table(&beside, layout);
    text += &alone.map(|case| one(&asked.subject, case, last(asked), layout)).unwrap_or_default();
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What else happened when the case was last measured. A damaged run is `syscost runs`' to name.
fn last(asked: &Asked) -> Option<String> {
    let files = Archive::of(&asked.home).files().ok()?;
    files.iter().rev().find_map(|file| {
        let record = Store::load(file).ok()?;
        let (_, case) = record.cases().find(|(_, case)| case.id == asked.subject)?;
        let words = case.measured()?.meanwhile.as_ref()?.words();
        Some(format!("{words} (run {}, {})", record.run, page::moment(record.started)))
    })
}

/// The cases below the beginning of an id: a group, or its variant.
fn below<'a>(group: &Group, cases: &'a [Case], subject: &str) -> Result<Vec<&'a Case>> {
    let above = format!("{}/", subject.trim_end_matches('/'));
    let found: Vec<_> = cases.iter().filter(|case| group.id(case).starts_with(&above)).collect();
    if found.is_empty() { Err(no_case(group, cases, subject)) } else { Ok(found) }
}

/// The group of a name or of an id.
fn group(subject: &str) -> Result<&'static Group> {
    let name = subject.split_once('/').map_or(subject, |(name, _)| name);
    find(name).ok_or_else(|| {
        let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
        Error::Usage(format!("there is no group {name}; there are {}", known.join(", ")))
    })
}

fn no_case(group: &Group, cases: &[Case], id: &str) -> Error {
    let name = group.name;
    let ids: Vec<_> = cases.iter().map(|case| group.id(case)).collect();
    let near = nearest(id, &ids);
    Error::Usage(format!(
        "the group {name} has no case {id}; the nearest are {near}; `syscost list ^{name}/` prints all"
    ))
}

/// The manual for a terminal: headings in bold without their marks, paragraphs and items wrapped.
fn manual(source: &str, layout: Layout) -> String {
    let mut text = String::new();
    let mut paragraph = Vec::new();
    for line in source.lines() {
        let ends = line.is_empty() || line.starts_with(['#', '|']) || line.starts_with("* ");
        if ends {
            text += &wrapped(&std::mem::take(&mut paragraph), layout);
        }
        match line.strip_prefix("# ") {
            Some(heading) => text += &(page::paint(Tone::Bold, heading, layout) + "\n"),
            None if line.is_empty() => text.push('\n'),
            None if line.starts_with('|') => text += &format!("  {line}\n"),
            None => paragraph.push(line),
        }
    }
    text + &wrapped(&paragraph, layout)
}

/// A paragraph, or an item with its text hanging beside the mark.
fn wrapped(lines: &[&str], layout: Layout) -> String {
    let text = lines.join(" ");
    match text.strip_prefix("* ") {
        _ if lines.is_empty() => text,
        Some(item) => page::wrap("  * ", item, page::prose(layout)) + "\n",
        None => page::wrap("  ", &text, page::prose(layout)) + "\n",
    }
}

/// The cases below their group's name, which goes without saying here.
fn table(cases: &[&Case], layout: Layout) -> String {
    const HEAD: &str = "Cases, and what they should cost in core cycles (hardware + software)";
    let price = |case: &Case| case.prediction.as_ref().map(cycles).unwrap_or_default();
    let rows: Vec<_> =
        cases.iter().map(|case| [indented(&case.name), price(case), case.title.clone()]).collect();
    let lines = page::aligned(&rows, page::prose(layout));
    format!("{}\n{}\n", page::paint(Tone::Bold, HEAD, layout), lines.join("\n"))
}

fn indented(name: &str) -> String {
    format!("  {name}")
}

fn cycles(prediction: &Prediction) -> String {
    format!("{} + {}", prediction.hardware, prediction.software)
}

/// One case by itself. It stands last, where a reader at a terminal looks first.
fn one(id: &str, case: &Case, last: Option<String>, layout: Layout) -> String {
    let heading = page::heading(id, page::prose(layout), layout);
    let rows = [
        ["title".into(), case.title.clone()],
        ["needs".into(), needs(case)],
        ["predicted".into(), case.prediction.as_ref().map_or_else(|| "nothing".into(), predicted)],
    ];
    let claims = case.claims.iter().enumerate();
    let claims = claims.map(|(i, claim)| [if i == 0 { "claims" } else { "" }.into(), claim.to_string()]);
    let last = last.map(|words| ["meanwhile".into(), words]);
    let rows: Vec<[String; 2]> = rows.into_iter().chain(claims).chain(last).collect();
    format!("\n{heading}\n{}\n", page::aligned(&rows, page::prose(layout)).join("\n"))
}

fn needs(case: &Case) -> String {
    let place = Place { scratch: scratch::place(), scale: Scale::Default, cpus: Cpus::expected() };
    match (case.needs.len(), missing(case, &place)) {
        (0, _) => "nothing of the machine".into(),
        (count, None) => format!("{count} of the machine, met here"),
        (count, Some(sentence)) => format!("{count} of the machine, not met here: {sentence}"),
    }
}

fn predicted(prediction: &Prediction) -> String {
    format!("{} core cycles (hardware + software): {}", cycles(prediction), prediction.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_is_wrapped_and_its_headings_lose_their_marks() {
        let source = "# What is timed\none\n`two`\n\nthree\n* an\n  item\n# Source\nfour\n";
        let text = manual(source, Layout::default());
        assert_eq!(text, "What is timed\n  one `two`\n\n  three\n  * an item\nSource\n  four\n");
    }

    #[test]
    fn a_case_that_was_measured_says_what_else_happened() {
        let case = &(GROUPS[0].cases)()[0];
        let text = one("call/it", case, Some("in 2.00 s others used 0.50 CPUs".into()), Layout::default());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("meanwhile in 2.00 s others used 0.50 CPUs"), "{text}");
    }

    #[test]
    fn every_case_can_be_explained() {
        for group in GROUPS {
            for case in (group.cases)() {
                let text = one(&group.id(&case), &case, None, Layout::default());
                // A long title is broken into lines.
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains(&case.title) && words.contains("core cycles"), "{text}");
            }
        }
    }
}
