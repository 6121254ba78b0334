//! What is asked for, and what must be there.

use crate::error::{Error, Result};
use crate::kit::io_priority::IdleAtTheDisk;
use crate::platform::control_group::own_group::LimitedMemory;
use crate::platform::volume;
use std::path::Path;
use std::time::Duration;

/// The free space of the file system that is left to others: the file may take one half.
const SHARE_OF_DISK: u64 = 2;

/// What is asked for.
pub struct Request<'a> {
    /// Where the file is made: a directory on a disk.
    pub directory: &'a Path,
    /// Bytes that are left to others; `None`: a tenth of the memory.
    pub reserve: Option<u64>,
    /// A control group of this many bytes is made and stands in for the machine.
    pub group: Option<u64>,
    /// The longest time.
    pub time: Duration,
    /// Asked several times a second.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called with the bytes that are made of the longest file, and with its length in bytes.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Checks that the directory is on a disk, gives way to others at the disk, and enters the control group that is asked for.
pub(super) fn begin(request: &Request<'_>) -> Result<(IdleAtTheDisk, Option<LimitedMemory>)> {
    if let Some(why) = volume::no_disk_reason(request.directory) {
        return Err(Error::Missing(format!("{why}; {}", volume::disk_advice())));
    }
    Ok((IdleAtTheDisk::begin()?, request.group.map(LimitedMemory::enter).transpose()?))
}

/// Checks that the file system has room for the file; `otherwise` is what helps besides room.
pub(super) fn check_disk_space(directory: &Path, bytes: u64, otherwise: &str) -> Result<()> {
    let free = volume::free_bytes(directory).unwrap_or(u64::MAX);
    if free / SHARE_OF_DISK >= bytes {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "the file may become {} MiB long, and {} MiB are free in {}, of which it may take half: make room, name \
         another directory (`--dir`), or {otherwise}",
        bytes >> 20,
        free >> 20,
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_room_is_missing() {
        let sentence = check_disk_space(Path::new("/"), 1 << 60, "go").expect_err("no room").to_string();
        assert!(sentence.contains("of which it may take half") && sentence.ends_with("or go"), "{sentence}");
    }
}
