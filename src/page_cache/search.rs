//! The search: the file grows until the cache keeps no more of it.

use super::machine_guard::LEAST_FILE;
use super::{Boundary, Bounds, Guard, Toll};
use crate::error::{Error, Result};
use crate::kit::io_priority::IdleAtTheDisk;
use crate::platform::control_group::memory_cgroup::LimitedMemory;
use crate::platform::kernel_files::{KernelFiles, meminfo_bytes};
use crate::platform::pattern_file::{self, PatternFile};
use crate::platform::process::page_size;
use crate::platform::volume;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one write, and of one read.
const PIECE: usize = 4 << 20;
/// The file has grown far enough when the cache has given up this part of it: the boundary then lies inside.
const GIVEN_UP_PART: u64 = 16;
/// What the reads say and what mincore says must agree to this share.
const AGREEMENT: f64 = 0.05;
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

/// What was found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How much the file could take.
    pub bounds: Bounds,
    /// Length of the file, bytes.
    pub file: u64,
    /// The share of it that is read from memory.
    pub boundary: Boundary,
    /// Bytes of it that are in the cache, by mincore(2).
    pub resident: u64,
    /// What `/proc/meminfo` says that the whole cache holds, bytes, before and after.
    pub cached: [u64; 2],
    /// How long it took.
    pub took: Duration,
    /// Whether the file stopped growing because the time was over.
    pub out_of_time: bool,
    /// What the search cost other processes.
    pub toll: Toll,
}

impl Answer {
    /// Bytes that the cache keeps of the file, by the reads.
    pub fn kept_bytes(&self) -> u64 {
        (self.boundary.share * self.file as f64).round() as u64
    }
}

/// Fills the page cache with a growing file and finds how much of it the cache keeps.
///
/// # Errors
/// [`Error::Missing`] where there is no disk, no room or no memory, [`Error::Disturbed`] if the guard ends it, or the two
/// ways to tell the size do not agree.
pub fn find_cache_size(request: &Request<'_>) -> Result<Answer> {
    let begun = Instant::now();
    let (_idle, group) = begin_search(request)?;
    let bounds = match request.group {
        // The group is the machine; half as much again can be read without harm to anybody outside.
        Some(bytes) => Bounds { available: bytes + bytes / 2, reserve: 0 },
        None => Bounds::read(&KernelFiles::live(), request.reserve)?,
    };
    check_disk_space(request.directory, bounds.longest_file(), "leave more memory to others (`--reserve`)")?;
    let before = cached_bytes();
    let mut guard = Guard::begin(bounds.reserve, request.time, request.interrupted);
    let mut file = PatternFile::create_empty(request.directory)?;
    let out_of_time = !grow_until_evicted(&mut file, bounds.longest_file(), &mut guard, request.progress)?;
    let boundary = Boundary::find(&file)?;
    let answer = Answer {
        bounds,
        file: file.bytes(),
        boundary,
        resident: resident_bytes(&file)?,
        cached: [before, cached_bytes()],
        took: begun.elapsed(),
        out_of_time,
        toll: guard.toll_so_far(),
    };
    check_agreement(&answer)?;
    // The file goes before the group does, which is then empty.
    drop(file);
    drop(group);
    Ok(answer)
}

/// Checks that the directory is on a disk, gives way to others at the disk, and enters the control group that is asked for.
pub(super) fn begin_search(request: &Request<'_>) -> Result<(IdleAtTheDisk, Option<LimitedMemory>)> {
    if let Some(why) = volume::no_disk_reason(request.directory) {
        return Err(Error::Missing(format!("{why}; {}", volume::disk_advice())));
    }
    Ok((IdleAtTheDisk::begin()?, request.group.map(LimitedMemory::enter).transpose()?))
}

/// Lets the file grow until the cache has given up a part of it, or it has `most` bytes. False if the time was over before.
fn grow_until_evicted(
    file: &mut PatternFile,
    most: u64,
    guard: &mut Guard,
    progress: &dyn Fn(u64, u64),
) -> Result<bool> {
    let mut piece = pattern_file::map_buffer(PIECE)?;
    while file.bytes() + PIECE as u64 <= most {
        guard.check_machine()?;
        if guard.is_time_over() {
            return Ok(false);
        }
        let at = file.bytes();
        file.append_piece(&mut piece)?;
        let got = file.file().read_at(&mut piece, at);
        file.check_block(got, &piece, at)?;
        progress(file.bytes(), most);
        if file.bytes() >= LEAST_FILE && has_evicted_part(file)? {
            break;
        }
    }
    Ok(true)
}

/// Whether the cache has given up enough of it: first a look at its beginning, which is cheap.
fn has_evicted_part(file: &PatternFile) -> Result<bool> {
    let part = file.bytes() / GIVEN_UP_PART;
    let gone = |range| Ok::<_, Error>(file.count_resident_pages(range)? == 0);
    Ok(gone(0..PIECE as u64)? && gone(part - PIECE as u64..part)?)
}

fn resident_bytes(file: &PatternFile) -> Result<u64> {
    Ok(file.count_resident_pages(0..file.bytes())? as u64 * page_size())
}

fn cached_bytes() -> u64 {
    let meminfo = KernelFiles::live().read_text("proc/meminfo").unwrap_or_default();
    meminfo_bytes(&meminfo, "Cached").unwrap_or(0)
}

fn check_agreement(answer: &Answer) -> Result<()> {
    let (kept, resident) = (answer.kept_bytes(), answer.resident);
    if kept.abs_diff(resident) as f64 <= AGREEMENT * resident as f64 {
        return Ok(());
    }
    let mib = |bytes: u64| bytes >> 20;
    Err(Error::Disturbed(format!(
        "{} MiB of a file of {} MiB are read from memory, and mincore says that {} MiB of it are in the cache: others \
         changed the cache meanwhile; try again when the machine is at rest",
        mib(kept),
        mib(answer.file),
        mib(resident)
    )))
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
pub(super) mod tests;
