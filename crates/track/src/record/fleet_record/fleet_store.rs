//! The directory of an experiment's records, `HOST/KERNEL/REPEAT.json`. Beside a record, or in its place, lie the notes
//! `REPEAT.started` and `REPEAT.failed`. The path of a record depends only on the experiment, never on the record's content.

use super::{Experiment, Job, JobRecord};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use syscost_engine::record::store::{create_file, replace_file};
use syscost_platform::error::{Error, Result};
use syscost_platform::{inert, plain_file};

/// The largest record that is read, bytes: some twenty times the size of a record of all cases.
const LIMIT: u64 = 4 << 20;
/// The longest note beside a record, in bytes.
const NOTE: u64 = 4 << 10;

/// A directory of records.
#[derive(Clone, Debug)]
pub struct FleetStore {
    root: PathBuf,
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The record of the job exists.
    Done,
    /// The record exists but cannot be used, for this reason.
    Damaged(String),
    /// The job failed, for this reason.
    Failed(String),
    /// The job began this number of seconds ago, within its time limit.
    Running(u64),
    /// The job began this number of seconds ago, and its time limit has passed: the job or its host was killed.
    Lost(u64),
    /// The job never began.
    Missing,
}

/// The outcome of adding a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The job had no record before.
    New,
    /// The same record was there already.
    Known,
    /// The record replaced another one of the same job, which began later or was damaged.
    Earlier,
    /// The record was not added: another one of the same job, which began no later, stays.
    Later,
}

impl FleetStore {
    /// The store in this directory, which is created with the first record.
    pub fn from_root(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn job_file(&self, job: Job<'_>, ending: &str) -> PathBuf {
        self.root.join(job.host).join(job.kernel).join(format!("{}.{ending}", job.repeat))
    }

    /// The file of the record of a job.
    pub fn record_path(&self, job: Job<'_>) -> PathBuf {
        self.job_file(job, "json")
    }

    /// Notes that a job begins now, and removes the note of an earlier failure.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_start(&self, job: Job<'_>, now: u64) -> Result<()> {
        replace_file(&self.job_file(job, "started"), format!("{now}\n").as_bytes())?;
        let failed = self.job_file(job, "failed");
        match std::fs::remove_file(&failed) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(&failed, "removing", error))
            }
            _ => Ok(()),
        }
    }

    /// Notes why a job has no record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_failure(&self, job: Job<'_>, why: &str) -> Result<()> {
        replace_file(&self.job_file(job, "failed"), inert::neutralize_line(why, 1_000).as_bytes())
    }

    /// The record of a job; `None` if there is none.
    ///
    /// # Errors
    /// The record cannot be read, is damaged, or belongs to another user or another job.
    pub fn load_record(&self, experiment: &Experiment, job: Job<'_>) -> Result<Option<JobRecord>> {
        self.read_own_record(job)?.map(|bytes| self.check_record(experiment, job, &bytes)).transpose()
    }

    /// The bytes of a record whose file belongs to this user; `None` if there is no file. Files of other users are an error.
    fn read_own_record(&self, job: Job<'_>) -> Result<Option<Vec<u8>>> {
        let path = self.record_path(job);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let own = plain_file::open_own(&path, |about| about.is_file() && about.len() <= LIMIT);
        let mut file: File = own.ok_or_else(|| {
            self.content_error(
                job,
                "the file",
                "a plain file of this user of at most 4 MiB",
                "another".into(),
            )
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| Error::file(&path, "reading", error))?;
        Ok(Some(bytes))
    }

    fn check_record(&self, experiment: &Experiment, job: Job<'_>, bytes: &[u8]) -> Result<JobRecord> {
        let record = JobRecord::parse(&self.record_path(job), bytes)?;
        let said = |job: Job<'_>| format!("{} {} {}", job.host, job.kernel, job.repeat);
        if record.experiment != experiment.name {
            return Err(self.content_error(job, "experiment", &experiment.name, record.experiment));
        }
        if record.job() != job {
            return Err(self.content_error(job, "host, kernel, repeat", &said(job), said(record.job())));
        }
        let fingerprint = &record.fingerprint;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        if let Some(why) =
            job.kernel_mismatch(&text(&fingerprint.kernel_release), &text(&fingerprint.kernel_command_line))
        {
            return Err(self.content_error(job, "kernel_release", job.kernel, why));
        }
        Ok(record)
    }

    fn content_error(&self, job: Job<'_>, field: &str, expected: &str, found: String) -> Error {
        let remedy = "it is not used: remove it, and measure the job again";
        Error::invalid_content(
            self.record_path(job),
            field,
            expected,
            inert::neutralize_line(&found, 200),
            remedy,
        )
    }

    /// Adds the record of a job. Of two records of one job, the one that began first stays, whichever is added first.
    ///
    /// # Errors
    /// The bytes are no sound record of this job, or cannot be written.
    pub fn add(&self, experiment: &Experiment, job: Job<'_>, bytes: &[u8]) -> Result<Added> {
        let record = self.check_record(experiment, job, bytes)?;
        let path = self.record_path(job);
        let Some(known) = self.read_own_record(job)? else {
            return create_file(&path, bytes).map(|()| Added::New);
        };
        if known == bytes {
            return Ok(Added::Known);
        }
        // A damaged record is replaced, so that another measurement repairs it.
        let is_later = |known: JobRecord| known.started <= record.started;
        if self.check_record(experiment, job, &known).is_ok_and(is_later) {
            return Ok(Added::Later);
        }
        replace_file(&path, bytes).map(|()| Added::Earlier)
    }

    /// Copies the record of a job from the store `from`, or else its notes; `None` if `from` has no record of the job.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), or a note cannot be written.
    pub fn copy_from(&self, experiment: &Experiment, job: Job<'_>, from: &Self) -> Result<Option<Added>> {
        if let Some(bytes) = from.read_own_record(job)? {
            return self.add(experiment, job, &bytes).map(Some);
        }
        for ending in ["started", "failed"] {
            if let Some(text) =
                from.read_note(job, ending).filter(|text| self.read_note(job, ending).as_ref() != Some(text))
            {
                replace_file(&self.job_file(job, ending), text.as_bytes())?;
            }
        }
        Ok(None)
    }

    fn read_note(&self, job: Job<'_>, ending: &str) -> Option<String> {
        let bytes = plain_file::read(&self.job_file(job, ending), NOTE).ok()?;
        Some(inert::neutralize_line(String::from_utf8_lossy(&bytes).trim(), 1_000))
    }

    /// The time at which a job last began, Unix seconds; `None` if it never began.
    pub fn start_time(&self, job: Job<'_>) -> Option<u64> {
        self.read_note(job, "started")?.parse().ok()
    }

    /// The progress of a job at the time `now`, Unix seconds.
    pub fn progress(&self, experiment: &Experiment, job: Job<'_>, now: u64) -> Progress {
        match self.load_record(experiment, job) {
            Ok(Some(_)) => return Progress::Done,
            Ok(None) => (),
            Err(error) => return Progress::Damaged(error.to_string()),
        }
        if let Some(why) = self.read_note(job, "failed") {
            return Progress::Failed(why);
        }
        match self.start_time(job) {
            None => Progress::Missing,
            Some(began) if now.saturating_sub(began) <= 60 * u64::from(experiment.minutes) => {
                Progress::Running(now.saturating_sub(began))
            }
            Some(began) => Progress::Lost(now.saturating_sub(began)),
        }
    }

    /// At most `most` files and directories in the store that belong to no job of this experiment.
    pub fn stray_records(&self, experiment: &Experiment, most: usize) -> Vec<PathBuf> {
        let repeats: Vec<String> = (1..=experiment.repeats).map(|n| n.to_string()).collect();
        let is_one_of =
            |part: Option<&OsStr>, names: &[String]| names.iter().any(|name| part == Some(OsStr::new(name)));
        let known = |found: Vec<PathBuf>, names: &[String]| -> (Vec<PathBuf>, Vec<PathBuf>) {
            found.into_iter().partition(|path| is_one_of(path.file_name(), names))
        };
        let within = |directories: &[PathBuf]| -> Vec<PathBuf> {
            directories.iter().flat_map(|directory| visible_entries(directory)).collect()
        };
        let (hosts, mut strays) = known(visible_entries(&self.root), &experiment.hosts);
        let (kernels, others) = known(within(&hosts), &experiment.kernels);
        strays.extend(others);
        strays.extend(within(&kernels).into_iter().filter(|file| !is_one_of(file.file_stem(), &repeats)));
        strays.truncate(most);
        strays
    }
}

/// The entries of a directory that are not hidden, sorted; empty if the directory is missing.
fn visible_entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let visible =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(visible).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests;
