//! The arguments, shared by commands that show one run, that choose the run and a part of it.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::flag::Home;
use crate::page;
use regex::Regex;
use std::ffi::{OsStr, OsString};
use syscost_analysis::study::paper::GROUP;
use syscost_engine::Group;
use syscost_engine::driver::add_missing_curves;
use syscost_engine::record::Record;
use syscost_engine::record::store::Store;
use syscost_engine::study::published::Published;

/// One run, or a part of it.
#[derive(clap::Args)]
pub struct Selection {
    /// Name of a run (see `syscost runs`), of a record or a session (`syscost baseline list`), or a file; without one, the newest run
    #[arg(value_name = "RUN|FILE")]
    pub run: Option<OsString>,
    /// Only this group; without RUN, of the newest run that has it
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Only the cases whose ids match this pattern, in which `*` stands for anything: 'chase/*/256MiB'
    #[arg(long, value_name = "GLOB")]
    pub only: Option<String>,
    /// Where it is kept.
    #[command(flatten)]
    pub home: Home,
}

impl Selection {
    /// The record with its curves, which `groups` describe, reduced to the named part. Without a name it is the newest run. If
    /// it stands beside published `machines`, it is the newest finished run that has their groups.
    ///
    /// # Errors
    /// There is no such record, or it has no part of that name.
    pub fn load_record(&self, archive: &Archive, groups: &[Group], machines: &[Published]) -> Result<Record> {
        let mut record = match (self.run.as_deref(), self.group.as_deref()) {
            (None, Some(group)) => newest_with_group(archive, group)?,
            (None, None) if !machines.is_empty() => {
                newest_or_earlier(archive, |run| lack_beside(machines, run))?
            }
            (run, _) => archive
                .load_run(run)
                .map_err(|error| run.and_then(|run| group_name_error(run, groups)).unwrap_or(error))?,
        };
        if let Some(group) = &self.group {
            keep_group(&mut record, group)?;
        }
        if let Some(pattern) = &self.only {
            keep_matching_cases(&mut record, pattern)?;
        }
        add_missing_curves(&mut record, groups);
        Ok(record)
    }

    /// Whether no part of the run was named.
    pub fn is_whole(&self) -> bool {
        self.group.is_none() && self.only.is_none()
    }
}

/// The error if the name given for a run is that of a group; else `None`.
fn group_name_error(run: &OsStr, groups: &[Group]) -> Option<Error> {
    let group = run.to_str().filter(|name| groups.iter().any(|group| group.name == *name))?;
    Some(Error::Usage(format!(
        "there is no run {group}; the group of this name is shown by `--group {group}`"
    )))
}

fn newest_with_group(archive: &Archive, group: &str) -> Result<Record> {
    newest_or_earlier(archive, |run| (!has_group(run, group)).then(|| format!("has no {group}")))
}

fn has_group(run: &Record, name: &str) -> bool {
    run.groups.iter().any(|known| known.name == name)
}

/// The newest run. If `lack` gives a reason against it, the newest earlier run without such a reason, if there is one.
fn newest_or_earlier(archive: &Archive, lack: impl Fn(&Record) -> Option<String>) -> Result<Record> {
    let newest = archive.load_run(None)?;
    let Some(reason) = lack(&newest) else { return Ok(newest) };
    let Some(found) = archive.find_earlier_run(|run| lack(run).is_none())? else {
        if newest.unfinished {
            page::warn(&format!("the newest run, {}, {reason}, and no earlier one is whole", newest.run));
        }
        return Ok(newest);
    };
    page::warn(&format!("the newest run, {}, {reason}: this is {}", newest.run, found.run));
    Ok(found)
}

/// The reason against a table of this run beside all values of these machines; `None` if the run lacks nothing.
fn lack_beside(machines: &[Published], run: &Record) -> Option<String> {
    if run.unfinished {
        return Some("is unfinished".into());
    }
    let named = machines.iter().flat_map(Published::group_names).find(|group| !has_group(run, group));
    named.map(|group| format!("has no {group}"))
}

fn keep_group(record: &mut Record, name: &str) -> Result<()> {
    let known: Vec<_> = record.groups.iter().map(|group| group.name.clone()).collect();
    record.groups.retain(|group| group.name == name);
    if record.groups.is_empty() {
        Err(Error::Usage(format!("this run has no group {name}; it has {}", known.join(", "))))
    } else {
        Ok(())
    }
}

/// Keeps the cases whose ids match a pattern, in which `*` stands for any text. Keeps a curve only if all its
/// points are kept, and drops fitted lines.
///
/// # Errors
/// No case of the record matches.
fn keep_matching_cases(record: &mut Record, pattern: &str) -> Result<()> {
    let matches = compile_glob(pattern)?;
    for group in &mut record.groups {
        group.cases.retain(|case| matches.is_match(&case.id));
        let left = |prefix: &str| group.cases.iter().filter(|case| case.id.starts_with(prefix)).count();
        group.curves.retain(|curve| left(&curve.prefix) >= curve.points.len().max(1));
        group.fits.clear();
    }
    record.groups.retain(|group| !group.cases.is_empty());
    if record.groups.is_empty() {
        Err(Error::Usage(format!(
            "no case of this run matches {pattern:?}; `*` stands for anything, as in 'chase/*/256MiB'"
        )))
    } else {
        Ok(())
    }
}

/// # Errors
/// The pattern is too long for a regular expression.
fn compile_glob(pattern: &str) -> Result<Regex> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    let compiled = Regex::new(&format!("^{}$", parts.join(".*")));
    compiled.map_err(|error| Error::Usage(format!("--only: {error}")))
}

/// The run that was named, or the newest that has measured any of the paper's cases.
///
/// # Errors
/// There is no such run, or it has none of the paper's cases.
pub fn find_paper_run(selection: &Selection, archive: &Archive) -> Result<Record> {
    let record = match &selection.run {
        Some(run) => archive.load_run(Some(run))?,
        None => newest_with_paper_cases(archive)?,
    };
    if has_paper_cases(&record) {
        Ok(record)
    } else {
        Err(Error::Usage(format!(
            "{} has no case of {GROUP} that was measured; {MEASURING_HINT}",
            record.run
        )))
    }
}

const MEASURING_HINT: &str =
    "`scripts/two-nodes syscost run '^displacement/' --scale full` measures all of them, as root";

fn has_paper_cases(record: &Record) -> bool {
    record
        .groups
        .iter()
        .any(|run| run.name == GROUP && run.cases.iter().any(|case| case.measured().is_some()))
}

/// The newest run that has measured any of the paper's cases.
fn newest_with_paper_cases(archive: &Archive) -> Result<Record> {
    for file in archive.run_files()?.iter().rev() {
        let record = Store::load(file)?;
        if has_paper_cases(&record) {
            return Ok(record);
        }
    }
    Err(Error::Usage(format!("no run here has a case of {GROUP}; {MEASURING_HINT}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{GroupRun, fixture_run};
    use syscost_engine::study::published;

    #[test]
    fn a_group_is_kept_and_a_missing_group_is_refused() {
        let mut record = fixture_run::fixture_record();
        let error = keep_group(&mut record.clone(), "nothing").unwrap_err().to_string();
        assert!(error.contains("no group nothing; it has "), "{error}");
        let first = record.groups[0].name.clone();
        keep_group(&mut record, &first).unwrap();
        assert_eq!(record.groups.len(), 1);
    }

    #[test]
    fn an_unfinished_run_or_one_without_a_group_lacks_something_beside_published_values() {
        let machines = published::find("csc501").unwrap();
        let mut record = fixture_run::fixture_record();
        let lack = lack_beside(&machines, &record).expect("it has four groups");
        assert!(lack.starts_with("has no "), "{lack}");
        let names = machines[0].group_names();
        assert!(names.contains("chase") && !names.contains("fit"), "{names:?}");
        let group = |name: &&str| GroupRun { name: (*name).to_owned(), ..GroupRun::default() };
        record.groups = names.iter().map(group).collect();
        assert_eq!(lack_beside(&machines, &record), None);
        record.unfinished = true;
        assert_eq!(lack_beside(&machines, &record).as_deref(), Some("is unfinished"));
    }

    #[test]
    fn a_star_stands_for_anything_and_a_dot_for_itself() {
        let matches = |pattern: &str, id: &str| compile_glob(pattern).unwrap().is_match(id);
        assert!(matches("chase/*/256MiB", "chase/random/256MiB") && matches("call/u64/3", "call/u64/3"));
        assert!(!matches("call/u64", "call/u64/3") && !matches("call.u64.3", "call/u64/3"));
    }

    #[test]
    fn a_pattern_that_matches_no_case_is_refused() {
        let mut record = fixture_run::fixture_record();
        assert!(
            keep_matching_cases(&mut record.clone(), "nothing*")
                .unwrap_err()
                .to_string()
                .contains("nothing*")
        );
        keep_matching_cases(&mut record, "call/*").unwrap();
        assert!(record.cases().all(|(_, case)| case.id.starts_with("call/")));
    }
}
