//! Displacing an operation's code and data from the caches, so that the next call is cold.
//!
//! # Invariants
//!
//! * **STUBS**: the executable mapping holds a return instruction at the start of every slot, was written and published
//!   before it became executable, and lives as long as the value that calls into it.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::platform::arch::{self, RETURN};
use memmap2::{Mmap, MmapMut};

/// Step of the walk, bytes: one cache line. Where lines are larger, each is touched more than once.
const LINE: usize = 64;
/// Bytes of code: four times the largest level-one instruction cache in use, except Apple's of 192 KiB.
const CODE: usize = 256 << 10;

/// Data and code that fill the caches when they are walked through.
pub struct Displacer {
    data: MmapMut,
    code: Mmap,
}

impl Displacer {
    /// Maps `bytes` of data and 256 KiB of code: 4096 calls into 64 pages, which fill the instruction cache, its TLB
    /// and the branch target buffer.
    ///
    /// # Errors
    /// [`Error::Kernel`] if memory cannot be mapped, or written memory cannot be made executable.
    pub fn new(bytes: usize) -> Result<Self> {
        let failed =
            |e| Error::Kernel { call: format!("mmap of {bytes} bytes to displace caches"), cause: e };
        let mut data = MmapMut::map_anon(bytes).map_err(failed)?;
        data.iter_mut().step_by(LINE).for_each(|byte| *byte = 1); // pages of its own, not the zero page
        let mut stubs = MmapMut::map_anon(CODE).map_err(failed)?;
        for slot in stubs.chunks_exact_mut(LINE) {
            slot[..RETURN.len()].copy_from_slice(RETURN);
        }
        // Linux publishes a page too when it becomes executable, but the architecture requires it of the writer.
        arch::publish(&stubs);
        Ok(Self { data, code: stubs.make_exec().map_err(failed)? })
    }

    /// Walks over all data and code once. Returns a sum of the data, so that the compiler cannot remove the walk.
    pub fn displace_caches(&mut self) -> u64 {
        let sum = self.data.iter().step_by(LINE).map(|&byte| u64::from(byte)).sum();
        for slot in self.code.chunks_exact(LINE) {
            // SAFETY: STUBS: the slot begins with a return, which needs no arguments.
            unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(slot.as_ptr())() };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_visited() {
        let mut displacer = Displacer::new(1 << 20).expect("a mapping");
        assert_eq!(displacer.displace_caches(), (1 << 20) / LINE as u64);
    }
}
