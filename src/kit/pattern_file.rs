//! Files to be read: every sector begins with its own number, so that who has read a block can tell that it was the
//! one that was asked for.
//!
//! # Invariants
//!
//! * **OWN-STRUCTURE**: the kernel writes into one structure, or one vector, of ours that is as large as it is told.
//! * **MAPPED**: the pages are mapped from the making of the mapping to its end, in the same function; nobody
//!   touches them.
#![allow(unsafe_code)]

use crate::platform::process::page_size;
use crate::platform::volume;
use crate::{Error, Result};
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::resource::{Resource, getrlimit};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The smallest piece that a disk knows.
pub const SECTOR: usize = 512;
/// Written at once when a file is filled.
const PIECE: usize = 1 << 20;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the page cache.
    Cached,
    /// Past it (`O_DIRECT`).
    Direct,
    /// Past it, and each write waits until the device has it for good (`O_DIRECT`, `O_DSYNC`).
    DirectSync,
}

impl Way {
    fn flags(self) -> i32 {
        match self {
            Self::Cached => 0,
            Self::Direct => libc::O_DIRECT,
            Self::DirectSync => libc::O_DIRECT | libc::O_DSYNC,
        }
    }
}

/// Memory for blocks, at the beginning of a page and there.
pub fn buffer(bytes: usize) -> Result<MmapMut> {
    let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
    let mut memory = MmapMut::map_anon(bytes).map_err(refused)?;
    memory.iter_mut().step_by(SECTOR).for_each(|byte| *byte = 1);
    Ok(memory)
}

/// Writes the numbers of its sectors into what is to stand at this place of a file.
pub fn stamp(block: &mut [u8], offset: u64) {
    for (sector, number) in block.chunks_mut(SECTOR).zip(offset / SECTOR as u64..) {
        sector[..8].copy_from_slice(&number.to_le_bytes());
    }
}

/// Whether a block begins with the number of this place.
#[inline(always)]
pub fn is_of(block: &[u8], offset: u64) -> bool {
    block.first_chunk().is_some_and(|number| u64::from_le_bytes(*number) == offset / SECTOR as u64)
}

/// A stamped file that nobody else can find: its name is gone as soon as it is open.
pub struct PatternFile {
    file: File,
    /// The name that it had, for sentences.
    path: PathBuf,
    bytes: u64,
}

impl PatternFile {
    /// Makes one of so many bytes, has the device write it, and takes it out of the page cache.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be made; [`Error::Missing`] where it cannot be opened in this way.
    pub fn make(directory: &Path, bytes: u64, way: Way) -> Result<Self> {
        let path = directory.join(format!("stamped-{bytes}"));
        let made = fill(&path, bytes).and_then(|()| Self::open(path.clone(), bytes, way));
        // Open or not, nobody must find it. A file server that cannot unlink what is open renames it until then.
        let gone = std::fs::remove_file(&path);
        let made = made?;
        gone.map_err(|e| Error::file(&path, "unlinking", e))?;
        Ok(made)
    }

    fn open(path: PathBuf, bytes: u64, way: Way) -> Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(way.flags()).open(&path);
        let file = opened.map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL) if way != Way::Cached => no_direct(&path, &cause),
            _ => Error::file(&path, "opening", cause),
        })?;
        let stamped = Self { file, path, bytes };
        stamped.evict()?;
        Ok(stamped)
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the kernel answered, with the name of the file.
    pub fn refused(&self, doing: &'static str, cause: std::io::Error) -> Error {
        Error::file(&self.path, doing, cause)
    }

    /// Takes it out of the page cache, as far as the kernel does.
    pub fn evict(&self) -> Result<()> {
        let advised = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        advised.map_err(|errno| self.refused("evicting", errno.into()))
    }

    /// Refuses blocks that its device does not know, by what the kernel tells (since Linux 6.1). Where it does not,
    /// the first read will.
    pub fn takes(&self, block: usize) -> Result<()> {
        match self.direct_alignment() {
            Some(0) => Err(no_direct(&self.path, &Errno::EINVAL.into())),
            Some(least) if block < least as usize => Err(Error::Missing(format!(
                "the device below {} moves {least} bytes at once, and not {block}: give a directory on another \
                 (`--dir`)",
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The multiple of bytes that a read past the page cache must be; 0 where there are none.
    fn direct_alignment(&self) -> Option<u32> {
        // SAFETY: `statx` is plain numbers, for which zero is a value.
        let mut told: libc::statx = unsafe { std::mem::zeroed() };
        let (file, mask) = (self.file.as_raw_fd(), libc::STATX_DIOALIGN);
        // SAFETY: OWN-STRUCTURE.
        let answer = unsafe { libc::statx(file, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut told) };
        (answer == 0 && told.stx_mask & mask != 0).then_some(told.stx_dio_offset_align)
    }

    /// How many pages of a range of it are in the page cache, by mincore(2).
    pub fn resident(&self, range: std::ops::Range<u64>) -> Result<usize> {
        let page = page_size();
        let (from, to) = (range.start / page * page, range.end.min(self.bytes).div_ceil(page) * page);
        let length = to.saturating_sub(from) as usize;
        if length == 0 {
            return Ok(0);
        }
        let (file, place) = (self.file.as_raw_fd(), std::ptr::null_mut());
        let refused = |doing| Err(self.refused(doing, std::io::Error::last_os_error()));
        // SAFETY: MAPPED: a fresh mapping wherever the kernel likes.
        let at = unsafe { libc::mmap(place, length, libc::PROT_READ, libc::MAP_PRIVATE, file, from as i64) };
        if at == libc::MAP_FAILED {
            return refused("mapping");
        }
        let mut pages = vec![0u8; length / page as usize];
        // SAFETY: MAPPED, OWN-STRUCTURE: a byte for each page.
        let answer = unsafe { libc::mincore(at, length, pages.as_mut_ptr()) };
        // SAFETY: MAPPED: what was mapped above.
        unsafe { libc::munmap(at, length) };
        if answer != 0 {
            return refused("asking mincore");
        }
        Ok(pages.iter().filter(|page| **page & 1 != 0).count())
    }
}

fn fill(path: &Path, bytes: u64) -> Result<()> {
    allowed(path, bytes)?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|e| Error::file(path, "creating", e))?;
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < bytes {
        let length = PIECE.min((bytes - at) as usize);
        stamp(&mut piece[..length], at);
        file.write_all_at(&piece[..length], at).map_err(|e| Error::file(path, "writing", e))?;
        at += length as u64;
    }
    // Only what lies on the device can be read from there, and only then it can be evicted.
    file.sync_all().map_err(|e| Error::file(path, "writing to the device", e))
}

/// A process that exceeds its limit is killed, which would explain nothing.
fn allowed(path: &Path, bytes: u64) -> Result<()> {
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((limit, _)) if limit < bytes => {
            let cause =
                format!("{bytes} bytes are more than RLIMIT_FSIZE allows, {limit}: raise `ulimit -f`");
            Err(Error::file(path, "writing", std::io::Error::other(cause)))
        }
        _ => Ok(()),
    }
}

fn no_direct(path: &Path, cause: &std::io::Error) -> Error {
    let directory = path.parent().unwrap_or(path);
    let (filesystem, _) = volume::of(directory);
    Error::Missing(format!(
        "{}: {filesystem} does not take O_DIRECT ({cause}); {}",
        directory.display(),
        volume::advice()
    ))
}

#[cfg(test)]
mod tests;
