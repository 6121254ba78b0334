//! Reads in flight with the kernel's older queue, io_submit(2), which libaio wraps.
//!
//! # Invariants
//!
//! * **IN-FLIGHT**: a submitted read writes into the block of its slot until it has completed. The blocks, the control blocks and
//!   the file live as long as the queue, whose drop waits for the reads in flight (io_destroy(2)); a slot is used again only after
//!   its completion.
//! * **OWN-ARRAY**: the kernel reads or writes as many elements of the array as it is given.
#![allow(unsafe_code)]

use super::in_flight::ReadQueue;
use crate::error::{Error, Result};
use crate::platform::pattern_file;
use memmap2::MmapMut;
use nix::errno::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;

/// A queue for reads of one file.
pub struct Aio {
    context: u64,
    file: File,
    memory: MmapMut,
    block: usize,
    /// Slots without a read in flight.
    free: Vec<usize>,
    /// `struct iocb` of each slot: number, flags, file, address, length, offset.
    control: Vec<[u64; 8]>,
    /// Addresses of the control blocks that are not submitted yet.
    queued: Vec<u64>,
    /// `struct io_event` of each completion: number, control block, answer.
    completed: VecDeque<[u64; 4]>,
}

/// The most completed reads that one call returns.
const MOST_EVENTS: usize = 64;

impl Aio {
    /// A queue for `depth` reads at a time, of `block` bytes each.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no such queue or no room for one more.
    pub fn new(file: &File, block: usize, depth: usize) -> Result<Self> {
        let file = file.try_clone().map_err(|e| Error::Kernel { call: "dup of a file".into(), cause: e })?;
        let memory = pattern_file::map_buffer(block * depth)?;
        let mut context = 0u64;
        // SAFETY: OWN-ARRAY: one word.
        Errno::result(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) }).map_err(
            |e| {
                Error::Missing(format!(
                    "io_setup: {e}: this kernel has no CONFIG_AIO, or /proc/sys/fs/aio-max-nr is used up"
                ))
            },
        )?;
        let (control, free) = (vec![[0; 8]; depth], (0..depth).collect());
        let (queued, completed) = (Vec::new(), VecDeque::new());
        Ok(Self { context, file, memory, block, free, control, queued, completed })
    }
}

impl ReadQueue for Aio {
    #[inline(always)]
    fn read(&mut self, offset: u64) -> Option<usize> {
        let slot = self.free.pop()?;
        // The first half of this word is the operation, 0 for a read, and its priority; the second is the descriptor.
        let mut file = [0; 8];
        file[4..].copy_from_slice(&self.file.as_raw_fd().to_ne_bytes());
        let address = self.memory[slot * self.block..].as_mut_ptr() as u64;
        self.control[slot] =
            [slot as u64, 0, u64::from_ne_bytes(file), address, self.block as u64, offset, 0, 0];
        self.queued.push(&raw const self.control[slot] as u64);
        Some(slot)
    }

    #[inline(always)]
    fn submit_and_wait(&mut self) -> Result<()> {
        while !self.queued.is_empty() {
            // SAFETY: IN-FLIGHT, OWN-ARRAY.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, self.queued.len(), self.queued.as_ptr())
            };
            let taken = Errno::result(taken).map_err(|e| Error::from_case_errno("io_submit", e))?;
            self.queued.drain(..taken as usize);
        }
        while self.completed.is_empty() {
            let mut events = [[0u64; 4]; MOST_EVENTS];
            let none = std::ptr::null::<libc::timespec>();
            // SAFETY: OWN-ARRAY.
            let event_count = unsafe {
                libc::syscall(libc::SYS_io_getevents, self.context, 1, MOST_EVENTS, events.as_mut_ptr(), none)
            };
            match Errno::result(event_count) {
                Ok(event_count) => self.completed.extend(&events[..event_count as usize]),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::from_case_errno("io_getevents", errno)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn next_completion(&mut self) -> Option<(usize, i32)> {
        let [slot, _, answer, _] = self.completed.pop_front()?;
        self.free.push(slot as usize);
        Some((slot as usize, answer as i32))
    }

    #[inline(always)]
    fn slot_block(&self, slot: usize) -> &[u8] {
        &self.memory[slot * self.block..][..self.block]
    }

    fn in_flight(&self) -> usize {
        self.control.len() - self.free.len()
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: IN-FLIGHT: the call returns when no read is in flight.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
