//! The table of the group: the operation, the means, the size and the number of CPUs of each case.

use super::stream_plan::Plan;
use crate::case::Need;
use crate::case::need::{FULL_SCALE, PINNED, THREE_CPUS, TWO_CPUS};
use crate::kit::parallel::Parallelism;
use crate::kit::stream::{Means, Operation};
use crate::platform::resident::Pages;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size that lies in base pages, bytes. The first translation cache of every machine holds them, so the
/// first level can be measured without huge pages.
const FEW_PAGES: usize = 32 * KIB;

/// Sizes of default scale, one for each level of a common machine; then the others, which only full scale measures.
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
pub(super) struct Variant {
    name: &'static str,
    words: &'static str,
    operation: Operation,
    /// The widest vectors if `None`.
    means: Option<Means>,
    bytes: usize,
    skew: usize,
    zeroes: bool,
    /// Whether it lies in base pages, whatever its size.
    is_in_base_pages: bool,
    pub(super) crowd: Option<Parallelism>,
    /// Whether only full scale measures it.
    is_long: bool,
}

impl Variant {
    const fn new(name: &'static str, words: &'static str, operation: Operation, bytes: usize) -> Self {
        Self {
            name,
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

    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.name, size(self.bytes))
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
        // The need that is hardest to meet comes first.
        crowd.iter().copied().chain(self.is_long.then_some(FULL_SCALE)).collect()
    }
}

fn size(bytes: usize) -> String {
    if bytes >= MIB { format!("{}MiB", bytes / MIB) } else { format!("{}KiB", bytes / KIB) }
}

/// All cases, in the order of their ids.
pub(super) fn variants() -> Vec<Variant> {
    [plain(), past_the_caches(), stream(), library(), narrow(), crowds()].concat()
}

/// The three operations with curves, and an update in place.
fn plain() -> Vec<Variant> {
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
            sizes.iter().map(|&(bytes, is_long)| Variant {
                is_long,
                ..Variant::new(variant, words, operation, bytes)
            }),
        );
    }
    let update = |bytes| Variant::new("update", "a constant added to each word", Operation::Update, bytes);
    rows.extend(SIZES.map(|bytes| {
        if bytes == 16 * KIB || bytes == 256 * MIB { update(bytes) } else { update(bytes).long() }
    }));
    rows
}

fn past_the_caches() -> Vec<Variant> {
    let write =
        Variant::new("write-nt", "a constant stored past the caches", Operation::WriteNonTemporal, 256 * MIB);
    let zeroes =
        Variant { name: "write-nt-zeroes", words: "zeroes stored past the caches", zeroes: true, ..write };
    let copy = Variant::new(
        "copy-nt",
        "one half moved past the caches to the other",
        Operation::CopyNonTemporal,
        256 * MIB,
    );
    let small = |row: Variant, bytes| Variant { bytes, ..row }.long();
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

/// STREAM's other three operations.
fn stream() -> Vec<Variant> {
    let rows = [
        ("scale", "a third of it times the other", Operation::Scale),
        ("add", "two thirds added into the third", Operation::Add),
        ("triad", "one third, and a number times another, into the third", Operation::Triad),
    ];
    let sizes = |(variant, words, operation)| {
        SIZES.map(|bytes| {
            let row = Variant::new(variant, words, operation, bytes);
            if bytes == 256 * MIB { row } else { row.long() }
        })
    };
    rows.into_iter().flat_map(sizes).collect()
}

/// The C library and the string instructions, one call for all of it.
fn library() -> Vec<Variant> {
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
            let row = Variant::new(variant, words, operation, bytes).by(means);
            // A call for a large size takes milliseconds. Of the library and the string instructions, which then perform
            // alike, the library is enough at default scale.
            if is_long || means == Means::Strings && bytes > 16 * KIB { row.long() } else { row }
        }));
    }
    let set = Variant::new("memset-zeroes", "all of it set to zero by memset", Operation::Write, 64 * MIB);
    all.push(Variant { zeroes: true, ..set }.by(Means::Library).long());
    all
}

/// Narrower means, odd addresses, and small pages.
fn narrow() -> Vec<Variant> {
    let mut rows = Vec::new();
    for (variant, words, operation) in [
        ("read-scalar", "sum of all words, one by one", Operation::Read),
        ("write-scalar", "a constant stored word by word", Operation::Write),
    ] {
        rows.extend(
            [16 * KIB, 256 * MIB]
                .map(|bytes| Variant::new(variant, words, operation, bytes).by(Means::Scalar)),
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
        rows.push(Variant::new(variant, words, operation, 16 * KIB).by(means));
    }
    for (variant, words, operation) in [
        ("read-unaligned", "sum of all words, from an odd address", Operation::Read),
        ("write-unaligned", "a constant stored, from an odd address", Operation::Write),
        ("copy-unaligned", "one half moved to the other, both from odd addresses", Operation::Copy),
    ] {
        rows.push(Variant { skew: 1, ..Variant::new(variant, words, operation, 16 * KIB) });
    }
    for (variant, words, operation) in [
        ("read-base-pages", "sum of all words in base pages", Operation::Read),
        ("write-base-pages", "a constant stored in base pages", Operation::Write),
        ("copy-base-pages", "one half moved to the other in base pages", Operation::Copy),
    ] {
        let row = Variant { is_in_base_pages: true, ..Variant::new(variant, words, operation, 256 * MIB) };
        rows.push(if matches!(operation, Operation::Read) { row } else { row.long() });
    }
    rows
}

/// Several CPUs at a time.
fn crowds() -> Vec<Variant> {
    let rows = [
        ("read-all", "sums on all CPUs", Operation::Read),
        ("write-all", "a constant stored on all CPUs", Operation::Write),
        ("copy-all", "halves moved on all CPUs", Operation::Copy),
    ];
    let sizes = |(variant, words, operation)| {
        SIZES.map(|bytes| {
            let row = Variant::new(variant, words, operation, bytes).together(Parallelism::All);
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
        let row =
            Variant { means, ..Variant::new(variant, words, operation, bytes).together(Parallelism::All) };
        let is_short = operation.is_non_temporal() || matches!(operation, Operation::Triad);
        all.push(if is_short { row } else { row.long() });
    }
    for (variant, words, operation) in [
        ("read-two", "sums on two CPUs", Operation::Read),
        ("triad-two", "triad on two CPUs", Operation::Triad),
    ] {
        all.push(Variant::new(variant, words, operation, 256 * MIB).together(Parallelism::Count(2)));
    }
    all
}
