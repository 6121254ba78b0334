//! One line a case, as RFC 4180 has it.

use super::{CRLF, csv_text, interval_columns, number_cell};
use crate::error::Result;
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::{CaseRecord, GroupRun, Interval, Measured, Record};
use syscost_engine::render::table::Against;
use syscost_engine::study::basis::ratio_to_prediction;

/// The fixed columns; those of the values from elsewhere follow.
const HEAD: [&str; 41] = [
    "id",
    "title",
    "group",
    "outcome",
    "unit",
    "hardware",
    "software",
    "predicted",
    "median",
    "median_low",
    "median_high",
    "standard_deviation",
    "ticks",
    "slope",
    "slope_low",
    "slope_high",
    "intercept",
    "intercept_low",
    "intercept_high",
    "control",
    "net",
    "net_low",
    "net_high",
    "measured_over_predicted",
    "instructions",
    "samples",
    "disturbed",
    "claims",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "maximum",
    "derived",
    "quiet",
    "next_run_low",
    "next_run_high",
    "settled",
    "executions",
    "events",
    "sentence",
];

/// A head and one line a case, every figure with all its decimals. The sentence of a measured case is its
/// evidence, that of any other the reason why there is no number.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn csv(record: &Record, against: &[Against<'_>]) -> Result<String> {
    let head = HEAD.iter().copied().chain(against.iter().map(|a| a.name)).map(str::to_owned).collect();
    let lines = record.cases().map(|(group, case)| {
        let value = |a: &Against<'_>| a.values.get(&case.id).copied().filter(|_| record.unit == NANOSECONDS);
        let elsewhere = against.iter().map(|a| number_cell(value(a)));
        case_cells(record, group, case).into_iter().chain(elsewhere).collect()
    });
    csv_text(CRLF, std::iter::once(head).chain(lines))
}

fn case_cells(record: &Record, group: &GroupRun, case: &CaseRecord) -> Vec<String> {
    let (outcome, evidence) = (&case.outcome, case.measured().map(|measured| measured.evidence.join(" ")));
    let mut cells =
        [&case.id, &case.title, &group.name, case.status_word(), &record.unit].map(str::to_owned).to_vec();
    cells.extend(case.measured().map(figure_cells).unwrap_or_default());
    cells.resize(HEAD.len() - 1, String::new());
    cells.extend(outcome.reason().map(str::to_owned).or(evidence));
    cells
}

fn figure_cells(m: &Measured) -> Vec<String> {
    let predicted = m.predicted.as_ref().map(|p| [p.hardware, p.software, p.hardware + p.software]);
    let mut figures: Vec<Option<f64>> = predicted.map_or([None; 3], |p| p.map(Some)).to_vec();
    figures.extend(interval_columns(Some(m.median)));
    figures.extend([Some(m.standard_deviation), Some(m.ticks)]);
    figures.extend(interval_columns(Some(m.slope)));
    figures.extend(interval_columns(Some(m.intercept)));
    figures.push(m.control.map(|c| c.estimate));
    figures.extend(interval_columns(m.net));
    figures.extend([ratio_to_prediction(m), m.instructions]);
    let counts = [m.counted.len(), m.contamination.count_disturbed(), m.evidence.len()];
    let derived = m.derived.iter().map(|d| {
        let Interval { estimate, low, high } = d.value;
        format!("{}={estimate} [{low} {high}] {}", d.name, d.unit).trim_end().to_owned()
    });
    let derived = derived.collect::<Vec<_>>().join("; ");
    let counts = counts.map(|n| n.to_string());
    let tail = [50.0, 99.0, 99.9, 99.99, 100.0]
        .map(|p| number_cell(m.distribution.as_ref().and_then(|d| d.value_at(p))));
    let quiet = interval_columns(m.quiet.map(|quiet| quiet.figure)).into_iter().map(number_cell);
    let settled = m.quiet.map_or(String::new(), |quiet| quiet.is_settled().to_string());
    let executions = [settled, m.executions.len().to_string()];
    let figures = figures.into_iter().map(number_cell).chain(counts).chain(tail);
    let events = m.events.iter().filter_map(|event| {
        let Interval { estimate, low, high } = event.rate?;
        Some(format!("{}={estimate} [{low} {high}]", event.name))
    });
    let events = events.collect::<Vec<_>>().join("; ");
    figures.chain([derived]).chain(quiet).chain(executions).chain([events]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use syscost_engine::record::{Outcome, fixture_run};

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
            // A quoted sentence of the fixture has one comma at most, other cells have none.
            let commas = line.matches(',').count() - usize::from(line.contains('"'));
            assert_eq!(commas, HEAD.len(), "{line}");
        }
        assert!(lines.iter().any(|l| l.starts_with("syscall/getpid,") && l.ends_with(",Held.,60")), "{text}");
    }

    #[test]
    fn figures_stand_under_their_heads() {
        let text = csv(&fixture_run::fixture_record(), &[]).unwrap();
        let row: Vec<&str> =
            text.lines().find(|l| l.starts_with("call/u64/3,")).unwrap().split(',').collect();
        let at = |head: &str| row[HEAD.iter().position(|h| *h == head).unwrap()];
        assert_eq!((at("hardware"), at("net"), at("instructions")), ("1.2", "1.25", "5"));
        assert_eq!((at("samples"), at("disturbed"), at("claims")), ("50", "0", "5"));
    }

    #[test]
    fn a_tail_stands_under_its_heads() {
        let text = csv(&fixture_run::fixture_record(), &[]).unwrap();
        let row = text.lines().find(|line| line.starts_with("syscall/getpid/cold,")).unwrap();
        let cells: Vec<_> = row.split(',').collect();
        let at = |head: &str| cells[HEAD.iter().position(|h| *h == head).unwrap()];
        assert_eq!((at("p50"), at("p99"), at("p99.9"), at("maximum")), ("2314", "7400", "", "48211"));
    }
}
