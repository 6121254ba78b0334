//! Silencing the standard streams during a measurement: a write to a terminal in the middle of
//! a case wakes another process on some CPU, and Criterion writes at any time. Also checks whether there is an output at all.
//!
//! # Invariants
//!
//! * **BEFORE-MAIN**: the C library calls the function once, before `main`, in the only thread there is; it makes one
//!   system call and stores to an atomic.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::{SFlag, fstat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{dup, dup2_stderr, dup2_stdin, dup2_stdout, write};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs [`record_closed_output`] before the standard library replaces a closed standard stream by `/dev/null`.
// SAFETY: BEFORE-MAIN.
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD_BEFORE_MAIN: extern "C" fn() = record_closed_output;

extern "C" fn record_closed_output() {
    // SAFETY: BEFORE-MAIN.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether this process was started without a standard output, so that printed text is lost.
pub fn is_stdout_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Checks that the standard output accepts writes, and prints nothing. A pipe whose reader has left is no error.
///
/// # Errors
/// The output is closed, open for reading only, a device that accepts nothing, or a file on a full disk.
pub fn check_stdout() -> Result<()> {
    let refused = |errno: Errno| Err(Error::file(NAME, "writing", errno.into()));
    if is_stdout_closed() {
        return refused(Errno::EBADF);
    }
    let out = std::io::stdout();
    let file_type = fstat(&out).map(|about| SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT);
    match file_type {
        Ok(SFlag::S_IFCHR) => write(&out, &[]).map_or_else(refused, |_| Ok(())),
        Ok(SFlag::S_IFREG) if fstatvfs(&out).is_ok_and(|disk| disk.blocks_available() == 0) => {
            refused(Errno::ENOSPC)
        }
        Ok(SFlag::S_IFREG) => write(&out, &[]).map_or_else(refused, |_| Ok(())),
        // The reader of a pipe or a socket decides.
        _ => Ok(()),
    }
}

/// The name of the standard output in sentences.
pub const NAME: &str = "the standard output";

/// Moves the standard input and output to files of our own, and redirects the streams to `/dev/null`. Processes that
/// are started later do not inherit the files.
///
/// # Errors
/// The kernel refuses another descriptor.
pub fn take_standard_streams() -> Result<[File; 2]> {
    let refused = |e| Error::from_errno("dup of the standard streams", e);
    let ours = |stream: BorrowedFd<'_>| -> Result<File> {
        let file = stream.try_clone_to_owned();
        Ok(file.map_err(|cause| Error::Kernel { call: "dup of a standard stream".into(), cause })?.into())
    };
    let streams = [ours(std::io::stdin().as_fd())?, ours(std::io::stdout().as_fd())?];
    let null = open_null()?;
    dup2_stdin(&null).map_err(refused)?;
    dup2_stdout(&null).map_err(refused)?;
    Ok(streams)
}

/// Redirects the standard output and error while this value lives. Dropping it restores them.
pub struct Silence {
    output: OwnedFd,
    error: OwnedFd,
    /// Output and error that were kept, to be written afterwards.
    kept: Option<[File; 2]>,
    /// Lines of the standard error that begin with this text are not written.
    dropped: Option<&'static str>,
}

impl Silence {
    /// Silences both streams. What is written to them is lost.
    ///
    /// # Errors
    /// The kernel refuses another descriptor.
    pub fn new() -> Result<Self> {
        let null = open_null()?;
        Self::redirect_to([&null, &null])
    }

    /// Silences both streams. Text that is written to them is kept in memory and written when they are restored, because
    /// Criterion panics if it cannot print: if its reader has left, or the disk is full. Lines of the standard error that
    /// begin with `dropped` are not written.
    ///
    /// # Errors
    /// The kernel refuses another descriptor.
    pub fn with_replay(dropped: &'static str) -> Result<Self> {
        let keep = || memfd_create(c"criterion-said", MFdFlags::MFD_CLOEXEC).map(File::from);
        let refused = |e| Error::from_errno("memfd_create", e);
        let kept = [keep().map_err(refused)?, keep().map_err(refused)?];
        let mut silence = Self::redirect_to([&kept[0], &kept[1]])?;
        (silence.kept, silence.dropped) = (Some(kept), Some(dropped));
        Ok(silence)
    }

    fn redirect_to([output, error]: [&File; 2]) -> Result<Self> {
        let refused = |e| Error::from_errno("dup of the standard streams", e);
        flush();
        let before = [dup(std::io::stdout()).map_err(refused)?, dup(std::io::stderr()).map_err(refused)?];
        dup2_stdout(output).map_err(refused)?;
        dup2_stderr(error).map_err(refused)?;
        let [output, error] = before;
        Ok(Self { output, error, kept: None, dropped: None })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        flush();
        // If this fails there is no stream to report it on.
        let _ = dup2_stdout(&self.output);
        let _ = dup2_stderr(&self.error);
        if let Some([output, error]) = &mut self.kept {
            replay(output, std::io::stdout(), None);
            replay(error, std::io::stderr(), self.dropped);
            flush();
        }
    }
}

/// Opens `/dev/null`, or a file in memory where a container has none.
fn open_null() -> Result<File> {
    let null = File::options().read(true).write(true).open("/dev/null");
    null.or_else(|cause| {
        let memory = memfd_create(c"null", MFdFlags::MFD_CLOEXEC).map(File::from);
        memory.map_err(|_| Error::file("/dev/null", "opening", cause))
    })
}

/// Writes what was kept, without the lines that begin with `dropped`. If the reader has left, the rest is dropped too.
fn replay(kept: &mut File, mut stream: impl Write, dropped: Option<&str>) {
    let mut text = Vec::new();
    let _ = kept.rewind().and_then(|()| kept.read_to_end(&mut text));
    let is_dropped = |line: &[u8]| dropped.is_some_and(|start| line.starts_with(start.as_bytes()));
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_dropped(line));
    let _ = lines.try_for_each(|line| stream.write_all(line));
}

/// Flushes both streams before they are redirected. A closed pipe is no failure.
fn flush() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}
