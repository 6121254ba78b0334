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
    /// All cases have ended, or a signal ended them early; the clock as it is now.
    End(ClockRun),
}

/// The measuring process's end.
pub(super) struct Sender(File);

impl Sender {
    /// Opens the pipe that the driver named. `/proc/self/fd` gives a descriptor of our own for it.
    pub(super) fn open() -> Result<Self> {
        let path = std::env::var(PIPE_VARIABLE).map_err(|_| {
            Error::Usage(format!(
                "{} is for the driver to set, together with {PIPE_VARIABLE}",
                super::GROUP_VARIABLE
            ))
        })?;
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
