//! A pattern file mapped into memory.
//!
//! # Invariants
//!
//! * **UNNAMED**: the file has no name, and the owner of the mapping holds its only descriptors and does not write
//!   through them, so the file is neither changed nor shortened while it is mapped.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::platform::pattern_file::PatternFile;
use memmap2::Mmap;

/// The bytes of a pattern file, all of them in memory when it was mapped.
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps the whole file and reads every page.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn new(file: &PatternFile) -> Result<Self> {
        // SAFETY: UNNAMED.
        let mapped = unsafe { memmap2::MmapOptions::new().populate().map(file.file()) };
        mapped.map(Self).map_err(|cause| file.call_error("mapping", cause))
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::pattern_file::{Way, is_pattern_at};

    #[test]
    fn the_mapping_holds_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = PatternFile::create_filled(directory.path(), 1 << 20, Way::Cached).expect("a file");
        let mapped = Mapped::new(&file).expect("mapped");
        assert_eq!(mapped.bytes().len(), 1 << 20);
        assert!(is_pattern_at(&mapped.bytes()[8192..], 8192));
    }
}
