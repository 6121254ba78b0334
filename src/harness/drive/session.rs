//! A session: several goes over the same cases, one after another, every process of them a fresh one. It
//! measures and gives the records; what becomes of them is for its caller to say.

use super::super::arguments::Arguments;
use super::super::plan::{Planned, plan};
use super::super::progress::Progress;
use super::{Drive, Options, prepare};
use crate::case::Group;
use crate::platform::signal;
use crate::record::Record;
use crate::trial::scratch;
use crate::{Error, Result};
use std::path::PathBuf;

/// The goes that are still to be made: an iterator over their records. It ends early once a signal has arrived.
pub struct Session<'a> {
    planned: Vec<Planned<'a>>,
    arguments: Arguments,
    options: Options,
    home: PathBuf,
    progress: Progress,
    goes: usize,
    made: usize,
}

impl<'a> Session<'a> {
    /// Refuses what cannot be measured. From here on a signal no longer ends the process.
    pub fn begin(groups: &'a [Group], arguments: &Arguments, options: &Options, goes: usize) -> Result<Self> {
        let planned = plan(groups, arguments)?;
        if planned.is_empty() {
            return Err(Error::Usage("there is no case to measure".into()));
        }
        let home = prepare(options)?;
        let cases: usize = planned.iter().map(|planned| planned.ids.len()).sum();
        let progress = Progress::over(cases * goes, false);
        // Of several goes Criterion's files would hold the last, and be taken for all of them.
        let (arguments, options) = (arguments.without_saving(), options.clone());
        Ok(Self { planned, arguments, options, home, progress, goes, made: 0 })
    }

    /// One go over all cases, as far as it came.
    fn go(&self) -> Record {
        self.progress.go(self.made, self.goes);
        let mut drive = Drive::new(&self.arguments, &self.options, self.home.clone(), &self.progress);
        // Goes may begin within the same second.
        drive.record.run += &format!("-{}", self.made);
        for planned in &self.planned {
            drive.group(planned);
            if signal::pending().is_some() {
                break;
            }
        }
        drive.record
    }

    /// Whether every case was tried. A signal may arrive after the last of them.
    fn is_whole(&self, record: &Record) -> bool {
        let tried = |planned: &Planned| {
            record.groups.iter().any(|g| g.cases.len() >= planned.ids.len() && g.name == planned.group.name)
        };
        self.planned.iter().all(tried)
    }
}

impl Iterator for Session<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.made < self.goes && signal::pending().is_none() {
            self.made += 1;
            let record = self.go();
            if signal::pending().is_none() || self.is_whole(&record) {
                return Some(record);
            }
        }
        self.progress.finish();
        // A measuring process that was killed has left its own.
        scratch::sweep_up(&self.options.place());
        None
    }
}
