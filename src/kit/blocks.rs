//! Reading blocks of a stamped file past the page cache, each timed by itself, and the proof that they came from where
//! the bytes lie.

use crate::case::{Need, Place, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::pattern_file::{self, PatternFile, Way};
use crate::platform::proc::{Account, Moved, Source};
use crate::platform::volume::{self, Medium};
use crate::statistic::Random;
use crate::{Error, Result};
use memmap2::MmapMut;

/// What is looked at in each batch, in words.
pub const FROM_DEVICE: &str =
    "exactly as many bytes came from the device as were asked for, by /proc/self/io";
pub const OWN_NUMBER: &str = "every block began with its own number: it was the one that was asked for";
pub const NOT_KEPT: &str = "the page cache did not keep what was read last, by mincore";

/// In which order blocks are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after another, and again from the beginning.
    Sequential,
    /// Every block once in an order that chance has drawn, and again.
    Random,
}

/// The places of the blocks of a file.
pub struct Order {
    offsets: Vec<u64>,
    next: usize,
}

impl Order {
    pub fn of(pattern: Pattern, bytes: u64, block: usize) -> Self {
        let mut offsets: Vec<_> = (0..bytes / block as u64).map(|i| i * block as u64).collect();
        if pattern == Pattern::Random {
            Random::new(bytes ^ block as u64).shuffle(&mut offsets);
        }
        Self { offsets, next: 0 }
    }

    #[inline(always)]
    pub fn next(&mut self) -> u64 {
        let offset = self.offsets[self.next];
        self.next = (self.next + 1) % self.offsets.len();
        offset
    }
}

impl Order {
    /// Gives the last one back: it was not used.
    #[inline(always)]
    pub fn back(&mut self) {
        self.next = self.next.checked_sub(1).unwrap_or(self.offsets.len() - 1);
    }
}

/// Says where the bytes of a batch came from.
pub struct Proof {
    account: Account,
    source: Source,
    before: Moved,
}

impl Proof {
    pub fn by(source: Source) -> Result<Self> {
        Ok(Self { account: Account::open(source)?, source, before: Moved::default() })
    }

    /// Before a batch.
    pub fn begin(&mut self) -> Result<()> {
        self.before = self.account.read()?;
        Ok(())
    }

    /// After one that has read so many bytes.
    pub fn has_read(&mut self, bytes: u64) -> Result<()> {
        let moved = self.account.read()?.read - self.before.read;
        let what = match self.source {
            Source::Device if moved == bytes => return Ok(()),
            Source::Network if moved >= bytes => return Ok(()),
            Source::Device => "the device",
            Source::Network => "the network",
        };
        Err(Error::Usage(format!(
            "{bytes} bytes were read and {moved} came from {what}: the rest is somebody's cache; {}",
            volume::advice()
        )))
    }

    /// After one that has written so many bytes. Beside them the file system may have written of itself.
    pub fn has_written(&mut self, bytes: u64) -> Result<()> {
        let moved = self.account.read()?.written - self.before.written;
        if moved >= bytes {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{bytes} bytes were written and {moved} went to the device: the rest is somebody's cache; {}",
            volume::advice()
        )))
    }
}

/// What all that read or write a block at a time have in common.
pub struct Blocks {
    pub stamped: PatternFile,
    pub order: Order,
    pub proof: Proof,
    pub block: usize,
}

/// What is looked at of the page cache after a batch: what was read last, and its surroundings.
const LOOKED_AT: u64 = 1 << 20;

impl Blocks {
    pub fn of(stamped: PatternFile, pattern: Pattern, block: usize, source: Source) -> Result<Self> {
        stamped.takes(block)?;
        let order = Order::of(pattern, stamped.bytes(), block);
        Ok(Self { stamped, order, proof: Proof::by(source)?, block })
    }

    /// Whether a block was read whole, and is the one that was asked for.
    #[inline(always)]
    pub fn check(&self, got: std::io::Result<usize>, read: &[u8], offset: u64) -> Result<()> {
        match got {
            Ok(length) if length == self.block && pattern_file::is_of(read, offset) => Ok(()),
            got => Err(self.wrong(got, offset)),
        }
    }

    #[cold]
    fn wrong(&self, got: std::io::Result<usize>, offset: u64) -> Error {
        match got {
            Err(cause) if cause.raw_os_error() == Some(libc::EINVAL) => Error::Missing(format!(
                "blocks of {} bytes are refused past the page cache here ({cause}): the device moves more at once; {}",
                self.block,
                volume::advice()
            )),
            Err(cause) => self.stamped.refused("reading a block", cause),
            Ok(length) if length < self.block => self.stamped.refused(
                "reading a block",
                std::io::Error::other(format!("{length} of {} bytes came at {offset}", self.block)),
            ),
            Ok(_) => self.stamped.refused(
                "reading a block",
                std::io::Error::other(format!("what came is not what was written at {offset}")),
            ),
        }
    }

    /// After a batch that has read so many blocks, `last` the last of them.
    pub fn prove(&mut self, blocks: u64, last: u64) -> Result<()> {
        self.proof.has_read(blocks * self.block as u64)?;
        let from = last.saturating_sub(LOOKED_AT / 2);
        let kept = self.stamped.resident(from..from + LOOKED_AT)?;
        if kept > 0 {
            return Err(Error::Usage(format!(
                "{kept} pages around what was read last are in the page cache: it was not passed by"
            )));
        }
        Ok(())
    }
}

/// One block after another, each in a bracket of its own.
struct Reads {
    blocks: Blocks,
    buffer: MmapMut,
}

impl Subject for Reads {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        use std::os::unix::fs::FileExt;
        self.blocks.proof.begin()?;
        let (mut sum, mut offset) = (Ticks(0), 0);
        for _ in 0..iterations {
            offset = self.blocks.order.next();
            let mut got = Ok(0);
            let (file, buffer) = (self.blocks.stamped.file(), &mut self.buffer);
            sum += clock.time(|| got = file.read_at(buffer, offset));
            self.blocks.check(got, &self.buffer, offset)?;
        }
        self.blocks.prove(iterations, offset)?;
        Ok(sum)
    }
}

/// A live thing that reads these blocks, one after another.
pub fn one_after_another(blocks: Blocks) -> Result<Box<dyn Subject>> {
    let mut reads = Reads { buffer: pattern_file::buffer(blocks.block)?, blocks };
    // What is refused, or comes from a cache, says so before the first sample.
    reads.run(1, &Clock::with_scale(ONCE))?;
    Ok(Box::new(reads))
}

/// A clock of which nobody reads the time.
const ONCE: crate::clock::ClockScale = crate::clock::ClockScale { counter: false, hz: 1e9, step: 1 };

/// The set-up of a case of its own file.
pub fn reads(
    open: impl Fn(&Place) -> Result<PatternFile> + 'static,
    pattern: Pattern,
    block: usize,
    source: Source,
) -> SetUp {
    Box::new(move |place| one_after_another(Blocks::of(open(place)?, pattern, block, source)?))
}

/// There is a disk behind the scratch directory, and it can be read past the page cache.
pub const DISK: Need = Need::new(|place| match volume::of(&place.scratch) {
    (filesystem, Medium::Memory) => Err(format!(
        "{} is on {filesystem}, which is memory: there is no device to be read; {}",
        place.scratch.display(),
        volume::advice()
    )),
    _ => reaches_a_device(place).map_err(|error| error.to_string()),
});

/// Reads one block there and looks whether it came from a device.
fn reaches_a_device(place: &Place) -> Result<()> {
    const LENGTH: u64 = 64 << 10;
    let file = PatternFile::make(&place.scratch, LENGTH, Way::Direct)?;
    let blocks = Blocks::of(file, Pattern::Sequential, 4096, Source::Device)?;
    one_after_another(blocks).map(drop)
}

/// The kernel's own account must have grown by at least a sector for each block.
pub fn reached(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let Some(read) = delta.counted.device_read else {
        return Err("the kernel does not tell what came from devices (CONFIG_TASK_IO_ACCOUNTING)".into());
    };
    let each = read as f64 / iterations as f64;
    if read < iterations * pattern_file::SECTOR as u64 {
        return Err(format!(
            "{read} bytes came from the device in {iterations} reads: it was not read each time"
        ));
    }
    Ok(format!("{each:.0} bytes came from the device for each of {iterations} reads"))
}

#[cfg(test)]
mod tests;
