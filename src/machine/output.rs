//! Keeping the standard streams still while something is measured: a write to a terminal in the middle of
//! a case wakes another process on some CPU, and Criterion writes whenever it likes.

use crate::{Error, Result};
use nix::unistd::{dup, dup2_stderr, dup2_stdout};
use std::io::Write;
use std::os::fd::OwnedFd;

/// While it lives, the standard output and error lead to `/dev/null`; then they are as before.
pub struct Silence {
    output: OwnedFd,
    error: OwnedFd,
}

impl Silence {
    /// Silences both streams.
    pub fn new() -> Result<Self> {
        let refused = |e| Error::refused("dup of the standard streams (raise `ulimit -n`)", e);
        flush();
        let silence = Self {
            output: dup(std::io::stdout()).map_err(refused)?,
            error: dup(std::io::stderr()).map_err(refused)?,
        };
        let null = std::fs::OpenOptions::new().write(true).open("/dev/null");
        let null = null.map_err(|e| Error::file("/dev/null", "opening", e))?;
        dup2_stdout(&null).map_err(refused)?;
        dup2_stderr(&null).map_err(refused)?;
        Ok(silence)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        flush();
        // Nothing is left to say it on if this fails: the streams stay silent.
        let _ = dup2_stdout(&self.output);
        let _ = dup2_stderr(&self.error);
    }
}

/// What was printed so far belongs to the stream as it is now. A closed pipe is not our failure.
fn flush() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}
