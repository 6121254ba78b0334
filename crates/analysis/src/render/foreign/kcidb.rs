//! KCIDB, the Linux Foundation's database of kernel tests: a report by its schema 5, one test a case.

use crate::error::{Error, Result};
use crate::render::sheet::indented_json;
use serde_json::{Value, json};
use syscost_engine::record::quantity::{NANOSECONDS, format_rfc3339};
use syscost_engine::record::{CaseRecord, Measured, Outcome, Record};

/// The tests of this run against a build, which KCIDB knows by `ORIGIN:ID`. A figure is in seconds; a claim that was disproved is an
/// error of the test and says nothing of the kernel; a disturbed case missed its run.
///
/// # Errors
/// The build has no origin before a colon, or one that is not of lower-case letters, digits and `_`.
pub fn kcidb_report(record: &Record, build: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let origin = build.split_once(':').map(|(origin, _)| origin);
    let Some(origin) = origin.filter(|origin| !origin.is_empty() && origin.chars().all(plain)) else {
        return Err(Error::Usage(format!(
            "{build:?} is no build of KCIDB: expected ORIGIN:ID, the origin of lower-case letters, digits and `_`"
        )));
    };
    let tests = record.cases().map(|(_, case)| test_json(record, case, origin, build));
    let report = json!({ "version": { "major": 5, "minor": 3 }, "tests": tests.collect::<Vec<_>>() });
    indented_json(&record.run, &report)
}

fn test_json(record: &Record, case: &CaseRecord, origin: &str, build: &str) -> Value {
    let path = format!("syscost.{}", dotted_path(&case.id));
    let status = match case.outcome {
        Outcome::Measured(_) => "DONE",
        Outcome::Failed(_) => "ERROR",
        Outcome::Disturbed(_) => "MISS",
        Outcome::Skipped(_) => "SKIP",
    };
    let comment = case.outcome.reason().unwrap_or(&case.title);
    let mut test = json!({
        "id": format!("{origin}:syscost:{}:{path}", remove_nul(&record.run)), "origin": origin, "build_id": remove_nul(build), "path": path,
        "status": status, "comment": remove_nul(comment), "start_time": format_rfc3339(record.started),
        "environment": { "comment": remove_nul(record.fingerprint.cpu_model.as_deref().unwrap_or("unknown")) },
    });
    if let Some(measured) = case.measured() {
        let (number, misc) = figure_json(measured, &record.unit);
        test["number"] = number;
        test["misc"] = misc;
    }
    test
}

/// The figure, and what a database has no field for: the ends of the next run's interval and the median of all samples.
fn figure_json(measured: &Measured, unit: &str) -> (Value, Value) {
    let (unit, share) = if unit == NANOSECONDS { ("s", 1e-9) } else { (unit, 1.0) };
    let figure = measured.figure();
    let number = json!({ "value": share * figure.estimate, "unit": remove_nul(unit), "prefix": "metric" });
    let next = [share * figure.low, share * figure.high];
    let misc = json!({ "next_run": next, "typical": share * measured.median.estimate, "settled": measured.is_settled() });
    (number, json!({ "syscost": misc }))
}

/// An id with dots between its parts; in a part all but ASCII letters, digits, `_` and `-` becomes `_`.
fn dotted_path(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let part = |part: &str| if part.is_empty() { "_".into() } else { part.chars().map(plain).collect() };
    id.split('/').map(part).collect::<Vec<String>>().join(".")
}

/// The schema refuses the character NUL.
fn remove_nul(text: &str) -> String {
    text.replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    #[test]
    fn every_case_is_a_test_of_the_build_with_its_figure_in_seconds() {
        let record = fixture_run::fixture_record();
        let report: Value = serde_json::from_str(&kcidb_report(&record, "ours:6.12").unwrap()).unwrap();
        let tests = report["tests"].as_array().unwrap();
        assert_eq!(tests.len(), record.cases().count());
        for (test, (_, case)) in tests.iter().zip(record.cases()) {
            assert!(
                test["id"].as_str().unwrap().starts_with("ours:syscost:") && test["build_id"] == "ours:6.12"
            );
            let figure = case.measured().map(|measured| 1e-9 * measured.figure().estimate);
            assert_eq!(test["number"]["value"].as_f64(), figure);
            assert_eq!(test["status"] == "DONE", figure.is_some());
        }
    }

    #[test]
    fn a_build_without_an_origin_is_refused() {
        for wrong in ["", "6.12", ":6.12", "Ours:6.12", "our s:1"] {
            assert!(kcidb_report(&fixture_run::fixture_record(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_as_the_schema_has_it() {
        assert_eq!(dotted_path("chase/random/16 KiB"), "chase.random.16_KiB");
        assert_eq!(dotted_path("a//\u{202e}b.c"), "a._._b_c");
    }
}
