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
use crate::record::Record;
use crate::trial::scratch;
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
    /// Plans `runs` runs of one execution of each case: a session's processes. From here on a signal no longer ends the
    /// process.
    ///
    /// # Errors
    /// No case matches, or the unit cannot be measured.
    pub fn with_single_executions(
        groups: &'a [Group],
        arguments: &Arguments,
        options: &Options,
        runs: usize,
    ) -> Result<Self> {
        Self::with_rounds(groups, arguments, options, runs, Rounds::ONE)
    }

    /// Plans `runs` whole runs, of several executions of each case.
    ///
    /// # Errors
    /// As [`Session::begin`].
    pub fn with_whole_runs(
        groups: &'a [Group],
        arguments: &Arguments,
        options: &Options,
        runs: usize,
    ) -> Result<Self> {
        Self::with_rounds(groups, arguments, options, runs, Rounds::new(arguments, options))
    }

    fn with_rounds(
        groups: &'a [Group],
        arguments: &Arguments,
        options: &Options,
        runs: usize,
        rounds: Rounds,
    ) -> Result<Self> {
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
