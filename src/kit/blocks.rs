//! Block reads that bypass the page cache, each timed by itself, and the proof of where their bytes came from.

use crate::kit::contract::*;
use crate::platform::pattern_file::{self, PatternFile, Way};
use crate::platform::proc::{Account, Moved, Source};
use crate::platform::volume::{self, Medium};
use crate::statistic::Random;
use std::os::unix::fs::FileExt;

/// The claims that are verified for each batch.
pub const FROM_DEVICE: &str =
    "exactly as many bytes came from the device as were asked for, by /proc/self/io";
pub const OWN_NUMBER: &str = "every block began with its own number: it was the one that was asked for";
pub const NOT_KEPT: &str = "the page cache did not keep what was read last, by mincore";

/// The order in which blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// In ascending order; the first block follows the last.
    Sequential,
    /// A random permutation of all blocks, repeated.
    Random,
}

/// The byte offsets of the blocks of a file, in the order in which they are read.
pub struct Order {
    offsets: Vec<u64>,
    next: usize,
}

impl Order {
    /// The order for a file of `bytes` bytes. A random order is the same in every run.
    pub fn new(pattern: Pattern, bytes: u64, block: usize) -> Self {
        let mut offsets: Vec<_> = (0..bytes / block as u64).map(|i| i * block as u64).collect();
        if pattern == Pattern::Random {
            Random::new(bytes ^ block as u64).shuffle(&mut offsets);
        }
        Self { offsets, next: 0 }
    }

    /// The byte offset of the next block. After the last block the order begins again.
    #[inline(always)]
    pub fn next_offset(&mut self) -> u64 {
        let offset = self.offsets[self.next];
        self.next = (self.next + 1) % self.offsets.len();
        offset
    }

    /// Undoes one [`Order::next_offset`] whose offset was not used.
    #[inline(always)]
    pub fn undo_next_offset(&mut self) {
        self.next = self.next.checked_sub(1).unwrap_or(self.offsets.len() - 1);
    }
}

/// Verifies, by the kernel's I/O accounting, where the bytes of a batch came from or went to.
pub struct Proof {
    account: Account,
    source: Source,
    before: Moved,
}

impl Proof {
    /// # Errors
    /// The kernel does not keep the account.
    pub fn for_source(source: Source) -> Result<Self> {
        Ok(Self { account: Account::open(source)?, source, before: Moved::default() })
    }

    /// Begins a batch.
    ///
    /// # Errors
    /// The account cannot be read.
    pub fn begin_batch(&mut self) -> Result<()> {
        self.before = self.account.read()?;
        Ok(())
    }

    /// Ends a batch that has read this many bytes.
    ///
    /// # Errors
    /// [`Error::Disproved`] if the device or the network delivered less, [`Error::Contradicted`] if the device delivered more.
    pub fn verify_read(&mut self, bytes: u64) -> Result<()> {
        let moved = self.account.read()?.read - self.before.read;
        let what = match self.source {
            Source::Device if moved == bytes => return Ok(()),
            Source::Network if moved >= bytes => return Ok(()),
            Source::Device if moved > bytes => {
                return Err(Error::Contradicted(format!(
                    "{bytes} bytes were read and {moved} came from the device: this process read something else meanwhile, such \
                     as pages of its own program"
                )));
            }
            Source::Device => "the device",
            Source::Network => "the network",
        };
        Err(Error::Disproved(format!(
            "{bytes} bytes were read and {moved} came from {what}: a cache below the file system served the rest; {}",
            volume::disk_advice()
        )))
    }

    /// Ends a batch that has written this many bytes. The file system may have written more.
    ///
    /// # Errors
    /// [`Error::Disproved`] if fewer went to the device.
    pub fn verify_written(&mut self, bytes: u64) -> Result<()> {
        let moved = self.account.read()?.written - self.before.written;
        if moved >= bytes {
            return Ok(());
        }
        Err(Error::Disproved(format!(
            "{bytes} bytes were written and {moved} went to the device: a cache below the file system kept the rest; {}",
            volume::disk_advice()
        )))
    }
}

/// A file, the order in which its blocks are read, the proof of where their bytes came from, and their length.
pub struct Blocks {
    pub file: PatternFile,
    pub order: Order,
    pub proof: Proof,
    /// Bytes of a block.
    pub block: usize,
}

/// Length in bytes of the range around the last block in which resident pages are counted after a batch.
const EXAMINED: u64 = 1 << 20;

impl Blocks {
    /// # Errors
    /// The device does not support blocks of this length, or the kernel does not account for its bytes.
    pub fn new(file: PatternFile, pattern: Pattern, block: usize, source: Source) -> Result<Self> {
        file.check_block_size(block)?;
        let order = Order::new(pattern, file.bytes(), block);
        Ok(Self { file, order, proof: Proof::for_source(source)?, block })
    }

    /// Ends a batch that has read this many blocks; `last` is the byte offset of the last one.
    ///
    /// # Errors
    /// [`Error::Disproved`] if a cache delivered some of them; [`Error::Contradicted`] if the device delivered more, or if the page
    /// cache holds pages around the last block, which another process may have read.
    pub fn prove_batch(&mut self, blocks: u64, last: u64) -> Result<()> {
        self.proof.verify_read(blocks * self.block as u64)?;
        let from = last.saturating_sub(EXAMINED / 2);
        let kept = self.file.count_resident_pages(from..from + EXAMINED)?;
        if kept == 0 {
            return Ok(());
        }
        Err(Error::Contradicted(format!(
            "{kept} pages around what was read last are in the page cache: it was not passed by"
        )))
    }
}

/// A subject that reads these blocks one after another, each timed in a bracket of its own.
///
/// # Errors
/// The first read is refused, or a cache delivers it.
pub fn single_block_reads(blocks: Blocks) -> Result<impl Subject> {
    let mut state = (pattern_file::map_buffer(blocks.block)?, 0, blocks);
    let mut read = move |n: u64, clock: &Clock| {
        state.2.proof.begin_batch()?;
        let ticks = clock.time_each(
            n,
            &mut state,
            |(_, offset, blocks)| {
                *offset = blocks.order.next_offset();
                Ok(())
            },
            |(buffer, offset, blocks)| blocks.file.file().read_at(buffer, *offset),
            |(buffer, offset, blocks), got| {
                blocks.file.check_block(got, buffer, *offset).map(|()| Counts::Yes)
            },
        )?;
        state.2.prove_batch(n, state.1).map(|()| ticks)
    };
    // This untimed read reports a problem before the first sample.
    read(1, &Clock::with_scale(UNUSED))?;
    Ok(read)
}

/// The scale of a clock whose times are discarded.
const UNUSED: ClockScale = ClockScale { counter: false, hz: 1e9, step: 1, uncertainty_ppm: 0.0 };

/// The set-up of a case that reads a file of its own, one block at a time.
pub fn reads_set_up(
    open: impl Fn(&Place) -> Result<PatternFile> + 'static,
    pattern: Pattern,
    block: usize,
    source: Source,
) -> SetUp {
    set_up(move |place| single_block_reads(Blocks::new(open(place)?, pattern, block, source)?))
}

const KIB: u64 = 1 << 10;
/// Lengths of files that are read from their beginning to their end: those of the CSE 221 report, and two beyond.
pub const FILES: [(&str, u64); 7] = [
    ("128KiB", 128 * KIB),
    ("256KiB", 256 * KIB),
    ("512KiB", 512 * KIB),
    ("1MiB", 1024 * KIB),
    ("1536KiB", 1536 * KIB),
    ("8MiB", 8192 * KIB),
    ("64MiB", 65_536 * KIB),
];

/// Creates a file of this length. At smoke scale, files of more than 8 MiB are refused because they take too long.
///
/// # Errors
/// [`Error::Missing`] for more than 8 MiB at smoke scale; the file cannot be created.
pub fn create_file_at_scale(place: &Place, bytes: u64, way: Way) -> Result<PatternFile> {
    if bytes > 8192 * KIB && place.scale == Scale::Smoke {
        return Err(Error::Missing(format!(
            "smoke scale: a file of {} MiB is read at default and full scale",
            bytes >> 20
        )));
    }
    PatternFile::create_filled(&place.scratch, bytes, way)
}

/// The scratch directory is on a device that can be read past the page cache.
pub const DISK: Need = Need::new(|place| match volume::filesystem_and_medium(&place.scratch) {
    (filesystem, Medium::Memory) => Err(format!(
        "{} is on {filesystem}, which is memory: there is no device to be read; {}",
        place.scratch.display(),
        volume::disk_advice()
    )),
    _ => verify_device_read(place).map_err(|error| error.to_string()),
});

/// Reads one block and verifies that it came from a device.
fn verify_device_read(place: &Place) -> Result<()> {
    const LENGTH: u64 = 64 << 10;
    let file = PatternFile::create_filled(&place.scratch, LENGTH, Way::Direct)?;
    let blocks = Blocks::new(file, Pattern::Sequential, 4096, Source::Device)?;
    single_block_reads(blocks).map(drop)
}

/// The claim that the kernel has charged this process with reading every block of this length, which is 512 bytes, 4 KiB,
/// 64 KiB or 1 MiB.
pub fn claim_blocks_read(block: usize) -> Claim {
    claim_blocks_moved::<false>(block)
}

/// As [`claim_blocks_read`], for blocks that were written.
pub fn claim_blocks_written(block: usize) -> Claim {
    claim_blocks_moved::<true>(block)
}

/// The claim for a block length. A claim is a plain function, so each length has a function of its own.
fn claim_blocks_moved<const WRITTEN: bool>(block: usize) -> Claim {
    Claim::Counted(match block {
        512 => judge_moved::<WRITTEN, 512>,
        65_536 => judge_moved::<WRITTEN, 65_536>,
        1_048_576 => judge_moved::<WRITTEN, 1_048_576>,
        _ => judge_moved::<WRITTEN, 4_096>,
    })
}

/// Judges whether the device read, or was written, at least `BLOCK` bytes per iteration.
fn judge_moved<const WRITTEN: bool, const BLOCK: u64>(delta: &Delta, iterations: u64) -> Judged {
    let counted = &delta.counted;
    let (bytes, how) =
        if WRITTEN { (counted.device_written, "written to") } else { (counted.device_read, "read from") };
    let Some(bytes) = bytes else {
        return Err("the kernel does not tell what was read from devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    let seen = format!("{bytes} bytes were {how} the device for {iterations} blocks of {BLOCK}");
    if bytes < iterations * BLOCK { Err(format!("{seen}: not each of them reached it")) } else { Ok(seen) }
}

#[cfg(test)]
mod tests;
