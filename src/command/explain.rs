//! `syscost explain`: the manual of a group (the head of its source file), the claims of its cases, and what else
//! the machine did when a case was last measured.

use super::archive::Archive;
use super::flag::Home;
use super::help::render_manual_page;
use super::list::default_place;
use super::page::{self, Tone};
use crate::case::{Case, Group, Prediction};
use crate::driver::{layout, nearest_names};
use crate::error::{Error, Result};
use crate::pair::side::case_ids;
use crate::record::quantity::{format_amount, format_interval};
use crate::record::store::Store;
use crate::render::table::Layout;
use crate::suite::{GROUPS, find_group};
use crate::trial::scratch;
use std::process::ExitCode;

/// Print the manual of a group, or what a case claims and predicts
///
/// Prints the manual of a group (what is timed, what is not, how we know, what fools it, how to read the
/// number, where it comes from) and its cases with what they should cost. For the id of a case first what it cost
/// when it was last measured here, what must be true for its number to be kept, and what else the machine did.
#[derive(clap::Args)]
pub struct Args {
    /// A group such as `call`, the beginning of ids such as `call/u64`, or a whole id such as `call/u64/3`
    #[arg(value_name = "GROUP|ID")]
    subject: String,
    #[command(flatten)]
    home: Home,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let layout = layout();
    let group = group_of_subject(&args.subject)?;
    let cases = (group.cases)();
    let alone = cases.iter().find(|case| group.id(case) == args.subject);
    let manual = render_manual_page(&group.manual_text(), layout);
    page::write(&match alone {
        Some(case) => render_case(&args.subject, case, last_measurement(args), layout) + "\n" + &manual,
        None => manual + "\n" + &cases_table(&cases_with_prefix(group, &cases, &args.subject)?, layout),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What the case cost when it was last measured, and what else the machine did. Damaged runs are skipped: `syscost runs` reports them.
fn last_measurement(args: &Args) -> Option<[String; 2]> {
    let files = Archive::at(&args.home).run_files().ok()?;
    files.iter().rev().find_map(|file| {
        let record = Store::load(file).ok()?;
        let (_, case) = record.cases().find(|(_, case)| case.id == args.subject)?;
        let measured = case.measured()?;
        let (figure, unit) = (measured.figure(), &record.unit);
        let cost = format!("{} {}", format_amount(figure.estimate, unit), format_interval(&figure, unit));
        let words = crate::study::disturbance::disturbance_summary(measured.meanwhile.as_ref()?);
        Some([format!("{cost} (run {}, {})", record.run, page::utc_moment(record.started)), words])
    })
}

/// The cases whose ids begin with `subject`.
fn cases_with_prefix<'a>(group: &Group, cases: &'a [Case], subject: &str) -> Result<Vec<&'a Case>> {
    let whole = group.name == subject;
    let found: Vec<_> = cases.iter().filter(|case| whole || group.id(case).starts_with(subject)).collect();
    if found.is_empty() { Err(no_case_error(group, cases, subject)) } else { Ok(found) }
}

/// The group with this name, or the group of this id.
fn group_of_subject(subject: &str) -> Result<&'static Group> {
    let name = subject.split_once('/').map_or(subject, |(name, _)| name);
    find_group(name).ok_or_else(|| {
        let groups: Vec<_> = GROUPS.iter().map(|group| group.name.to_owned()).collect();
        let [groups, cases] = [nearest_names(name, &groups), nearest_names(subject, &case_ids(GROUPS))];
        Error::Usage(format!(
            "there is no group {name}; the nearest are {groups}, and of the cases {cases}; `syscost list` names them all"
        ))
    })
}

fn no_case_error(group: &Group, cases: &[Case], id: &str) -> Error {
    let name = group.name;
    let ids: Vec<_> = cases.iter().map(|case| group.id(case)).collect();
    let near = nearest_names(id, &ids);
    Error::Usage(format!(
        "the group {name} has no case {id}; the nearest are {near}; `syscost list ^{name}/` prints all"
    ))
}

/// A table of the cases: names without the group, predictions and titles.
fn cases_table(cases: &[&Case], layout: Layout) -> String {
    const HEAD: &str = "Cases, and what they should cost in core cycles (hardware + software)";
    let price = |case: &Case| case.prediction.as_ref().map(predicted_cycles).unwrap_or_default();
    let rows: Vec<_> =
        cases.iter().map(|case| [format!("  {}", case.name), price(case), case.title.clone()]).collect();
    let lines = page::align_columns(&rows, page::prose_width(layout));
    format!("{}\n{}\n", page::paint(Tone::Bold, HEAD, layout), lines.join("\n"))
}

fn predicted_cycles(prediction: &Prediction) -> String {
    format!("{} + {}", prediction.hardware, prediction.software)
}

/// The text on one case: its last measurement, its claims, its needs and its prediction.
fn render_case(id: &str, case: &Case, last: Option<[String; 2]>, layout: Layout) -> String {
    let heading = page::heading(id, page::prose_width(layout), layout);
    let rows = [
        ["title".into(), case.title.clone()],
        ["needs".into(), needs_summary(case)],
        ["expected".into(), case.prediction.as_ref().map_or_else(|| "nothing".into(), prediction_text)],
    ];
    let claims = case.claims.iter().enumerate();
    let claims = claims.map(|(i, claim)| [if i == 0 { "claims" } else { "" }.into(), claim.to_string()]);
    let (cost, meanwhile) = last.map_or((None, None), |[cost, words]| {
        (Some(["quiet".into(), cost]), Some(["meanwhile".into(), words]))
    });
    let rows: Vec<[String; 2]> = rows.into_iter().chain(cost).chain(claims).chain(meanwhile).collect();
    format!("{heading}\n{}\n", page::align_columns(&rows, page::prose_width(layout)).join("\n"))
}

fn needs_summary(case: &Case) -> String {
    let place = default_place(&scratch::scratch_parent());
    match (case.needs.len(), case.missing_need(&place)) {
        (0, None) => "nothing of the machine".into(),
        (count, None) => format!("{count} of the machine, met here"),
        (count, Some(sentence)) => format!("{count} of the machine, not met here: {sentence}"),
    }
}

fn prediction_text(prediction: &Prediction) -> String {
    format!("{} core cycles (hardware + software): {}", predicted_cycles(prediction), prediction.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_was_measured_says_what_else_happened() {
        let case = &(GROUPS[0].cases)()[0];
        let text = render_case(
            "call/it",
            case,
            Some(["1.000 ns".into(), "in 2.00 s others used 0.50 CPUs".into()]),
            Layout::default(),
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("meanwhile in 2.00 s others used 0.50 CPUs"), "{text}");
    }

    #[test]
    fn every_case_can_be_explained() {
        for group in GROUPS {
            for case in (group.cases)() {
                let text = render_case(&group.id(&case), &case, None, Layout::default());
                // A long title is broken into lines.
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains(&case.title) && words.contains("core cycles"), "{text}");
            }
        }
    }
}
