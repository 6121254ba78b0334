//! The subject of a case: memory, a ring in it that visits its slots in some order, and walkers. A list of all slots, closed to a
//! ring, is one cycle.

use super::operation_ring::{SLOT, Spread, Walk};
use crate::kit::contract::*;
use crate::kit::fault_count::Faults;
use crate::platform::arch::CAN_EVICT;
use crate::platform::limit;
use crate::platform::resident::{Pages, ResidentMemory};
use crate::statistic::Random;

/// The claims of every walk.
pub(super) const ONE_CYCLE: &str = "the ring was walked once: it is one cycle through every slot";
pub(super) const ARRIVED: &str = "each batch ended at the slot that the ring says";
pub(super) const NO_FAULT: &str = "no page fault in what was timed";

/// The description of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The memory that the slots are spread over.
    pub(super) bytes: usize,
    pub(super) pages: Pages,
    pub(super) spread: Spread,
    pub(super) order: Order,
}

impl Plan {
    /// One slot in each line, in random order.
    pub(super) fn random_lines(bytes: usize, pages: Pages) -> Self {
        Self { bytes, pages, spread: Spread::Every(super::operation_ring::LINE), order: Order::Random }
    }

    /// Slots of the ring.
    pub(super) fn slot_count(&self) -> usize {
        self.bytes / self.spread.bytes_per_slot()
    }

    /// Steps of a lap; a sample is a whole number of laps. Between two samples the harness displaces some of the
    /// ring from the caches. One step is enough for a small ring, which is walked untimed before each batch.
    pub(super) fn lap_steps(&self) -> u64 {
        match self.slot_count() as u64 {
            slots if slots <= WARMED_SLOTS => 1,
            slots => slots.min(LONGEST_LAP),
        }
    }

    /// Allocates the memory of the ring, which may be at most half of the available memory.
    ///
    /// # Errors
    /// [`Error::Missing`] if it would be more.
    pub(super) fn allocate_memory(&self) -> Result<ResidentMemory> {
        // While the ring is linked, its order needs memory too.
        let drawn = self.slot_count() * 2 * size_of::<u32>();
        limit::check_half_of_memory((self.bytes + drawn) as u64).map_err(Error::Missing)?;
        ResidentMemory::new(self.bytes.max(SLOT), self.pages)
    }

    /// Links and proves the ring in this memory.
    ///
    /// # Errors
    /// [`Error::Disproved`] if it is not one cycle.
    pub(super) fn link_ring<const N: usize>(&self, memory: ResidentMemory) -> Result<Walk<N>> {
        Walk::new(memory, self.spread, &slots_in_order(self.order, self.slot_count()))
    }

    /// Walkers in a new ring in this memory, whose last slots are in the caches.
    ///
    /// # Errors
    /// [`Error::Disproved`] if the ring is not one cycle.
    pub(super) fn start_walkers<const N: usize>(&self, memory: ResidentMemory) -> Result<Chase<N>> {
        let mut chase = Chase { walk: self.link_ring(memory)?, run_up: self.run_up_steps() };
        // The proof walks several arcs of the ring at a time; the timed part walks it in order.
        let settling = (self.slot_count() as u64).min(SETTLING_STEPS) / N as u64;
        let at = chase.walk.walk_steps(settling);
        chase.walk.verify_arrival(settling, at)?;
        Ok(chase)
    }

    /// Untimed steps before each batch: two rounds or one of a small ring; of a large one none in random order, else [`PREFETCH_RUN_UP`].
    fn run_up_steps(&self) -> u64 {
        match (self.slot_count() as u64, self.order) {
            (slots, _) if slots <= TWICE_WARMED_SLOTS => 2 * slots,
            (slots, _) if slots <= WARMED_SLOTS => slots,
            (_, Order::Random) => 0,
            _ => PREFETCH_RUN_UP,
        }
    }
}

/// The set-up of `N` walkers in this ring.
pub(super) fn many_walkers_set_up<const N: usize>(plan: Plan) -> SetUp {
    set_up(move |_| plan.start_walkers::<N>(plan.allocate_memory()?))
}

/// Walkers in a ring.
pub(super) struct Chase<const N: usize> {
    walk: Walk<N>,
    /// Untimed steps before each batch.
    run_up: u64,
}

/// Steps that fill the caches with the slots visited last: 32 MiB.
const SETTLING_STEPS: u64 = 1 << 19;
/// A ring of at most this many slots is walked round once before each batch. Reading the counters between two batches,
/// and a control that alternates with the case, have used the caches: refilling them would make short batches of a ring
/// that just fits dearer than long ones.
const WARMED_SLOTS: u64 = 1 << 15;
/// A ring of at most this many slots is walked round twice: a cache does not always keep the newer of two lines.
const TWICE_WARMED_SLOTS: u64 = 1 << 13;
/// Steps before each batch in a larger ring of a predictable order, after which the prefetchers have recognised it, some of them
/// across pages. Without them short batches would cost five times as much as long ones.
const PREFETCH_RUN_UP: u64 = 1 << 13;
/// Steps of the longest sample, 16 MiB of lines: some 100 KiB, which is what reading the counters displaces of a larger
/// ring, are less than 1 % of it.
const LONGEST_LAP: u64 = 1 << 18;
/// Consecutive batches with a fault that end the case. A single fault may be chance: the kernel may move a resident
/// page.
const ATTEMPTS: u32 = 3;

impl<const N: usize> Subject for Chase<N> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (walk, run_up) = (&mut self.walk, self.run_up);
        first_batch_without_faults(|| {
            let before = Faults::count_so_far()?;
            let mut at = walk.walk_steps(run_up);
            walk.verify_arrival(run_up, at)?;
            let ticks = clock.time(|| at = walk.walk_steps(iterations));
            let faults = Faults::count_so_far()?.since(before).total();
            walk.verify_arrival(iterations, at)?;
            Ok((ticks, faults))
        })
    }
}

/// Runs batches until one has no page fault, and returns its time.
fn first_batch_without_faults(mut batch: impl FnMut() -> Result<(Ticks, u64)>) -> Result<Ticks> {
    let mut least = u64::MAX;
    for _ in 0..ATTEMPTS {
        let (ticks, faults) = batch()?;
        if faults == 0 {
            return Ok(ticks);
        }
        least = least.min(faults);
    }
    Err(Error::Disturbed(format!(
        "{ATTEMPTS} times in a row there were page faults in what was timed, at least {least}: the kernel moves this \
         memory or takes it away"
    )))
}

/// The set-up of whole passes through this ring, before each of which its lines are evicted from the caches, untimed.
pub(super) fn first_pass_set_up(plan: Plan) -> SetUp {
    set_up(move |_| {
        ensure(CAN_EVICT, || {
            Error::Missing("user space may put no line out of the caches of this processor".into())
        })?;
        let walk: Walk<1> = plan.link_ring(plan.allocate_memory()?)?;
        let (mut chase, slots) = (Chase { walk, run_up: 0 }, plan.slot_count() as u64);
        let mut pass = move |clock: &Clock| {
            chase.walk.evict_lines();
            chase.run(slots, clock)
        };
        Ok(move |n: u64, clock: &Clock| (0..n).map(|_| pass(clock)).sum())
    })
}

/// The order in which a ring visits its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A random permutation of all slots.
    Random,
    /// Runs of this many neighbours in random order, and random order within each run.
    WithinRuns(usize),
    /// Ascending.
    Ascending,
    /// One slot from each quarter in turn: the first, the last, the second, the third; then the next slot of each.
    Quarters,
}

/// The numbers of all slots in this order, each once.
pub(super) fn slots_in_order(order: Order, slots: usize) -> Vec<u32> {
    let mut random = Random::new(slots as u64);
    let mut all: Vec<u32> = (0..u32::try_from(slots).unwrap_or(u32::MAX)).collect();
    match order {
        // Every cycle is equally likely, as with Sattolo's algorithm, which draws successors in place of a list.
        // Successors drawn by an ordinary shuffle would form several cycles.
        Order::Random => random.shuffle(&mut all),
        Order::WithinRuns(run) => return shuffle_within_runs(all, run, &mut random),
        Order::Ascending => {}
        Order::Quarters => return alternate_quarters(&all),
    }
    all
}

/// The slots in runs of `run` neighbours: the runs are in random order, and so are the slots within each.
fn shuffle_within_runs(mut all: Vec<u32>, run: usize, random: &mut Random) -> Vec<u32> {
    let mut runs: Vec<_> = all.chunks_mut(run).collect();
    random.shuffle(&mut runs);
    let mut visits = Vec::with_capacity(runs.iter().map(|run| run.len()).sum());
    for run in runs {
        random.shuffle(run);
        visits.extend_from_slice(run);
    }
    visits
}

/// Takes a slot from each quarter in turn. Slots that do not fill four quarters come last.
fn alternate_quarters(all: &[u32]) -> Vec<u32> {
    let quarter = all.len() / 4;
    let dealt = (0..quarter).flat_map(|i| [0, 3, 1, 2].map(|of| all[of * quarter + i]));
    dealt.chain(all[4 * quarter..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_with_a_fault_is_repeated_and_a_fault_in_each_is_an_error() {
        let mut faults = [2, 0].into_iter();
        assert_eq!(
            first_batch_without_faults(|| Ok((Ticks(7), faults.next().expect("twice")))).expect("clean"),
            Ticks(7)
        );
        let error = first_batch_without_faults(|| Ok((Ticks(7), 5))).expect_err("never clean").to_string();
        assert!(error.contains("at least 5"), "{error}");
    }

    #[test]
    fn touching_fresh_memory_in_the_timed_part_is_noticed() {
        let mut memory = memmap2::MmapMut::map_anon(3 * 4096).expect("mapped");
        let mut pages = memory.chunks_mut(4096);
        let batch = || {
            let before = Faults::count_so_far()?;
            pages.next().expect("a page for each attempt")[0] = 1;
            Ok((Ticks(1), Faults::count_so_far()?.since(before).total()))
        };
        assert!(first_batch_without_faults(batch).is_err());
    }

    #[test]
    fn more_than_half_of_the_memory_is_not_taken() {
        let plan = Plan::random_lines(1 << 46, Pages::Base);
        let Err(Error::Missing(sentence)) = plan.allocate_memory() else { panic!("taken") };
        assert!(sentence.contains("half of them for everybody else"), "{sentence}");
    }

    const ALL: [Order; 4] = [Order::Random, Order::WithinRuns(64), Order::Ascending, Order::Quarters];

    #[test]
    fn every_order_visits_every_slot_once_at_every_size() {
        let drawn = { Random::new(17) }.number_below(1 << 16) + 2;
        for slots in (2..300).chain([1 << 10, (1 << 12) + 1, drawn, 1 << 16]) {
            for order in ALL {
                let mut visits = slots_in_order(order, slots);
                visits.sort_unstable();
                assert!(visits.into_iter().eq(0..slots as u32), "{order:?} of {slots}");
            }
        }
    }

    #[test]
    fn random_order_has_no_stride() {
        let visits = slots_in_order(Order::Random, 1 << 12);
        let strides = visits.windows(2).filter(|pair| pair[1].abs_diff(pair[0]) == 1).count();
        assert!(strides < 20, "{strides}");
    }

    #[test]
    fn a_run_is_left_only_after_all_its_slots() {
        let visits = slots_in_order(Order::WithinRuns(64), 640);
        for run in visits.chunks(64) {
            assert!(run.iter().all(|slot| slot / 64 == run[0] / 64));
        }
        assert!(!visits.is_sorted());
    }

    #[test]
    fn the_quarters_are_visited_as_the_report_says() {
        assert_eq!(slots_in_order(Order::Quarters, 8), [0, 6, 2, 4, 1, 7, 3, 5]);
        assert_eq!(slots_in_order(Order::Quarters, 9)[8], 8);
    }
}
