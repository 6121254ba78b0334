//! `syscost report --html`: a run as one page that a browser shows from a file.

use super::super::archive::Archive;
use super::super::compare;
use super::super::page as terminal;
use super::save;
use crate::environment::doctor::{Finding, examine};
use crate::environment::{Fingerprint, Weight};
use crate::error::Result;
use crate::platform::kernel_files::KernelFiles;
use crate::record::Record;
use crate::record::paired::Paired;
use crate::render::page::Page;
use crate::suite::find;
use crate::trial::scratch;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The page, and what else it shows.
#[derive(clap::Args)]
pub(super) struct Html {
    /// Write the run as one page of HTML to this file, whole or not at all, and print no table. It needs no other file
    /// and no network: table, distributions, curves, manuals, search and links are in it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// On the page: these records side by side, each against the first, as `compare` takes them
    #[arg(long, value_name = "BASELINE", num_args = 2.., requires = "html")]
    compare: Vec<OsString>,
    /// On the page: the verdicts and pairs of this file that `ab` saved; may be given several times
    #[arg(long, value_name = "FILE", requires = "html")]
    pairs: Vec<PathBuf>,
}

impl Html {
    /// The file of the page, if one is asked for.
    pub(super) fn file(&self) -> Option<&Path> {
        self.html.as_deref()
    }

    /// Writes the page of this run.
    ///
    /// # Errors
    /// A record or a file of pairs cannot be read, nothing in the records can be compared, or the page cannot be written.
    pub(super) fn write(&self, file: &Path, record: &Record, archive: &Archive) -> Result<()> {
        let comparison = match self.compare.is_empty() {
            true => None,
            false => Some(compare::side_by_side(archive, &self.compare)?),
        };
        let pairs = self.pairs.iter().map(|file| Paired::load(file)).collect::<Result<Vec<_>>>()?;
        let page = Page {
            record: Some(record),
            findings: &findings(record),
            manuals: manuals(record),
            comparison: comparison.as_ref(),
            pairs: &pairs,
            ..Page::default()
        };
        save(file, page.html()?.as_bytes())?;
        terminal::say(&file.display().to_string());
        Ok(())
    }
}

/// What the doctor says now, if the run was made on this machine since it was started: else it says nothing of the run.
pub(in crate::command) fn findings(record: &Record) -> Vec<Finding> {
    let (files, scratch) = (KernelFiles::live(), scratch::place());
    let boot = files.line("proc/sys/kernel/random/boot_id");
    if boot.is_none() || record.boot != boot {
        return Vec::new();
    }
    let fingerprint = Fingerprint::take(&files, &scratch);
    let differs = record.fingerprint.differences(&fingerprint).iter().any(|d| d.weight > Weight::Fact);
    if differs { Vec::new() } else { examine(&files, &fingerprint, &scratch) }
}

/// The manuals of the run's groups that this build knows.
pub(in crate::command) fn manuals(record: &Record) -> BTreeMap<String, String> {
    let names = record.groups.iter().map(|group| group.name.clone());
    names.filter_map(|name| find(&name).map(|group| (name, group.manual_text()))).collect()
}
