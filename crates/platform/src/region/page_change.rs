//! Operations on a whole region: writing it back, giving advice, changing its length, moving it.
//!
//! # Invariants
//!
//! * **OWN-MAPPING**: as of the region: the addresses belong to the value, and bytes are read and written as atomics only.
//! * **HOLE**: after [`Region::move_onto`] the other region's addresses are unmapped. The caller maps nothing until
//!   [`Region::reserve_again`] has mapped them again; unmapping them meanwhile is harmless.
#![allow(unsafe_code)]

use super::{Region, mapping_error, nonzero_length};
use crate::error::{Error, Result};
use crate::resident::kib_of_kind;
use nix::errno::Errno;
use nix::sys::mman::{MRemapFlags, MapFlags, MsFlags, ProtFlags, mmap, mmap_anonymous, mremap, msync};
use std::fs::File;
use std::num::NonZeroUsize;

impl Region {
    /// Maps the first `bytes` of a file for reading and writing.
    ///
    /// # Errors
    /// As of [`Region::map_anonymous`].
    pub fn map_shared(file: &File, bytes: usize) -> Result<Self> {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: OWN-MAPPING.
        Self::from_mapping(bytes, unsafe {
            mmap(None, nonzero_length(bytes)?, protection, MapFlags::MAP_SHARED, file, 0)
        })
    }

    /// Reserves addresses without allowing any access to them.
    ///
    /// # Errors
    /// As of [`Region::map_anonymous`].
    pub fn reserve(bytes: usize) -> Result<Self> {
        let (none, length) = (ProtFlags::PROT_NONE, nonzero_length(bytes)?);
        // SAFETY: OWN-MAPPING.
        Self::from_mapping(bytes, unsafe { mmap_anonymous(None, length, none, MapFlags::MAP_PRIVATE) })
    }

    /// Writes all pages back to their file, and waits for the device.
    ///
    /// # Errors
    /// The kernel refuses `msync`.
    #[inline(always)]
    pub fn write_back(&self) -> Result<()> {
        // SAFETY: OWN-MAPPING.
        let answer = unsafe { msync(self.page_pointer(0).cast(), self.bytes, MsFlags::MS_SYNC) };
        answer.map_err(|errno| Error::from_case_errno(format!("msync of {} bytes", self.bytes), errno))
    }

    /// Gives the kernel this advice about all pages (`MADV_…`).
    ///
    /// # Errors
    /// The kernel does not know the advice ([`Error::Missing`]), has no memory at this moment ([`Error::Disturbed`]), or refuses.
    #[inline(always)]
    pub fn give_advice(&self, advice: i32, name: &'static str) -> Result<()> {
        // SAFETY: OWN-MAPPING: there is no reference to pages that vanish.
        let answer = unsafe { libc::madvise(self.page_pointer(0).as_ptr().cast(), self.bytes, advice) };
        Errno::result(answer).map(drop).map_err(|errno| match errno {
            Errno::EINVAL => Error::Missing(format!("this kernel does not take the advice {name} ({errno})")),
            Errno::EAGAIN | Errno::ENOMEM => {
                Error::Disturbed(format!("madvise {name}: {errno}: there is too little free memory"))
            }
            _ => Error::from_case_errno(format!("madvise {name}"), errno),
        })
    }

    /// Makes a region longer or shorter, in place or at other addresses. The region must have no alignment of its own.
    ///
    /// # Errors
    /// The kernel refuses `mremap`.
    #[inline(always)]
    pub fn resize(&mut self, bytes: usize) -> nix::Result<()> {
        // SAFETY: OWN-MAPPING: the addresses come with `&mut`.
        let mapping =
            unsafe { mremap(self.mapping.cast(), self.mapped, bytes, MRemapFlags::MREMAP_MAYMOVE, None) }?;
        (self.mapping, self.mapped, self.bytes) = (mapping.cast(), bytes, bytes);
        Ok(())
    }

    /// Moves the pages to the addresses of a reserved region of the same length. The reserved region takes the old addresses,
    /// which stay unmapped until [`Region::reserve_again`].
    ///
    /// # Errors
    /// The kernel refuses `mremap`.
    #[inline(always)]
    pub fn move_onto(&mut self, reserved: &mut Self) -> nix::Result<()> {
        assert_eq!(self.mapped, reserved.mapped, "regions of one length");
        let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
        // SAFETY: OWN-MAPPING, HOLE.
        unsafe {
            mremap(self.mapping.cast(), self.mapped, self.mapped, flags, Some(reserved.mapping.cast()))
        }?;
        std::mem::swap(&mut self.mapping, &mut reserved.mapping);
        Ok(())
    }

    /// Reserves the addresses of this region again, after [`Region::move_onto`].
    ///
    /// # Errors
    /// The kernel refuses `mmap`.
    pub fn reserve_again(&mut self) -> Result<()> {
        let address = NonZeroUsize::new(self.mapping.as_ptr() as usize);
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE;
        // SAFETY: OWN-MAPPING, HOLE: the kernel refuses addresses that have another owner.
        let taken =
            unsafe { mmap_anonymous(address, nonzero_length(self.mapped)?, ProtFlags::PROT_NONE, flags) };
        taken.map(drop).map_err(|errno| mapping_error(self.mapped, errno))
    }

    /// The size of the region's pages of this kind, KiB, such as `AnonHugePages:` (proc_pid_smaps(5)). It includes the pages of
    /// other mappings in the same entry of that file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn kib_of_kind(&self, kind: &str) -> Result<usize> {
        let path = "/proc/self/smaps";
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "reading", e))?;
        let start = self.start_address();
        Ok(kib_of_kind(&text, kind, start..start + self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;
    use crate::resident::Pages;

    #[test]
    fn moved_pages_keep_their_bytes_and_their_old_addresses_can_be_reserved_again() {
        let mut region = Region::map_anonymous(4 * PAGE, Pages::Base).expect("memory");
        let mut other = Region::reserve(4 * PAGE).expect("addresses");
        region.write(0..4, 1);
        let [from, to] = [&region, &other].map(Region::start_address);
        region.move_onto(&mut other).expect("moved");
        assert_eq!([&region, &other].map(Region::start_address), [to, from]);
        other.reserve_again().expect("taken");
        assert!(other.reserve_again().is_err(), "it is mapped already");
        assert_eq!(region.read(0..4, 1), 4);
    }

    #[test]
    fn a_region_grows_and_shrinks_with_its_bytes() {
        let mut region = Region::map_anonymous(4 * PAGE, Pages::Base).expect("memory");
        region.write(0..4, 1);
        region.resize(8 * PAGE).expect("longer");
        assert_eq!((region.page_count(), region.read(0..8, 1)), (8, 4));
        region.resize(PAGE).expect("shorter");
        assert_eq!((region.page_count(), region.read(0..1, 1)), (1, 1));
    }

    #[test]
    fn writes_to_a_shared_mapping_reach_the_file() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(PAGE as u64).expect("longer");
        let region = Region::map_shared(&file, PAGE).expect("mapped");
        region.write(0..1, 1);
        region.write_back().expect("written");
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 0).expect("read");
        assert_eq!(byte, [1]);
    }

    #[test]
    fn an_advice_that_does_not_exist_is_missing() {
        let region = Region::map_anonymous(PAGE, Pages::Base).expect("memory");
        assert!(matches!(region.give_advice(4_711, "none"), Err(Error::Missing(_))));
    }
}
