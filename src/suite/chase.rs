//! # What is timed
//! A load that depends on the one before: a step loads, from a slot of memory, the address of the next slot. The
//! slots form one ring. `random` visits lines in random order, so that no prefetcher knows the next one and no two
//! loads overlap; `random-huge` and `random-reserved` do so in huge pages of 2 MiB, transparent and reserved ones.
//! `within-pages` visits all of a page before it goes to another. `stride-N` goes from slot to slot, each N bytes
//! further, `quarters-N` takes them from four quarters in turn (first, last, second, third). `list` is a list in the
//! order of its allocation. An iteration of `list-first` is a pass through that list when none of its lines is in a cache;
//! `load` is the cost of one of its loads.
//! `tlb-4KiB` has one line in each page of 4 KiB. `parallel-256MiB` follows several chains at once: an iteration is a
//! step of each. `loaded-256MiB` runs while other CPUs read memory as fast as they can; `other-node` runs in memory
//! of another NUMA node, and `node-256MiB/N` in that of node N: a column of the matrix for each CPU that `--cpu` names.
//!
//! # What is not
//! Drawing and linking the ring, and the first round, which brings it into the caches as far as it fits. A ring of at
//! most 32768 slots is also walked round once or twice before each batch, since the work between two batches has used
//! the caches. A sample of a larger ring is a whole round, up to 262144 steps, so that this work displaces less than 1 %
//! of what a sample visits. In larger rings of a predictable order, 8192 untimed steps let the prefetchers recognise the order again. The
//! loop's counter runs in parallel with the loads, which do not depend on it: 64 of them are in each turn.
//!
//! # How we know
//! The linked ring is walked once and must return to its first slot after exactly as many steps as it has slots, none
//! of them twice; each slot is given its position meanwhile. Every batch must end at the expected position. The next
//! batch continues there: a slot is visited again only after all others, so that a batch that is shorter than the
//! ring gains nothing from the one before. A sample of a ring beyond 16 MiB visits only a part of it, and all samples
//! together may not visit the whole: in random order they are a random selection of its slots. A ring of 256 MiB has four
//! million slots, and a round would take half a second. No page fault may occur between the two readings of the clock. The kind of
//! page is verified with `/proc/self/smaps`, or the case is skipped. Time grows in proportion to the number of steps.
//!
//! # What fools it
//! Prefetchers: they recognise every order here but the random ones. In large rings `stride`, `quarters`, `list` and,
//! because lines are fetched in pairs, `within-pages` are bound by bandwidth: `bandwidth` says how much, and a note
//! below the table says which cases were. Page walks: beyond the reach of the translation caches `random` pays for
//! them too, `random-huge` hardly. A guest also pays for the walk of its host, whose pages may be small where the
//! guest's are huge. The last level is shared with other CPUs, and a guest may not get the size that its kernel
//! reports. Lines are 64 bytes here; on a processor with longer lines two slots share one. The core frequency
//! may change while the counter's does not.
//!
//! # Reading the number
//! Divide by the core's cycle, the addition of `known_work`: 4 or 5 cycles is the first level, 12 to 17 the second.
//! The true latency of memory is `random-huge/256MiB`; `random/256MiB` is what a program with ordinary pages sees.
//! `walk` of `tlb-4KiB` is the additional cost of a step, compared with as many lines in few pages: nothing within the reach of
//! the first translation cache, some cycles within that of the second, then a page walk. At 64 MiB it contains more:
//! 16384 lines are 1 MiB, and their entries in the page tables 128 KiB, in a guest as much again. A second level of 1
//! MiB holds the lines of the control but not all of these, so that the difference includes data misses besides
//! walks. `load` of `parallel-256MiB` falls until the core tracks as many outstanding lines as it can; their number
//! is about one step of a single chain divided by the least `load`. Sizes are powers of two, at full scale with three
//! between each two, up to 256 MiB or four times the last level.
//!
//! # Source
//! lmbench's `lat_mem_rd` (McVoy and Staelin 1996); multichase (pages in random order, several chains); Intel's Memory
//! Latency Checker (loaded latency); Sattolo 1986 for random cycles; CSC501 project report (the list);
//! CSE 221 project report (the four quarters: 30 cycles for memory at a stride of 64, 275 at 256).

mod bus_load;
pub mod operation_ring;
mod ring_series;
mod ring_size;
mod walker;

use crate::kit::contract::*;

pub const GROUP: Group = Group::new("chase", include_str!("chase.rs"), ring_series::cases)
    // 2: a sample of a large ring is a whole round.
    .version(2)
    .curves(&[
        latency_curve("chase/random-huge/", "random order, huge pages").with_study(Study::Levels),
        latency_curve("chase/random/", "random order, 4 KiB pages").with_study(Study::Levels),
        latency_curve("chase/within-pages/", "random order within pages"),
        latency_curve("chase/stride-64/", "stride 64"),
        latency_curve("chase/list/", "linked list").with_chart("latency by list"),
        latency_curve("chase/list-first/", "linked list, first pass")
            .with_figure("load")
            .with_chart("latency by list"),
        latency_curve("chase/quarters-64/", "quarters, stride 64")
            .with_chart("latency by quarters at 64 bytes"),
        latency_curve("chase/quarters-256/", "quarters, stride 256")
            .with_chart("latency by quarters at 256 bytes"),
        latency_curve("chase/quarters-512/", "quarters, stride 512")
            .with_chart("latency by quarters at 512 bytes"),
        Curve::new("chase/tlb-4KiB/", "a line of each page", Axis::Bytes("size of the ring"))
            .with_figure("walk")
            .with_chart("page walk"),
        Curve::new("chase/parallel-256MiB/", "each of the chains", Axis::Count("chains at once"))
            .with_figure("load"),
        Curve::new("chase/loaded-256MiB/", "a load", Axis::Others("CPUs that load the bus"))
            .with_chart("loaded latency"),
    ])
    .headlines(&[
        Headline::new(31, "random/16KiB", "a load from a ring of 16 KiB"),
        Headline::new(32, "random/256KiB", "a load from a ring of 256 KiB").as_answer(),
        Headline::new(33, "random/8MiB", "a load from a ring of 8 MiB"),
        Headline::new(34, "random/256MiB", "a load from a ring of 256 MiB").as_answer(),
    ]);

/// A curve of latency along the size of the ring.
const fn latency_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the ring")).with_chart("latency")
}
