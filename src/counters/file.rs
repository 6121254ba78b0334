//! Files of the kernel's, read anew each time: kept open, or opened for one reading.

use super::Fault;
use nix::errno::Errno;
use nix::sys::stat::FileStat;
use std::fmt::{Arguments, Write};
use std::fs::File;
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

/// Gives each line of a file of any length, without its end. A line longer than the room for one is cut.
pub(super) fn each_line(file: &File, what: &str, mut see: impl FnMut(&[u8])) -> Result<(), Fault> {
    let mut buffer = [0; 8 << 10];
    let (mut kept, mut offset) = (0, 0);
    loop {
        let length = file.read_at(&mut buffer[kept..], offset).map_err(|e| Fault::of(what, &e))?;
        offset += length as u64;
        let end = kept + length;
        let mut start = 0;
        while let Some(at) = buffer[start..end].iter().position(|byte| *byte == b'\n') {
            see(&buffer[start..start + at]);
            start += at + 1;
        }
        if length == 0 || (start == 0 && end == buffer.len()) {
            if start < end {
                see(&buffer[start..end]);
            }
            start = end;
        }
        if length == 0 {
            return Ok(());
        }
        buffer.copy_within(start..end, 0);
        kept = end - start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_of_any_length_is_given_line_by_line() {
        let mut file = tempfile::tempfile().expect("a file");
        let lines: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
        file.write_all(lines.join("\n").as_bytes()).expect("written");
        let mut seen = Vec::new();
        each_line(&file, "it", |line| seen.push(String::from_utf8(line.to_vec()).expect("digits")))
            .expect("read");
        assert_eq!(seen, lines);
    }

    #[test]
    fn a_line_without_an_end_ends_all_the_same() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[b'x'; 20 << 10]).expect("written");
        let mut bytes = 0;
        each_line(&file, "it", |line| bytes += line.len()).expect("read");
        assert_eq!(bytes, 20 << 10);
    }
}
