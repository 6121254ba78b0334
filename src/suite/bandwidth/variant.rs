//! The table of the group: the operation, the means, the sizes and the number of CPUs of each series of cases; what one case does to
//! its arrays, and what that should cost.

use crate::case::Need;
use crate::case::need::{FULL_SCALE, PINNED, THREE_CPUS, TWO_CPUS};
use crate::kit::parallel::Parallelism::{self, All, Count};
use crate::kit::socket::size_text;
use crate::kit::stream::{Means, Operation};
use crate::platform::numa;
use crate::platform::resident::Pages;
use Means::{Avx2, Avx512, Library, Neon, Scalar, Sse2, Strings};
use Operation::{Add, Copy, CopyNonTemporal, Read, Scale, Triad, Update, Write, WriteNonTemporal};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size that lies in base pages, bytes. The first-level TLB of every machine covers it, so the
/// first cache level can be measured without huge pages.
const FEW_PAGES: usize = 32 * KIB;

/// Sizes of default scale, one for each cache level of a common machine. The constants that follow are subsets.
const SIZES: &[usize] = &[16 * KIB, 256 * KIB, 4 * MIB, 256 * MIB];
const SMALLEST: &[usize] = &[16 * KIB];
const LARGEST: &[usize] = &[256 * MIB];
const ENDS: &[usize] = &[16 * KIB, 256 * MIB];
const THREE: &[usize] = &[16 * KIB, 4 * MIB, 256 * MIB];
const NONE: &[usize] = &[];
/// From 16 KiB to 512 MiB.
const POWERS: &[usize] = &{
    let mut sizes = [16 * KIB; 16];
    let mut at = 1;
    while at < sizes.len() {
        sizes[at] = 2 * sizes[at - 1];
        at += 1;
    }
    sizes
};
/// Sizes of cases in which one call processes the whole size, which takes milliseconds for a large one. The C library and the
/// string instructions perform alike there, so the library is enough at default scale.
const STRUNG: &[usize] = &[16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB];
/// The CSC501 report measures the library with arrays of 8 and 16 MB; a copy has two such arrays.
const REPORTED: &[usize] = &[16 * KIB, 256 * KIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB];
const COPIED: &[usize] = &[16 * KIB, 16 * MIB, 32 * MIB, 64 * MIB];
const SET: &[usize] = &[16 * KIB, 8 * MIB, 16 * MIB, 64 * MIB];
const CALLED: &[usize] = &[64 * MIB];

/// Cases that differ in size.
pub(super) struct Row {
    name: &'static str,
    words: &'static str,
    operation: Operation,
    sizes: &'static [usize],
    /// The sizes that are measured at default scale, too.
    usual: &'static [usize],
    /// The widest vectors if `None`.
    means: Option<Means>,
    skew: usize,
    zeroes: bool,
    /// Whether it lies in base pages, whatever its size.
    base_pages: bool,
    pub(super) crowd: Option<Parallelism>,
}

/// A row of cases on one CPU with the widest vectors, aligned and with a pattern; the methods of `Row` change that.
const fn row(
    name: &'static str,
    words: &'static str,
    operation: Operation,
    sizes: &'static [usize],
    usual: &'static [usize],
) -> Row {
    let (means, crowd) = (None, None);
    Row { name, words, operation, sizes, usual, means, skew: 0, zeroes: false, base_pages: false, crowd }
}

impl Row {
    const fn by(self, means: Means) -> Self {
        Self { means: Some(means), ..self }
    }

    const fn on(self, crowd: Parallelism) -> Self {
        Self { crowd: Some(crowd), ..self }
    }

    const fn zeroes(self) -> Self {
        Self { zeroes: true, ..self }
    }

    const fn unaligned(self) -> Self {
        Self { skew: 1, ..self }
    }

    const fn in_base_pages(self) -> Self {
        Self { base_pages: true, ..self }
    }
}

/// Reading the memory of each NUMA node.
static OF_NODE: Row = row("read-node", "sum of all words", Read, LARGEST, NONE);

/// All other rows, in the order of their ids: those with curves and an update in place, stores past the caches, STREAM's other three,
/// calls, narrower means, odd addresses and small pages, several CPUs at a time.
#[rustfmt::skip]
static ROWS: &[Row] = &[
    row("read", "sum of all words", Read, POWERS, SIZES),
    row("write", "a constant stored", Write, POWERS, SIZES),
    row("copy", "one half moved to the other", Copy, POWERS, SIZES),
    row("update", "a constant added to each word", Update, SIZES, ENDS),
    row("write-nt", "a constant stored past the caches", WriteNonTemporal, THREE, LARGEST),
    row("write-nt-zeroes", "zeroes stored past the caches", WriteNonTemporal, LARGEST, LARGEST).zeroes(),
    row("copy-nt", "one half moved past the caches to the other", CopyNonTemporal, THREE, LARGEST),
    row("scale", "a third of it times the other", Scale, SIZES, LARGEST),
    row("add", "two thirds added into the third", Add, SIZES, LARGEST),
    row("triad", "one third, and a number times another, into the third", Triad, SIZES, LARGEST),
    row("memcpy", "one half moved by memcpy", Copy, REPORTED, COPIED).by(Library),
    row("memset", "all of it set by memset", Write, REPORTED, SET).by(Library),
    row("rep-movsb", "one half moved by rep movsb", Copy, STRUNG, SMALLEST).by(Strings),
    row("rep-stosb", "all of it set by rep stosb", Write, STRUNG, SMALLEST).by(Strings),
    row("memset-zeroes", "all of it set to zero by memset", Write, CALLED, NONE).by(Library).zeroes(),
    row("read-scalar", "sum of all words, one by one", Read, ENDS, ENDS).by(Scalar),
    row("write-scalar", "a constant stored word by word", Write, ENDS, ENDS).by(Scalar),
    row("read-sse2", "sum by vectors of 16 bytes", Read, SMALLEST, SMALLEST).by(Sse2),
    row("read-avx2", "sum by vectors of 32 bytes", Read, SMALLEST, SMALLEST).by(Avx2),
    row("read-avx512", "sum by vectors of 64 bytes", Read, SMALLEST, SMALLEST).by(Avx512),
    row("read-neon", "sum by vectors of 16 bytes", Read, SMALLEST, SMALLEST).by(Neon),
    row("write-sse2", "a constant stored by vectors of 16 bytes", Write, SMALLEST, SMALLEST).by(Sse2),
    row("write-avx2", "a constant stored by vectors of 32 bytes", Write, SMALLEST, SMALLEST).by(Avx2),
    row("write-avx512", "a constant stored by vectors of 64 bytes", Write, SMALLEST, SMALLEST).by(Avx512),
    row("write-neon", "a constant stored by vectors of 16 bytes", Write, SMALLEST, SMALLEST).by(Neon),
    row("read-unaligned", "sum of all words, from an odd address", Read, SMALLEST, SMALLEST).unaligned(),
    row("write-unaligned", "a constant stored, from an odd address", Write, SMALLEST, SMALLEST).unaligned(),
    row("copy-unaligned", "one half moved to the other, both from odd addresses", Copy, SMALLEST, SMALLEST).unaligned(),
    row("read-base-pages", "sum of all words in base pages", Read, LARGEST, LARGEST).in_base_pages(),
    row("write-base-pages", "a constant stored in base pages", Write, LARGEST, NONE).in_base_pages(),
    row("copy-base-pages", "one half moved to the other in base pages", Copy, LARGEST, NONE).in_base_pages(),
    row("read-all", "sums on all CPUs", Read, SIZES, ENDS).on(All),
    row("write-all", "a constant stored on all CPUs", Write, SIZES, ENDS).on(All),
    row("copy-all", "halves moved on all CPUs", Copy, SIZES, ENDS).on(All),
    row("write-nt-all", "a constant stored past the caches on all CPUs", WriteNonTemporal, LARGEST, LARGEST).on(All),
    row("copy-nt-all", "halves moved past the caches on all CPUs", CopyNonTemporal, LARGEST, LARGEST).on(All),
    row("scale-all", "scale on all CPUs", Scale, LARGEST, NONE).on(All),
    row("add-all", "add on all CPUs", Add, LARGEST, NONE).on(All),
    row("triad-all", "triad on all CPUs", Triad, LARGEST, LARGEST).on(All),
    row("memcpy-all", "halves moved by memcpy on all CPUs", Copy, CALLED, NONE).by(Library).on(All),
    row("memset-all", "memory set by memset on all CPUs", Write, CALLED, NONE).by(Library).on(All),
    row("rep-stosb-all", "memory set by rep stosb on all CPUs", Write, CALLED, NONE).by(Strings).on(All),
    row("read-two", "sums on two CPUs", Read, LARGEST, LARGEST).on(Count(2)),
    row("triad-two", "triad on two CPUs", Triad, LARGEST, LARGEST).on(Count(2)),
];

/// One case.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    pub(super) row: &'static Row,
    bytes: usize,
    /// The node that its memory is on; the nearest if `None`.
    pub(super) node: Option<usize>,
}

/// All cases, in the order of their ids.
pub(super) fn variants() -> Vec<Variant> {
    let variants = |row: &'static Row, node| row.sizes.iter().map(move |&bytes| Variant { row, bytes, node });
    let of_nodes = (0..numa::MEASURED).flat_map(|node| variants(&OF_NODE, Some(node)));
    ROWS.iter().flat_map(|row| variants(row, None)).chain(of_nodes).collect()
}

impl Variant {
    pub(super) fn plan(&self) -> Plan {
        let Row { operation, means, skew, zeroes, base_pages, .. } = *self.row;
        let pages = if base_pages || self.bytes <= FEW_PAGES { Pages::Base } else { Pages::Huge };
        let means = means.unwrap_or_else(Means::widest);
        Plan { operation, means, bytes: self.bytes, skew, zeroes, pages }
    }

    pub(super) fn id(&self) -> String {
        match self.node {
            Some(node) => format!("{}-{}/{node}", self.row.name, size_text(self.bytes)),
            None => format!("{}/{}", self.row.name, size_text(self.bytes)),
        }
    }

    pub(super) fn title(&self) -> String {
        let place = self.node.map(|node| format!(", in the memory of node {node}")).unwrap_or_default();
        format!("{}, {}{place}", self.row.words, size_text(self.bytes))
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        let crowd: &[Need] = match self.row.crowd {
            None => &[],
            Some(Count(_)) => &[PINNED, THREE_CPUS],
            Some(All) => &[PINNED, TWO_CPUS],
        };
        let is_long = !self.row.usual.contains(&self.bytes);
        // The need that is hardest to meet comes first.
        crowd.iter().cloned().chain(is_long.then_some(FULL_SCALE)).collect()
    }
}

/// Bytes that an iteration reads and writes together: a part of a large array, and the whole of the smallest. With
/// three arrays it is a little less, since a third of it is no whole number of blocks.
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
