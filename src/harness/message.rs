//! What a measuring process tells its driver: one JSON value a line, on a pipe of their own, so that the
//! standard streams stay Criterion's.

use crate::record::{CaseRecord, ClockRun, GroupRun};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;

/// Names the pipe in the measuring process. Set by the driver.
pub(super) const PIPE_VARIABLE: &str = "SYSCOST_PIPE";

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    /// The process is ready: its group without cases.
    Ready(GroupRun),
    /// A case begins.
    Begin(String),
    /// A case has ended.
    Done(Box<CaseRecord>),
    /// Something that a reader of the group should know.
    Note(String),
    /// The process cannot go on, for this reason.
    Broken(String),
    /// All cases have ended, or a signal ended them early; the clock as it is now.
    End(ClockRun),
}

/// Who sets the group by hand means to measure it, and must be told how.
pub(super) fn check_that_a_driver_speaks() -> Result<()> {
    let group = super::GROUP_VARIABLE;
    std::env::var_os(PIPE_VARIABLE).map(drop).ok_or_else(|| {
        Error::Usage(format!(
            "{group} is for the driver to set, together with {PIPE_VARIABLE}: unset it; a filter such as \
             `^call/` chooses a group"
        ))
    })
}

/// The measuring process's end.
pub(super) struct Sender(File);

impl Sender {
    /// Opens the pipe that the driver named. `/proc/self/fd` gives a descriptor of our own for it.
    pub(super) fn open() -> Result<Self> {
        check_that_a_driver_speaks()?;
        let path = std::env::var_os(PIPE_VARIABLE).unwrap_or_default();
        let file = File::options().write(true).open(&path);
        Ok(Self(file.map_err(|e| Error::file(path, "opening the driver's pipe", e))?))
    }

    /// Sends one line, in one write as far as the pipe allows.
    pub(super) fn send(&mut self, message: &Message) -> Result<()> {
        let broken = |cause| Error::Kernel { call: "write to the driver".into(), cause };
        let mut line = serde_json::to_vec(message).map_err(|e| broken(e.into()))?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(broken)
    }
}
