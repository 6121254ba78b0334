//! Where the reads of a file change from memory's speed to the disk's.

use crate::error::{Error, Result};
use crate::kit::pattern_file::{self, PatternFile};
use memmap2::MmapMut;
use nix::fcntl::PosixFadviseAdvice;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Bytes of one read: short, because what comes from the disk takes room in the cache.
pub const BLOCK: usize = 128 << 10;
/// How many reads, a block apart from each other, tell the speed at one place.
const READS: u64 = 3;
/// Bytes at the beginning of the file that are given up, to see the disk's speed.
const GIVEN_UP: u64 = 8 << 20;
/// A disk must be so many times slower than memory, or nothing can be told by times.
const LEAST_RATIO: f64 = 3.0;
/// Steps into which the file is divided: the distance that is found is known to one of them.
const STEPS: u64 = 1024;

/// What the search by times found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    /// Distance from the end of the file, bytes, up to which it is read at memory's speed; `None`: all of it is.
    pub kept: Option<u64>,
    /// Time of a read of [`BLOCK`] bytes from memory, ns.
    pub from_memory: f64,
    /// The same from the disk.
    pub from_disk: f64,
}

impl Boundary {
    /// Finds it in a file of which the end was read last.
    ///
    /// # Errors
    /// A read fails; [`Error::Missing`] where the disk is as fast as memory.
    pub fn find(file: &PatternFile) -> Result<Self> {
        // Every read moves its own block and none ahead.
        file.advise(0..0, PosixFadviseAdvice::POSIX_FADV_RANDOM)?;
        let mut probe = Probe { file, buffer: pattern_file::buffer(BLOCK)? };
        let (step, all) = ((file.bytes() / STEPS).max(READS * 2 * BLOCK as u64), file.bytes());
        let from_memory = probe.read_at_distance(READS * 2 * BLOCK as u64)?;
        // What is read here first is not touched by the bisection, which stays a step away from the beginning.
        let farthest = probe.read_at_distance(all - GIVEN_UP)?;
        file.advise(0..GIVEN_UP, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        let from_disk = probe.read_at_distance(all)?;
        let threshold = threshold(from_memory, from_disk)?;
        let kept = match farthest < threshold {
            true => None,
            false => Some(bisect([step, all - GIVEN_UP], step, |distance| {
                Ok(probe.read_at_distance(distance)? < threshold)
            })?),
        };
        file.advise(0..0, PosixFadviseAdvice::POSIX_FADV_NORMAL)?;
        Ok(Self { kept, from_memory, from_disk })
    }

    /// Both speeds, bytes a nanosecond, which are GB/s.
    pub fn speeds(&self) -> [f64; 2] {
        [self.from_memory, self.from_disk].map(|ns| BLOCK as f64 / ns)
    }
}

/// The time that lies, by ratio, in the middle of both.
fn threshold(from_memory: f64, from_disk: f64) -> Result<f64> {
    if from_disk >= LEAST_RATIO * from_memory {
        return Ok((from_memory * from_disk).sqrt());
    }
    Err(Error::Missing(format!(
        "a read of {} KiB takes {:.0} µs from memory and {:.0} µs from the disk, which is no fall: a host caches this \
         disk, or it is memory; name a directory on another (`--dir`)",
        BLOCK >> 10,
        from_memory / 1e3,
        from_disk / 1e3
    )))
}

/// The largest distance that is kept, between one that is and one that is not, to this step.
fn bisect([kept, gone]: [u64; 2], step: u64, mut is_kept: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let (mut kept, mut gone) = (kept, gone);
    while gone - kept > step {
        let between = kept + (gone - kept) / 2;
        if is_kept(between)? {
            kept = between;
        } else {
            gone = between;
        }
    }
    Ok(kept + (gone - kept) / 2)
}

struct Probe<'a> {
    file: &'a PatternFile,
    buffer: MmapMut,
}

impl Probe<'_> {
    /// The middle time of a few reads behind this distance from the end, ns.
    fn read_at_distance(&mut self, distance: u64) -> Result<f64> {
        let first = (self.file.bytes() - distance) / BLOCK as u64 * BLOCK as u64;
        let mut times = [0.0; READS as usize];
        for (time, nth) in times.iter_mut().zip(0..) {
            let (at, begun) = (first + nth * 2 * BLOCK as u64, Instant::now());
            let got = self.file.file().read_at(&mut self.buffer, at);
            *time = begun.elapsed().as_nanos() as f64;
            self.file.check(got, &self.buffer, at)?;
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_found_to_a_step_in_few_looks() {
        for truth in [1_000, 34_567, 99_000] {
            let mut looks = 0;
            let found = bisect([100, 100_000], 100, |distance| {
                looks += 1;
                Ok(distance <= truth)
            });
            assert!(found.expect("found").abs_diff(truth) <= 100 && looks <= 10, "{truth}: {looks} looks");
        }
    }

    #[test]
    fn a_disk_that_is_as_fast_as_memory_has_no_boundary() {
        assert_eq!(threshold(10.0, 1000.0).expect("a fall"), 100.0);
        let sentence = threshold(10_000.0, 20_000.0).expect_err("none").to_string();
        assert!(sentence.contains("10 µs from memory and 20 µs from the disk"), "{sentence}");
    }
}
