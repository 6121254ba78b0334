//! Tables that a forge or a wiki shows, one a group, with every column.

use crate::render::markdown_table::markdown_table;
use std::fmt::Write;
use syscost_engine::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_interval, format_ratio,
};
use syscost_engine::record::{CaseRecord, GroupRun, Measured, Outcome, Record};
use syscost_engine::render::figure_line::{derived_line, distribution_line, fit_sentence};
use syscost_engine::render::table::Against;
use syscost_engine::render::terminal_plot::heat_map;
use syscost_engine::study::basis::{best_cost, ratio_to_prediction};
use syscost_engine::study::disturbance::disturbance_sentence;

const HEAD: [&str; 11] = [
    "operation",
    "hardware",
    "software",
    "expected",
    "quiet",
    "next run",
    "typical",
    "ticks",
    "net",
    "ratio",
    "evidence",
];

/// For each group a heading, a table, and its reasons, fits and notes.
pub fn markdown(record: &Record, against: &[Against<'_>]) -> String {
    let mut text = format!("# {}\n\n{}, {}, seed {}\n", record.run, record.tool, record.scale, record.seed);
    for group in record.groups.iter().filter(|group| !group.cases.is_empty()) {
        let rows = group.cases.iter().map(|case| case_row(case, &record.unit, against));
        // Numbers are aligned right, the operation and the evidence left.
        let table =
            markdown_table(column_heads(&record.unit, against), |column| [0, 10].contains(&column), rows);
        let _ = write!(text, "\n## {}\n\n{table}", group.name);
        text.push_str(&group_details(group, &record.unit));
    }
    let _ = writeln!(text, "\n{}", record.tally());
    text
}

fn column_heads(unit: &str, against: &[Against<'_>]) -> Vec<String> {
    let named = |name: &str| {
        if name == "quiet" && unit != NANOSECONDS { unit.to_owned() } else { name.to_owned() }
    };
    HEAD.iter().map(|name| named(name)).chain(against.iter().map(|a| a.name.to_owned())).collect()
}

fn case_row(case: &CaseRecord, unit: &str, against: &[Against<'_>]) -> Vec<String> {
    let mut cells = vec![format!("`{}`", case.id)];
    cells.extend(match case.measured() {
        Some(measured) => figure_cells(measured, unit),
        None => outcome_cells(outcome_word(&case.outcome)),
    });
    let value = |a: &Against<'_>| {
        a.values.get(&case.id).filter(|_| unit == NANOSECONDS).map(|ns| format_duration(*ns))
    };
    let elsewhere = against.iter().map(|a| value(a).unwrap_or_default());
    cells.extend(elsewhere);
    cells
}

/// How a case without a number ended.
fn outcome_word(outcome: &Outcome) -> &'static str {
    if matches!(outcome, Outcome::Failed(_)) { "**FAILED**" } else { outcome.status_word() }
}

/// The text under "quiet", and nothing under the other heads.
fn outcome_cells(outcome: &str) -> Vec<String> {
    let mut cells = vec![String::new(); HEAD.len() - 1];
    cells[3] = outcome.into();
    cells
}

fn figure_cells(m: &Measured, unit: &str) -> Vec<String> {
    let time = unit == NANOSECONDS;
    let predicted = m.predicted.as_ref().filter(|_| time);
    let part = |part: Option<f64>| part.map(format_duration).unwrap_or_default();
    vec![
        part(predicted.map(|p| p.hardware)),
        part(predicted.map(|p| p.software)),
        part(predicted.map(|p| p.hardware + p.software)),
        format_amount(m.figure().estimate, unit),
        format_interval(&m.figure(), unit),
        format_amount(m.median.estimate, unit),
        if time { format_count(m.ticks) } else { String::new() },
        best_cost(m).map(|(_, figure)| format_amount(figure.estimate, unit)).unwrap_or_default(),
        ratio_to_prediction(m).filter(|_| time).map(format_ratio).unwrap_or_default(),
        evidence_text(m),
    ]
}

/// The claims that could not be checked, then the evidence of those that held.
fn evidence_text(m: &Measured) -> String {
    let open = m.unwitnessed_claims().map(|sentence| format!("**unwitnessed**: {sentence}"));
    open.chain(m.evidence.iter().cloned()).collect::<Vec<_>>().join("; ")
}

fn group_details(group: &GroupRun, unit: &str) -> String {
    let reasons = group.cases.iter().filter_map(|case| {
        Some(format!("{} `{}`: {}", outcome_word(&case.outcome), case.id, case.outcome.reason()?))
    });
    let fits = group.fits.iter().map(|fit| fit_sentence(fit, unit));
    let spreads = group.cases.iter().filter_map(|case| {
        let distribution = case.measured()?.distribution.as_ref()?;
        Some(format!("`{}`: {}", case.id, distribution_line(distribution)))
    });
    let derived = group.cases.iter().flat_map(|case| {
        let figures = case.measured().map_or(&[][..], |m| &m.derived);
        figures.iter().map(|figure| format!("`{}`: {}", case.id, derived_line(figure)))
    });
    let items: String = reasons
        .chain(spreads)
        .chain(derived)
        .chain(fits)
        .chain(disturbance_sentence(group.cases.iter()))
        .chain(group.notes.iter().cloned())
        .map(|i| format!("* {i}\n"))
        .collect();
    let maps = group.cases.iter().filter_map(|case| {
        let map = heat_map(case.measured()?.matrix.as_ref()?).join("\n");
        Some(format!("\n`{}`, ns between CPUs:\n\n```text\n{map}\n```\n", case.id))
    });
    let maps: String = maps.collect();
    if items.is_empty() { maps } else { format!("\n{items}{maps}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_head() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.iter().all(|row| row.matches('|').count() == HEAD.len() + 1), "{text}");
        assert_eq!(rows.len(), fixture_run::fixture_record().cases().count() + 2 * 4);
    }

    #[test]
    fn reasons_and_lines_stand_below_their_group() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        let call = text.split("## ").find(|part| part.starts_with("call")).unwrap();
        assert!(call.contains("* **FAILED** `call/f64/0`: time(2n)"), "{call}");
        assert!(call.contains("* a further u64 argument costs 0.3100 ns"), "{call}");
    }

    #[test]
    fn a_distribution_is_told() {
        assert!(
            markdown(&fixture_run::fixture_record(), &[]).contains("* `syscall/getpid/cold`: p5 1.902 µs")
        );
    }

    #[test]
    fn what_follows_is_told() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        assert!(text.contains("* `syscall/getpid/cold`: switch 1.157 µs [1.155, 1.158]"), "{text}");
    }
}
