//! Writes of blocks past the page cache, and with `O_DSYNC` past the cache of the disk.

use super::{BLOCK, scratch_file, with_block_figures};
use crate::kit::blocks::{Blocks, FROM_DEVICE, Pattern, claim_blocks_written};
use crate::kit::contract::*;
use crate::platform::pattern_file::{self, Way};
use crate::platform::proc::Source;
use memmap2::MmapMut;
use std::os::unix::fs::FileExt;

const TO_DEVICE: &str = "at least as many bytes went to the device as were asked for, by /proc/self/io";
const READ_AGAIN: &str = "what was written last was read again, past the page cache, and was it";

/// Name, title, how the file is opened, the order of the blocks, their length, and what follows each write.
#[rustfmt::skip]
const CASES: [(&str, &str, Way, Pattern, usize, Then); 11] = [
    ("write/4KiB", "4KiB written past the page cache, in order", Way::Direct, Pattern::Sequential, BLOCK, Then::Nothing),
    ("write/64KiB", "64KiB written past the page cache, in order", Way::Direct, Pattern::Sequential, 64 << 10, Then::Nothing),
    ("write/1MiB", "1MiB written past the page cache, in order", Way::Direct, Pattern::Sequential, 1 << 20, Then::Nothing),
    ("write-random/4KiB", "4KiB written past the page cache, at random", Way::Direct, Pattern::Random, BLOCK, Then::Nothing),
    ("write-dsync/4KiB", "4KiB written past the page cache and kept by the device, at random", Way::DirectSync, Pattern::Random, BLOCK, Then::Nothing),
    ("write-dsync/64KiB", "64KiB written past the page cache and kept by the device, at random", Way::DirectSync, Pattern::Random, 64 << 10, Then::Nothing),
    ("write-dsync/1MiB", "1MiB written past the page cache and kept by the device, at random", Way::DirectSync, Pattern::Random, 1 << 20, Then::Nothing),
    ("mixed/4KiB", "4KiB written and another 4KiB read past the page cache, at random", Way::Direct, Pattern::Random, BLOCK, Then::Read),
    ("write-back/4KiB", "4KiB written to the page cache and written back (fdatasync), at random", Way::Cached, Pattern::Random, BLOCK, Then::WriteBack),
    ("write-back/64KiB", "64KiB written to the page cache and written back (fdatasync), at random", Way::Cached, Pattern::Random, 64 << 10, Then::WriteBack),
    ("write-back/1MiB", "1MiB written to the page cache and written back (fdatasync), at random", Way::Cached, Pattern::Random, 1 << 20, Then::WriteBack),
];

pub(super) fn cases() -> impl Iterator<Item = Case> {
    CASES.into_iter().map(|(name, title, way, pattern, block, then)| {
        let set_up = set_up(move |place| {
            Writes::new(Blocks::new(scratch_file(place, way)?, pattern, block, Source::Device)?, then)
        });
        let moved = if then == Then::Read { 2 * block } else { block };
        let case = with_block_figures(Case::new(name, title, set_up), moved);
        // With `O_DSYNC` and in writing back, threads of the kernel do a part of the work.
        let case = if way == Way::Direct { case } else { case.own_tasks(OwnTasks::Elsewhere) };
        let case = case.claim(Claim::Checked(TO_DEVICE)).claim(claim_blocks_written(block));
        let case = case.claim(Claim::Checked(READ_AGAIN));
        match then {
            Then::Nothing => case,
            Then::Read => case.claim(Claim::Checked(FROM_DEVICE)).need(FULL_SCALE),
            Then::WriteBack => case.need(FULL_SCALE),
        }
    })
}

/// What follows a write, and is timed with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// A read of another block.
    Read,
    /// Writing back what is in the page cache.
    WriteBack,
}

struct Writes {
    blocks: Blocks,
    buffer: MmapMut,
    /// The buffer into which blocks are read.
    again: MmapMut,
    /// The offsets of the current block and of the block that is read after it, bytes.
    offset: u64,
    read_offset: u64,
    then: Then,
}

impl Writes {
    fn new(blocks: Blocks, then: Then) -> Result<Self> {
        let buffer = || pattern_file::map_buffer(blocks.block);
        Ok(Self { buffer: buffer()?, again: buffer()?, blocks, offset: 0, read_offset: 0, then })
    }

    /// Writes the block and does what follows. Returns the bytes written, or, if a read follows and is shorter, those read.
    #[inline(always)]
    fn write_block(&mut self) -> std::io::Result<usize> {
        let file = self.blocks.file.file();
        let written = file.write_at(&self.buffer, self.offset)?;
        match self.then {
            Then::Nothing => Ok(written),
            Then::Read => file.read_at(&mut self.again, self.read_offset).map(|read| written.min(read)),
            Then::WriteBack => file.sync_data().map(|()| written),
        }
    }

    /// Puts a new mark into the buffer and returns it. The number of the sector alone would not distinguish the new
    /// block from the old one.
    fn mark_buffer(&mut self) -> [u8; 8] {
        let counted = u64::from_le_bytes(self.buffer[8..16].try_into().unwrap_or_default()).wrapping_add(1);
        let mark = counted.to_le_bytes();
        self.buffer[8..16].copy_from_slice(&mark);
        mark
    }

    /// Reads the last block back and verifies its mark.
    fn verify_last_block(&mut self, mark: [u8; 8]) -> Result<()> {
        let file = &self.blocks.file;
        let got = file.file().read_at(&mut self.again, self.offset);
        file.check_block(got, &self.again, self.offset)?;
        if self.again[8..16] == mark {
            return Ok(());
        }
        let what = format!("what was written at {} is not there", self.offset);
        Err(file.proof_error("reading a block again", what))
    }
}

impl Subject for Writes {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mark = self.mark_buffer();
        self.blocks.proof.begin_batch()?;
        let ticks = clock.time_each(
            iterations,
            self,
            |writes| {
                writes.offset = writes.blocks.order.next_offset();
                pattern_file::number_sectors(&mut writes.buffer, writes.offset);
                if writes.then == Then::Read {
                    writes.read_offset = writes.blocks.order.next_offset();
                }
                Ok(())
            },
            Self::write_block,
            |writes, got| {
                let (file, block) = (&writes.blocks.file, writes.blocks.block);
                file.check_length("writing a block", got, block, writes.offset)?;
                if writes.then == Then::Read {
                    file.check_block(Ok(block), &writes.again, writes.read_offset)?;
                }
                Ok(Counts::Yes)
            },
        )?;
        let bytes = iterations * self.blocks.block as u64;
        self.blocks.proof.verify_written(bytes)?;
        if self.then == Then::Read {
            self.blocks.proof.verify_read(bytes)?;
        }
        self.verify_last_block(mark).map(|()| ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::pattern_file::PatternFile;
    use crate::platform::testing::print_skipped;

    /// A batch verifies only its last block; this checks every block.
    #[test]
    fn every_block_that_was_timed_is_new() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = PatternFile::create_filled(directory.path(), 64 << 10, Way::Cached).expect("a file");
        let blocks = Blocks::new(file, Pattern::Sequential, BLOCK, Source::Device).expect("blocks");
        let mut writes = Writes::new(blocks, Then::Nothing).expect("memory");
        // On a file system in memory nothing is charged as written.
        if let Err(why) = writes.run(3, &test_clock()) {
            return print_skipped(&why.to_string());
        }
        let mut block = [0; BLOCK];
        for number in 0..3 {
            writes.blocks.file.file().read_exact_at(&mut block, number * BLOCK as u64).expect("read");
            assert_eq!(block[8..16], writes.buffer[8..16], "block {number}");
        }
    }
}
