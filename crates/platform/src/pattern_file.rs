//! Files with a known pattern: every sector begins with its own number, so that a reader can recognise the block that it
//! asked for.
//!
//! # Invariants
//!
//! * **OWN-STRUCTURE**: the kernel writes into one structure, or one vector, of the calling function, which is as
//!   large as the size passed to the kernel.
//! * **MAPPED**: one function makes the mapping, removes it, and never accesses its pages.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::process::page_size;
use crate::volume;
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, PosixFadviseAdvice, fcntl, posix_fadvise};
use nix::sys::resource::{Resource, getrlimit};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The smallest unit of a disk, bytes.
pub const SECTOR: usize = 512;
/// Bytes of one write while a file is filled.
const PIECE: usize = 1 << 20;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the page cache.
    Cached,
    /// Past the page cache (`O_DIRECT`).
    Direct,
    /// Past the page cache, and each write returns when the device has stored the data (`O_DIRECT`, `O_DSYNC`).
    DirectSync,
}

impl Way {
    fn open_flags(self) -> i32 {
        match self {
            Self::Cached => 0,
            Self::Direct => libc::O_DIRECT,
            Self::DirectSync => libc::O_DIRECT | libc::O_DSYNC,
        }
    }
}

/// Memory for blocks that begins at a page and is resident.
///
/// # Errors
/// The kernel refuses the memory.
pub fn map_buffer(bytes: usize) -> Result<MmapMut> {
    let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
    let mut memory = MmapMut::map_anon(bytes).map_err(refused)?;
    memory.iter_mut().step_by(SECTOR).for_each(|byte| *byte = 1);
    Ok(memory)
}

/// Writes the pattern of the file at this byte offset into a block.
pub fn number_sectors(block: &mut [u8], offset: u64) {
    for (sector, number) in block.chunks_mut(SECTOR).zip(offset / SECTOR as u64..) {
        sector[..8].copy_from_slice(&number.to_le_bytes());
    }
}

/// Whether a block begins with the pattern of the file at this byte offset.
#[inline(always)]
pub fn is_pattern_at(block: &[u8], offset: u64) -> bool {
    block.first_chunk().is_some_and(|number| u64::from_le_bytes(*number) == offset / SECTOR as u64)
}

/// A pattern file that no other program can find: its name is removed as soon as it is open.
pub struct PatternFile {
    file: File,
    /// Its former name, for messages.
    path: PathBuf,
    bytes: u64,
}

impl PatternFile {
    /// Makes a file of this length, syncs it to the device, and evicts it from the page cache.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be made; [`Error::Missing`] if it cannot be opened in this way.
    pub fn create_filled(directory: &Path, bytes: u64, way: Way) -> Result<Self> {
        let path = directory.join(format!("stamped-{bytes}"));
        let made = write_pattern(&path, bytes).and_then(|()| Self::open(path.clone(), bytes, way));
        // The name is removed even if opening failed. A file server that cannot unlink an open file renames it.
        let gone = std::fs::remove_file(&path);
        let made = made?;
        gone.map_err(|e| Error::file(&path, "unlinking", e))?;
        Ok(made)
    }

    /// Makes an empty file for [`append_piece`](Self::append_piece), which is read through the page cache. Its name is removed before
    /// the first byte is written, so that a killed process leaves nothing.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be made; [`Error::Missing`] if the page cache cannot be bypassed.
    pub fn create_empty(directory: &Path) -> Result<Self> {
        let path = directory.join("stamped-growing");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(Way::Direct.open_flags());
        let file = options.open(&path).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL) => direct_io_error(&path, &cause),
            _ => Error::file(&path, "creating", cause),
        })?;
        std::fs::remove_file(&path).map_err(|e| Error::file(&path, "unlinking", e))?;
        Ok(Self { file, path, bytes: 0 })
    }

    /// Appends a piece, past the page cache: none of its pages is in the cache afterwards. The length of the piece must
    /// be a multiple of what the device moves at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_piece(&mut self, piece: &mut [u8]) -> Result<()> {
        check_file_limit(&self.path, self.bytes + piece.len() as u64)?;
        number_sectors(piece, self.bytes);
        self.set_way(Way::Direct)?;
        let written = self.file.write_all_at(piece, self.bytes).map_err(|e| self.call_error("writing", e));
        self.set_way(Way::Cached)?;
        written?;
        self.bytes += piece.len() as u64;
        Ok(())
    }

    fn set_way(&self, way: Way) -> Result<()> {
        let chosen = fcntl(&self.file, FcntlArg::F_SETFL(OFlag::from_bits_retain(way.open_flags())));
        chosen.map(drop).map_err(|errno| self.call_error("passing by the page cache", errno.into()))
    }

    fn open(path: PathBuf, bytes: u64, way: Way) -> Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(way.open_flags()).open(&path);
        let file = opened.map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL) if way != Way::Cached => direct_io_error(&path, &cause),
            _ => Error::file(&path, "opening", cause),
        })?;
        let made = Self { file, path, bytes };
        made.evict()?;
        Ok(made)
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The length of the file, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The error for a failed call on this file.
    pub fn call_error(&self, doing: &'static str, cause: io::Error) -> Error {
        Error::file(&self.path, doing, cause)
    }

    /// The error for a failed proof on this file.
    pub fn proof_error(&self, doing: &'static str, what: String) -> Error {
        Error::Disproved(self.call_error(doing, io::Error::other(what)).to_string())
    }

    /// Verifies a read: `got` is the result of the call, `block` the whole buffer, `offset` its byte offset in the file.
    ///
    /// # Errors
    /// The read was refused, was short, or delivered another block.
    #[inline(always)]
    pub fn check_block(&self, got: io::Result<usize>, block: &[u8], offset: u64) -> Result<()> {
        const DOING: &str = "reading a block";
        self.check_length(DOING, got, block.len(), offset)?;
        if is_pattern_at(block, offset) {
            return Ok(());
        }
        Err(self.proof_error(DOING, format!("what came is not what was written at {offset}")))
    }

    /// Verifies that `block` bytes were read or written at `offset`.
    ///
    /// # Errors
    /// The call was refused, or moved fewer bytes. [`Error::Missing`] if the device does not support blocks of this
    /// length.
    #[inline(always)]
    pub fn check_length(
        &self,
        doing: &'static str,
        got: io::Result<usize>,
        block: usize,
        offset: u64,
    ) -> Result<()> {
        match got {
            Ok(length) if length == block => Ok(()),
            got => Err(self.incomplete_error(doing, got, block, offset)),
        }
    }

    #[cold]
    fn incomplete_error(
        &self,
        doing: &'static str,
        got: io::Result<usize>,
        block: usize,
        offset: u64,
    ) -> Error {
        match got {
            Err(cause) if cause.raw_os_error() == Some(libc::EINVAL) => Error::Missing(format!(
                "blocks of {block} bytes are refused past the page cache here ({cause}): the device moves more at once; \
                 {}",
                volume::disk_advice()
            )),
            Err(cause) => self.call_error(doing, cause),
            Ok(length) => {
                self.proof_error(doing, format!("{length} of {block} bytes were moved at {offset}"))
            }
        }
    }

    /// Evicts the file from the page cache, as far as the kernel does so.
    ///
    /// # Errors
    /// `posix_fadvise` is refused.
    pub fn evict(&self) -> Result<()> {
        self.advise(0..0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
    }

    /// Tells the kernel how a range of byte offsets is used; `0..0` is the whole file.
    ///
    /// # Errors
    /// `posix_fadvise` is refused.
    pub fn advise(&self, range: std::ops::Range<u64>, advice: PosixFadviseAdvice) -> Result<()> {
        let length = range.end.saturating_sub(range.start);
        let advised = posix_fadvise(&self.file, range.start as i64, length as i64, advice);
        advised.map_err(|errno| self.call_error("advising", errno.into()))
    }

    /// Rejects blocks that are shorter than the device supports, if the kernel states this length (since Linux 6.1).
    /// Otherwise the first read fails.
    ///
    /// # Errors
    /// [`Error::Missing`] with the least length.
    pub fn check_block_size(&self, block: usize) -> Result<()> {
        match self.direct_alignment() {
            Some(0) => Err(direct_io_error(&self.path, &Errno::EINVAL.into())),
            Some(least) if block < least as usize => Err(Error::Missing(format!(
                "the device below {} moves {least} bytes at once, and not {block}: give a directory on another \
                 (`--dir`)",
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The alignment of reads past the page cache, bytes; 0 if the file supports no such reads, `None` if the kernel does
    /// not state it.
    fn direct_alignment(&self) -> Option<u32> {
        // SAFETY: `statx` is plain numbers, for which zero is a value.
        let mut status: libc::statx = unsafe { std::mem::zeroed() };
        let (file, mask) = (self.file.as_raw_fd(), libc::STATX_DIOALIGN);
        // SAFETY: OWN-STRUCTURE.
        let answer = unsafe { libc::statx(file, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut status) };
        (answer == 0 && status.stx_mask & mask != 0).then_some(status.stx_dio_offset_align)
    }

    /// The number of pages of a range, byte offsets, that are in the page cache, by mincore(2).
    ///
    /// # Errors
    /// The file cannot be mapped, or the call is refused.
    pub fn count_resident_pages(&self, range: std::ops::Range<u64>) -> Result<usize> {
        let page = page_size();
        let (from, to) = (range.start / page * page, range.end.min(self.bytes).div_ceil(page) * page);
        let length = to.saturating_sub(from) as usize;
        if length == 0 {
            return Ok(0);
        }
        let (file, place) = (self.file.as_raw_fd(), std::ptr::null_mut());
        let refused = |doing| Err(self.call_error(doing, io::Error::last_os_error()));
        // SAFETY: MAPPED: a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(place, length, libc::PROT_READ, libc::MAP_PRIVATE, file, from as i64) };
        if at == libc::MAP_FAILED {
            return refused("mapping");
        }
        let mut pages = vec![0u8; length / page as usize];
        // SAFETY: MAPPED, OWN-STRUCTURE: a byte for each page.
        let answer = unsafe { libc::mincore(at, length, pages.as_mut_ptr()) };
        // SAFETY: MAPPED: the mapping made above.
        unsafe { libc::munmap(at, length) };
        if answer != 0 {
            return refused("asking mincore");
        }
        Ok(pages.iter().filter(|page| **page & 1 != 0).count())
    }
}

fn write_pattern(path: &Path, bytes: u64) -> Result<()> {
    check_file_limit(path, bytes)?;
    // An earlier case may have stopped early and left its file; no other process uses the directory.
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(Error::file(path, "removing what an earlier case left", e));
        }
        _ => {}
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|e| Error::file(path, "creating", e))?;
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < bytes {
        let length = PIECE.min((bytes - at) as usize);
        number_sectors(&mut piece[..length], at);
        file.write_all_at(&piece[..length], at).map_err(|e| Error::file(path, "writing", e))?;
        at += length as u64;
    }
    // Only data that is on the device can be evicted from the page cache and read from the device.
    file.sync_all().map_err(|e| Error::file(path, "writing to the device", e))
}

/// Checks the file's length against RLIMIT_FSIZE in advance: a process that exceeds it is killed without an explanation.
fn check_file_limit(path: &Path, bytes: u64) -> Result<()> {
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((limit, _)) if limit < bytes => {
            let cause =
                format!("{bytes} bytes are more than RLIMIT_FSIZE allows, {limit}: raise `ulimit -f`");
            Err(Error::file(path, "writing", io::Error::other(cause)))
        }
        _ => Ok(()),
    }
}

fn direct_io_error(path: &Path, cause: &io::Error) -> Error {
    let directory = path.parent().unwrap_or(path);
    let (filesystem, _) = volume::filesystem_and_medium(directory);
    Error::Missing(format!(
        "{}: {filesystem} does not take O_DIRECT ({cause}); {}",
        directory.display(),
        volume::disk_advice()
    ))
}

#[cfg(test)]
mod tests;
