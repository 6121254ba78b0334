//! Reads in flight with io_uring(7), each into a block of its own.
//!
//! # Invariants
//!
//! * **IN-FLIGHT**: a submitted read writes into the block of its slot until it has completed. The blocks and the
//!   file live as long as the ring, whose drop waits for the reads in flight; a slot is used again only after its
//!   completion.
#![allow(unsafe_code)]

use super::in_flight::ReadQueue;
use crate::error::{Error, Result};
use crate::kit::kernel_call::io_uring_refusal;
use crate::platform::pattern_file;
use io_uring::{IoUring, opcode, types};
use memmap2::MmapMut;
use std::fs::File;
use std::os::fd::AsRawFd;

/// An io_uring for reads of one file.
pub struct Ring {
    ring: IoUring,
    file: File,
    memory: MmapMut,
    block: usize,
    /// Slots without a read in flight.
    free: Vec<usize>,
    depth: usize,
    /// Whether the file and the memory are registered with the kernel.
    is_registered: bool,
}

impl Ring {
    /// A ring for `depth` reads at a time, of `block` bytes each.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no io_uring or forbids it.
    pub fn new(file: &File, block: usize, depth: usize) -> Result<Self> {
        let entries = u32::try_from(depth).unwrap_or(u32::MAX);
        // With these flags completions are processed only when this thread asks for them, and then all at once. Kernels
        // before 6.1 do not have them.
        let quiet = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
        let ring = quiet.or_else(|_| IoUring::new(entries)).map_err(|cause| unavailable_error(&cause))?;
        let file = file.try_clone().map_err(|e| Error::Kernel { call: "dup of a file".into(), cause: e })?;
        let memory = pattern_file::map_buffer(block * depth)?;
        Ok(Self { ring, file, memory, block, free: (0..depth).collect(), depth, is_registered: false })
    }

    /// As [`Ring::new`], with the file and the memory registered, so that a read need not look them up.
    ///
    /// # Errors
    /// As of [`Ring::new`], or too little memory may be locked.
    pub fn with_registered(file: &File, block: usize, depth: usize) -> Result<Self> {
        let mut ring = Self::new(file, block, depth)?;
        ring.is_registered = true;
        let memory = [libc::iovec { iov_base: ring.memory.as_mut_ptr().cast(), iov_len: block * depth }];
        // SAFETY: IN-FLIGHT.
        let registered = unsafe { ring.ring.submitter().register_buffers(&memory) };
        registered
            .and_then(|()| ring.ring.submitter().register_files(&[ring.file.as_raw_fd()]))
            .map_err(|cause| unavailable_error(&cause))?;
        Ok(ring)
    }
}

impl ReadQueue for Ring {
    #[inline(always)]
    fn read(&mut self, offset: u64) -> Option<usize> {
        let slot = self.free.pop()?;
        let block = &mut self.memory[slot * self.block..][..self.block];
        let (address, length) = (block.as_mut_ptr(), self.block as u32);
        let entry = match self.is_registered {
            true => opcode::ReadFixed::new(types::Fixed(0), address, length, 0).offset(offset).build(),
            false => {
                opcode::Read::new(types::Fd(self.file.as_raw_fd()), address, length).offset(offset).build()
            }
        };
        let entry = entry.user_data(slot as u64);
        // SAFETY: IN-FLIGHT. The queue has room for as many entries as there are slots.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "a free slot is room in the queue");
        Some(slot)
    }

    #[inline(always)]
    fn submit_and_wait(&mut self) -> Result<()> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(cause) if cause.raw_os_error() == Some(libc::EINTR) => {}
                Err(cause) => return Err(Error::Kernel { call: "io_uring_enter".into(), cause }),
            }
        }
    }

    #[inline(always)]
    fn next_completion(&mut self) -> Option<(usize, i32)> {
        let entry = self.ring.completion().next()?;
        let slot = entry.user_data() as usize;
        self.free.push(slot);
        Some((slot, entry.result()))
    }

    #[inline(always)]
    fn slot_block(&self, slot: usize) -> &[u8] {
        &self.memory[slot * self.block..][..self.block]
    }

    fn in_flight(&self) -> usize {
        self.depth - self.free.len()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.in_flight() > 0 && self.submit_and_wait().is_ok() {
            while self.next_completion().is_some() {}
        }
        if self.in_flight() > 0 {
            // The kernel may still write to the memory, which is therefore leaked.
            let fresh = MmapMut::map_anon(1);
            if let Ok(fresh) = fresh {
                std::mem::forget(std::mem::replace(&mut self.memory, fresh));
            }
        }
    }
}

/// Checks that io_uring can be used here.
///
/// # Errors
/// The reason why it cannot, and the remedy.
pub fn check_io_uring() -> std::result::Result<(), String> {
    IoUring::new(1).map(drop).map_err(|cause| unavailable_error(&cause).to_string())
}

fn unavailable_error(cause: &std::io::Error) -> Error {
    Error::Missing(io_uring_refusal(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::pattern_file::{PatternFile, Way, is_pattern_at};
    use crate::platform::testing::print_skipped;
    use crate::platform::testing::value_or_skip;

    #[test]
    fn a_ring_holds_as_many_reads_as_its_depth() {
        if let Err(why) = check_io_uring() {
            assert!(why.contains("io_uring_setup"), "{why}");
            return print_skipped(&why.to_string());
        }
        let directory = tempfile::tempdir().expect("a directory");
        let file = PatternFile::create_filled(directory.path(), 64 << 10, Way::Cached).expect("a file");
        let mut ring = Ring::new(file.file(), 4096, 4).expect("a ring");
        let slots: Vec<_> = (0..5).map(|i| ring.read(4096 * i)).collect();
        assert!(slots[..4].iter().all(Option::is_some) && slots[4].is_none(), "{slots:?}");
        let mut seen = 0;
        while ring.in_flight() > 0 {
            ring.submit_and_wait().expect("completed");
            while let Some((slot, bytes)) = ring.next_completion() {
                let offset =
                    slots.iter().position(|s| *s == Some(slot)).expect("a slot of this test") as u64 * 4096;
                assert!(bytes == 4096 && is_pattern_at(ring.slot_block(slot), offset));
                seen += 1;
            }
        }
        assert_eq!(seen, 4);
    }

    #[test]
    fn a_ring_may_be_dropped_while_reads_are_in_flight() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("longer");
        let Some(mut ring) = value_or_skip(Ring::new(&file, 4096, 8)) else { return };
        while ring.read(0).is_some() {}
        assert_eq!(ring.in_flight(), 8);
    }
}
