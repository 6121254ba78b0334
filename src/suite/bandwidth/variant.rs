//! The table of the group: the operation, the means, the size and the number of CPUs of each case.

use super::stream_plan::Plan;
use crate::case::Need;
use crate::case::need::{FULL_SCALE, PINNED, THREE_CPUS, TWO_CPUS};
use crate::kit::parallel::Parallelism;
use crate::kit::stream::{Means, Operation};
use crate::platform::numa;
use crate::platform::resident::Pages;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size that lies in base pages, bytes. The first translation cache of every machine holds them, so the
/// first level can be measured without huge pages.
const FEW_PAGES: usize = 32 * KIB;

/// Sizes of default scale, one for each level of a common machine; then some of them.
const SIZES: [usize; 4] = [16 * KIB, 256 * KIB, 4 * MIB, 256 * MIB];
const SMALLEST: &[usize] = &[16 * KIB];
const LARGEST: &[usize] = &[256 * MIB];
const ENDS: &[usize] = &[16 * KIB, 256 * MIB];

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
    /// The node that its memory is on; the nearest if `None`.
    pub(super) node: Option<usize>,
    /// Whether only full scale measures it.
    is_long: bool,
}

impl Variant {
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
        match self.node {
            Some(node) => format!("{}-{}/{node}", self.name, size_label(self.bytes)),
            None => format!("{}/{}", self.name, size_label(self.bytes)),
        }
    }

    pub(super) fn title(&self) -> String {
        let place = self.node.map(|node| format!(", in the memory of node {node}")).unwrap_or_default();
        format!("{}, {}{place}", self.words, size_label(self.bytes))
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

fn size_label(bytes: usize) -> String {
    if bytes >= MIB { format!("{}MiB", bytes / MIB) } else { format!("{}KiB", bytes / KIB) }
}

/// Name, words and operation of some cases.
type Row = (&'static str, &'static str, Operation);

/// A case of a row for each size. Full scale alone measures those that are not in `usual`.
fn variants_for_sizes(row: Row, sizes: &[usize], usual: &[usize]) -> Vec<Variant> {
    let (name, words, operation) = row;
    let one = |&bytes: &usize| Variant {
        name,
        words,
        operation,
        means: None,
        bytes,
        skew: 0,
        zeroes: false,
        is_in_base_pages: false,
        crowd: None,
        node: None,
        is_long: !usual.contains(&bytes),
    };
    sizes.iter().map(one).collect()
}

/// The same cases, each of them changed.
fn map_variants(cases: Vec<Variant>, change: impl Fn(Variant) -> Variant) -> Vec<Variant> {
    cases.into_iter().map(change).collect()
}

/// All cases, in the order of their ids.
pub(super) fn variants() -> Vec<Variant> {
    [
        basic_variants(),
        non_temporal_variants(),
        stream_variants(),
        library_and_string_variants(),
        width_and_placement_variants(),
        multi_cpu_variants(),
        node_variants(),
    ]
    .concat()
}

/// Memory of each node.
fn node_variants() -> Vec<Variant> {
    let row = variants_for_sizes(("read-node", "sum of all words", Operation::Read), LARGEST, &[]);
    (0..numa::MEASURED)
        .flat_map(|node| map_variants(row.clone(), |row| Variant { node: Some(node), ..row }))
        .collect()
}

/// The three operations with curves, and an update in place.
fn basic_variants() -> Vec<Variant> {
    let curves = [
        ("read", "sum of all words", Operation::Read),
        ("write", "a constant stored", Operation::Write),
        ("copy", "one half moved to the other", Operation::Copy),
    ];
    let powers: Vec<_> = (14..=29).map(|power| 1 << power).collect(); // 16 KiB to 512 MiB
    let mut all: Vec<_> =
        curves.into_iter().flat_map(|row| variants_for_sizes(row, &powers, &SIZES)).collect();
    all.extend(variants_for_sizes(
        ("update", "a constant added to each word", Operation::Update),
        &SIZES,
        ENDS,
    ));
    all
}

fn non_temporal_variants() -> Vec<Variant> {
    let some = [16 * KIB, 4 * MIB, 256 * MIB];
    let write = ("write-nt", "a constant stored past the caches", Operation::WriteNonTemporal);
    let zeroes = ("write-nt-zeroes", "zeroes stored past the caches", Operation::WriteNonTemporal);
    let copy = ("copy-nt", "one half moved past the caches to the other", Operation::CopyNonTemporal);
    let zeroes =
        map_variants(variants_for_sizes(zeroes, LARGEST, LARGEST), |row| Variant { zeroes: true, ..row });
    [variants_for_sizes(write, &some, LARGEST), zeroes, variants_for_sizes(copy, &some, LARGEST)].concat()
}

/// STREAM's other three operations.
fn stream_variants() -> Vec<Variant> {
    let rows = [
        ("scale", "a third of it times the other", Operation::Scale),
        ("add", "two thirds added into the third", Operation::Add),
        ("triad", "one third, and a number times another, into the third", Operation::Triad),
    ];
    rows.into_iter().flat_map(|row| variants_for_sizes(row, &SIZES, LARGEST)).collect()
}

/// The C library and the string instructions, one call for all of it. A call for a large size takes milliseconds. Of the
/// two, which then perform alike, the library is enough at default scale.
fn library_and_string_variants() -> Vec<Variant> {
    let sizes = [16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB];
    // The CSC501 report has 8 and 16 MB by the library; a copy has two such arrays.
    let reported = [16 * KIB, 256 * KIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB];
    let copied: &[usize] = &[16 * KIB, 16 * MIB, 32 * MIB, 64 * MIB];
    let set: &[usize] = &[16 * KIB, 8 * MIB, 16 * MIB, 64 * MIB];
    let rows = [
        (("memcpy", "one half moved by memcpy", Operation::Copy), Means::Library, copied),
        (("memset", "all of it set by memset", Operation::Write), Means::Library, set),
        (("rep-movsb", "one half moved by rep movsb", Operation::Copy), Means::Strings, SMALLEST),
        (("rep-stosb", "all of it set by rep stosb", Operation::Write), Means::Strings, SMALLEST),
    ];
    let by = |means| move |row| Variant { means: Some(means), ..row };
    let mut all = Vec::new();
    for (row, means, usual) in rows {
        let sizes = if means == Means::Library { &reported[..] } else { &sizes };
        all.extend(map_variants(variants_for_sizes(row, sizes, usual), by(means)));
    }
    let zeroes = ("memset-zeroes", "all of it set to zero by memset", Operation::Write);
    let zeroes = map_variants(variants_for_sizes(zeroes, &[64 * MIB], &[]), by(Means::Library));
    all.extend(map_variants(zeroes, |row| Variant { zeroes: true, ..row }));
    all
}

/// Narrower means, odd addresses, and small pages.
fn width_and_placement_variants() -> Vec<Variant> {
    let by_means = [
        (("read-scalar", "sum of all words, one by one", Operation::Read), Means::Scalar, ENDS),
        (("write-scalar", "a constant stored word by word", Operation::Write), Means::Scalar, ENDS),
        (("read-sse2", "sum by vectors of 16 bytes", Operation::Read), Means::Sse2, SMALLEST),
        (("read-avx2", "sum by vectors of 32 bytes", Operation::Read), Means::Avx2, SMALLEST),
        (("read-avx512", "sum by vectors of 64 bytes", Operation::Read), Means::Avx512, SMALLEST),
        (("read-neon", "sum by vectors of 16 bytes", Operation::Read), Means::Neon, SMALLEST),
        (("write-sse2", "a constant stored by vectors of 16 bytes", Operation::Write), Means::Sse2, SMALLEST),
        (("write-avx2", "a constant stored by vectors of 32 bytes", Operation::Write), Means::Avx2, SMALLEST),
        (
            ("write-avx512", "a constant stored by vectors of 64 bytes", Operation::Write),
            Means::Avx512,
            SMALLEST,
        ),
        (("write-neon", "a constant stored by vectors of 16 bytes", Operation::Write), Means::Neon, SMALLEST),
    ];
    let unaligned = [
        ("read-unaligned", "sum of all words, from an odd address", Operation::Read),
        ("write-unaligned", "a constant stored, from an odd address", Operation::Write),
        ("copy-unaligned", "one half moved to the other, both from odd addresses", Operation::Copy),
    ];
    let in_base_pages = [
        (("read-base-pages", "sum of all words in base pages", Operation::Read), LARGEST),
        (("write-base-pages", "a constant stored in base pages", Operation::Write), &[]),
        (("copy-base-pages", "one half moved to the other in base pages", Operation::Copy), &[]),
    ];
    let mut all = Vec::new();
    for (row, means, sizes) in by_means {
        all.extend(map_variants(variants_for_sizes(row, sizes, sizes), |row| Variant {
            means: Some(means),
            ..row
        }));
    }
    for row in unaligned {
        all.extend(map_variants(variants_for_sizes(row, SMALLEST, SMALLEST), |row| Variant {
            skew: 1,
            ..row
        }));
    }
    for (row, usual) in in_base_pages {
        all.extend(map_variants(variants_for_sizes(row, LARGEST, usual), |row| Variant {
            is_in_base_pages: true,
            ..row
        }));
    }
    all
}

/// Several CPUs at a time.
fn multi_cpu_variants() -> Vec<Variant> {
    let by_size = [
        ("read-all", "sums on all CPUs", Operation::Read),
        ("write-all", "a constant stored on all CPUs", Operation::Write),
        ("copy-all", "halves moved on all CPUs", Operation::Copy),
    ];
    let large = [
        (
            ("write-nt-all", "a constant stored past the caches on all CPUs", Operation::WriteNonTemporal),
            LARGEST,
        ),
        (("copy-nt-all", "halves moved past the caches on all CPUs", Operation::CopyNonTemporal), LARGEST),
        (("scale-all", "scale on all CPUs", Operation::Scale), &[]),
        (("add-all", "add on all CPUs", Operation::Add), &[]),
        (("triad-all", "triad on all CPUs", Operation::Triad), LARGEST),
    ];
    let by_calls = [
        (("memcpy-all", "halves moved by memcpy on all CPUs", Operation::Copy), Means::Library),
        (("memset-all", "memory set by memset on all CPUs", Operation::Write), Means::Library),
        (("rep-stosb-all", "memory set by rep stosb on all CPUs", Operation::Write), Means::Strings),
    ];
    let two = [
        ("read-two", "sums on two CPUs", Operation::Read),
        ("triad-two", "triad on two CPUs", Operation::Triad),
    ];
    let mut all: Vec<_> = by_size.into_iter().flat_map(|row| variants_for_sizes(row, &SIZES, ENDS)).collect();
    all.extend(large.into_iter().flat_map(|(row, usual)| variants_for_sizes(row, LARGEST, usual)));
    for (row, means) in by_calls {
        all.extend(map_variants(variants_for_sizes(row, &[64 * MIB], &[]), |row| Variant {
            means: Some(means),
            ..row
        }));
    }
    let together = |crowd| move |row| Variant { crowd: Some(crowd), ..row };
    let two = two.into_iter().flat_map(|row| variants_for_sizes(row, LARGEST, LARGEST)).collect();
    [map_variants(all, together(Parallelism::All)), map_variants(two, together(Parallelism::Count(2)))]
        .concat()
}
