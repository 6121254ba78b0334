//! Files of the kernel's, read anew each time: kept open, or opened for one reading.

use super::Fault;
use nix::errno::Errno;
use nix::sys::stat::FileStat;
use std::fmt::{Arguments, Write};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Room for the longest of the short files: a line of `/proc/PID/stat`, a block device's.
pub(super) const SHORT: usize = 1024;

/// Opens a file. Neither the path, which is put together on the stack, nor `File::open`, which copies it there,
/// allocates: `open(format_args!("/proc/{pid}/stat"))`.
pub(super) fn open(path: Arguments<'_>) -> Result<File, Fault> {
    let mut text = Path::default();
    // Longer than any path of a process, a disk or an interface: it has a name that no such thing has.
    text.write_fmt(path).map_err(|_| Fault::Gone(path.to_string()))?;
    File::open(text.as_str()).map_err(|e| Fault::of(path.to_string(), &e))
}

/// What stat(2) says of a path, put together in the same way.
pub(super) fn status(path: Arguments<'_>) -> Result<FileStat, Errno> {
    let mut text = Path::default();
    text.write_fmt(path).map_err(|_| Errno::ENAMETOOLONG)?;
    nix::sys::stat::stat(text.as_str())
}

/// A path on the stack.
struct Path {
    bytes: [u8; 256],
    length: usize,
}

impl Default for Path {
    fn default() -> Self {
        Self { bytes: [0; 256], length: 0 }
    }
}

impl Path {
    fn as_str(&self) -> &str {
        // It was put together from whole texts, so that it is one.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// What the file holds now, from its beginning. `what` names it in an error.
#[inline]
pub(super) fn read<'a>(
    file: &File,
    buffer: &'a mut [u8],
    what: impl FnOnce() -> String,
) -> Result<&'a [u8], Fault> {
    match file.read_at(buffer, 0) {
        // A process that has ended answers ESRCH for some files and nothing for others.
        Ok(0) => Err(Fault::Gone(what())),
        Ok(length) => Ok(&buffer[..length]),
        Err(error) => Err(Fault::of(what(), &error)),
    }
}

/// All of a file that may be longer than the buffer at hand: as often as there is something left.
pub(super) fn read_whole(path: &'static str, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    buffer.clear();
    let mut file = open(format_args!("{path}"))?;
    io::Read::read_to_end(&mut file, buffer).map_err(|e| Fault::of(path, &e))?;
    Ok(())
}
