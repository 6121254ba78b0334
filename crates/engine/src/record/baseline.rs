//! Baselines: the runs saved under one of Criterion's baseline names, and a check of Criterion's own files of that
//! name. Criterion itself exits with 0 on a missing or broken baseline, and compares values in different units.

mod complaint;

pub use complaint::{Complaint, Kind, check_cases, is_readable_baseline};

use crate::error::{Error, Result};
use crate::platform::plain_file;
use crate::record::store::{Store, json_file_name, parse, read, replace_file};
use crate::record::{GroupRun, Outcome, Record};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Store {
    /// The file of the baseline with this name.
    ///
    /// # Errors
    /// The name is no file name.
    pub fn baseline_path(&self, name: &str) -> Result<PathBuf> {
        Ok(self.home().join("baselines").join(json_file_name(name, "baseline")?))
    }

    /// The files of all baselines, by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn baseline_files(&self) -> Result<Vec<PathBuf>> {
        self.list_files("baselines", "json")
    }

    /// The runs saved under this name, each with the cases that no later run replaced; empty if no run was saved.
    ///
    /// # Errors
    /// The name is no file name, or the file cannot be read.
    pub fn load_baseline(&self, name: &str) -> Result<Vec<Record>> {
        let path = self.baseline_path(name)?;
        if path.exists() { parse::records(&path, &read(&path)?) } else { Ok(Vec::new()) }
    }

    /// Checks before a run that it can be saved under this name.
    ///
    /// # Errors
    /// The name is no file name, or an existing file of this name cannot be read or replaced.
    pub fn check_baseline(&self, name: &str) -> Result<()> {
        let path = self.baseline_path(name)?;
        if path.exists() {
            plain_file::open(&path)?;
        }
        self.check_directory_usable("baselines")
    }

    /// Saves the measured cases of a run under this name, in place of those with the same ids. Other cases stay with
    /// the run that measured them, as in Criterion's directories. A lock makes concurrent runs wait.
    ///
    /// # Errors
    /// The name is no file name, or the file cannot be read or written.
    pub fn merge_baseline(&self, name: &str, record: &Record) -> Result<PathBuf> {
        let path = self.baseline_path(name)?;
        let _alone = self.lock_directory("baselines", Duration::from_secs(5));
        save_records(&path, &merge_records(self.load_baseline(name)?, record))?;
        Ok(path)
    }

    /// Locks one of the store's directories against other processes. The kernel releases the lock when this process ends. `None`
    /// if another process holds the lock for all of `patience`, or if the file system has no locks.
    pub fn lock_directory(&self, directory: &str, patience: Duration) -> Option<Flock<File>> {
        let directory = self.home().join(directory);
        // If the directory cannot be made or opened, the save that follows reports the error.
        let _ = std::fs::create_dir_all(&directory);
        let mut directory = plain_file::open_directory(&directory).ok()?;
        let until = Instant::now() + patience;
        loop {
            directory = match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Some(lock),
                Err((directory, Errno::EWOULDBLOCK)) if Instant::now() < until => directory,
                Err(_) => return None,
            };
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Writes one line for each run, after checking that it can be read back; removes the file if no run is left.
fn save_records(path: &Path, records: &[Record]) -> Result<()> {
    if records.is_empty() {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file(path, "removing", error)),
            _ => Ok(()),
        };
    }
    let mut bytes = Vec::new();
    for record in records {
        let line = serde_json::to_vec(record).map_err(|e| Error::file(path, "writing as JSON", e.into()))?;
        bytes.extend(parse::add_seal(&line));
        bytes.push(b'\n');
    }
    parse::records(path, &bytes)?;
    replace_file(path, &bytes)
}

/// The earlier runs without the cases that the new run measured, followed by the new run. A failed case loses its earlier
/// number; a skipped or disturbed case keeps it, because Criterion wrote no files for it either. Values in another unit are
/// dropped, because a baseline has one unit; [`Store::check_baseline`] then reports them as missing.
fn merge_records(old: Vec<Record>, new: &Record) -> Vec<Record> {
    let tried =
        new.cases().filter(|(_, case)| !matches!(case.outcome, Outcome::Skipped(_) | Outcome::Disturbed(_)));
    let replaced: BTreeSet<&str> = tried.map(|(_, case)| case.id.as_str()).collect();
    let kept = old.into_iter().filter(|old| old.unit == new.unit).map(|old| {
        let groups = old.groups.into_iter().map(|group| without_cases(group, &replaced)).collect();
        Record { groups, ..old }
    });
    let mut fresh = new.clone();
    fresh.groups.iter_mut().for_each(|group| group.cases.retain(|case| case.measured().is_some()));
    let mut records: Vec<_> = kept.chain([fresh]).collect();
    records.iter_mut().for_each(|record| record.groups.retain(|group| !group.cases.is_empty()));
    records.retain(|record| !record.groups.is_empty());
    records
}

/// The group without these cases. Its fitted lines and curves are dropped if a case was removed, which may be a point of them.
fn without_cases(mut group: GroupRun, ids: &BTreeSet<&str>) -> GroupRun {
    let before = group.cases.len();
    group.cases.retain(|case| !ids.contains(case.id.as_str()));
    if group.cases.len() < before {
        group.fits.clear();
        group.curves.clear();
    }
    group
}

// Criterion's directory of a case. Criterion replaces characters of a name and cuts long names, so two cases could share a
// directory and be taken for earlier runs of each other. A name that it would change gets a hash at its end.

/// The most bytes of a name that Criterion keeps.
const LONGEST: usize = 64;
/// Characters that Criterion replaces by `_`.
const REPLACED: [char; 10] = ['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'];
/// The directory of this crate's own files, beside the directories of groups.
const OWN_DIRECTORY: &str = "syscost";
/// Bytes of the hash and of the dash before it.
const HASH_BYTES: usize = 9;

/// Criterion's directory of a case, below its home. The first part of the id is the group, all the rest
/// is one function id to Criterion, so that `call/u64/3` lives in `call/u64_3`.
pub fn criterion_directory(id: &str) -> PathBuf {
    let (group, function) = id.split_once('/').unwrap_or((id, ""));
    let part = |name| replace_characters(&criterion_name(name));
    Path::new(&part(group)).join(part(function))
}

/// The name that Criterion gets for a group, or for a case without its group: the name itself, or a readable beginning and a
/// hash if several names would share a directory.
pub fn criterion_name(name: &str) -> String {
    if is_unchanged_by_criterion(name) {
        return name.to_owned();
    }
    let mut beginning = replace_characters(name);
    let end =
        (0..=(LONGEST - HASH_BYTES).min(beginning.len())).rev().find(|&end| beginning.is_char_boundary(end));
    beginning.truncate(end.unwrap_or_default());
    if beginning.starts_with('.') {
        beginning.replace_range(..1, "_");
    }
    format!("{beginning}-{:08x}", hash(name))
}

/// Whether Criterion's directory has this name with `_` for each `/`. A name that has both characters would be ambiguous.
fn is_unchanged_by_criterion(name: &str) -> bool {
    let is_replaced = |c: char| c != '/' && REPLACED.contains(&c);
    let is_twofold = name.contains('/') && name.contains('_');
    name.len() <= LONGEST
        && !name.contains(is_replaced)
        && !is_twofold
        && !name.starts_with('.')
        && name != OWN_DIRECTORY
}

/// Replaces characters as Criterion's `make_filename_safe` does; the name must be short enough not to be cut.
fn replace_characters(name: &str) -> String {
    name.replace(REPLACED, "_")
}

/// The 64-bit FNV-1a hash, folded to 32 bits. It must never change, because directories are named by it.
fn hash(name: &str) -> u32 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;
    use std::collections::BTreeSet;

    /// The ids of a baseline's cases, each with the name of its run.
    fn ids(records: &[Record]) -> Vec<(&str, &str)> {
        let record_ids =
            |record| Record::cases(record).map(|(_, case)| (record.run.as_str(), case.id.as_str()));
        records.iter().flat_map(record_ids).collect()
    }

    /// A later run of three cases, on another kernel.
    fn part() -> Record {
        let mut part = Record { run: "20270101T000000-1".into(), ..fixture_run::fixture_record() };
        part.fingerprint.kernel_release = Some("7.0.0".into());
        part.groups.retain(|g| g.name == "call");
        part.groups[0].cases.truncate(3);
        part
    }

    #[test]
    fn a_second_save_replaces_its_own_cases_and_keeps_the_others() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        assert!(store.load_baseline("main").unwrap().is_empty());
        store.merge_baseline("main", &fixture_run::fixture_record()).unwrap();
        let measured = fixture_run::fixture_record().tally().measured;
        store.merge_baseline("main", &part()).unwrap();
        let merged = store.load_baseline("main").unwrap();
        let cases = ids(&merged);
        assert_eq!(cases.len(), measured, "none lost, none twice, none that was not measured");
        let later: Vec<_> = cases.iter().filter(|(run, _)| *run == part().run).map(|(_, id)| *id).collect();
        assert_eq!(later, ["call/u64/0", "call/u64/1", "call/u64/2"]);
    }

    #[test]
    fn each_run_keeps_its_own_machine() {
        let merged = merge_records(vec![fixture_run::fixture_record()], &part());
        let kernels: Vec<_> = merged.iter().map(|r| r.fingerprint.kernel_release.as_deref()).collect();
        assert_eq!(kernels, [None, Some("7.0.0")]);
    }

    #[test]
    fn a_run_whose_cases_are_all_replaced_is_removed() {
        let again = merge_records(
            merge_records(Vec::new(), &fixture_run::fixture_record()),
            &Record { run: "b".into(), ..fixture_run::fixture_record() },
        );
        assert_eq!(again.iter().map(|r| r.run.as_str()).collect::<Vec<_>>(), ["b"]);
        let shorter = merge_records(merge_records(Vec::new(), &part()), &part());
        assert_eq!(shorter.len(), 1, "a run takes the place of its shorter self");
    }

    #[test]
    fn a_baseline_file_of_a_single_record_is_still_read() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        let path = store.baseline_path("main").unwrap();
        replace_file(&path, &serde_json::to_vec(&fixture_run::fixture_record()).unwrap()).unwrap();
        assert_eq!(store.load_baseline("main").unwrap().len(), 1);
        store.merge_baseline("main", &part()).unwrap();
        assert_eq!(store.load_baseline("main").unwrap().len(), 2);
    }

    #[test]
    fn runs_that_save_at_the_same_time_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        let groups = fixture_run::fixture_record().groups;
        let part = |at: usize| Record {
            run: at.to_string(),
            groups: vec![groups[at].clone()],
            ..fixture_run::fixture_record()
        };
        std::thread::scope(|scope| {
            for at in 0..groups.len() {
                let store = &store;
                scope.spawn(move || {
                    (0..10).for_each(|_| _ = store.merge_baseline("main", &part(at)).unwrap())
                });
            }
        });
        let merged = store.load_baseline("main").unwrap();
        assert_eq!(ids(&merged).len(), fixture_run::fixture_record().tally().measured);
    }

    #[test]
    fn values_in_another_unit_are_dropped() {
        let counted = Record { unit: "instructions".into(), ..fixture_run::fixture_record() };
        let merged = merge_records(vec![counted], &part());
        assert_eq!(merged.iter().map(|r| r.unit.as_str()).collect::<Vec<_>>(), ["ns"]);
    }

    #[test]
    fn a_failed_case_removes_its_earlier_number() {
        let mut failed = fixture_run::fixture_record();
        for case in failed.groups.iter_mut().flat_map(|g| &mut g.cases) {
            case.outcome = Outcome::Failed("no".into());
        }
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        let path = store.merge_baseline("main", &fixture_run::fixture_record()).unwrap();
        store.merge_baseline("main", &failed).unwrap();
        assert!(!path.exists() && store.load_baseline("main").unwrap().is_empty());
        store.merge_baseline("main", &failed).unwrap();
    }

    #[test]
    fn a_baseline_cannot_leave_the_store() {
        let store = Store::at(Path::new("nowhere"));
        assert!(store.load_baseline("../../etc/passwd").is_err());
    }

    #[test]
    fn directories_are_those_that_criterion_uses() {
        assert_eq!(criterion_directory("call/u64/3"), Path::new("call/u64_3"));
        assert_eq!(criterion_directory("mine/snake_case"), Path::new("mine/snake_case"));
        assert_eq!(criterion_directory("alone"), Path::new("alone"));
        assert_eq!(criterion_directory("a:b/c?d/e"), Path::new("a_b-e2c18079/c_d_e-0a5f1d4b"));
    }

    #[test]
    fn names_that_criterion_would_merge_have_different_directories() {
        let long = "x".repeat(64);
        let ends = ["a", "b", "é", ""].map(|end| format!("g/{long}{end}"));
        let replaced =
            ["x/y/z", "x/y_z", "x_y/z", "x?y/z", "x:y|z", "x\\y*z"].map(|name| format!("g/{name}"));
        let ids: Vec<_> = ends.into_iter().chain(replaced).collect();
        let directories: BTreeSet<_> = ids.iter().map(|id| criterion_directory(id)).collect();
        assert_eq!(directories.len(), ids.len(), "{directories:?}");
        for id in &ids {
            let given = criterion_name(id.strip_prefix("g/").expect("a case"));
            assert!(
                given.len() <= LONGEST && criterion_directory(id).ends_with(given.replace('/', "_")),
                "{given}"
            );
        }
    }

    #[test]
    fn no_name_is_hidden_or_leads_to_another_directory() {
        for name in ["..", ".", ".hidden", "", "syscost"] {
            let given = criterion_name(name);
            assert!(!given.starts_with('.') && given != "syscost", "{name}: {given}");
        }
    }

    #[test]
    fn no_case_of_the_suite_needs_a_hash_in_its_directory() {
        let ids = include_str!("../../../../fixtures/ids.txt").lines();
        let ids = ids.filter_map(|line| line.split_whitespace().next());
        let moved = |id: &&str| {
            criterion_directory(id)
                != Path::new(&id.replacen('/', "\0", 1).replace('/', "_").replace('\0', "/"))
        };
        assert_eq!(ids.filter(moved).collect::<Vec<_>>(), [""; 0]);
    }
}
