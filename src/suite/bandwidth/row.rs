//! The table of the group: which operation, by what, on how much, by how many.

use super::field::Plan;
use crate::case::Need;
use crate::case::need::{FULL_SCALE, PINNED, THREE_CPUS, TWO_CPUS};
use crate::kit::parallel::Parallelism;
use crate::kit::stream::{Means, Operation};
use crate::platform::resident::Pages;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Up to here a row lies in base pages, which the first translation cache holds on every machine; so there is a number
/// of the first level where no huge pages are given.
const FEW_PAGES: usize = 32 * KIB;

/// Sizes measured at default scale, one of each level of a common machine, and those between them and beyond, which
/// only full scale has.
const SIZES: [usize; 4] = [16 * KIB, 256 * KIB, 4 * MIB, 256 * MIB];
const BETWEEN: [usize; 12] = [
    32 * KIB,
    64 * KIB,
    128 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    8 * MIB,
    16 * MIB,
    32 * MIB,
    64 * MIB,
    128 * MIB,
    512 * MIB,
];

/// One case.
#[derive(Clone, Copy)]
pub(super) struct Row {
    variant: &'static str,
    words: &'static str,
    operation: Operation,
    /// The widest vectors, if none is named.
    means: Option<Means>,
    bytes: usize,
    skew: usize,
    zeroes: bool,
    /// Base pages whatever the size.
    is_in_base_pages: bool,
    pub(super) crowd: Option<Parallelism>,
    is_long: bool,
}

impl Row {
    const fn new(variant: &'static str, words: &'static str, operation: Operation, bytes: usize) -> Self {
        Self {
            variant,
            words,
            operation,
            means: None,
            bytes,
            skew: 0,
            zeroes: false,
            is_in_base_pages: false,
            crowd: None,
            is_long: false,
        }
    }

    fn by(self, means: Means) -> Self {
        Self { means: Some(means), ..self }
    }

    fn together(self, crowd: Parallelism) -> Self {
        Self { crowd: Some(crowd), ..self }
    }

    fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    pub(super) fn plan(&self) -> Plan {
        let is_in_base_pages = self.is_in_base_pages || self.bytes <= FEW_PAGES;
        Plan {
            operation: self.operation,
            means: self.means.unwrap_or_else(Means::widest),
            bytes: self.bytes,
            skew: self.skew,
            zeroes: self.zeroes,
            pages: if is_in_base_pages { Pages::Base } else { Pages::Huge },
        }
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.variant, size(self.bytes))
    }

    pub(super) fn title(&self) -> String {
        format!("{}, {}", self.words, size(self.bytes))
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        let crowd: &[Need] = match self.crowd {
            None => &[],
            Some(Parallelism::Count(_)) => &[PINNED, THREE_CPUS],
            Some(Parallelism::All) => &[PINNED, TWO_CPUS],
        };
        // What is asked first is what a reader can do least about.
        crowd.iter().copied().chain(self.is_long.then_some(FULL_SCALE)).collect()
    }
}

fn size(bytes: usize) -> String {
    if bytes >= MIB { format!("{}MiB", bytes / MIB) } else { format!("{}KiB", bytes / KIB) }
}

/// All rows, in the order of their ids.
pub(super) fn rows() -> Vec<Row> {
    [plain(), past_the_caches(), stream(), library(), narrow(), crowds()].concat()
}

/// The three that make curves, and a sum in place.
fn plain() -> Vec<Row> {
    let curves = [
        ("read", "sum of all words", Operation::Read),
        ("write", "a constant stored", Operation::Write),
        ("copy", "one half moved to the other", Operation::Copy),
    ];
    let mut sizes: Vec<_> = SIZES.map(|bytes| (bytes, false)).into();
    sizes.extend(BETWEEN.map(|bytes| (bytes, true)));
    sizes.sort_unstable();
    let mut rows = Vec::new();
    for (variant, words, operation) in curves {
        rows.extend(
            sizes
                .iter()
                .map(|&(bytes, is_long)| Row { is_long, ..Row::new(variant, words, operation, bytes) }),
        );
    }
    let update = |bytes| Row::new("update", "a constant added to each word", Operation::Update, bytes);
    rows.extend(SIZES.map(|bytes| {
        if bytes == 16 * KIB || bytes == 256 * MIB { update(bytes) } else { update(bytes).long() }
    }));
    rows
}

fn past_the_caches() -> Vec<Row> {
    let write =
        Row::new("write-nt", "a constant stored past the caches", Operation::WriteNonTemporal, 256 * MIB);
    let zeroes =
        Row { variant: "write-nt-zeroes", words: "zeroes stored past the caches", zeroes: true, ..write };
    let copy = Row::new(
        "copy-nt",
        "one half moved past the caches to the other",
        Operation::CopyNonTemporal,
        256 * MIB,
    );
    let small = |row: Row, bytes| Row { bytes, ..row }.long();
    vec![
        small(write, 16 * KIB),
        small(write, 4 * MIB),
        write,
        zeroes,
        small(copy, 16 * KIB),
        small(copy, 4 * MIB),
        copy,
    ]
}

/// STREAM's other three.
fn stream() -> Vec<Row> {
    let rows = [
        ("scale", "a third of it times the other", Operation::Scale),
        ("add", "two thirds added into the third", Operation::Add),
        ("triad", "one third, and a number times another, into the third", Operation::Triad),
    ];
    let sizes = |(variant, words, operation)| {
        SIZES.map(|bytes| {
            let row = Row::new(variant, words, operation, bytes);
            if bytes == 256 * MIB { row } else { row.long() }
        })
    };
    rows.into_iter().flat_map(sizes).collect()
}

/// The C library and the string instructions, one call for the whole.
fn library() -> Vec<Row> {
    let rows = [
        ("memcpy", "one half moved by memcpy", Operation::Copy, Means::Library),
        ("memset", "all of it set by memset", Operation::Write, Means::Library),
        ("rep-movsb", "one half moved by rep movsb", Operation::Copy, Means::Strings),
        ("rep-stosb", "all of it set by rep stosb", Operation::Write, Means::Strings),
    ];
    let sizes = [
        (16 * KIB, false),
        (256 * KIB, true),
        (4 * MIB, true),
        (16 * MIB, false),
        (64 * MIB, false),
        (256 * MIB, true),
    ];
    let mut all = Vec::new();
    for (variant, words, operation, means) in rows {
        all.extend(sizes.into_iter().map(|(bytes, is_long)| {
            let row = Row::new(variant, words, operation, bytes).by(means);
            // A call for much is a sample of its own that takes milliseconds: of two that do alike one is enough.
            if is_long || means == Means::Strings && bytes > 16 * KIB { row.long() } else { row }
        }));
    }
    let set = Row::new("memset-zeroes", "all of it set to zero by memset", Operation::Write, 64 * MIB);
    all.push(Row { zeroes: true, ..set }.by(Means::Library).long());
    all
}

/// By narrower means, from an odd address, and in small pages.
fn narrow() -> Vec<Row> {
    let mut rows = Vec::new();
    for (variant, words, operation) in [
        ("read-scalar", "sum of all words, one by one", Operation::Read),
        ("write-scalar", "a constant stored word by word", Operation::Write),
    ] {
        rows.extend(
            [16 * KIB, 256 * MIB].map(|bytes| Row::new(variant, words, operation, bytes).by(Means::Scalar)),
        );
    }
    for (variant, words, operation, means) in [
        ("read-sse2", "sum by vectors of 16 bytes", Operation::Read, Means::Sse2),
        ("read-avx2", "sum by vectors of 32 bytes", Operation::Read, Means::Avx2),
        ("read-avx512", "sum by vectors of 64 bytes", Operation::Read, Means::Avx512),
        ("read-neon", "sum by vectors of 16 bytes", Operation::Read, Means::Neon),
        ("write-sse2", "a constant stored by vectors of 16 bytes", Operation::Write, Means::Sse2),
        ("write-avx2", "a constant stored by vectors of 32 bytes", Operation::Write, Means::Avx2),
        ("write-avx512", "a constant stored by vectors of 64 bytes", Operation::Write, Means::Avx512),
        ("write-neon", "a constant stored by vectors of 16 bytes", Operation::Write, Means::Neon),
    ] {
        rows.push(Row::new(variant, words, operation, 16 * KIB).by(means));
    }
    for (variant, words, operation) in [
        ("read-unaligned", "sum of all words, from an odd address", Operation::Read),
        ("write-unaligned", "a constant stored, from an odd address", Operation::Write),
        ("copy-unaligned", "one half moved to the other, both from odd addresses", Operation::Copy),
    ] {
        rows.push(Row { skew: 1, ..Row::new(variant, words, operation, 16 * KIB) });
    }
    for (variant, words, operation) in [
        ("read-base-pages", "sum of all words in base pages", Operation::Read),
        ("write-base-pages", "a constant stored in base pages", Operation::Write),
        ("copy-base-pages", "one half moved to the other in base pages", Operation::Copy),
    ] {
        let row = Row { is_in_base_pages: true, ..Row::new(variant, words, operation, 256 * MIB) };
        rows.push(if matches!(operation, Operation::Read) { row } else { row.long() });
    }
    rows
}

/// Several at a time.
fn crowds() -> Vec<Row> {
    let rows = [
        ("read-all", "sums on all CPUs", Operation::Read),
        ("write-all", "a constant stored on all CPUs", Operation::Write),
        ("copy-all", "halves moved on all CPUs", Operation::Copy),
    ];
    let sizes = |(variant, words, operation)| {
        SIZES.map(|bytes| {
            let row = Row::new(variant, words, operation, bytes).together(Parallelism::All);
            if bytes == 16 * KIB || bytes == 256 * MIB { row } else { row.long() }
        })
    };
    let mut all: Vec<_> = rows.into_iter().flat_map(sizes).collect();
    for (variant, words, operation, means) in [
        ("write-nt-all", "a constant stored past the caches on all CPUs", Operation::WriteNonTemporal, None),
        ("copy-nt-all", "halves moved past the caches on all CPUs", Operation::CopyNonTemporal, None),
        ("scale-all", "scale on all CPUs", Operation::Scale, None),
        ("add-all", "add on all CPUs", Operation::Add, None),
        ("triad-all", "triad on all CPUs", Operation::Triad, None),
        ("memcpy-all", "halves moved by memcpy on all CPUs", Operation::Copy, Some(Means::Library)),
        ("memset-all", "memory set by memset on all CPUs", Operation::Write, Some(Means::Library)),
        ("rep-stosb-all", "memory set by rep stosb on all CPUs", Operation::Write, Some(Means::Strings)),
    ] {
        let bytes = if means.is_some() { 64 * MIB } else { 256 * MIB };
        let row = Row { means, ..Row::new(variant, words, operation, bytes).together(Parallelism::All) };
        let is_short = operation.is_non_temporal() || matches!(operation, Operation::Triad);
        all.push(if is_short { row } else { row.long() });
    }
    for (variant, words, operation) in [
        ("read-two", "sums on two CPUs", Operation::Read),
        ("triad-two", "triad on two CPUs", Operation::Triad),
    ] {
        all.push(Row::new(variant, words, operation, 256 * MIB).together(Parallelism::Count(2)));
    }
    all
}

/// Where so many bytes lie on a machine of today, for a prediction: its own levels are what the curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    First,
    Second,
    Last,
    Memory,
}

pub(super) fn level(bytes: usize) -> Level {
    match bytes {
        0..=0x8000 => Level::First,
        0x8001..=0x8_0000 => Level::Second,
        0x8_0001..=0x100_0000 => Level::Last,
        _ => Level::Memory,
    }
}

impl Level {
    pub(super) fn is_memory(self) -> bool {
        self == Self::Memory
    }

    /// Whether other CPUs use it, too.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::Last | Self::Memory)
    }

    /// Core cycles of one iteration, and why.
    pub(super) fn predicted(self, plan: &Plan) -> (f64, &'static str) {
        let reads = matches!(plan.operation, Operation::Read);
        let by_words = plan.means == Means::Scalar;
        let (bytes_a_cycle, why) = match self {
            _ if plan.operation.is_non_temporal() => (8.0, "a line waits for memory, and so many may wait"),
            Self::First if by_words => {
                (if reads { 16.0 } else { 8.0 }, "two loads or a store of 8 bytes a cycle")
            }
            Self::First if reads => (64.0, "two loads of 32 bytes a cycle, or one of 64"),
            Self::First => (32.0, "a store of 32 bytes a cycle"),
            Self::Second => (32.0, "half a line a cycle from the second level"),
            Self::Last => (24.0, "a line every three cycles from the last level"),
            Self::Memory => (8.0, "a line waits for memory, and so many may wait"),
        };
        (plan.moved() as f64 / bytes_a_cycle, why)
    }
}
