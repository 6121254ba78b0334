//! Programs and maps of bpf(2) whose cost is measured.
//!
//! # Invariants
//!
//! * **OWN-STRUCTURE**: the kernel reads and writes one local structure, whose size it is given; the addresses in it are those of
//!   slices that live across the call, with their lengths.
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::errno::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands, and kinds of programs and maps, of linux/bpf.h.
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const PROG_TEST_RUN: i32 = 10;
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const SOCKET_FILTER: u32 = 1;
/// The frame that a program is run with: at least an Ethernet header.
const FRAME: [u8; 64] = [0; 64];
/// What the program of [`Counter`] returns.
pub const RETURNED: u32 = 4_711;

fn bpf(command: i32, attributes: &mut [u64]) -> nix::Result<i64> {
    // SAFETY: OWN-STRUCTURE.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes))
    })
}

fn open(command: i32, attributes: &mut [u64], what: &str) -> Result<OwnedFd> {
    let descriptor = bpf(command, attributes).map_err(|e| {
        Error::Missing(format!(
            "bpf cannot {what} ({e}): CAP_BPF is needed, or kernel.unprivileged_bpf_disabled = 0"
        ))
    })?;
    // SAFETY: OWN-DESCRIPTOR.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Packs two numbers of four bytes into one field of eight, in the order in which the kernel reads them.
fn pair(low: u32, high: u32) -> u64 {
    let [a, b] = [low, high].map(u32::to_ne_bytes);
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

/// A map of keys of 4 bytes and values of 8.
pub struct Map(OwnedFd);

impl Map {
    /// Creates a hash map for at most this number of keys.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no bpf or forbids it.
    pub fn hash(keys: u32) -> Result<Self> {
        Self::create(HASH, keys)
    }

    fn create(kind: u32, keys: u32) -> Result<Self> {
        open(MAP_CREATE, &mut [pair(kind, 4), pair(8, keys), 0], "make a map").map(Self)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The kernel refuses.
    #[inline(always)]
    pub fn update(&self, key: u32, value: u64) -> nix::Result<()> {
        self.element(MAP_UPDATE, key, &mut { value })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The key has no value.
    #[inline(always)]
    pub fn look_up(&self, key: u32) -> nix::Result<u64> {
        let mut value = 0;
        self.element(MAP_LOOKUP, key, &mut value).map(|()| value)
    }

    #[inline(always)]
    fn element(&self, command: i32, key: u32, value: &mut u64) -> nix::Result<()> {
        let attributes =
            &mut [pair(self.0.as_raw_fd() as u32, 0), &raw const key as u64, &raw mut *value as u64, 0];
        bpf(command, attributes).map(drop)
    }
}

/// A program that adds one to the only value of its map.
pub struct Counter {
    program: OwnedFd,
    map: Map,
}

impl Counter {
    /// Loads the program.
    ///
    /// # Errors
    /// As of [`Map::hash`].
    pub fn load() -> Result<Self> {
        let map = Map::create(ARRAY, 1)?;
        let instruction = |code: u8, registers: u8, offset: i16, value: u32| {
            let [low, high] = offset.to_ne_bytes();
            // The byte order decides which half of the byte holds the first of the two registers.
            let registers = if cfg!(target_endian = "big") { registers.rotate_left(4) } else { registers };
            pair(u32::from_ne_bytes([code, registers, low, high]), value)
        };
        let code = [
            instruction(0x62, 0x0a, -4, 0),                       // *(u32 *)(r10 - 4) = 0
            instruction(0xbf, 0xa2, 0, 0),                        // r2 = r10
            instruction(0x07, 0x02, 0, -4_i32 as u32),            // r2 += -4
            instruction(0x18, 0x11, 0, map.0.as_raw_fd() as u32), // r1 = the map …
            instruction(0, 0, 0, 0),                              // … in two words
            instruction(0x85, 0, 0, 1),                           // r0 = bpf_map_lookup_elem(r1, r2)
            instruction(0x15, 0x00, 2, 0),                        // if r0 == 0, skip two instructions
            instruction(0xb7, 0x01, 0, 1),                        // r1 = 1
            instruction(0xdb, 0x10, 0, 0),                        // atomic *(u64 *)r0 += r1
            instruction(0xb7, 0x00, 0, RETURNED),                 // r0 = the answer
            instruction(0x95, 0, 0, 0),                           // return r0
        ];
        let attributes = &mut [
            pair(SOCKET_FILTER, code.len() as u32),
            code.as_ptr() as u64,
            c"GPL".as_ptr() as u64,
            0,
            0,
            0,
        ];
        Ok(Self { program: open(PROG_LOAD, attributes, "load a program")?, map })
    }

    /// Runs the program `times` times in one system call (`BPF_PROG_TEST_RUN`), and returns the value of the last run.
    ///
    /// # Errors
    /// The kernel refuses.
    #[inline(always)]
    pub fn run(&self, times: u32) -> nix::Result<u32> {
        let frame = FRAME.as_ptr() as u64;
        let attributes = &mut [
            pair(self.program.as_raw_fd() as u32, 0),
            pair(FRAME.len() as u32, 0),
            frame,
            0,
            pair(times, 0),
        ];
        bpf(PROG_TEST_RUN, attributes)?;
        Ok(u32::from_ne_bytes(attributes[0].to_ne_bytes()[4..].try_into().unwrap_or_default()))
    }

    /// The number of runs of the program so far.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn count(&self) -> nix::Result<u64> {
        self.map.look_up(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value_or_skip;

    #[test]
    fn a_program_counts_its_runs() {
        let Some(counter) = value_or_skip(Counter::load()) else { return };
        assert_eq!(counter.run(1), Ok(RETURNED));
        assert_eq!(counter.run(1_000), Ok(RETURNED));
        assert_eq!(counter.count(), Ok(1_001));
    }

    #[test]
    fn a_map_keeps_values() {
        let Some(map) = value_or_skip(Map::hash(4)) else { return };
        assert_eq!(map.look_up(7), Err(Errno::ENOENT));
        map.update(7, 42).expect("kept");
        assert_eq!(map.look_up(7), Ok(42));
    }
}
