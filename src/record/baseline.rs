//! Baselines: what was saved under one of Criterion's baseline names, and whether Criterion's own files of
//! that name can be compared with. Criterion itself passes a missing or broken baseline with exit code 0,
//! and compares two units as if they were one.

mod complaint;

pub use complaint::{Complaint, Kind, check};

use crate::Result;
use crate::record::store::{Store, file_name, save};
use crate::record::{GroupRun, Outcome, Record};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Store {
    /// The file that says what was saved under this name.
    pub fn baseline_path(&self, name: &str) -> Result<PathBuf> {
        Ok(self.home().join("baselines").join(file_name(name, "baseline")?))
    }

    /// What was saved under this name; `None` if nothing was.
    pub fn load_baseline(&self, name: &str) -> Result<Option<Record>> {
        let path = self.baseline_path(name)?;
        path.exists().then(|| Self::load(&path)).transpose()
    }

    /// Puts the measured cases of a run under this name, in place of those with the same ids; the others
    /// stay, as they do in Criterion's directories. Skipped and failed cases change nothing: Criterion
    /// wrote nothing for them either. Another run that does the same at this moment waits.
    pub fn merge_baseline(&self, name: &str, record: &Record) -> Result<PathBuf> {
        let path = self.baseline_path(name)?;
        let _alone = self.alone_with_baselines();
        save(&path, &merge(self.load_baseline(name)?, record))?;
        Ok(path)
    }

    /// A lock that ends with its owner. `None` where a file system has none, or somebody holds it for ever.
    fn alone_with_baselines(&self) -> Option<Flock<File>> {
        let directory = self.home().join("baselines");
        // What cannot be made or opened is reported by the saving that follows.
        let _ = std::fs::create_dir_all(&directory);
        let mut directory = File::open(directory).ok()?;
        for _ in 0..500 {
            directory = match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Some(lock),
                Err((directory, Errno::EWOULDBLOCK)) => directory,
                Err(_) => return None,
            };
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

/// Cases that failed take the earlier number with them: under this name nothing is known of them any more.
/// A record has one unit, so values in another one cannot stay; [`check`] then finds them missing and
/// says so. Kept groups keep their own clock and body; the fingerprint is that of the later run.
fn merge(old: Option<Record>, new: &Record) -> Record {
    let fresh: Vec<GroupRun> = new.groups.iter().map(measured_only).collect();
    let tried = new.cases().filter(|(_, case)| !matches!(case.outcome, Outcome::Skipped(_)));
    let replaced: BTreeSet<&str> = tried.map(|(_, case)| case.id.as_str()).collect();
    let kept = old.filter(|old| old.unit == new.unit).map(|old| old.groups).unwrap_or_default();
    let mut groups: Vec<GroupRun> = kept.into_iter().map(|g| without(g, &replaced)).collect();
    groups.extend(fresh.iter().cloned());
    groups.retain(|group| !group.cases.is_empty());
    Record { groups, ..new.clone() }
}

fn measured_only(group: &GroupRun) -> GroupRun {
    let mut group = group.clone();
    group.cases.retain(|case| case.measured().is_some());
    group
}

/// The group less these cases, and less its lines if one of the cases was a point of them.
fn without(mut group: GroupRun, ids: &BTreeSet<&str>) -> GroupRun {
    let before = group.cases.len();
    group.cases.retain(|case| !ids.contains(case.id.as_str()));
    if group.cases.len() < before {
        group.fits.clear();
    }
    group
}

/// Criterion's directory of a case, below its home. The first part of the id is the group, all the rest
/// is one function id to Criterion, so that `call/u64/3` lives in `call/u64_3`.
pub fn directory(id: &str) -> PathBuf {
    let (group, function) = id.split_once('/').unwrap_or((id, ""));
    Path::new(&part(group)).join(part(function))
}

/// As Criterion's `make_filename_safe`: ten characters become `_`, and 64 bytes are kept.
fn part(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut safe = name.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_");
    let end = (0..=LONGEST.min(safe.len())).rev().find(|&end| safe.is_char_boundary(end));
    safe.truncate(end.unwrap_or_default());
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::specimen;

    fn ids(record: &Record) -> Vec<&str> {
        record.cases().map(|(_, case)| case.id.as_str()).collect()
    }

    #[test]
    fn a_second_save_replaces_its_own_cases_and_keeps_the_others() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        assert!(store.load_baseline("main").unwrap().is_none());
        store.merge_baseline("main", &specimen::record()).unwrap();
        let (measured, ..) = specimen::record().tally();
        let mut part = specimen::record();
        part.run = "20270101T000000-1".into();
        part.groups.retain(|g| g.name == "call");
        part.groups[0].cases.truncate(3);
        part.groups[0].body = "another".into();
        store.merge_baseline("main", &part).unwrap();
        let merged = store.load_baseline("main").unwrap().unwrap();
        assert_eq!(ids(&merged).len(), measured, "none lost, none twice, none that was not measured");
        assert_eq!(merged.run, "20270101T000000-1");
        let bodies: Vec<_> = merged.groups.iter().map(|g| (g.body.as_str(), g.cases.len())).collect();
        assert_eq!(*bodies.last().unwrap(), ("another", 3));
    }

    #[test]
    fn runs_that_save_at_the_same_time_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::at(home.path());
        let groups = specimen::record().groups;
        let part = |at: usize| Record { groups: vec![groups[at].clone()], ..specimen::record() };
        std::thread::scope(|scope| {
            for at in 0..groups.len() {
                let store = &store;
                scope.spawn(move || {
                    (0..10).for_each(|_| _ = store.merge_baseline("main", &part(at)).unwrap())
                });
            }
        });
        let merged = store.load_baseline("main").unwrap().unwrap();
        assert_eq!(merged.tally().0, specimen::record().tally().0);
    }

    #[test]
    fn values_in_another_unit_do_not_stay() {
        let counted = Record { unit: "instructions".into(), ..specimen::record() };
        let mut part = specimen::record();
        part.groups.truncate(1);
        let merged = merge(Some(counted), &part);
        assert_eq!((merged.unit.as_str(), merged.groups.len()), ("ns", 1));
    }

    #[test]
    fn a_failed_case_takes_the_old_number_with_it() {
        let mut failed = specimen::record();
        for case in failed.groups.iter_mut().flat_map(|g| &mut g.cases) {
            case.outcome = Outcome::Failed("no".into());
        }
        let merged = merge(Some(specimen::record()), &failed);
        assert_eq!(merged.tally().0, 0);
    }

    #[test]
    fn a_directory_is_criterions() {
        assert_eq!(directory("call/u64/3"), Path::new("call/u64_3"));
        assert_eq!(directory("a:b/c?d/e"), Path::new("a_b/c_d_e"));
        assert_eq!(directory("alone"), Path::new("alone"));
        let long = directory(&format!("g/{}é", "x".repeat(63)));
        assert_eq!(long, Path::new("g").join("x".repeat(63)), "cut before a character, not within");
    }

    #[test]
    fn a_baseline_cannot_leave_the_store() {
        let store = Store::at(Path::new("nowhere"));
        assert!(store.load_baseline("../../etc/passwd").is_err());
    }
}
