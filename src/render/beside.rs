//! The Observation Table of published reports: their rows in their order, what they expected and measured, and ours beside.

use crate::record::quantity::{NANOSECONDS, format_amount, format_count, format_duration, format_size};
use crate::record::{CaseRecord, Outcome, Record};
use crate::render::cell;
use crate::render::paper_table::Sheet;
use crate::study::published::{Published, PublishedValue};

/// One table for each published report, with notes on the rows that no case of ours matches.
pub fn published_sheets(machines: &[Published], record: &Record) -> Vec<Sheet> {
    machines.iter().map(|published| published_sheet(published, record)).collect()
}

fn published_sheet(published: &Published, record: &Record) -> Sheet {
    let name = &published.name;
    let head = ["what they timed", "they expected", "they measured", "here", "we expected", "our case"];
    let rows = published.rows.iter().map(|value| published_row(value, record));
    let differing = published.rows.iter().filter(|value| value.differs).count();
    let note = format!("* another operation than our case, which has the same name for it: {differing} rows");
    let without = published.without.iter().map(|without| format!("no row: {}: {}", without.row, without.why));
    Sheet {
        title: format!("{name}: {}", published.source),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: (differing > 0).then_some(note).into_iter().chain(without).collect(),
    }
}

fn published_row(value: &PublishedValue, record: &Record) -> Vec<String> {
    let words = || value.expected.as_ref().map(|words| cell::cut_to_width(words, 18));
    let expected = value.predicted_ns.map(format_duration).or_else(words);
    let measured = match (value.ns, value.value, &value.unit) {
        (Some(ns), ..) => format_duration(ns),
        (None, Some(number), Some(unit)) => format!("{} {unit}", format_count(number)),
        _ => String::new(),
    };
    let [ours, predicted] = measured_cells(value, record);
    let mark = if value.differs { " *" } else { "" };
    vec![
        first_clause(&value.what) + mark,
        expected.unwrap_or_default(),
        measured,
        ours,
        predicted,
        value.id.clone(),
    ]
}

/// The first clause, so that the row stays a line.
fn first_clause(what: &str) -> String {
    const LONGEST: usize = 47;
    let first = what.split([';', ':']).next().unwrap_or(what);
    cell::cut_to_width(first, LONGEST)
}

/// The cells for our measured and our expected value, or the reason why there is no value.
fn measured_cells(value: &PublishedValue, record: &Record) -> [String; 2] {
    if let Some(name) = value.id.strip_prefix("level/") {
        return [
            level_latency(name, record).unwrap_or_else(|| "no such level was seen".into()),
            String::new(),
        ];
    }
    if let Some(prefix) = value.id.strip_prefix("fall/") {
        return [fall_range(prefix, record).unwrap_or_else(|| "no fall was seen".into()), String::new()];
    }
    match record.cases().find(|(_, case)| case.id == value.id) {
        None => ["not in this run".into(), String::new()],
        Some((_, case)) => figure_cells(value, case, &record.unit),
    }
}

fn figure_cells(value: &PublishedValue, case: &CaseRecord, unit: &str) -> [String; 2] {
    let measured = match &case.outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Skipped(_) => return ["skipped here".into(), String::new()],
        Outcome::Disturbed(_) => return ["disturbed".into(), String::new()],
        Outcome::Failed(_) => return ["FAILED".into(), String::new()],
    };
    if value.unit.is_some() {
        let rate = measured.derived.iter().find(|figure| Some(&figure.unit) == value.unit.as_ref());
        let told = rate.map(|figure| format!("{} {}", format_count(figure.value.estimate), figure.unit));
        return [told.unwrap_or_default(), String::new()];
    }
    let predicted = measured.predicted.as_ref().filter(|_| unit == NANOSECONDS);
    let predicted = predicted.map(|predicted| format_duration(predicted.hardware + predicted.software));
    [format_amount(measured.figure().estimate, unit), predicted.unwrap_or_default()]
}

/// The latency of a level of this name, on the first curve that has one.
fn level_latency(name: &str, record: &Record) -> Option<String> {
    let levels = record.groups.iter().flat_map(|group| &group.curves).flat_map(|curve| &curve.levels);
    let found = levels.into_iter().find(|level| level.name.as_deref() == Some(name))?;
    Some(format_duration(found.latency.estimate))
}

/// The size at which the curve of this prefix falls.
fn fall_range(prefix: &str, record: &Record) -> Option<String> {
    let curves = record.groups.iter().flat_map(|group| &group.curves);
    let (held, beyond) = curves.into_iter().find(|curve| curve.prefix == prefix)?.fall.as_ref()?.step;
    Some(format!("{} to {}", format_size(held), format_size(beyond)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CurveRecord, Interval, LevelRecord, fixture_run};
    use crate::study::published::find;

    #[test]
    fn every_row_of_both_reports_has_a_line_with_something_of_ours() {
        let record = fixture_run::fixture_record();
        let machines = find("csc501,cse221").unwrap();
        let sheets = published_sheets(&machines, &record);
        for (sheet, published) in sheets.iter().zip(&machines) {
            assert_eq!(sheet.rows.len(), published.rows.len());
            assert!(sheet.rows.iter().all(|row| row.len() == sheet.head.len() && !row[3].is_empty()));
            let without = sheet.notes.iter().filter(|note| note.starts_with("no row: ")).count();
            assert_eq!(without, published.without.len());
        }
    }

    #[test]
    fn a_level_is_found_by_its_name_and_a_rate_by_its_unit() {
        let mut record = fixture_run::fixture_record();
        assert_eq!(level_latency("L2", &record), None);
        let latency = Interval::exactly(4.5);
        let levels = vec![LevelRecord { name: Some("L2".into()), latency, ..LevelRecord::default() }];
        record.groups[0].curves = vec![CurveRecord { levels, ..CurveRecord::default() }];
        assert_eq!(level_latency("L2", &record).as_deref(), Some("4.500 ns"));
    }

    #[test]
    fn a_row_is_a_line() {
        assert_eq!(first_clause("one; two"), "one");
        assert_eq!(first_clause(&"a".repeat(60)).chars().count(), 47);
    }
}
