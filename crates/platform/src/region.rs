//! A mapped range of addresses whose pages are touched, given back to the kernel and protected.
//!
//! # Invariants
//!
//! * **OWN-MAPPING**: the value that holds the addresses has mapped them, where the kernel chose, and unmaps them
//!   once, when it is dropped. There is no reference to the bytes: any thread reads and writes them as atomics only,
//!   and every content is a value of an atomic.
//! * **WITHIN**: pages are chosen by number, and the numbers are checked against the region before a loop over
//!   them begins.
#![allow(unsafe_code)]

mod page_change;

use super::limit;
use super::resident::Pages;
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The page size, bytes, that cases of page faults are made for.
pub const PAGE: usize = 4 << 10;
/// The size of a transparent huge page made of such pages, bytes.
pub const HUGE_PAGE: usize = 2 << 20;

/// The advice that the kernel is given about the order in which pages will be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No advice: the kernel reads pages around the touched one, and ahead.
    Untold,
    /// The order is random: the kernel reads the touched page only.
    Random,
}

/// Mapped addresses.
pub struct Region {
    mapping: NonNull<u8>,
    mapped: usize,
    /// Offset of the used part, bytes, which aligns it.
    begins: usize,
    bytes: usize,
}

// SAFETY: OWN-MAPPING: the addresses belong to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: OWN-MAPPING: the content is atomics.
unsafe impl Sync for Region {}

impl Region {
    /// Maps fresh private anonymous memory that may be written, and advises the kernel to use pages of this kind.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is too little memory or address space.
    pub fn map_anonymous(bytes: usize, pages: Pages) -> Result<Self> {
        let mapped = if pages == Pages::Huge { bytes + HUGE_PAGE } else { bytes };
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: OWN-MAPPING.
        let mapping =
            unsafe { mmap_anonymous(None, nonzero_length(mapped)?, protection, MapFlags::MAP_PRIVATE) };
        let mapping = mapping.map_err(|errno| mapping_error(mapped, errno))?.cast::<u8>();
        let begins = if pages == Pages::Huge { mapping.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        let region = Self { mapping, mapped, begins, bytes };
        let advice =
            if pages == Pages::Huge { MmapAdvise::MADV_HUGEPAGE } else { MmapAdvise::MADV_NOHUGEPAGE };
        // A kernel without huge pages refuses either advice: the case checks which pages it got.
        let _ = region.advise(0..region.page_count(), advice);
        Ok(region)
    }

    /// Maps the first `bytes` of a file for reading.
    ///
    /// # Errors
    /// As of [`Region::map_anonymous`].
    pub fn map_file(file: &File, bytes: usize) -> Result<Self> {
        // SAFETY: OWN-MAPPING.
        Self::from_mapping(bytes, unsafe {
            mmap(None, nonzero_length(bytes)?, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, file, 0)
        })
    }

    /// The region of a mapping of this length that the kernel has made.
    fn from_mapping(bytes: usize, mapping: nix::Result<NonNull<c_void>>) -> Result<Self> {
        let mapping = mapping.map_err(|errno| mapping_error(bytes, errno))?.cast();
        Ok(Self { mapping, mapped: bytes, begins: 0, bytes })
    }

    /// How many pages the region has.
    pub fn page_count(&self) -> usize {
        self.bytes / PAGE
    }

    /// Its first address.
    pub fn start_address(&self) -> usize {
        self.page_pointer(0).as_ptr() as usize
    }

    fn page_pointer(&self, page: usize) -> NonNull<u8> {
        assert!(page <= self.page_count(), "page {page} of a region of {}", self.page_count());
        // SAFETY: WITHIN: the offset lies in the mapping, or just behind it.
        unsafe { self.mapping.add(self.begins + page * PAGE) }
    }

    fn advise(&self, pages: Range<usize>, advice: MmapAdvise) -> Result<()> {
        let bytes = (pages.end - pages.start) * PAGE;
        let _within = self.page_pointer(pages.end);
        // SAFETY: OWN-MAPPING: there is no reference to the pages that vanish.
        let answer = unsafe { madvise(self.page_pointer(pages.start).cast(), bytes, advice) };
        answer.map_err(|errno| Error::from_errno(format!("madvise {advice:?} of {bytes} bytes"), errno))
    }

    /// Advises the kernel in which order pages will be touched.
    ///
    /// # Errors
    /// The kernel refuses `madvise`.
    pub fn advise_order(&self, order: Order) -> Result<()> {
        let advice = match order {
            Order::Untold => MmapAdvise::MADV_NORMAL,
            Order::Random => MmapAdvise::MADV_RANDOM,
        };
        self.advise(0..self.page_count(), advice)
    }

    /// Gives pages back (`MADV_DONTNEED`), so that the next touch of each is a fault. Pages of a file stay in the page
    /// cache.
    ///
    /// # Errors
    /// The kernel refuses `madvise`.
    #[inline(always)]
    pub fn discard(&self, pages: Range<usize>) -> Result<()> {
        self.advise(pages, MmapAdvise::MADV_DONTNEED)
    }

    /// Makes these pages writable or read-only.
    ///
    /// # Errors
    /// The kernel refuses `mprotect`.
    #[inline(always)]
    pub fn protect(&self, pages: Range<usize>, writable: bool) -> Result<()> {
        let write = if writable { ProtFlags::PROT_WRITE } else { ProtFlags::empty() };
        let bytes = (pages.end - pages.start) * PAGE;
        let _within = self.page_pointer(pages.end);
        // SAFETY: OWN-MAPPING.
        let answer =
            unsafe { mprotect(self.page_pointer(pages.start).cast(), bytes, ProtFlags::PROT_READ | write) };
        answer.map_err(|errno| Error::from_errno(format!("mprotect of {bytes} bytes"), errno))
    }

    /// Writes a byte of each `stride`-th of these pages.
    #[inline(always)]
    pub fn write(&self, pages: Range<usize>, stride: usize) {
        let _within = self.page_pointer(pages.end);
        write_each(self.page_pointer(pages.start).as_ptr(), pages.len().div_ceil(stride), stride * PAGE);
    }

    /// Reads a byte of each `stride`-th of these pages, and returns their sum.
    #[inline(always)]
    pub fn read(&self, pages: Range<usize>, stride: usize) -> u64 {
        let _within = self.page_pointer(pages.end);
        read_each(self.page_pointer(pages.start).as_ptr(), pages.len().div_ceil(stride), stride * PAGE)
    }

    /// Reads the first byte of a page.
    #[inline(always)]
    pub fn read_first_byte(&self, page: usize) -> u8 {
        let _within = self.page_pointer(page + 1);
        // SAFETY: WITHIN, OWN-MAPPING.
        unsafe { AtomicU8::from_ptr(self.page_pointer(page).as_ptr()) }.load(Relaxed)
    }

    /// How many of these pages are in memory (`mincore`): in the page cache for a file, in the page table for other
    /// memory. `seen` must have room for a byte per page.
    ///
    /// # Errors
    /// The kernel refuses `mincore`.
    pub fn count_resident(&self, pages: Range<usize>, seen: &mut [u8]) -> Result<usize> {
        let count = pages.len();
        let _within = self.page_pointer(pages.end);
        assert!(seen.len() >= count, "room for {} of {count} pages", seen.len());
        // SAFETY: OWN-MAPPING, and there is room for a byte a page.
        let answer = unsafe {
            libc::mincore(self.page_pointer(pages.start).as_ptr().cast(), count * PAGE, seen.as_mut_ptr())
        };
        if answer != 0 {
            return Err(Error::from_last_errno("mincore"));
        }
        Ok(seen[..count].iter().filter(|byte| **byte & 1 == 1).count())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: OWN-MAPPING: this is the only owner.
        let _ = unsafe { munmap(self.mapping.cast(), self.mapped) };
    }
}

fn nonzero_length(bytes: usize) -> Result<NonZeroUsize> {
    NonZeroUsize::new(bytes).ok_or_else(|| Error::Usage("a region of no bytes was asked for".into()))
}

fn mapping_error(bytes: usize, errno: Errno) -> Error {
    match errno {
        Errno::ENOMEM => Error::Missing(limit::refused_mapping_message(bytes as u64, errno.into())),
        _ => Error::from_errno(format!("mmap of {bytes} bytes"), errno),
    }
}

/// The hot loop of writing touches.
#[inline(never)]
fn write_each(first: *mut u8, count: usize, step: usize) {
    for i in 0..count {
        // SAFETY: WITHIN, OWN-MAPPING: the only caller has checked the last page.
        unsafe { AtomicU8::from_ptr(first.add(i * step)) }.store(1, Relaxed);
    }
}

/// The hot loop of reading touches.
#[inline(never)]
fn read_each(first: *mut u8, count: usize, step: usize) -> u64 {
    let mut sum = 0;
    for i in 0..count {
        // SAFETY: WITHIN, OWN-MAPPING: the only caller has checked the last page.
        sum += u64::from(unsafe { AtomicU8::from_ptr(first.add(i * step)) }.load(Relaxed));
    }
    sum
}

/// Maps anonymous memory, with all its pages at once if `populated`, and unmaps it. Returns 0 or a negative error number.
#[inline(never)]
pub fn map_and_unmap(bytes: usize, populated: bool) -> i64 {
    let populate = if populated { libc::MAP_POPULATE } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | populate;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: OWN-MAPPING: the address never leaves this function, and is unmapped here.
    let answer = unsafe {
        let mapped = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if mapped == libc::MAP_FAILED { -1 } else { libc::munmap(mapped, bytes) }
    };
    if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_pages_are_gone_until_they_are_touched() {
        let region = Region::map_anonymous(16 * PAGE, Pages::Base).expect("memory");
        let mut seen = [0; 16];
        assert_eq!(region.count_resident(0..16, &mut seen).expect("asked"), 0);
        region.write(0..16, 2);
        assert_eq!(region.count_resident(0..16, &mut seen).expect("asked"), 8);
        assert_eq!(region.read(0..16, 2), 8);
        region.discard(0..16).expect("given back");
        assert_eq!(region.count_resident(0..16, &mut seen).expect("asked"), 0);
        assert_eq!(region.read_first_byte(3), 0, "it came fresh");
    }

    #[test]
    fn pages_that_are_writable_again_have_kept_their_bytes() {
        let region = Region::map_anonymous(4 * PAGE, Pages::Base).expect("memory");
        region.write(0..4, 1);
        region.protect(0..4, false).expect("taken");
        region.protect(0..4, true).expect("given");
        region.write(0..4, 1);
        assert_eq!(region.read(0..4, 1), 4);
    }

    #[test]
    fn a_mapping_beyond_the_address_space_is_missing() {
        let Err(Error::Missing(sentence)) = Region::map_anonymous(1 << 47, Pages::Base) else {
            panic!("mapped")
        };
        assert!(sentence.contains("mmap of"), "{sentence}");
        assert_eq!(map_and_unmap(1 << 47, false), -i64::from(libc::ENOMEM));
        assert_eq!(map_and_unmap(PAGE, true), 0);
    }

    #[test]
    #[should_panic(expected = "page 5 of a region of 4")]
    fn a_page_outside_of_the_region_is_not_touched() {
        Region::map_anonymous(4 * PAGE, Pages::Base).expect("memory").write(0..5, 1);
    }
}
