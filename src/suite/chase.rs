//! # What is timed
//! A load that needs the one before it: a step loads, from a slot of memory, the address of the next slot. The slots
//! form one ring. `random` leads through lines in random order, so that no prefetcher knows the next one and no two
//! loads overlap; `random-huge` and `random-reserved` do so in huge pages of 2 MiB, transparent ones and such as were
//! reserved. `within-pages` stays in a page until it has seen all of it. `stride-N` goes from slot to slot, N bytes
//! further each time, `quarters-N` takes them from four quarters in turn, `list` is a list in the order in which it
//! was allocated. `tlb-4KiB` has one line in each page of 4 KiB. `parallel-256MiB` walks with several chains at once:
//! there an iteration is a step of each. `loaded-256MiB` walks while other CPUs read memory as fast as they can;
//! `other-node` in memory that belongs to other CPUs.
//!
//! # What is not
//! The drawing and linking of the ring, and the first walk round, which brings it into the caches as far as it fits.
//! A ring of at most 32768 slots is walked round before each batch as well, once or twice, since what stands between
//! two batches has used the caches; in larger ones whose order can be guessed 8192 steps let the prefetchers be sure
//! again. The loop's own counting runs beside the loads that it does not wait for: 64 of them stand in each turn.
//!
//! # How we know
//! The ring is walked once when it has been linked and must come back to its first slot after exactly as many steps
//! as it has slots, none of them twice; each slot is given its place meanwhile. Every batch must end at the place
//! that it was to end at. The next goes on there: a slot is come to again only after all the others, so that a batch
//! that is shorter than the ring sees nothing that the one before has warmed. Of a large ring a sample sees a part
//! only, and all of them together not always the whole: in random order that is a fair draw of its slots, and a ring
//! of 256 MiB has four million, which would take half a second a round. There is no page fault between the two
//! readings of the clock. Pages are what the id says, by `/proc/self/smaps`, or the case is skipped.
//! Time grows in proportion to the number of steps.
//!
//! # What fools it
//! Prefetchers: they know every order here but the random ones. What `stride`, `quarters`, `list` and, by lines that
//! are fetched in pairs, `within-pages` cost in large rings is bandwidth in disguise: `bandwidth` says how much, and a
//! note below the table says of which cases it was so. Page walks: beyond the reach of the translation caches `random` pays for
//! them too, `random-huge` hardly. A guest pays for the walk of its host as well, whose pages may be small where its
//! own are huge. The last level is shared with neighbours, and a guest need not get what its kernel reports. Lines
//! are 64 bytes here; where they are longer, two slots share one. A frequency that moves while the counter's does not.
//!
//! # Reading the number
//! Divide by the core's cycle, the addition of `known_work`: 4 or 5 is the first level, 12 to 17 the second. The true
//! latency of memory is `random-huge/256MiB`; `random/256MiB` is what a program with ordinary pages sees. `walk` of
//! `tlb-4KiB` is what a step costs beyond as many lines in few pages: nothing within the reach of the first
//! translation cache, some cycles within that of the second, then a page walk. At 64 MiB there is more in it: 16384
//! lines are 1 MiB, and their entries in the page tables 128 KiB, in a guest as much again. A second level of 1 MiB
//! holds the lines of the control and not all of these, so that the difference has misses of data in it beside walks.
//! `load` of `parallel-256MiB` falls until all places for lines under way are taken; their
//! number is about one step of a single chain over the least `load`.
//! Sizes are powers of two, at full scale with three between each two, up to 256 MiB or four times the last level.
//!
//! # Source
//! lmbench's `lat_mem_rd` (McVoy and Staelin 1996); multichase (pages in random order, several chains); Intel's Memory
//! Latency Checker (loaded latency); Sattolo 1986 for random cycles; CSC501 project report (the list);
//! CSE 221 project report (the four quarters: 30 cycles for memory at a stride of 64, 275 at 256).

mod operation_node;
mod operation_ring;

use crate::case::Group;
use crate::record::{Axis, Curve, Study};

mod load;
mod node;
mod order;
mod series;
mod size;
mod walk;

pub const GROUP: Group = Group::new("chase", include_str!("chase.rs"), series::cases).curves(&[
    latency_curve("chase/random-huge/", "random order, huge pages").study(Study::Levels),
    latency_curve("chase/random/", "random order, 4 KiB pages").study(Study::Levels),
    latency_curve("chase/within-pages/", "random order within pages"),
    latency_curve("chase/stride-64/", "stride 64"),
    Curve::new("chase/tlb-4KiB/", "a line of each page", Axis::Bytes("size of the ring"))
        .figure("walk")
        .chart("page walk"),
    Curve::new("chase/parallel-256MiB/", "each of the chains", Axis::Count("chains at once")).figure("load"),
    Curve::new("chase/loaded-256MiB/", "a load", Axis::Others("CPUs that load the bus"))
        .chart("loaded latency"),
]);

/// A curve of latency along the size of the ring.
const fn latency_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the ring")).chart("latency")
}
