//! A record as Markdown for a discussion, CSV for a spreadsheet, and JSON for a program. All have every column; CSV and JSON
//! have all decimals.

use super::sheet::{CRLF, csv_text, markdown_table, number_cell};
use crate::error::Result;
use std::fmt::Write;
use syscost_engine::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_interval, format_ratio,
};
use syscost_engine::record::{CaseRecord, GroupRun, Interval, Measured, Outcome, Predicted, Record};
use syscost_engine::render::figure_line::{derived_line, distribution_line, fit_sentence};
use syscost_engine::render::table::Against;
use syscost_engine::render::terminal_plot::heat_map;
use syscost_engine::study::basis::{best_cost, ratio_to_prediction};
use syscost_engine::study::disturbance::disturbance_sentence;
use syscost_engine::study::reference_frequency::core_cycles;

/// A case as a line of CSV.
struct CsvCase<'a> {
    unit: &'a str,
    group: &'a GroupRun,
    case: &'a CaseRecord,
}

impl CsvCase<'_> {
    fn figure_cell(&self, value: fn(&Measured) -> Option<f64>) -> String {
        number_cell(self.case.measured().and_then(value))
    }

    fn text_cell(&self, value: fn(&Measured) -> String) -> String {
        self.case.measured().map(value).unwrap_or_default()
    }

    /// The evidence of a measured case; for any other case the reason why there is no number.
    fn sentence(&self) -> String {
        self.case.outcome.reason().map_or_else(|| self.text_cell(|m| m.evidence.join(" ")), str::to_owned)
    }
}

/// The head of a column of CSV, and its cell.
type CsvColumn = (&'static str, fn(&CsvCase<'_>) -> String);

/// The fixed columns of CSV. The columns of other sources' values follow them.
const CSV_COLUMNS: [CsvColumn; 42] = [
    ("id", |row| row.case.id.clone()),
    ("title", |row| row.case.title.clone()),
    ("group", |row| row.group.name.clone()),
    ("outcome", |row| row.case.status_word().to_owned()),
    ("unit", |row| row.unit.to_owned()),
    ("hardware", |row| row.figure_cell(|m| Some(m.predicted.as_ref()?.hardware))),
    ("software", |row| row.figure_cell(|m| Some(m.predicted.as_ref()?.software))),
    ("predicted", |row| row.figure_cell(|m| m.predicted.as_ref().map(|p| p.hardware + p.software))),
    ("median", |row| row.figure_cell(|m| Some(m.median.estimate))),
    ("median_low", |row| row.figure_cell(|m| Some(m.median.low))),
    ("median_high", |row| row.figure_cell(|m| Some(m.median.high))),
    ("standard_deviation", |row| row.figure_cell(|m| Some(m.standard_deviation))),
    ("ticks", |row| row.figure_cell(|m| Some(m.ticks))),
    ("slope", |row| row.figure_cell(|m| Some(m.slope.estimate))),
    ("slope_low", |row| row.figure_cell(|m| Some(m.slope.low))),
    ("slope_high", |row| row.figure_cell(|m| Some(m.slope.high))),
    ("intercept", |row| row.figure_cell(|m| Some(m.intercept.estimate))),
    ("intercept_low", |row| row.figure_cell(|m| Some(m.intercept.low))),
    ("intercept_high", |row| row.figure_cell(|m| Some(m.intercept.high))),
    ("control", |row| row.figure_cell(|m| Some(m.control?.estimate))),
    ("net", |row| row.figure_cell(|m| Some(m.net?.estimate))),
    ("net_low", |row| row.figure_cell(|m| Some(m.net?.low))),
    ("net_high", |row| row.figure_cell(|m| Some(m.net?.high))),
    ("measured_over_predicted", |row| row.figure_cell(ratio_to_prediction)),
    ("instructions", |row| row.figure_cell(|m| m.instructions)),
    ("samples", |row| row.text_cell(|m| m.counted.len().to_string())),
    ("disturbed", |row| row.text_cell(|m| m.contamination.count_disturbed().to_string())),
    ("claims", |row| row.text_cell(|m| m.evidence.len().to_string())),
    ("p50", |row| row.figure_cell(|m| m.distribution.as_ref()?.value_at(50.0))),
    ("p99", |row| row.figure_cell(|m| m.distribution.as_ref()?.value_at(99.0))),
    ("p99.9", |row| row.figure_cell(|m| m.distribution.as_ref()?.value_at(99.9))),
    ("p99.99", |row| row.figure_cell(|m| m.distribution.as_ref()?.value_at(99.99))),
    ("maximum", |row| row.figure_cell(|m| m.distribution.as_ref()?.value_at(100.0))),
    ("derived", |row| row.text_cell(derived_text)),
    ("quiet", |row| row.figure_cell(|m| Some(m.quiet?.figure.estimate))),
    ("next_run_low", |row| row.figure_cell(|m| Some(m.quiet?.figure.low))),
    ("next_run_high", |row| row.figure_cell(|m| Some(m.quiet?.figure.high))),
    ("settled", |row| {
        row.text_cell(|m| m.quiet.map_or(String::new(), |quiet| quiet.is_settled().to_string()))
    }),
    ("cycles", |row| if row.unit == NANOSECONDS { row.figure_cell(core_cycles) } else { String::new() }),
    ("executions", |row| row.text_cell(|m| m.executions.len().to_string())),
    ("events", |row| row.text_cell(event_text)),
    ("sentence", |row| row.sentence()),
];

/// The record as CSV by RFC 4180: a head and one line for each case, every figure with all its decimals.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn csv(record: &Record, against: &[Against<'_>]) -> Result<String> {
    let head = CSV_COLUMNS.iter().map(|(head, _)| *head).chain(against.iter().map(|a| a.name));
    let head = head.map(str::to_owned).collect();
    let lines = record.cases().map(|(group, case)| {
        let value = |a: &Against<'_>| a.values.get(&case.id).copied().filter(|_| record.unit == NANOSECONDS);
        let row = CsvCase { unit: &record.unit, group, case };
        let cells = CSV_COLUMNS.iter().map(|(_, cell)| cell(&row));
        cells.chain(against.iter().map(|a| number_cell(value(a)))).collect()
    });
    csv_text(CRLF, std::iter::once(head).chain(lines))
}

fn derived_text(m: &Measured) -> String {
    let derived = m.derived.iter().map(|d| {
        let Interval { estimate, low, high } = d.value;
        format!("{}={estimate} [{low} {high}] {}", d.name, d.unit).trim_end().to_owned()
    });
    derived.collect::<Vec<_>>().join("; ")
}

fn event_text(m: &Measured) -> String {
    let events = m.events.iter().filter_map(|event| {
        let Interval { estimate, low, high } = event.rate?;
        Some(format!("{}={estimate} [{low} {high}]", event.name))
    });
    events.collect::<Vec<_>>().join("; ")
}

/// The head of a column of Markdown, and its cell for a case in this unit.
type Column = (&'static str, fn(&Measured, &str) -> String);

/// The columns of Markdown after the column of the operation.
const COLUMNS: [Column; 10] = [
    ("hardware", |m, unit| predicted_text(m, unit, |p| p.hardware)),
    ("software", |m, unit| predicted_text(m, unit, |p| p.software)),
    ("expected", |m, unit| predicted_text(m, unit, |p| p.hardware + p.software)),
    (QUIET, |m, unit| format_amount(m.figure().estimate, unit)),
    ("next run", |m, unit| format_interval(&m.figure(), unit)),
    ("typical", |m, unit| format_amount(m.median.estimate, unit)),
    ("cycles", |m, unit| {
        core_cycles(m).filter(|_| unit == NANOSECONDS).map(format_count).unwrap_or_default()
    }),
    ("net", |m, unit| best_cost(m).map(|(_, cost)| format_amount(cost.estimate, unit)).unwrap_or_default()),
    ("ratio", |m, unit| {
        ratio_to_prediction(m).filter(|_| unit == NANOSECONDS).map(format_ratio).unwrap_or_default()
    }),
    ("evidence", |m, _| evidence_text(m)),
];
/// The column that shows how a case without a number ended. If the unit is a count, its head is the unit.
const QUIET: &str = "quiet";

/// The record as Markdown, with every column: for each group a heading, a table, and its reasons, fits and notes.
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
    let named = |name| if name == QUIET && unit != NANOSECONDS { unit } else { name };
    let own = std::iter::once("operation").chain(COLUMNS.iter().map(|(head, _)| named(head)));
    own.chain(against.iter().map(|a| a.name)).map(str::to_owned).collect()
}

fn case_row(case: &CaseRecord, unit: &str, against: &[Against<'_>]) -> Vec<String> {
    let value = |a: &Against<'_>| {
        a.values.get(&case.id).filter(|_| unit == NANOSECONDS).map(|ns| format_duration(*ns))
    };
    let own = COLUMNS.iter().map(|(head, cell)| match case.measured() {
        Some(measured) => cell(measured, unit),
        None if *head == QUIET => outcome_word(&case.outcome).to_owned(),
        None => String::new(),
    });
    let elsewhere = against.iter().map(|a| value(a).unwrap_or_default());
    std::iter::once(format!("`{}`", case.id)).chain(own).chain(elsewhere).collect()
}

/// The word for the outcome of a case without a number.
fn outcome_word(outcome: &Outcome) -> &'static str {
    if matches!(outcome, Outcome::Failed(_)) { "**FAILED**" } else { outcome.status_word() }
}

fn predicted_text(m: &Measured, unit: &str, part: fn(&Predicted) -> f64) -> String {
    let predicted = m.predicted.as_ref().filter(|_| unit == NANOSECONDS);
    predicted.map(|predicted| format_duration(part(predicted))).unwrap_or_default()
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
    use std::collections::BTreeMap;
    use syscost_engine::record::fixture_run;

    #[test]
    fn json_is_the_record() {
        let text = crate::render::sheet::indented_json("run", &fixture_run::fixture_record()).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back.tally(), fixture_run::fixture_record().tally());
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn every_case_has_one_line_with_all_columns() {
        let mut record = fixture_run::fixture_record();
        for case in record.groups.iter_mut().flat_map(|g| &mut g.cases) {
            if let Outcome::Measured(m) = &mut case.outcome {
                m.evidence = vec!["Held.".into()];
            }
        }
        let values = BTreeMap::from([("syscall/getpid".to_owned(), 60.0)]);
        let text = csv(&record, &[Against { name: "csc501", values: &values }]).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 1 + record.cases().count());
        for line in &lines {
            // A quoted sentence of the fixture has at most one comma; other cells have none.
            let commas = line.matches(',').count() - usize::from(line.contains('"'));
            assert_eq!(commas, CSV_COLUMNS.len(), "{line}");
        }
        assert!(lines.iter().any(|l| l.starts_with("syscall/getpid,") && l.ends_with(",Held.,60")), "{text}");
    }

    #[test]
    fn figures_are_in_their_columns() {
        let text = csv(&fixture_run::fixture_record(), &[]).unwrap();
        let row: Vec<&str> =
            text.lines().find(|l| l.starts_with("call/u64/3,")).unwrap().split(',').collect();
        let at = |head: &str| row[CSV_COLUMNS.iter().position(|(h, _)| *h == head).unwrap()];
        assert_eq!((at("hardware"), at("net"), at("instructions")), ("1.2", "1.25", "5"));
        assert_eq!((at("samples"), at("disturbed"), at("claims")), ("50", "0", "5"));
    }

    #[test]
    fn tail_percentiles_are_in_their_columns() {
        let text = csv(&fixture_run::fixture_record(), &[]).unwrap();
        let row = text.lines().find(|line| line.starts_with("syscall/getpid/cold,")).unwrap();
        let cells: Vec<_> = row.split(',').collect();
        let at = |head: &str| cells[CSV_COLUMNS.iter().position(|(h, _)| *h == head).unwrap()];
        assert_eq!((at("p50"), at("p99"), at("p99.9"), at("maximum")), ("2314", "7400", "", "48211"));
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_head() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.iter().all(|row| row.matches('|').count() == COLUMNS.len() + 2), "{text}");
        assert_eq!(rows.len(), fixture_run::fixture_record().cases().count() + 2 * 4);
    }

    #[test]
    fn reasons_and_fitted_lines_are_below_their_group() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        let call = text.split("## ").find(|part| part.starts_with("call")).unwrap();
        assert!(call.contains("* **FAILED** `call/f64/0`: time(2n)"), "{call}");
        assert!(call.contains("* a further u64 argument costs 0.3100 ns"), "{call}");
    }

    #[test]
    fn a_distribution_is_printed() {
        assert!(
            markdown(&fixture_run::fixture_record(), &[]).contains("* `syscall/getpid/cold`: p5 1.902 µs")
        );
    }

    #[test]
    fn a_derived_figure_is_printed() {
        let text = markdown(&fixture_run::fixture_record(), &[]);
        assert!(text.contains("* `syscall/getpid/cold`: switch 1.157 µs [1.155, 1.158]"), "{text}");
    }
}
