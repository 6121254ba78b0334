//! The live thing of a case: memory, a ring in it, and walkers.

use super::operation_ring::{SLOT, Spread, Walk};
use super::order::{Order, visits};
use crate::case::{Place, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::platform::resident::{Pages, ResidentMemory};
use crate::platform::{limit, process};
use crate::{Error, Result};

/// What every walk has proven when it is over.
pub(super) const ONE_CYCLE: &str = "the ring was walked once: it is one cycle through every slot";
pub(super) const ARRIVED: &str = "each batch ended at the slot that the ring says";
pub(super) const NO_FAULT: &str = "no page fault in what was timed";

/// A ring to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What the slots lie in.
    pub(super) bytes: usize,
    pub(super) pages: Pages,
    pub(super) spread: Spread,
    pub(super) order: Order,
}

impl Plan {
    /// Slots in random order, one in each line.
    pub(super) fn random(bytes: usize, pages: Pages) -> Self {
        Self { bytes, pages, spread: Spread::Every(super::operation_ring::LINE), order: Order::Random }
    }

    fn slots(&self) -> usize {
        self.bytes / self.spread.bytes()
    }

    /// The memory, and at most half of what there is.
    pub(super) fn memory(&self) -> Result<ResidentMemory> {
        // The order is drawn beside it.
        let drawn = self.slots() * 2 * size_of::<u32>();
        limit::for_half((self.bytes + drawn) as u64).map_err(Error::Missing)?;
        ResidentMemory::new(self.bytes.max(SLOT), self.pages)
    }

    /// The live thing in this memory.
    pub(super) fn chase<const N: usize>(&self, memory: ResidentMemory) -> Result<Chase<N>> {
        let walk = Walk::new(memory, self.spread, &visits(self.order, self.slots()))?;
        let mut chase = Chase { walk, run_up: self.run_up() };
        // The arcs of the proof were walked at the same time; what is timed is walked as a whole.
        let settling = (self.slots() as u64).min(SETTLING) / N as u64;
        let at = chase.walk.go(settling);
        chase.walk.arrive(settling, at)?;
        Ok(chase)
    }

    fn run_up(&self) -> u64 {
        match (self.slots() as u64, self.order) {
            (slots, _) if slots <= TWICE => 2 * slots,
            (slots, _) if slots <= WARMED => slots,
            (_, Order::Random) => 0,
            _ => GUESSED,
        }
    }
}

/// One walker in such a ring.
pub(super) fn alone(plan: Plan) -> SetUp {
    many::<1>(plan)
}

/// So many walkers in such a ring.
pub(super) fn many<const N: usize>(plan: Plan) -> SetUp {
    Box::new(move |_: &Place| Ok(Box::new(plan.chase::<N>(plan.memory()?)?) as Box<dyn Subject>))
}

/// Walkers that are timed.
pub(super) struct Chase<const N: usize> {
    walk: Walk<N>,
    /// Steps before each batch that are not timed.
    run_up: u64,
}

/// Steps after which the caches hold what was visited last, as far as they ever will: they fill 32 MiB.
const SETTLING: u64 = 1 << 19;
/// A ring of no more slots is walked round once before each batch. What reads the counters between two batches, and
/// a control that takes turns with it, have used the caches too: a ring that just fits would be paid for by short
/// batches, and long ones would not notice.
const WARMED: u64 = 1 << 15;
/// And one of no more than these twice: a cache does not always keep the newer of two lines.
const TWICE: u64 = 1 << 13;
/// In a larger ring whose order can be guessed, so many steps let the prefetchers be sure of it again. Short batches
/// would cost five times as much as long ones.
const GUESSED: u64 = 1 << 13;
/// Batches before a fault in each of them is no accident. The kernel may move a page: that is a fault where the
/// memory was there all the time.
const ATTEMPTS: u32 = 3;

impl<const N: usize> Subject for Chase<N> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (walk, run_up) = (&mut self.walk, self.run_up);
        without_faults(|| {
            let before = faults()?;
            let mut at = walk.go(run_up);
            walk.arrive(run_up, at)?;
            let ticks = clock.time(|| at = walk.go(iterations));
            let faults = faults()? - before;
            walk.arrive(iterations, at)?;
            Ok((ticks, faults))
        })
    }
}

/// The first batch without a fault.
fn without_faults(mut batch: impl FnMut() -> Result<(Ticks, u64)>) -> Result<Ticks> {
    let mut least = u64::MAX;
    for _ in 0..ATTEMPTS {
        let (ticks, faults) = batch()?;
        if faults == 0 {
            return Ok(ticks);
        }
        least = least.min(faults);
    }
    Err(Error::Usage(format!(
        "{ATTEMPTS} times in a row there were page faults in what was timed, at least {least}: the kernel moves this \
         memory or takes it away"
    )))
}

/// Page faults of this thread so far, with a device and without.
fn faults() -> Result<u64> {
    let usage = process::usage()?;
    Ok((usage.minor_page_faults() + usage.major_page_faults()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_now_and_then_is_walked_again_and_one_each_time_is_an_error() {
        let mut faults = [2, 0].into_iter();
        assert_eq!(
            without_faults(|| Ok((Ticks(7), faults.next().expect("twice")))).expect("clean"),
            Ticks(7)
        );
        let error = without_faults(|| Ok((Ticks(7), 5))).expect_err("never clean").to_string();
        assert!(error.contains("at least 5"), "{error}");
    }

    #[test]
    fn touching_fresh_memory_in_what_is_timed_is_noticed() {
        let mut memory = memmap2::MmapMut::map_anon(3 * 4096).expect("mapped");
        let mut pages = memory.chunks_mut(4096);
        let batch = || {
            let before = faults()?;
            pages.next().expect("a page for each attempt")[0] = 1;
            Ok((Ticks(1), faults()? - before))
        };
        assert!(without_faults(batch).is_err());
    }

    #[test]
    fn more_than_half_of_the_memory_is_not_taken() {
        let plan = Plan::random(1 << 46, Pages::Base);
        let Err(Error::Missing(sentence)) = plan.memory() else { panic!("taken") };
        assert!(sentence.contains("half of them for everybody else"), "{sentence}");
    }
}
