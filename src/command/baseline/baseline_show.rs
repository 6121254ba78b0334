//! `syscost baseline show`: the machines, sessions and cases of a record.

use super::{count_contents, replication_text};
use crate::command::archive::Archive;
use crate::command::flag::{Form, Home};
use crate::command::page::{self, Tone};
use crate::error::Result;
use crate::record::quantity::{format_amount, format_count};
use crate::render::table::Layout;
use crate::statistic::{median, percentile};
use std::ffi::OsString;
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Head, Series};

/// Fields of the fingerprint that are shown: those by which two machines' numbers differ most.
const FACTS: [&str; 8] = [
    "kernel_release",
    "architecture",
    "cpu_model",
    "microcode",
    "hypervisor",
    "governor",
    "compiler",
    "crate_version",
];

/// Show what is in a record
///
/// Prints the machine, the sessions, and each case with the number of processes that measured it, the median of
/// their medians and the share by which they lie apart. In a pipe, between tabs, lines that begin with `record`,
/// `fact`, `session`, `case` or `without`.
#[derive(clap::Args)]
pub struct Args {
    /// Name of a record, of a baseline of Criterion's or of a run; or a file
    #[arg(value_name = "NAME|FILE")]
    name: OsString,
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let head = Archive::at(&args.home).load_head(&args.name)?;
    args.form.write(|| &head, || program_text(&head), |layout| render_head(&head, layout))?;
    Ok(ExitCode::SUCCESS)
}

/// Fields and values of each machine, numbered if there are several machines.
fn machine_rows(head: &Head) -> Vec<[String; 2]> {
    let several = head.fingerprints.len() > 1;
    let mut rows = Vec::new();
    for (at, machine) in head.fingerprints.iter().enumerate() {
        for (field, value) in machine.field_values().filter(|(field, _)| FACTS.contains(field)) {
            let field = if several { format!("{field} ({})", at + 1) } else { field.to_owned() };
            rows.push([field, value.unwrap_or_else(|| "unknown".into())]);
        }
    }
    rows
}

/// Rows: session, when it began, number of processes, boot.
fn session_rows(head: &Head) -> Vec<[String; 4]> {
    let mut sessions: Vec<(&str, &str, u64, usize)> = Vec::new();
    for run in &head.runs {
        match sessions.iter_mut().find(|s| (s.0, s.1) == (&run.session, &run.boot)) {
            Some(session) => session.3 += 1,
            None => sessions.push((&run.session, &run.boot, run.started, 1)),
        }
    }
    let boot = |boot: &str| if boot.is_empty() { "unknown".to_owned() } else { boot.to_owned() };
    let row = |(session, of, began, runs): (&str, &str, u64, usize)| {
        [session.to_owned(), page::utc_moment(began), runs.to_string(), boot(of)]
    };
    sessions.into_iter().map(row).collect()
}

/// Rows: case, number of processes that measured it, median of their medians, and the interquartile range of those
/// as a share of it.
fn case_rows(head: &Head) -> Vec<[String; 4]> {
    head.series
        .iter()
        .filter(|series| !series.values.is_empty())
        .map(|series| case_row(series, &head.unit))
        .collect()
}

fn case_row(series: &Series, unit: &str) -> [String; 4] {
    let values: Vec<_> = series.values.iter().map(|value| value.median.estimate).collect();
    let middle = median(&values);
    let apart = (percentile(&values, 75.0) - percentile(&values, 25.0)) / middle * 100.0;
    let apart = if values.len() > 1 && apart.is_finite() {
        format!("{} %", format_count(apart))
    } else {
        String::new()
    };
    [series.id.clone(), values.len().to_string(), format_amount(middle, unit), apart]
}

/// Rows: case, and why a process has no value of it.
fn missing_value_rows(head: &Head) -> Vec<[String; 2]> {
    let sentence_rows = |series: &Series| {
        let sentences = series.without.iter().map(|sentence| [series.id.clone(), sentence.clone()]);
        sentences.collect::<Vec<_>>()
    };
    head.series.iter().flat_map(sentence_rows).collect()
}

fn program_text(head: &Head) -> String {
    let counts = count_contents(head).map(|count| count.to_string());
    let about = ["record", &head.name, &page::utc_moment(head.created), &head.scale, &head.unit];
    let fact = |[field, value]: [String; 2]| ["fact".into(), field, value];
    let reason = |[id, sentence]: [String; 2]| ["without".into(), id, sentence];
    let four = |word: &'static str| move |[a, b, c, d]: [String; 4]| [word.into(), a, b, c, d];
    page::tabbed_rows([[about.map(str::to_owned).to_vec(), counts.to_vec()].concat()])
        + &page::tabbed_rows(machine_rows(head).into_iter().map(fact))
        + &page::tabbed_rows(session_rows(head).into_iter().map(four("session")))
        + &page::tabbed_rows(case_rows(head).into_iter().map(four("case")))
        + &page::tabbed_rows(missing_value_rows(head).into_iter().map(reason))
}

fn render_head(head: &Head, layout: Layout) -> String {
    let [processes, sessions_count, cases_count] = count_contents(head);
    let replication = replication_text(processes, sessions_count);
    let title = format!(
        "{}, {} UTC, {}, {}: {replication}, {}",
        head.name,
        page::utc_moment(head.created),
        head.scale,
        head.unit,
        page::count_with_noun(cases_count, "case", "cases")
    );
    page::paint(Tone::Bold, &page::wrap("", &title, page::prose_width(layout)), layout)
        + "\n"
        + &render_part("machine", &machine_rows(head), layout)
        + &render_part("sessions: began, processes, boot", &session_rows(head), layout)
        + &render_part("cases: processes, median, apart", &case_rows(head), layout)
        + &render_part("without a value", &missing_value_rows(head), layout)
}

fn render_part<const N: usize>(name: &str, rows: &[[String; N]], layout: Layout) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = page::heading(name, page::prose_width(layout), layout);
    format!("{head}\n{}", page::columns_text(rows, page::table_width(layout)))
}
