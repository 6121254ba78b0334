//! A file whose pages can be evicted from the page cache, so that the next access reads them from the disk.
//!
//! # Invariants
//!
//! * **OWN-FILE**: `cachestat` gets an open descriptor and two structures of this function, and writes only the second.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::region::{PAGE, Region};
use crate::volume;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::resource::{Resource, getrlimit};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of one write. The length of the file is a multiple of it.
const BLOCK: usize = 1 << 20;
/// The least length, bytes: a few read-aheads would read the whole of a shorter file.
const LEAST: usize = 4 * BLOCK;
/// The file takes at most 1/SHARE of the free space of its file system.
const SHARE: u64 = 4;
/// Attempts to evict, a millisecond apart: a read that is in progress keeps its pages in the cache.
const ATTEMPTS: u32 = 100;
/// The number of cachestat(2), since Linux 6.5, which is the same on all supported architectures.
const SYS_CACHESTAT: libc::c_long = 451;

/// A file without a name, mapped for reading.
pub struct Evictable {
    file: File,
    directory: PathBuf,
    region: Region,
    shrunk: Option<String>,
    seen: Vec<u8>,
}

impl Evictable {
    /// Writes a file of `wanted` bytes into a directory on a disk, or a shorter one if there is little room. The file
    /// has no name, so it disappears with this value, or with a killed process.
    ///
    /// # Errors
    /// [`Error::Missing`] if the directory is on no disk or has no room.
    pub fn new(directory: &Path, wanted: usize) -> Result<Self> {
        if let Some(why) = volume::no_disk_reason(directory) {
            return Err(Error::Missing(format!("{why}; {}", volume::tmpdir_advice(wanted as u64 * SHARE))));
        }
        Self::on_any_filesystem(directory, wanted)
    }

    /// As [`Evictable::new`], on any file system: for faults that need no disk.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no room.
    pub fn on_any_filesystem(directory: &Path, wanted: usize) -> Result<Self> {
        let (bytes, shrunk) = fitting_length(directory, wanted)?;
        let file = tempfile::tempfile_in(directory);
        let mut file = file.map_err(|e| Error::file(directory, "making a file in", e))?;
        write_marked_pages(&mut file, bytes).map_err(|e| write_error(directory, bytes, e))?;
        let region = Region::map_file(&file, bytes)?;
        let seen = vec![0; region.page_count()];
        Ok(Self { file, directory: directory.to_path_buf(), region, shrunk, seen })
    }

    /// The mapping of the whole file.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Why the file is shorter than was asked for, if it is.
    pub fn shrink_reason(&self) -> Option<&str> {
        self.shrunk.as_deref()
    }

    /// The byte with which this page of the file begins.
    pub fn first_byte_of(page: usize) -> u8 {
        (page % 251) as u8 + 1
    }

    /// Evicts the whole file from the page cache and verifies it.
    ///
    /// # Errors
    /// [`Error::Missing`] if the file system keeps pages.
    pub fn evict(&mut self) -> Result<()> {
        let mut left = 0;
        for _ in 0..ATTEMPTS {
            // Mapped pages cannot be evicted, so they are discarded from the mapping first.
            self.region.discard(0..self.region.page_count())?;
            let advised = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
            advised.map_err(|errno| Error::from_errno("posix_fadvise POSIX_FADV_DONTNEED", errno))?;
            left = self.count_cached_pages()?;
            if left == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let (pages, directory) = (self.region.page_count(), self.directory.display());
        let instead = volume::tmpdir_advice(pages as u64 * PAGE as u64 * SHARE);
        Err(Error::Missing(format!(
            "the file system of {directory} keeps its files in memory: {left} of {pages} pages stayed after they were \
             written and given up (POSIX_FADV_DONTNEED); {instead}"
        )))
    }

    /// The number of pages of the file in the page cache, by `mincore`. If that reports none, the count is by `cachestat`, which
    /// includes pages that are being read.
    ///
    /// # Errors
    /// `mincore` is refused.
    pub fn count_cached_pages(&mut self) -> Result<usize> {
        let whole = 0..self.region.page_count();
        let seen = self.region.count_resident(whole, &mut self.seen)?;
        Ok(if seen > 0 { seen } else { cachestat(&self.file).unwrap_or(0) })
    }
}

/// The length that a file may have in this directory, bytes, and the reason if it is less than wanted.
fn fitting_length(directory: &Path, wanted: usize) -> Result<(usize, Option<String>)> {
    let free = volume::free_bytes(directory).unwrap_or(u64::MAX);
    let limit = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(limit, _)| limit);
    let name = directory.display();
    let (most, why) = match free / SHARE {
        part if part <= limit => {
            (part, format!("{} MiB are free in {name}, of which a quarter is used", free >> 20))
        }
        _ => (limit, format!("a file may have {} MiB (RLIMIT_FSIZE, `ulimit -f`)", limit >> 20)),
    };
    let bytes = (wanted as u64).min(most) as usize / BLOCK * BLOCK;
    match bytes {
        _ if bytes == wanted => Ok((bytes, None)),
        LEAST.. => Ok((bytes, Some(format!("the file has {} of {} MiB: {why}", bytes >> 20, wanted >> 20)))),
        _ => Err(Error::Missing(format!(
            "a file of {} MiB is needed and there is no room for it: {why}; {}",
            LEAST >> 20,
            volume::tmpdir_advice(wanted as u64 * SHARE)
        ))),
    }
}

/// Fills the file with marked pages and syncs it to the device.
fn write_marked_pages(file: &mut File, bytes: usize) -> std::io::Result<()> {
    let mut block = vec![0; BLOCK];
    for at in (0..bytes).step_by(BLOCK) {
        for (page, first) in block.chunks_mut(PAGE).enumerate() {
            first[0] = Evictable::first_byte_of(at / PAGE + page);
        }
        file.write_all(&block)?;
    }
    file.sync_all()
}

fn write_error(directory: &Path, bytes: usize, cause: std::io::Error) -> Error {
    match cause.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Error::Missing(format!(
            "a file of {} MiB cannot be written in {}: {cause}; {}",
            bytes >> 20,
            directory.display(),
            volume::tmpdir_advice(bytes as u64 * SHARE)
        )),
        _ => Error::file(directory, "writing a file in", cause),
    }
}

/// The number of pages of a file in the page cache. `None` if the kernel lacks the call or forbids it.
fn cachestat(file: &File) -> Option<usize> {
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    // `nr_cache`, `nr_dirty`, `nr_writeback`, `nr_evicted`, `nr_recently_evicted` of linux/mman.h.
    let mut counts = [0u64; 5];
    let whole = Range { offset: 0, length: 0 };
    // SAFETY: OWN-FILE.
    let answer =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const whole, counts.as_mut_ptr(), 0) };
    (answer == 0).then_some(counts[0] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;
    use crate::testing::value_or_skip;

    #[test]
    fn an_evicted_page_is_read_back_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let Some(mut file) = value_or_skip(Evictable::new(directory.path(), LEAST)) else { return };
        assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 0, "the file has a name");
        file.evict().expect("evicted");
        assert_eq!(file.count_cached_pages().expect("asked"), 0);
        assert_eq!(file.region().read_first_byte(700), Evictable::first_byte_of(700));
        assert!(file.count_cached_pages().expect("asked") > 0);
    }

    #[test]
    fn a_file_system_in_memory_is_refused() {
        let directory = Path::new("/dev/shm");
        if volume::no_disk_reason(directory).is_none() {
            print_skipped("/dev/shm is no tmpfs here");
            return;
        }
        let Err(Error::Missing(why)) = Evictable::new(directory, LEAST) else { panic!("taken for a disk") };
        assert!(why.contains("/dev/shm is on tmpfs") && why.contains("TMPDIR"), "{why}");
        let Err(Error::Missing(why)) = Evictable::on_any_filesystem(directory, LEAST).expect("made").evict()
        else {
            panic!("memory was reported as evicted")
        };
        assert!(why.contains("1024 of 1024 pages stayed") && why.contains("TMPDIR"), "{why}");
    }

    #[test]
    fn a_file_without_room_is_missing() {
        let Err(Error::Missing(why)) = unwritten_of(libc::ENOSPC) else { panic!("another error") };
        assert!(why.contains("4 MiB cannot be written in /x"), "{why}");
        assert!(matches!(unwritten_of(libc::EIO), Err(Error::File { .. })));
    }

    fn unwritten_of(errno: i32) -> Result<()> {
        Err(write_error(Path::new("/x"), LEAST, std::io::Error::from_raw_os_error(errno)))
    }
}
