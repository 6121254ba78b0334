//! Keeping the standard streams still while something is measured: a write to a terminal in the middle of
//! a case wakes another process on some CPU, and Criterion writes whenever it likes.

use crate::{Error, Result};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{dup, dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The standard input and output as files of our own; the streams themselves lead nowhere afterwards. What is
/// started from here on does not inherit the files.
pub fn take_streams() -> Result<[File; 2]> {
    let refused = |e| Error::refused("dup of the standard streams (raise `ulimit -n`)", e);
    let ours = |stream: BorrowedFd<'_>| -> Result<File> {
        let file = stream.try_clone_to_owned();
        Ok(file.map_err(|cause| Error::Kernel { call: "dup of a standard stream".into(), cause })?.into())
    };
    let streams = [ours(std::io::stdin().as_fd())?, ours(std::io::stdout().as_fd())?];
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|e| Error::file("/dev/null", "opening", e))?;
    dup2_stdin(&null).map_err(refused)?;
    dup2_stdout(&null).map_err(refused)?;
    Ok(streams)
}

/// While it lives, the standard output and error lead elsewhere; then they are as before.
pub struct Silence {
    output: OwnedFd,
    error: OwnedFd,
    /// What is to be said afterwards: of the output, and of the error.
    kept: Option<[File; 2]>,
}

impl Silence {
    /// Silences both streams. What is written to them is lost.
    pub fn new() -> Result<Self> {
        let null = File::options().write(true).open("/dev/null");
        let null = null.map_err(|e| Error::file("/dev/null", "opening", e))?;
        Self::leading_to([&null, &null])
    }

    /// Silences both streams. What is written to them is kept in memory and follows when they are as before,
    /// because Criterion panics where it cannot print: its reader has left, or the disk behind it is full.
    pub fn for_now() -> Result<Self> {
        let keep = || memfd_create(c"criterion-said", MFdFlags::MFD_CLOEXEC).map(File::from);
        let refused = |e| Error::refused("memfd_create (raise `ulimit -n`)", e);
        let kept = [keep().map_err(refused)?, keep().map_err(refused)?];
        let mut silence = Self::leading_to([&kept[0], &kept[1]])?;
        silence.kept = Some(kept);
        Ok(silence)
    }

    fn leading_to([output, error]: [&File; 2]) -> Result<Self> {
        let refused = |e| Error::refused("dup of the standard streams (raise `ulimit -n`)", e);
        flush();
        let before = [dup(std::io::stdout()).map_err(refused)?, dup(std::io::stderr()).map_err(refused)?];
        dup2_stdout(output).map_err(refused)?;
        dup2_stderr(error).map_err(refused)?;
        let [output, error] = before;
        Ok(Self { output, error, kept: None })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        flush();
        // Nothing is left to say it on if this fails: the streams stay silent.
        let _ = dup2_stdout(&self.output);
        let _ = dup2_stderr(&self.error);
        if let Some([output, error]) = &mut self.kept {
            say(output, std::io::stdout());
            say(error, std::io::stderr());
            flush();
        }
    }
}

/// A reader who has left has seen enough.
fn say(kept: &mut File, mut stream: impl Write) {
    let _ = kept.rewind().and_then(|()| std::io::copy(kept, &mut stream));
}

/// What was printed so far belongs to the stream as it is now. A closed pipe is not our failure.
fn flush() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}
