//! Files of the kernel that are read repeatedly: kept open, or opened for one reading.

use super::Fault;
use nix::errno::Errno;
use nix::sys::stat::FileStat;
use std::ffi::CStr;
use std::fmt::{Arguments, Write};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Buffer size for short files, such as `/proc/PID/stat`, bytes.
pub(super) const SHORT: usize = 1024;

/// Opens a file by a path that is formatted on the stack, without an allocation:
/// `open(format_args!("/proc/{pid}/stat"))`.
///
/// # Errors
/// The [`Fault`] that corresponds to the error of open(2).
pub(super) fn open(path: Arguments<'_>) -> Result<File, Fault> {
    let mut text = Path::default();
    // No process, disk or interface has a path longer than the buffer.
    text.write_fmt(path).map_err(|_| Fault::Gone(path.to_string()))?;
    File::open(text.as_str()).map_err(|e| Fault::from_error(path.to_string(), &e))
}

/// Opens a file of a process. The path is built without `format_args!`, which would take a tenth of the time of the fastest
/// reading.
///
/// # Errors
/// The [`Fault`] that corresponds to the error of open(2).
pub(super) fn open_process_file(pid: i32, name: &str) -> Result<File, Fault> {
    let open = |text: &Path| File::open(text.as_str()).map_err(|e| Fault::from_error(text.as_str(), &e));
    Path::for_process_file(pid, name)
        .map_or_else(|_| Err(Fault::Gone(format!("/proc/{pid}/{name}"))), |text| open(&text))
}

/// stat(2) of a file of a process.
///
/// # Errors
/// The error of stat(2).
pub(super) fn stat_process_file(pid: i32, name: &str) -> Result<FileStat, Errno> {
    let path = Path::for_process_file(pid, name).map_err(|_| Errno::ENAMETOOLONG)?;
    nix::sys::stat::stat(path.as_c_str()?)
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
    fn for_process_file(pid: i32, name: &str) -> Result<Self, std::fmt::Error> {
        let mut digits = [0; 10];
        let (mut left, mut start) = (pid.unsigned_abs(), digits.len());
        while left > 0 || start == digits.len() {
            start -= 1;
            digits[start] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let mut path = Self::default();
        path.write_str(if pid < 0 { "/proc/-" } else { "/proc/" })?;
        path.write_str(std::str::from_utf8(&digits[start..]).unwrap_or_default())?;
        path.write_str("/")?;
        path.write_str(name)?;
        Ok(path)
    }

    /// The path up to the first of the zeroes behind it, so that no copy is needed.
    fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::ENAMETOOLONG)
    }

    fn as_str(&self) -> &str {
        // Only whole strings are appended, so the bytes are valid UTF-8.
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

/// Reads the file from its beginning into `buffer`. `what` names the file in an error.
///
/// # Errors
/// [`Fault::Gone`] for an empty file, otherwise the fault that corresponds to the error of read(2).
#[inline]
pub(super) fn read<'a>(
    file: &File,
    buffer: &'a mut [u8],
    what: impl FnOnce() -> String,
) -> Result<&'a [u8], Fault> {
    match file.read_at(buffer, 0) {
        // A read of a file of an ended process gives ESRCH or no bytes.
        Ok(0) => Err(Fault::Gone(what())),
        Ok(length) => Ok(&buffer[..length]),
        Err(error) => Err(Fault::from_error(what(), &error)),
    }
}

/// Calls `see` with each line of a file of any length, without its line end. A line of more than 8 KiB is passed in pieces.
///
/// # Errors
/// The fault that corresponds to the error of read(2).
pub(super) fn for_each_line(file: &File, what: &str, mut see: impl FnMut(&[u8])) -> Result<(), Fault> {
    let mut buffer = [0; 8 << 10];
    let (mut kept, mut offset) = (0, 0);
    loop {
        let length = file.read_at(&mut buffer[kept..], offset).map_err(|e| Fault::from_error(what, &e))?;
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

/// Returns the name if it is a single component of a path, so that it cannot lead out of its directory.
///
/// # Errors
/// [`Fault::Gone`] for any other name, since no object has such a name.
pub(super) fn checked_name<'a>(kind: &str, name: &'a str) -> Result<&'a str, Fault> {
    let is_part = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if is_part { Ok(name) } else { Err(Fault::Gone(format!("{kind} {name:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_path_of_a_process_equals_the_formatted_path() {
        for pid in [0, 1, 9, 10, 4_194_304, i32::MAX, -5, i32::MIN] {
            let path = Path::for_process_file(pid, "stat").expect("it is short");
            assert_eq!(path.as_str(), format!("/proc/{pid}/stat"));
        }
        assert!(Path::for_process_file(1, &"x".repeat(256)).is_err());
    }

    #[test]
    fn a_file_of_any_length_is_passed_line_by_line() {
        let mut file = tempfile::tempfile().expect("a file");
        let lines: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
        file.write_all(lines.join("\n").as_bytes()).expect("written");
        let mut seen = Vec::new();
        for_each_line(&file, "it", |line| seen.push(String::from_utf8(line.to_vec()).expect("digits")))
            .expect("read");
        assert_eq!(seen, lines);
    }

    #[test]
    fn the_last_line_is_passed_without_a_line_end() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[b'x'; 20 << 10]).expect("written");
        let mut bytes = 0;
        for_each_line(&file, "it", |line| bytes += line.len()).expect("read");
        assert_eq!(bytes, 20 << 10);
    }

    #[test]
    fn a_name_that_leads_out_of_its_directory_is_refused() {
        for name in ["", ".", "..", "../..", "a/b", "a\0b"] {
            assert!(checked_name("interface", name).is_err(), "{name:?}");
        }
        assert_eq!(checked_name("interface", "eth0.100").ok(), Some("eth0.100"));
    }
}
