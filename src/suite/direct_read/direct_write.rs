//! Writes of blocks past the page cache, and with `O_DSYNC` past the cache of the disk.

use super::{BLOCK, scratch_file, with_block_figures};
use crate::case::{Case, Claim, OwnTasks, Subject, set_up};
use crate::clock::{Clock, Counts, Ticks};
use crate::error::Result;
use crate::kit::blocks::{Blocks, Pattern, claim_blocks_written};
use crate::platform::pattern_file::{self, Way};
use crate::platform::proc::Source;
use memmap2::MmapMut;
use std::os::unix::fs::FileExt;

const TO_DEVICE: &str = "at least as many bytes went to the device as were asked for, by /proc/self/io";
const READ_AGAIN: &str = "what was written last was read again, past the page cache, and was it";

pub(super) fn cases() -> Vec<Case> {
    const IN_ORDER: [(&str, usize); 3] = [("4KiB", BLOCK), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];
    let mut cases = Vec::from(IN_ORDER.map(|(length, block)| {
        let title = format!("{length} written past the page cache, in order");
        write_case(format!("write/{length}"), title, Way::Direct, Pattern::Sequential, block)
    }));
    let title = "4KiB written past the page cache, at random".into();
    cases.push(write_case("write-random/4KiB".into(), title, Way::Direct, Pattern::Random, BLOCK));
    cases.extend(IN_ORDER.map(|(length, block)| {
        let title = format!("{length} written past the page cache and kept by the device, at random");
        write_case(format!("write-dsync/{length}"), title, Way::DirectSync, Pattern::Random, block)
    }));
    cases
}

fn write_case(name: String, title: String, way: Way, pattern: Pattern, block: usize) -> Case {
    let set_up = set_up(move |place| {
        Writes::new(Blocks::new(scratch_file(place, way)?, pattern, block, Source::Device)?)
    });
    let case = with_block_figures(Case::new(name, title, set_up), block);
    // With `O_DSYNC` threads of the kernel do a part of the work.
    let case = if way == Way::DirectSync { case.own_tasks(OwnTasks::Elsewhere) } else { case };
    case.claim(Claim::Checked(TO_DEVICE)).claim(claim_blocks_written(block)).claim(Claim::Checked(READ_AGAIN))
}

struct Writes {
    blocks: Blocks,
    buffer: MmapMut,
    /// What is read back.
    again: MmapMut,
    /// Where the current block begins.
    offset: u64,
}

impl Writes {
    fn new(blocks: Blocks) -> Result<Self> {
        let buffer = || pattern_file::map_buffer(blocks.block);
        Ok(Self { buffer: buffer()?, again: buffer()?, blocks, offset: 0 })
    }

    /// Puts a value into the block that it did not hold before. The number of the sector alone would not tell the new
    /// block from the old one.
    fn mark_buffer(&mut self) -> [u8; 8] {
        let counted = u64::from_le_bytes(self.buffer[8..16].try_into().unwrap_or_default()).wrapping_add(1);
        let mark = counted.to_le_bytes();
        self.buffer[8..16].copy_from_slice(&mark);
        mark
    }

    /// Reads the last block back.
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
                Ok(())
            },
            |writes| writes.blocks.file.file().write_at(&writes.buffer, writes.offset),
            |writes, got| {
                let (file, block) = (&writes.blocks.file, writes.blocks.block);
                file.check_length("writing a block", got, block, writes.offset)?;
                Ok(Counts::Yes)
            },
        )?;
        self.blocks.proof.verify_written(iterations * self.blocks.block as u64)?;
        self.verify_last_block(mark)?;
        Ok(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::pattern_file::PatternFile;

    /// Each block, not only the last.
    #[test]
    fn every_block_that_was_timed_is_new() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = PatternFile::create_filled(directory.path(), 64 << 10, Way::Cached).expect("a file");
        let blocks = Blocks::new(file, Pattern::Sequential, BLOCK, Source::Device).expect("blocks");
        let mut writes = Writes::new(blocks).expect("memory");
        // On a file system in memory nothing is charged as written.
        if let Err(why) = writes.run(3, &test_clock()) {
            return println!("skipped: {why}");
        }
        let mut block = [0; BLOCK];
        for number in 0..3 {
            writes.blocks.file.file().read_exact_at(&mut block, number * BLOCK as u64).expect("read");
            assert_eq!(block[8..16], writes.buffer[8..16], "block {number}");
        }
    }
}
