//! The task of one measuring process, as JSON in a file without a name that the process inherits. An environment variable is
//! too short: the kernel limits it to 128 KiB, the ids of some 2000 cases.

use crate::clock::ClockScale;
use crate::error::{Error, Result};
use crate::platform::plain_file;
use crate::record::store::LIMIT;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::close;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Path of that file in the measuring process. Set by the driver.
pub(super) const TASK_VARIABLE: &str = "SYSCOST_TASK";

/// What a measuring process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Measure cases, each once.
    Measure(Round),
    /// Have Criterion write its files for these cases, by a clock of this scale.
    Write(Vec<Samples>, Option<ClockScale>),
}

/// One execution of each of these cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The cases, in the order in which they are to be measured.
    pub cases: Vec<Wanted>,
    /// The clock's scale, if an earlier process has found it.
    pub clock: Option<ClockScale>,
}

/// A case that is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// `group/variant/parameter`.
    pub id: String,
    /// An earlier process has proved it.
    pub proven: bool,
}

/// The samples of one case, of all executions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// The id without its group: Criterion's function id.
    pub name: String,
    /// Cost of an iteration by each sample, in the record's unit.
    pub values: Vec<f64>,
}

impl Task {
    /// The task of this process.
    ///
    /// # Errors
    /// The variable names no readable task, or the task is of another version of this crate.
    pub fn read_inherited() -> Result<Self> {
        let wrong = |error: String| {
            Error::Usage(format!("{TASK_VARIABLE} is for the driver to set, so unset it: {error}"))
        };
        let path = PathBuf::from(std::env::var_os(TASK_VARIABLE).unwrap_or_default());
        let text = plain_file::read(&path, LIMIT).map_err(|error| wrong(error.to_string()))?;
        // The file itself is not needed any more, and would take a descriptor from the cases.
        let inherited = path.strip_prefix(DESCRIPTORS).ok().and_then(|number| number.to_str()?.parse().ok());
        inherited
            .filter(|&number: &i32| number > 2)
            .map(close)
            .transpose()
            .map_err(|e| wrong(e.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
    }

    /// Writes the task into a file without a name, which a child process inherits.
    ///
    /// # Errors
    /// The file can be made neither in memory nor in the temporary directory.
    pub(super) fn write_inheritable_file(&self) -> Result<HandedOver> {
        let failed = |cause| Error::file("the task of a measuring process", "writing", cause);
        let text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        // A sandbox may refuse memfd_create.
        let memory =
            memfd_create(c"syscost-task", MFdFlags::empty()).map(File::from).map_err(io::Error::from);
        let mut file = memory.or_else(|_| tempfile::tempfile()).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|e| failed(e.into()))?;
        Ok(HandedOver(file))
    }
}

/// Where a process finds what it has inherited.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The file of a task, inherited by processes that are started while it lives.
pub(super) struct HandedOver(File);

impl HandedOver {
    /// Its path in a process that has inherited it.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.0.as_raw_fd().to_string())
    }

    /// The file, which the process must inherit.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Round {
    /// `None` if this round does not measure the case; else whether an earlier process has proved it.
    pub fn find_proven_flag(&self, id: &str) -> Option<bool> {
        self.cases.iter().find(|wanted| wanted.id == id).map(|wanted| wanted.proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_twenty_thousand_cases_is_handed_over_whole() {
        let wanted = |at| Wanted { id: format!("group/{}/{at}", "x".repeat(180)), proven: at % 2 == 0 };
        let task = Task::Measure(Round { cases: (0..20_000).map(wanted).collect(), clock: None });
        let handed_over = task.write_inheritable_file().expect("written");
        let text = plain_file::read(&handed_over.path(), LIMIT).expect("read");
        assert!(text.len() > 3 << 20 && serde_json::from_slice::<Task>(&text).expect("a task") == task);
    }
}
