//! Checks each case of a baseline before the comparison.

use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::store::{Store, parse, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a case cannot be compared with the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The case.
    pub id: String,
    /// The file that is missing or wrong.
    pub path: PathBuf,
    /// The kind of fault.
    pub kind: Kind,
    /// A sentence with the file, what was expected of it, what was found, and what to do.
    pub sentence: String,
}

/// The kinds of faults of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No files were saved for this case under this name.
    Missing,
    /// A file was saved, but cannot be read.
    Broken,
    /// The case was saved in another unit.
    OtherUnit,
}

/// The part of a baseline that Criterion reads. Criterion panics if an estimate is missing or there are fewer than two samples,
/// and waits for ever at a pipe, so such files must not reach it.
#[derive(Deserialize)]
struct Estimates {
    #[serde(flatten)]
    each: BTreeMap<String, Option<Estimate>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only that they are numbers matters")]
struct Estimate {
    confidence_interval: ConfidenceInterval,
    point_estimate: f64,
    standard_error: f64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct ConfidenceInterval {
    confidence_level: f64,
    lower_bound: f64,
    upper_bound: f64,
}

#[derive(Deserialize)]
struct Sample {
    #[serde(rename = "sampling_mode")]
    _mode: Mode,
    iters: Vec<f64>,
    times: Vec<f64>,
}

#[derive(Deserialize)]
enum Mode {
    Linear,
    Flat,
}

/// The estimates that Criterion compares.
const ESTIMATED: [&str; 4] = ["mean", "median", "median_abs_dev", "std_dev"];
/// The fewest samples of a case that Criterion can compare.
const FEWEST: usize = 2;

/// A fault of one of Criterion's files of a baseline.
struct Fault {
    path: PathBuf,
    kind: Kind,
    expected: String,
    found: String,
}

/// Whether Criterion can compare with the files in this directory, which belongs to one case and one baseline.
pub fn is_readable_baseline(directory: &Path) -> bool {
    find_fault(directory).is_none()
}

/// The first fault of Criterion's files in this directory; `None` if Criterion can compare with them.
fn find_fault(directory: &Path) -> Option<Fault> {
    let estimates = |bytes: &[u8], path: &Path, expected: &str| {
        let estimates: Estimates = parse::foreign_json(path, bytes, expected)?;
        let lacks = |name: &&&str| !matches!(estimates.each.get(**name), Some(Some(_)));
        Ok(ESTIMATED.iter().find(lacks).map(|name| format!("no {name}")))
    };
    let sample = |bytes: &[u8], path: &Path, expected: &str| {
        let sample: Sample = parse::foreign_json(path, bytes, expected)?;
        let is_cost =
            |(times, iters): (&f64, &f64)| (times / iters).is_finite() && *times > 0.0 && *iters > 0.0;
        let costs =
            sample.times.iter().zip(&sample.iters).filter(|&(times, iters)| is_cost((times, iters))).count();
        let is_whole = costs >= FEWEST && costs == sample.times.len() && costs == sample.iters.len();
        Ok((!is_whole).then(|| format!("{costs} of {} that are a time of iterations", sample.times.len())))
    };
    fault_in_file(&directory.join("estimates.json"), "Criterion's estimates", estimates)
        .or_else(|| fault_in_file(&directory.join("sample.json"), "Criterion's samples", sample))
}

fn fault_in_file(
    path: &Path,
    expected: &str,
    look: impl Fn(&[u8], &Path, &str) -> Result<Option<String>>,
) -> Option<Fault> {
    let fault = |kind, found| Some(Fault { path: path.into(), kind, expected: expected.into(), found });
    if !path.exists() {
        return fault(Kind::Missing, "no such file".into());
    }
    match read(path).and_then(|bytes| look(&bytes, path, expected)) {
        Ok(None) => None,
        Ok(Some(found)) | Err(Error::Content { found, .. }) => fault(Kind::Broken, found),
        Err(error) => fault(Kind::Broken, error.to_string()),
    }
}

/// Checks the baseline of each case, which is given by its id and its directory below Criterion's home. Returns a complaint
/// for each that is missing, broken, or measured in another unit than `unit`.
pub fn check_cases(home: &Path, name: &str, ids: &[(String, PathBuf)], unit: &str) -> Vec<Complaint> {
    let store = Store::at(home);
    let ours = store.baseline_path(name).unwrap_or_else(|_| store.home().into());
    let records = store.load_baseline(name).map_err(|e| e.to_string());
    let complaint = |(id, directory): &(String, PathBuf)| {
        let fault = find_fault(&home.join(directory).join(name));
        let Fault { path, kind, expected, found } =
            fault.or_else(|| unit_fault(id, &ours, &records, unit))?;
        let sentence = format!(
            "{id} cannot be compared with the baseline `{name}`: {}: expected {expected}, found {found}; \
             save it again with `cargo bench -- --save-baseline {name}`.",
            path.display()
        );
        Some(Complaint { id: id.clone(), path, kind, sentence })
    };
    ids.iter().filter_map(complaint).collect()
}

/// The fault that our record cannot be read or has another unit. A missing record or case is no fault: a killed run
/// may have saved only Criterion's files.
fn unit_fault(
    id: &str,
    path: &Path,
    records: &std::result::Result<Vec<Record>, String>,
    unit: &str,
) -> Option<Fault> {
    let fault = |kind, expected, found| Some(Fault { path: path.into(), kind, expected, found });
    let records = match records {
        Ok(records) => records,
        Err(error) => return fault(Kind::Broken, "a record of syscost".into(), error.clone()),
    };
    let is_known = |record: &&Record| record.cases().any(|(_, case)| case.id == id);
    let foreign = records.iter().filter(|record| record.unit != unit).find(is_known)?;
    fault(Kind::OtherUnit, format!("values in {unit}"), format!("values in {}", foreign.unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::baseline::criterion_directory;
    use crate::record::fixture_run;

    const ID: &str = "call/u64/3";

    fn home(estimates: &str, sample: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let saved = home.path().join("call/u64_3/main");
        std::fs::create_dir_all(&saved).unwrap();
        std::fs::write(saved.join("estimates.json"), estimates).unwrap();
        std::fs::write(saved.join("sample.json"), sample).unwrap();
        home
    }

    fn estimates(value: &str) -> String {
        let interval = r#"{"confidence_level":0.95,"lower_bound":3.0,"upper_bound":3.2}"#;
        let one = |name: &&str| {
            format!(
                r#""{name}":{{"confidence_interval":{interval},"point_estimate":{value},"standard_error":0.1}}"#
            )
        };
        format!("{{{},\"slope\":null}}", ESTIMATED.iter().map(one).collect::<Vec<_>>().join(","))
    }

    fn sample(iters: &str, times: &str) -> String {
        format!(r#"{{"sampling_mode":"Flat","iters":[{iters}],"times":[{times}]}}"#)
    }

    fn whole() -> tempfile::TempDir {
        home(&estimates("3.1"), &sample("1.0,1.0", "3.1,3.2"))
    }

    fn complaints(home: &tempfile::TempDir) -> Vec<Complaint> {
        check_cases(home.path(), "main", &[(ID.into(), criterion_directory(ID))], "ns")
    }

    fn only(home: &tempfile::TempDir) -> Complaint {
        let complaint = complaints(home).pop().unwrap();
        assert!(complaint.sentence.contains(complaint.path.to_str().unwrap()), "{}", complaint.sentence);
        assert!(complaint.sentence.contains("cargo bench -- --save-baseline main"), "{}", complaint.sentence);
        complaint
    }

    #[test]
    fn a_whole_baseline_is_no_complaint() {
        let home = whole();
        assert_eq!(complaints(&home), []);
        Store::at(home.path()).merge_baseline("main", &fixture_run::fixture_record()).unwrap();
        assert_eq!(complaints(&home), []);
    }

    #[test]
    fn a_missing_file_is_missing() {
        let home = whole();
        std::fs::remove_file(home.path().join("call/u64_3/main/sample.json")).unwrap();
        let complaint = only(&home);
        assert_eq!(complaint.kind, Kind::Missing);
        assert!(complaint.path.ends_with("call/u64_3/main/sample.json"));
    }

    #[test]
    fn a_broken_file_is_broken() {
        for (estimates, sample) in [("{\"mean\":", "{}"), ("{}", "{}"), ("", ""), ("\0\0", "[]")] {
            assert_eq!(only(&home(estimates, sample)).kind, Kind::Broken, "{estimates}");
        }
    }

    #[test]
    fn files_at_which_criterion_would_panic_are_broken() {
        let (sound, samples) = (estimates("3.1"), sample("1,1", "3.1,3.2"));
        let mean = r#"{"mean":{"point_estimate":3.1}}"#;
        for estimates in [mean, &estimates("\"x\""), "[]", &sound.replace("std_dev", "deviation")] {
            assert!(only(&home(estimates, &samples)).path.ends_with("estimates.json"), "{estimates}");
        }
        let broken = [
            ("1", "3.1"),
            ("1,1", "3.1"),
            ("1,1", "3.1,\"x\""),
            ("0,0", "3.1,3.2"),
            ("1,1", "0,0"),
            ("1,1", "1e308,-1"),
        ];
        for (iters, times) in broken {
            let complaint = only(&home(&sound, &sample(iters, times)));
            assert!(
                complaint.path.ends_with("sample.json") && complaint.kind == Kind::Broken,
                "{times}: {complaint:?}"
            );
        }
        let long = only(&home(&estimates(&format!("\"{}\"", "x".repeat(100_000))), &samples)).sentence;
        assert!(long.len() < 1_000, "{} bytes", long.len());
    }

    #[test]
    fn a_baseline_in_another_unit_is_a_complaint() {
        let home = whole();
        let counted = Record { unit: "instructions".into(), ..fixture_run::fixture_record() };
        Store::at(home.path()).merge_baseline("main", &counted).unwrap();
        let complaint = only(&home);
        assert_eq!(complaint.kind, Kind::OtherUnit);
        assert!(complaint.sentence.contains("expected values in ns, found values in instructions"));
    }

    #[test]
    fn a_case_that_our_record_lacks_is_no_complaint() {
        let home = whole();
        let mut record = fixture_run::fixture_record();
        record.groups.truncate(1);
        Store::at(home.path()).merge_baseline("main", &record).unwrap();
        assert_eq!(complaints(&home), []);
    }

    #[test]
    fn a_broken_record_of_ours_is_a_complaint() {
        let home = whole();
        let path = Store::at(home.path()).merge_baseline("main", &fixture_run::fixture_record()).unwrap();
        std::fs::write(path, "{").unwrap();
        assert_eq!(only(&home).kind, Kind::Broken);
    }
}
