//! What one case does to its arrays: the operation, the size, the values, and what they should cost.

use crate::kit::stream::{Means, Operation};
use crate::platform::resident::Pages;

/// Bytes that an iteration reads and writes together: a part of a large array, and the whole of the smallest. A third
/// of it is no whole number of blocks, so with three arrays it is a little less.
const ITERATION: usize = 16 << 10;
/// The integer that is written or added. None of its bytes is zero, since some processors store zeroes in another way.
const PATTERN: u64 = 0x5c5c_5c5c_5c5c_5c5c;
/// STREAM's scalar.
const FACTOR: f64 = 3.0;

/// A level of memory, by its size on a common machine, for predictions; the measured curve shows the levels of this
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    First,
    Second,
    Last,
    Memory,
}

impl Level {
    /// Whether other CPUs use it, too.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::Last | Self::Memory)
    }
}

/// An operation, its data, and its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) operation: Operation,
    pub(super) means: Means,
    /// Bytes of all arrays together.
    pub(super) bytes: usize,
    /// The offset of each array from the beginning of a page, bytes.
    pub(super) skew: usize,
    /// Whether zeroes are written in place of a pattern.
    pub(super) zeroes: bool,
    pub(super) pages: Pages,
}

impl Plan {
    /// Whether one call processes a whole array: the C library and the processor's microcode choose their method by the
    /// length.
    pub(super) fn calls_whole_array(&self) -> bool {
        matches!(self.means, Means::Library | Means::Strings)
    }

    /// Bytes of each array that one iteration processes.
    pub(super) fn bytes_per_chunk(&self) -> usize {
        let array = self.bytes / self.operation.array_count();
        let most =
            if self.calls_whole_array() { array } else { array.min(ITERATION / self.moved_array_count()) };
        // A multiple of the loops' blocks.
        (most / 1024 * 1024).max(1024)
    }

    /// Bytes that one iteration reads and writes.
    pub(super) fn bytes_moved(&self) -> u64 {
        (self.bytes_per_chunk() * self.moved_array_count()) as u64
    }

    /// The number of arrays; an array that is updated is read and written, and counts twice.
    fn moved_array_count(&self) -> usize {
        if self.operation == Operation::Update { 2 } else { self.operation.array_count() }
    }

    /// Chunks in each array.
    pub(super) fn chunk_count(&self) -> usize {
        (self.bytes / self.operation.array_count() / self.bytes_per_chunk()).max(1)
    }

    /// The bits of the operation's constant.
    pub(super) fn constant_bits(&self) -> u64 {
        match self.operation {
            Operation::Scale | Operation::Triad => FACTOR.to_bits(),
            _ if self.zeroes => 0,
            _ => PATTERN,
        }
    }

    fn calculates_reals(&self) -> bool {
        matches!(self.operation, Operation::Scale | Operation::Add | Operation::Triad)
    }

    /// The initial value of a word that is read or updated: its number, so that no two are alike; for floating-point
    /// operations a small whole number, so that sums and products are exact.
    pub(super) fn source(&self, array: usize, word: u64) -> u64 {
        if self.calculates_reals() { ((word % 4096 + array as u64) as f64).to_bits() } else { word }
    }

    /// The value that a written word must hold after this many visits.
    pub(super) fn expected_word(&self, word: u64, visits: u64) -> u64 {
        let real = |array| f64::from_bits(self.source(array, word));
        match self.operation {
            Operation::Read => 0,
            Operation::Write | Operation::WriteNonTemporal => self.constant_bits(),
            Operation::Copy | Operation::CopyNonTemporal => self.source(1, word),
            Operation::Update => word.wrapping_add(visits.wrapping_mul(self.constant_bits())),
            Operation::Scale => (FACTOR * real(1)).to_bits(),
            Operation::Add => (real(1) + real(2)).to_bits(),
            Operation::Triad => (real(1) + FACTOR * real(2)).to_bits(),
        }
    }

    /// The level of memory that holds the arrays.
    pub(super) fn memory_level(&self) -> Level {
        match self.bytes {
            0..=0x8000 => Level::First,
            0x8001..=0x8_0000 => Level::Second,
            0x8_0001..=0x100_0000 => Level::Last,
            _ => Level::Memory,
        }
    }

    /// The expected core cycles of one iteration, and why.
    pub(super) fn predicted_cycles(&self) -> (f64, &'static str) {
        let reads = matches!(self.operation, Operation::Read);
        let by_words = self.means == Means::Scalar;
        let (bytes_a_cycle, why) = match self.memory_level() {
            _ if self.operation.is_non_temporal() => {
                (8.0, "lines wait for memory, and their number is limited")
            }
            Level::First if by_words => {
                (if reads { 16.0 } else { 8.0 }, "two loads or a store of 8 bytes a cycle")
            }
            Level::First if reads => (64.0, "two loads of 32 bytes a cycle, or one of 64"),
            Level::First => (32.0, "a store of 32 bytes a cycle"),
            Level::Second => (32.0, "half a line a cycle from the second level"),
            Level::Last => (24.0, "a line every three cycles from the last level"),
            Level::Memory => (8.0, "lines wait for memory, and their number is limited"),
        };
        (self.bytes_moved() as f64 / bytes_a_cycle, why)
    }
}
