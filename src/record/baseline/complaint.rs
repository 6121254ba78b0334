//! A check of each case of a baseline, before it is compared.

use crate::record::Record;
use crate::record::store::{Store, read};
use serde_json::Value;
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
    /// In a sentence: the file, what was expected of it, and what to do.
    pub sentence: String,
}

/// The ways in which a baseline can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was saved for this case under this name.
    Missing,
    /// Something was saved, and cannot be read.
    Broken,
    /// It was saved in another unit.
    OtherUnit,
}

/// Criterion's files: the name, a JSON pointer to a number that must be there, and a name for messages.
const FILES: [(&str, &str, &str); 2] = [
    ("estimates.json", "/mean/point_estimate", "Criterion's estimates"),
    ("sample.json", "/times/0", "Criterion's samples"),
];

/// The case and the baseline that are checked.
struct Look<'a> {
    name: &'a str,
    id: &'a str,
}

/// Looks at the baseline of each case (its id, and its directory below Criterion's home) and complains
/// where it is missing, broken, or measured in another unit than this one.
pub fn check(home: &Path, name: &str, ids: &[(String, PathBuf)], unit: &str) -> Vec<Complaint> {
    let store = Store::at(home);
    let ours = store.baseline_path(name).unwrap_or_else(|_| store.home().into());
    let records = store.load_baseline(name).map_err(|e| e.to_string());
    let look = |(id, directory): &(String, PathBuf)| {
        let look = Look { name, id };
        let files = home.join(directory).join(name);
        look.at_criterions_files(&files).or_else(|| look.at_the_unit(&ours, &records, unit))
    };
    ids.iter().filter_map(look).collect()
}

impl Look<'_> {
    fn at_criterions_files(&self, directory: &Path) -> Option<Complaint> {
        FILES.iter().find_map(|(file, pointer, expected)| {
            let path = directory.join(file);
            if !path.exists() {
                return Some(self.complain(&path, Kind::Missing, expected, "no such file"));
            }
            let found = match read(&path).map(|bytes| serde_json::from_slice::<Value>(&bytes)) {
                Err(error) => error.to_string(),
                Ok(Err(error)) => error.to_string(),
                Ok(Ok(value)) if value.pointer(pointer).is_some_and(Value::is_number) => return None,
                Ok(Ok(_)) => format!("no number at {pointer}"),
            };
            Some(self.complain(&path, Kind::Broken, expected, &found))
        })
    }

    /// No record of ours, or none with this case, is no complaint: a run that was killed has saved Criterion's files
    /// and not yet ours.
    fn at_the_unit(
        &self,
        path: &Path,
        records: &Result<Vec<Record>, String>,
        unit: &str,
    ) -> Option<Complaint> {
        let records = match records {
            Ok(records) => records,
            Err(error) => return Some(self.complain(path, Kind::Broken, "a record of syscost", error)),
        };
        let is_known = |record: &&Record| record.cases().any(|(_, case)| case.id == self.id);
        let foreign = records.iter().filter(|record| record.unit != unit).find(is_known)?;
        let found = format!("values in {}", foreign.unit);
        Some(self.complain(path, Kind::OtherUnit, &format!("values in {unit}"), &found))
    }

    fn complain(&self, path: &Path, kind: Kind, expected: &str, found: &str) -> Complaint {
        let Self { name, id } = self;
        let sentence = format!(
            "{id} cannot be compared with the baseline `{name}`: {}: expected {expected}, found {found}; \
             save it again with `cargo bench -- --save-baseline {name}`.",
            path.display()
        );
        Complaint { id: (*id).into(), path: path.into(), kind, sentence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::baseline::directory;
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

    fn whole() -> tempfile::TempDir {
        home(r#"{"mean":{"point_estimate":3.1}}"#, r#"{"iters":[1.0],"times":[3.1]}"#)
    }

    fn complaints(home: &tempfile::TempDir) -> Vec<Complaint> {
        check(home.path(), "main", &[(ID.into(), directory(ID))], "ns")
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
        Store::at(home.path()).merge_baseline("main", &fixture_run::record()).unwrap();
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
        assert_eq!(only(&home(r#"{"mean":{"point_estimate":3}}"#, r#"{"times":[]}"#)).kind, Kind::Broken);
    }

    #[test]
    fn another_unit_is_no_baseline() {
        let home = whole();
        let counted = Record { unit: "instructions".into(), ..fixture_run::record() };
        Store::at(home.path()).merge_baseline("main", &counted).unwrap();
        let complaint = only(&home);
        assert_eq!(complaint.kind, Kind::OtherUnit);
        assert!(complaint.sentence.contains("expected values in ns, found values in instructions"));
    }

    #[test]
    fn a_case_that_our_record_lacks_is_criterions_alone() {
        let home = whole();
        let mut record = fixture_run::record();
        record.groups.truncate(1);
        Store::at(home.path()).merge_baseline("main", &record).unwrap();
        assert_eq!(complaints(&home), []);
    }

    #[test]
    fn a_broken_record_of_ours_is_a_complaint() {
        let home = whole();
        let path = Store::at(home.path()).merge_baseline("main", &fixture_run::record()).unwrap();
        std::fs::write(path, "{").unwrap();
        assert_eq!(only(&home).kind, Kind::Broken);
    }
}
