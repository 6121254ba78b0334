//! How much of a file is read at memory's speed.

use crate::error::{Error, Result};
use crate::kit::fault_count::bytes_read_from_devices;
use crate::platform::pattern_file::{self, PatternFile};
use crate::statistic::median;
use memmap2::MmapMut;
use nix::fcntl::PosixFadviseAdvice;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Bytes of one read: short, because what comes from the disk takes room in the cache, and drives something out of it.
pub const BLOCK: usize = 16 << 10;
/// Places that are read, at equal distances: each stands for this part of the file.
const PLACES: u64 = 512;
/// Bytes at the beginning of the file that are given up, and reads of them, to see the disk's speed.
const GIVEN_UP: u64 = 8 << 20;
const FORCED: u64 = 5;
/// Least ratio of the disk's time to memory's: below it the search finds no boundary.
const LEAST_RATIO: f64 = 3.0;

/// The result of reads at places all over a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    /// The share of the file that is read from memory, 0 to 1.
    pub share: f64,
    /// Median time of a read of [`BLOCK`] bytes from memory, ns.
    pub from_memory: f64,
    /// The same from the disk.
    pub from_disk: f64,
}

impl Boundary {
    /// Reads a file, of which some of the end must be in the cache.
    ///
    /// # Errors
    /// A read fails; [`Error::Missing`] where the disk is as fast as memory, or the kernel counts no bytes of devices.
    pub fn find(file: &PatternFile) -> Result<Self> {
        // Every read moves its own block and none ahead.
        file.advise(0..0, PosixFadviseAdvice::POSIX_FADV_RANDOM)?;
        let mut probe = Probe { file, buffer: pattern_file::map_buffer(BLOCK)? };
        let reads = (0..PLACES).map(|place| probe.read(file.bytes() / PLACES * place));
        let reads = reads.collect::<Result<Vec<_>>>()?;
        file.advise(0..GIVEN_UP, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        let forced = (0..FORCED).map(|nth| probe.read(nth * (GIVEN_UP / FORCED)));
        let forced = forced.collect::<Result<Vec<_>>>()?;
        file.advise(0..0, PosixFadviseAdvice::POSIX_FADV_NORMAL)?;
        Self::from_reads(&reads, &forced)
    }

    /// Computes the boundary from reads at equal distances, and from `forced` reads that surely came from the disk.
    fn from_reads(reads: &[Read], forced: &[Read]) -> Result<Self> {
        let times = |of: &[Read], from_disk| {
            of.iter().filter(|read| read.from_disk == from_disk).map(|read| read.ns).collect::<Vec<_>>()
        };
        let (memory, disk) = (times(reads, false), times(forced, true));
        if memory.is_empty() || disk.is_empty() {
            return Err(Error::Disturbed(
                "the cache kept nothing of a file that was just read, or what it gave up on demand: try again".into(),
            ));
        }
        let (from_memory, from_disk) = (median(&memory), median(&disk));
        check_disk_slower(from_memory, from_disk)?;
        Ok(Self { share: memory.len() as f64 / reads.len() as f64, from_memory, from_disk })
    }

    /// Whether every place was read from memory, so that the cache might hold a longer file as well.
    pub fn is_fully_cached(&self) -> bool {
        self.share >= 1.0
    }

    /// Both speeds, bytes a nanosecond, which are GB/s.
    pub fn read_speeds(&self) -> [f64; 2] {
        [self.from_memory, self.from_disk].map(|ns| BLOCK as f64 / ns)
    }
}

/// Checks that the disk is slower.
fn check_disk_slower(from_memory: f64, from_disk: f64) -> Result<()> {
    if from_disk >= LEAST_RATIO * from_memory {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "a read of {} KiB takes {:.0} µs from memory and {:.0} µs from the disk, which is too close: a host caches this \
         disk, or it is memory; name a directory on another (`--dir`)",
        BLOCK >> 10,
        from_memory / 1e3,
        from_disk / 1e3
    )))
}

/// One read. Its time alone does not tell where it came from: a host may have taken the memory of a guest away.
#[derive(Clone, Copy, Debug)]
struct Read {
    ns: f64,
    /// Whether the kernel read from a device for it.
    from_disk: bool,
}

struct Probe<'a> {
    file: &'a PatternFile,
    buffer: MmapMut,
}

impl Probe<'_> {
    /// Reads the block at or before this byte.
    fn read(&mut self, byte: u64) -> Result<Read> {
        let silent = || {
            Error::Missing(
                "the kernel does not count what it reads from devices: it needs TASK_IO_ACCOUNTING".into(),
            )
        };
        let at = byte / BLOCK as u64 * BLOCK as u64;
        let before = bytes_read_from_devices().ok_or_else(silent)?;
        let begun = Instant::now();
        let got = self.file.file().read_at(&mut self.buffer, at);
        let ns = begun.elapsed().as_nanos() as f64;
        self.file.check_block(got, &self.buffer, at)?;
        Ok(Read { ns, from_disk: bytes_read_from_devices().ok_or_else(silent)? > before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(times: &[f64], from_disk: bool) -> Vec<Read> {
        times.iter().map(|ns| Read { ns: *ns, from_disk }).collect()
    }

    #[test]
    fn the_share_is_that_of_the_places_that_no_device_was_read_for() {
        let all = [reads(&[90.0, 900.0], true), reads(&[1.0, 2.0, 300.0], false)].concat();
        let found = Boundary::from_reads(&all, &reads(&[100.0], true)).expect("a fall");
        assert_eq!(found, Boundary { share: 0.6, from_memory: 2.0, from_disk: 100.0 });
        assert!(!found.is_fully_cached());
        assert!(
            Boundary::from_reads(&reads(&[1.0], false), &reads(&[9.0], true))
                .expect("a fall")
                .is_fully_cached()
        );
        assert!(Boundary::from_reads(&reads(&[1.0], true), &reads(&[9.0], true)).is_err());
    }

    #[test]
    fn a_disk_that_is_as_fast_as_memory_has_no_fall() {
        assert!(check_disk_slower(10.0, 1000.0).is_ok());
        let sentence = check_disk_slower(10_000.0, 20_000.0).expect_err("none").to_string();
        assert!(sentence.contains("10 µs from memory and 20 µs from the disk"), "{sentence}");
    }
}
