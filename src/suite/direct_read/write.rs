//! Writing blocks past the page cache, and with `O_DSYNC` past the disk's own.

use super::{BLOCK, file, moved};
use crate::case::{Case, Claim, OwnTasks, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::blocks::{Blocks, Pattern};
use crate::kit::pattern_file::{self, Way};
use crate::platform::proc::Source;
use crate::{Error, Result};
use memmap2::MmapMut;
use std::os::unix::fs::FileExt;

const TO_DEVICE: &str = "at least as many bytes went to the device as were asked for, by /proc/self/io";
const READ_AGAIN: &str = "what was written last was read again, past the page cache, and was it";

pub(super) fn cases() -> Vec<Case> {
    const IN_ORDER: [(&str, usize); 3] = [("4KiB", BLOCK), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];
    let mut cases = Vec::from(IN_ORDER.map(|(length, block)| {
        let title = format!("{length} written past the page cache, in order");
        of(format!("write/{length}"), title, Way::Direct, Pattern::Sequential, block)
    }));
    let title = "4KiB written past the page cache, at random".into();
    cases.push(of("write-random/4KiB".into(), title, Way::Direct, Pattern::Random, BLOCK));
    cases.extend(IN_ORDER.map(|(length, block)| {
        let title = format!("{length} written past the page cache and kept by the device, at random");
        of(format!("write-dsync/{length}"), title, Way::DirectSync, Pattern::Random, block)
    }));
    cases
}

fn of(name: String, title: String, way: Way, pattern: Pattern, block: usize) -> Case {
    let set_up: SetUp = Box::new(move |place| {
        let blocks = Blocks::of(file(place, way)?, pattern, block, Source::Device)?;
        let (buffer, again) = (pattern_file::buffer(block)?, pattern_file::buffer(block)?);
        Ok(Box::new(Writes { blocks, buffer, again }) as Box<dyn Subject>)
    });
    let case = moved(Case::new(name, title, set_up), block);
    // Where the device must have kept it, threads of the kernel do a part of the work.
    let case = if way == Way::DirectSync { case.own_tasks(OwnTasks::Elsewhere) } else { case };
    case.claim(Claim::Checked(TO_DEVICE)).claim(Claim::Counted(written)).claim(Claim::Checked(READ_AGAIN))
}

struct Writes {
    blocks: Blocks,
    buffer: MmapMut,
    again: MmapMut,
}

impl Subject for Writes {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        // What was there before begins with the same numbers: the rest of the block tells that this is new.
        let mark = self.mark();
        self.blocks.proof.begin()?;
        let (mut sum, mut offset) = (Ticks(0), 0);
        for _ in 0..iterations {
            offset = self.blocks.order.next();
            pattern_file::stamp(&mut self.buffer, offset);
            let mut got = Ok(0);
            let (file, buffer) = (self.blocks.stamped.file(), &self.buffer);
            sum += clock.time(|| got = file.write_at(buffer, offset));
            self.wrote(got, offset)?;
        }
        self.blocks.proof.has_written(iterations * self.blocks.block as u64)?;
        let got = self.blocks.stamped.file().read_at(&mut self.again, offset);
        self.blocks.check(got, &self.again, offset)?;
        if self.again[8..16] != mark {
            let cause = std::io::Error::other(format!("what was written at {offset} is not there"));
            return Err(self.blocks.stamped.refused("reading a block again", cause));
        }
        Ok(sum)
    }
}

impl Writes {
    /// Puts something into the block that was not there before.
    fn mark(&mut self) -> [u8; 8] {
        let counted = u64::from_le_bytes(self.buffer[8..16].try_into().unwrap_or_default()).wrapping_add(1);
        let mark = counted.to_le_bytes();
        self.buffer[8..16].copy_from_slice(&mark);
        mark
    }

    #[inline(always)]
    fn wrote(&self, got: std::io::Result<usize>, offset: u64) -> Result<()> {
        match got {
            Ok(length) if length == self.blocks.block => Ok(()),
            Ok(length) => {
                let cause = format!("{length} of {} bytes went to {offset}", self.blocks.block);
                Err(self.blocks.stamped.refused("writing a block", std::io::Error::other(cause)))
            }
            Err(cause) if cause.raw_os_error() == Some(libc::EINVAL) => Err(Error::Missing(format!(
                "blocks of {} bytes are refused past the page cache here: the device moves more at once",
                self.blocks.block
            ))),
            Err(cause) => Err(self.blocks.stamped.refused("writing a block", cause)),
        }
    }
}

fn written(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let Some(bytes) = delta.counted.device_written else {
        return Err("the kernel does not tell what went to devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    if bytes < iterations * pattern_file::SECTOR as u64 {
        return Err(format!("{bytes} bytes went to the device in {iterations} writes: not each was written"));
    }
    Ok(format!("{bytes} bytes went to the device in {iterations} writes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pattern_file::PatternFile;
    use crate::platform::arch::Unfit;

    /// Not only the last one, and not one more that nobody timed.
    #[test]
    fn every_block_that_was_timed_is_new() {
        let directory = tempfile::tempdir().expect("a directory");
        let stamped = PatternFile::make(directory.path(), 64 << 10, Way::Cached).expect("a file");
        let blocks = Blocks::of(stamped, Pattern::Sequential, BLOCK, Source::Device).expect("blocks");
        let (buffer, again) =
            (pattern_file::buffer(BLOCK).expect("memory"), pattern_file::buffer(BLOCK).expect("memory"));
        let mut writes = Writes { blocks, buffer, again };
        let clock = Clock::fallback(Unfit::Declined);
        // On a file system in memory nothing is charged as written, and that is all that is said.
        if writes.run(3, &clock).is_err() {
            return;
        }
        let mut block = [0; BLOCK];
        for number in 0..3 {
            writes.blocks.stamped.file().read_exact_at(&mut block, number * BLOCK as u64).expect("read");
            assert_eq!(block[8..16], writes.buffer[8..16], "block {number}");
        }
    }

    #[test]
    fn a_write_that_no_device_was_charged_with_is_no_write() {
        let mut delta = Delta::default();
        assert!(written(&delta, 1).is_err());
        delta.counted.device_written = Some(511);
        assert!(written(&delta, 1).is_err());
        delta.counted.device_written = Some(8192);
        assert!(written(&delta, 1).is_ok());
    }
}
