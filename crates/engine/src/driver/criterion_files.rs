//! Criterion's files of a case. They are written at the end of the run, when Criterion is given the samples of all executions
//! of a case at once; measuring processes leave none behind.
//!
//! Incomplete files are removed. Criterion writes in place, so a full disk or a kill leaves empty or truncated files, and
//! one such file makes `critcmp` refuse the whole directory.

use super::options::Options;
use super::process_task::{Samples, Task, Work};
use super::supervision::Supervisor;
use crate::case::{Case, Rule};
use crate::error::{Error, Result};
use crate::record::baseline;
use crate::record::quantity::NANOSECONDS;
use crate::record::store::read;
use crate::record::{CaseRecord, GroupRun, Outcome};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files that Criterion writes for a case under `new` and under the baseline's name.
const FILES: [&str; 4] = ["benchmark.json", "estimates.json", "sample.json", "tukey.json"];

/// Files that Criterion writes under `change` for a comparison with an earlier run.
const CHANGE_FILES: [&str; 1] = ["estimates.json"];

/// Has Criterion write its files for this group, and compare with a baseline if it was asked to. Returns a sentence for
/// each case whose files could not be written whole.
pub(super) fn write(supervisor: &Supervisor, run: &GroupRun, cases: &[Case]) -> Vec<String> {
    let Supervisor { arguments, options, home, .. } = *supervisor;
    let failed = hand_over_samples(supervisor, run, cases).err();
    let mut sentences = Vec::from_iter(failed.map(|e| format!("Criterion's files of {}: {e}", run.name)));
    // Criterion saves no value of zero, which a count may be. A comparison writes the directory `new` only.
    let all = options.unit == NANOSECONDS && sentences.is_empty();
    let save = arguments.save.as_deref().unwrap_or("new");
    let ids: Vec<_> = run.cases.iter().map(|case| case.id.clone()).collect();
    sentences.extend(remove_incomplete_files(&ids, run, home, save, all));
    sentences
}

/// Checks that Criterion may write its files for these cases, without touching any.
///
/// # Errors
/// A directory or a file belongs to another user, or its file system is read-only.
pub(super) fn check_writable<'a>(
    home: &Path,
    ids: impl Iterator<Item = &'a String>,
    save: Option<&str>,
) -> Result<()> {
    let mut known = BTreeSet::new();
    for id in ids {
        for name in ["new", "change"].into_iter().chain(save) {
            let directory = home.join(baseline::criterion_directory(id)).join(name);
            let existing =
                directory.ancestors().find(|directory| directory.exists()).unwrap_or(home).to_path_buf();
            if existing == directory {
                let mut files = FILES.iter().map(|file| directory.join(file)).filter(|file| file.exists());
                files.try_for_each(|file| check_may_write(&file, AccessFlags::empty()))?;
            }
            if known.insert(existing.clone()) {
                check_may_write(&existing, AccessFlags::X_OK)?;
            }
        }
    }
    Ok(())
}

fn check_may_write(path: &Path, more: AccessFlags) -> Result<()> {
    let allowed = faccessat(AT_FDCWD, path, AccessFlags::W_OK | more, AtFlags::AT_EACCESS);
    allowed.map_err(|errno| Error::file(path, "writing", errno.into()))
}

/// Starts a process that gives Criterion these samples.
fn hand_over_samples(supervisor: &Supervisor, run: &GroupRun, cases: &[Case]) -> Result<()> {
    let samples = case_samples(run, cases, supervisor.options);
    if samples.is_empty() {
        return Ok(());
    }
    let cut_short = supervisor.run_task(&run.name, &Task::Write(samples)).cut_short;
    cut_short.map_or(Ok(()), |sentence| Err(Error::Missing(sentence)))
}

/// The bytes or elements that an iteration of a case processes; `None` if the case states neither.
fn work_of_iteration(case: &Case) -> Option<Work> {
    case.derived.iter().find_map(|figure| match figure.rule {
        Rule::Bandwidth(bytes) => Some(Work::Bytes(bytes)),
        Rule::Elements(elements) => Some(Work::Elements(elements)),
        _ => None,
    })
}

/// The samples of the measured cases of a group, as costs per iteration for Criterion.
fn case_samples(run: &GroupRun, cases: &[Case], options: &Options) -> Vec<Samples> {
    let per_count = if options.measures_time() { 1e9 / run.clock.hz } else { 1.0 };
    let criterion_case = |case: &CaseRecord| {
        let measured = case.measured()?;
        let pairs = measured.counted.iter().zip(&measured.iterations);
        // The gap between two calibrations may be 0 ticks, and Criterion accepts no time of zero.
        let least = u64::from(options.measures_time());
        let values =
            pairs.map(|(&counted, &n)| per_count * counted.max(least) as f64 / n.max(1) as f64).collect();
        let name = case.id.split_once('/').map_or("", |(_, name)| name).to_owned();
        let work = cases.iter().find(|case| case.name == name).and_then(work_of_iteration);
        Some(Samples { name, values, work })
    };
    run.cases.iter().filter_map(criterion_case).collect()
}

/// Checks the files of these cases, removes each directory with an incomplete file, and returns a sentence for each. With
/// `all`, every measured case must have files.
fn remove_incomplete_files(
    ids: &[String],
    run: &GroupRun,
    home: &Path,
    save: &str,
    all: bool,
) -> Vec<String> {
    let measured =
        |id: &str| run.cases.iter().any(|c| c.id == id && matches!(c.outcome, Outcome::Measured(_)));
    let failed = |id: &str| run.cases.iter().any(|c| c.id == id && matches!(c.outcome, Outcome::Failed(_)));
    let mut sentences = Vec::new();
    for id in ids {
        let case = home.join(baseline::criterion_directory(id));
        if failed(id) {
            sentences.extend(remove_earlier_files(&case, save));
            continue;
        }
        let wanted = all && measured(id);
        for (name, files, wanted) in
            [("new", FILES.as_slice(), wanted), (save, &FILES, wanted), ("change", &CHANGE_FILES, false)]
        {
            let directory = case.join(name);
            if (wanted || directory.exists()) && !has_whole_files(&directory, files) {
                sentences.push(remove_incomplete_directory(&directory));
            }
        }
    }
    sentences
}

/// Removes an earlier run's files of a failed case: they would be taken for files of this run.
fn remove_earlier_files(case: &Path, save: &str) -> Option<String> {
    let old: Vec<_> = ["new", "change", save].iter().map(|name| case.join(name)).collect();
    let there = old.iter().any(|directory| directory.exists());
    for directory in &old {
        // The directory may not exist. If it cannot be removed, the sentence below still names it.
        let _ = std::fs::remove_dir_all(directory);
    }
    there.then(|| {
        format!(
            "{}: the case failed, so what an earlier run left there as new, change and {save} is removed",
            case.display()
        )
    })
}

fn has_whole_files(directory: &Path, files: &[&str]) -> bool {
    let parses = |path: PathBuf| {
        read(&path).is_ok_and(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).is_ok())
    };
    files.iter().all(|file| parses(directory.join(file)))
}

fn remove_incomplete_directory(directory: &Path) -> String {
    // If this fails, the sentence below still says that the files are incomplete.
    let _ = std::fs::remove_dir_all(directory);
    format!(
        "{}: Criterion could not write its files whole (no space left, no right to write, or killed), so none is kept",
        directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measured, fixture_run};

    fn run_of(id: &str) -> GroupRun {
        let cases = vec![fixture_run::measured_case(id, Measured::default())];
        GroupRun { name: "call".into(), cases, ..GroupRun::default() }
    }

    fn swept(id: &str, home: &Path) -> Vec<String> {
        remove_incomplete_files(&[id.into()], &run_of("call/u64/3"), home, "base", true)
    }

    fn saved(id: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        let case = home.path().join(baseline::criterion_directory(id));
        for name in ["new", "base"] {
            std::fs::create_dir_all(case.join(name)).expect("made");
            FILES.iter().for_each(|file| std::fs::write(case.join(name).join(file), "{}").expect("written"));
        }
        home
    }

    #[test]
    fn truncated_files_are_removed_and_whole_ones_stay() {
        let home = saved("call/u64/3");
        let case = home.path().join("call/u64_3");
        assert_eq!(swept("call/u64/3", home.path()), Vec::<String>::new());
        std::fs::write(case.join("base/sample.json"), "").expect("truncated");
        let sentences = swept("call/u64/3", home.path());
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].contains("u64_3/base"), "{}", sentences[0]);
        assert!(case.join("new").exists() && !case.join("base").exists());
        std::fs::create_dir(case.join("change")).expect("made");
        std::fs::write(case.join("change/estimates.json"), "").expect("truncated");
        assert_eq!(swept("call/u64/3", home.path()).len(), 2, "base is missing, change is half");
        assert!(!case.join("change").exists());
    }

    #[test]
    fn truncated_files_of_an_unmeasured_case_are_removed_and_missing_ones_are_accepted() {
        let home = saved("call/u64/4");
        std::fs::write(home.path().join("call/u64_4/new/sample.json"), "[").expect("truncated");
        assert_eq!(swept("call/u64/4", home.path()).len(), 1);
        assert!(!home.path().join("call/u64_4/new").exists());
        assert_eq!(swept("call/u64/5", home.path()), Vec::<String>::new());
    }
}
