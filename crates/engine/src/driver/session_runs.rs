//! Several runs over the same cases, one after another, each of fresh processes.

use super::arguments::Arguments;
use super::drive::Drive;
use super::first_checks::prepare_run;
use super::options::Options;
use super::plan::{Planned, plan_groups};
use super::rounds::Rounds;
use super::terminal::{Progress, Telling};
use crate::case::Group;
use crate::error::{Error, Result};
use crate::platform::signal;
use crate::record::store::Store;
use crate::record::{GroupRun, Outcome, Quiet, Record};
use crate::study::alike::{is_same_series, series_remark};
use crate::study::interval::draw_to_earlier;
use crate::study::reference_frequency::undisturbed_frequency_of_run;
use crate::trial::scratch;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The runs of a session: an iterator over their records that ends early once a signal has arrived.
pub struct Session<'a> {
    planned: Vec<Planned<'a>>,
    arguments: Arguments,
    options: Options,
    home: PathBuf,
    progress: Progress,
    rounds: Rounds,
    runs: usize,
    done: usize,
}

impl<'a> Session<'a> {
    /// Plans `runs` runs: whole ones, of several executions of each case, or a session's processes, of one execution. From here
    /// on a signal no longer ends the process.
    ///
    /// # Errors
    /// No case matches, or the unit cannot be measured.
    pub fn plan(
        groups: &'a [Group],
        arguments: &Arguments,
        options: &Options,
        runs: usize,
        are_whole: bool,
    ) -> Result<Self> {
        let rounds = if are_whole { Rounds::new(arguments, options) } else { Rounds::ONE };
        let planned = plan_groups(groups, options.known, arguments)?;
        if planned.is_empty() {
            return Err(Error::Usage("there is no case to measure".into()));
        }
        let home = prepare_run(options)?;
        let cases: usize = planned.iter().map(|planned| planned.ids.len()).sum();
        let progress = Progress::over(rounds.minimum_executions(cases) * runs, Telling::Bar);
        // Criterion's files would hold the last run only, and pass for the whole session.
        let (arguments, options) = (arguments.without_saving(), options.clone());
        Ok(Self { planned, arguments, options, home, progress, rounds, runs, done: 0 })
    }

    /// One run over all cases, up to a signal.
    fn run_all_cases(&self) -> Record {
        self.progress.show_run_number(
            if self.rounds == Rounds::ONE { "process" } else { "run" },
            self.done,
            self.runs,
        );
        let mut drive = Drive::new(&self.arguments, &self.options, self.home.clone(), &self.progress);
        // Two runs may begin within the same second.
        drive.record.run += &format!("-{}", self.done);
        drive.measure(&self.planned, self.rounds);
        drive.record
    }

    /// Whether every case was tried, as may be even if a signal has arrived.
    fn has_all_cases(&self, record: &Record) -> bool {
        let tried = |planned: &Planned| {
            record.groups.iter().any(|g| g.cases.len() >= planned.ids.len() && g.name == planned.group.name)
        };
        self.planned.iter().all(tried)
    }
}

impl Iterator for Session<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.done < self.runs && signal::pending().is_none() {
            self.done += 1;
            let record = self.run_all_cases();
            if signal::pending().is_none() || self.has_all_cases(&record) {
                return Some(record);
            }
        }
        self.progress.finish();
        scratch::remove_orphans(&self.options.scratch_parent());
        None
    }
}

// The use of earlier runs of this machine: they give the spread of a figure from run to run, which a single run cannot show.

/// Runs that are looked at, the newest of this machine.
const NEWEST: usize = 8;
/// Largest number of stored runs that are opened to find earlier runs of the same series.
const FILES: usize = 12;

/// Earlier runs of the same series, the newest first.
#[derive(Default)]
pub(super) struct EarlierRuns {
    pub(super) records: Vec<Record>,
    /// The highest frequency that the core had in one of them when it was left alone, Hz.
    pub(super) core_hz: Option<f64>,
    /// The differences from the last run, or why there is no last run.
    pub(super) remark: Option<String>,
    /// A sentence if the clock was set back since one of them was stored.
    pub(super) set_back: Option<String>,
}

impl EarlierRuns {
    /// Those that are stored beside this run.
    pub(super) fn load(record: &Record, store: &Store) -> Self {
        // The saving of this run reports a store that cannot be listed.
        let files = store.run_files().unwrap_or_default();
        let newest = files.iter().rev().take(FILES).filter_map(|path| Store::load(path).ok());
        let mut newest = newest.peekable();
        let first = newest.peek().cloned();
        let set_back = first.as_ref().and_then(|newest| set_back_sentence(newest, record));
        let records: Vec<Record> =
            newest.filter(|earlier| is_same_series(earlier, record)).take(NEWEST).collect();
        let core_hz = records.iter().filter_map(undisturbed_frequency_of_run).reduce(f64::max);
        let remark = series_remark(record, &records, first.as_ref());
        Self { records, core_hz, remark, set_back }
    }

    /// Draws the intervals of a run's figures towards the spread of those of earlier runs.
    pub(super) fn draw_intervals(&self, record: &mut Record) {
        let mut known: BTreeMap<(&str, &str), Vec<Quiet>> = BTreeMap::new();
        for (group, case) in self.records.iter().flat_map(Record::cases) {
            let quiet = case.measured().and_then(|measured| measured.quiet);
            known.entry((&case.id, &group.version)).or_default().extend(quiet);
        }
        for GroupRun { version, cases, .. } in &mut record.groups {
            for case in cases {
                let Outcome::Measured(measured) = &mut case.outcome else { continue };
                let earlier = known.get(&(case.id.as_str(), version.as_str()));
                if let (Some(quiet), Some(earlier)) = (&mut measured.quiet, earlier) {
                    draw_to_earlier(quiet, earlier);
                }
            }
        }
    }
}

/// A sentence if a run that is stored when this one begins began later by the clock. A run that began meanwhile is stored
/// later, and says nothing about the clock.
fn set_back_sentence(newest: &Record, own: &Record) -> Option<String> {
    let ahead = newest.started.checked_sub(own.started).filter(|&seconds| seconds > 0)?;
    let cause = if newest.boot.is_some() && newest.boot == own.boot {
        "the clock was set back"
    } else {
        "the clock was set back, or the clock of the machine that stored it is ahead"
    };
    let (newest, own) = (&newest.run, &own.run);
    Some(format!(
        "the stored run {newest} began {ahead} s later than this one, {own}: {cause}; `syscost report` takes the newest by \
         name, and `syscost report {own}` this one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn run(started: u64, boot: &str) -> Record {
        Record { started, boot: Some(boot.into()), run: started.to_string(), ..fixture_run::fixture_record() }
    }

    #[test]
    fn only_a_stored_run_that_began_later_says_that_the_clock_was_set_back() {
        assert_eq!(set_back_sentence(&run(7, "a"), &run(7, "a")), None);
        assert_eq!(set_back_sentence(&run(6, "a"), &run(7, "a")), None);
        let sentence = set_back_sentence(&run(67, "a"), &run(7, "a")).expect("set back");
        assert!(sentence.contains("67 began 60 s later") && !sentence.contains("ahead"), "{sentence}");
        assert!(set_back_sentence(&run(8, "a"), &run(7, "b")).expect("or ahead").contains("is ahead"));
    }
}
