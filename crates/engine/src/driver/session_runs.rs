//! Several runs over the same cases, one after another, each in fresh processes.

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
    /// Plans `runs` runs. With `are_whole` each makes several executions of each case; without it each makes one. After this
    /// call a signal no longer ends the process.
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

    /// Makes one run over all cases; a signal ends the run early.
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

    /// Whether the record has every planned case. This is possible even after a signal.
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

// Earlier runs of this machine show how a figure spreads from run to run, which a single run cannot show.

/// The most earlier runs of a series that are used, from the newest on.
const MOST_RUNS: usize = 8;
/// Largest number of stored runs that are opened to find earlier runs of the same series.
const MOST_FILES: usize = 12;

/// Earlier runs of the same series, the newest first.
#[derive(Default)]
pub(super) struct EarlierRuns {
    pub(super) records: Vec<Record>,
    /// The highest frequency of the undisturbed core in these runs, Hz.
    pub(super) core_hz: Option<f64>,
    /// The differences from the last run, or why there is no last run.
    pub(super) remark: Option<String>,
    /// A sentence if the newest stored run began later than this run, by the clock.
    pub(super) set_back: Option<String>,
}

impl EarlierRuns {
    /// Loads the earlier runs from the store of this run.
    pub(super) fn load(record: &Record, store: &Store) -> Self {
        // If the store cannot be listed, the saving of this run reports that.
        let files = store.run_files().unwrap_or_default();
        let newest = files.iter().rev().take(MOST_FILES).filter_map(|path| Store::load(path).ok());
        let mut newest = newest.peekable();
        let first = newest.peek().cloned();
        let set_back = first.as_ref().and_then(|newest| set_back_sentence(newest, record));
        let records: Vec<Record> =
            newest.filter(|earlier| is_same_series(earlier, record)).take(MOST_RUNS).collect();
        let core_hz = records.iter().filter_map(undisturbed_frequency_of_run).reduce(f64::max);
        let remark = series_remark(record, &records, first.as_ref());
        Self { records, core_hz, remark, set_back }
    }

    /// Widens or narrows the intervals of a run's figures by the spread of the same figures in earlier runs.
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

/// A sentence if a run was stored before this one began, and yet began later by the clock. Runs that begin after this one
/// are stored later, so they are not among those that are checked.
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
    fn a_clock_that_was_set_back_is_reported_only_if_a_stored_run_began_later() {
        assert_eq!(set_back_sentence(&run(7, "a"), &run(7, "a")), None);
        assert_eq!(set_back_sentence(&run(6, "a"), &run(7, "a")), None);
        let sentence = set_back_sentence(&run(67, "a"), &run(7, "a")).expect("set back");
        assert!(sentence.contains("67 began 60 s later") && !sentence.contains("ahead"), "{sentence}");
        assert!(set_back_sentence(&run(8, "a"), &run(7, "b")).expect("or ahead").contains("is ahead"));
    }
}
