//! Messages of a measuring process to its driver: one JSON value per line, over a pipe, since Criterion writes to the
//! standard output.

use crate::error::{Error, Result};
use crate::json_line;
use crate::platform::process::inheritance::duplicate_inherited;
use crate::record::{ClockRun, GroupRun, Measured};
use crate::trial::CaseEnd;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::{OwnedFd, RawFd};

/// One message, one line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The process is ready to measure: its group, still without cases.
    Ready(GroupRun),
    /// A case begins.
    Begin(String),
    /// A case has ended.
    Done(Box<CaseExecution>),
    /// A note on the whole group.
    Note(String),
    /// The process cannot continue, for this reason.
    Broken(String),
    /// The machine does not offer what the process needs: nothing is wrong with its cases.
    Refused(String),
    /// All cases have ended, or a signal has; the clock as it is now.
    End(ClockRun),
}

/// The end of a case in one process.
pub type ExecutionEnd = std::result::Result<Box<Measured>, CaseEnd>;

/// How a case ended in one process.
#[derive(Debug, Serialize, Deserialize)]
pub struct CaseExecution {
    /// `group/variant/parameter`.
    pub id: String,
    /// A description for people.
    pub title: String,
    /// What it took, set-up included.
    pub seconds: f64,
    /// How it ended: with figures if every claim held. The case itself ends with its last execution.
    pub end: ExecutionEnd,
}

/// A pipe whose writing end alone is inherited by children: when the driver dies, writing fails.
pub(super) fn open_pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&write, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok((read, write))
}

/// The measuring process's end of the pipe.
pub struct Sender(File);

impl Sender {
    /// Opens the pipe that was inherited under this number, by a descriptor that no case's child inherits.
    ///
    /// # Errors
    /// Nothing was inherited under this number.
    pub fn open(number: RawFd) -> Result<Self> {
        let file = duplicate_inherited(number);
        Ok(Self(
            file.map_err(|cause| Error::Kernel { call: "fcntl F_DUPFD of the driver's pipe".into(), cause })?,
        ))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The driver has gone.
    pub fn send(&mut self, message: &Message) -> Result<()> {
        let sent = json_line::send(&self.0, message);
        sent.map_err(|cause| Error::Kernel { call: "write to the driver".into(), cause })
    }
}
