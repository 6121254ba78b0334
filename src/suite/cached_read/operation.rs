//! A file mapped into memory, to be read there.
//!
//! # Invariants
//!
//! * **UNNAMED**: the file has no name any more, and whoever made the mapping holds its only descriptors and does not
//!   write through them, so that nobody changes or shortens it while it is mapped.
#![allow(unsafe_code)]

use crate::Result;
use crate::kit::pattern_file::PatternFile;
use memmap2::Mmap;

/// The bytes of a stamped file, all of them in memory when it was made.
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps it whole and touches every page.
    pub fn of(stamped: &PatternFile) -> Result<Self> {
        // SAFETY: UNNAMED.
        let mapped = unsafe { memmap2::MmapOptions::new().populate().map(stamped.file()) };
        mapped.map(Self).map_err(|cause| stamped.refused("mapping", cause))
    }

    /// Its bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pattern_file::{Way, is_of};

    #[test]
    fn what_is_mapped_is_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let stamped = PatternFile::make(directory.path(), 1 << 20, Way::Cached).expect("a file");
        let mapped = Mapped::of(&stamped).expect("mapped");
        assert_eq!(mapped.bytes().len(), 1 << 20);
        assert!(is_of(&mapped.bytes()[8192..], 8192));
    }
}
