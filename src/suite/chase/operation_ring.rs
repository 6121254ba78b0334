//! A ring in memory: slots of which each holds the address of another one, in one cycle through all of them.
//!
//! # Invariants
//!
//! * **RING**: the word of every slot holds the address of the word of a slot of the same memory. Following all of
//!   them when the ring was linked has proven it; the memory lives as long as the ring and is not written again.
#![allow(unsafe_code)]

use crate::error::{Error, Result, ensure};
use crate::platform::arch;
use crate::platform::resident::ResidentMemory;

/// Bytes of a slot: the address of the next one, then its own place in the ring.
pub const SLOT: usize = 2 * size_of::<u64>();
/// Bytes of a cache line. On a processor with longer lines two slots share one.
pub const LINE: usize = 64;
/// The smallest page of the supported kernels, bytes.
pub const PAGE: usize = 4 << 10;

/// The positions of the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One slot at the beginning of each unit of this many bytes.
    Every(usize),
    /// One slot in each unit of this many bytes, at a pseudo-random line of it. At the same line of each unit, or at
    /// lines that ascend with the units, the slots would compete for few sets of a cache.
    Scattered(usize),
}

impl Spread {
    /// Bytes per slot.
    pub fn bytes_per_slot(self) -> usize {
        match self {
            Self::Every(bytes) | Self::Scattered(bytes) => bytes,
        }
    }

    /// The offset at which a slot begins.
    fn slot_offset(self, slot: usize) -> usize {
        match self {
            Self::Every(bytes) => slot * bytes,
            Self::Scattered(bytes) => slot * bytes + golden_ratio_hash(slot) % (bytes / LINE) * LINE,
        }
    }

    /// The slot that begins at this offset, if one does.
    fn slot_at_offset(self, offset: usize) -> Option<usize> {
        let slot = offset / self.bytes_per_slot();
        (self.slot_offset(slot) == offset).then_some(slot)
    }
}

/// Multiplicative hashing by the golden ratio (Knuth, volume 3), which spreads consecutive numbers evenly.
fn golden_ratio_hash(number: usize) -> usize {
    ((number as u32).wrapping_mul(0x9e37_79b9) >> 16) as usize
}

/// The place that is stored in a slot that was not visited yet.
const UNVISITED: u64 = u64::MAX;
/// Arcs that are proven at the same time: about as many lines as a core can have outstanding.
const ARCS: usize = 16;

/// The slots of a ring and their memory.
struct Slots {
    memory: ResidentMemory,
    spread: Spread,
    count: usize,
    /// The address of the memory.
    begins: usize,
}

impl Slots {
    /// Writes into each slot the address of the next one in this order.
    fn link_ring(mut memory: ResidentMemory, spread: Spread, visits: &[u32]) -> Result<Self> {
        let (count, bytes) = (visits.len(), memory.bytes().len());
        let outside = visits.iter().any(|&slot| slot as usize >= count);
        if outside || count < 2 || spread.bytes_per_slot() < SLOT || count * spread.bytes_per_slot() > bytes {
            let each = spread.bytes_per_slot();
            return Err(Error::Usage(format!("{count} slots of {each} bytes are no ring in {bytes} bytes")));
        }
        let begins = memory.bytes().as_mut_ptr().expose_provenance();
        let mut slots = Self { memory, spread, count, begins };
        let all = visits.iter().zip(visits.iter().cycle().skip(1));
        for (&slot, &next) in all {
            slots.write(spread.slot_offset(slot as usize), [slots.slot_address(next) as u64, UNVISITED]);
        }
        Ok(slots)
    }

    /// The address at which a slot begins.
    fn slot_address(&self, slot: u32) -> usize {
        self.begins + self.spread.slot_offset(slot as usize)
    }

    /// Writes a slot: the address of the next one, and its place.
    fn write(&mut self, offset: usize, [next, place]: [u64; 2]) {
        let slot = &mut self.memory.bytes()[offset..offset + SLOT];
        slot[..8].copy_from_slice(&next.to_ne_bytes());
        slot[8..].copy_from_slice(&place.to_ne_bytes());
    }

    /// The content of a slot: the address of the next one, and its place.
    fn read(&mut self, offset: usize) -> [u64; 2] {
        let slot = &self.memory.bytes()[offset..offset + SLOT];
        [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|i| slot[at + i])))
    }

    /// The offset of the slot that begins at this address, if one does.
    fn offset_of_address(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.begins);
        self.spread.slot_at_offset(offset).filter(|slot| *slot < self.count).map(|_| offset)
    }

    /// Walks round once and writes into each slot its place in the ring; this also brings the ring into the caches as far as it
    /// fits. All arcs of the ring are walked at the same time, since one walker in main memory would take seconds. If
    /// no slot is visited twice and each arc ends where the next begins, the ring is one cycle.
    fn prove_one_cycle(&mut self, visits: &[u32]) -> Result<()> {
        let (count, arcs) = (self.count, self.count.min(ARCS));
        let begins: Vec<_> = (0..=arcs).map(|arc| arc * count / arcs).collect();
        let firsts: Vec<_> = begins.iter().map(|place| self.slot_address(visits[place % count])).collect();
        let mut at = firsts[..arcs].to_vec();
        for step in 0..count.div_ceil(arcs) {
            // Without other work between them the loads of all arcs overlap.
            at.iter().for_each(|at| self.load_slot(*at));
            for (arc, at) in
                at.iter_mut().enumerate().filter(|(arc, _)| begins[*arc] + step < begins[arc + 1])
            {
                *at = self.record_place(*at, begins[arc] + step)?;
            }
        }
        ensure(at[..] == firsts[1..], || {
            Error::Disproved(format!("the ring of {count} slots is not one cycle: an arc ends elsewhere"))
        })
    }

    /// Loads the slot at this address, if one begins there.
    fn load_slot(&mut self, address: usize) {
        if let Some(offset) = self.offset_of_address(address) {
            std::hint::black_box(self.memory.bytes()[offset]);
        }
    }

    /// Writes its place into a slot and returns the address of the next slot, which it holds.
    fn record_place(&mut self, address: usize, place: usize) -> Result<usize> {
        let Some(offset) = self.offset_of_address(address) else {
            return Err(Error::Disproved(format!("place {place} of the ring lies outside of its slots")));
        };
        let [next, seen] = self.read(offset);
        if seen != UNVISITED {
            let count = self.count;
            return Err(Error::Disproved(format!(
                "the ring of {count} slots is not one cycle: places {seen} and {place} are the same slot"
            )));
        }
        self.write(offset, [next, place as u64]);
        Ok(next as usize)
    }
}

/// `N` walkers in one ring, evenly spread. Each batch continues where the last has ended, so that a slot is visited
/// again only after all others, and no part of a large ring is in the caches more often than the rest.
pub struct Walk<const N: usize> {
    slots: Slots,
    at: [*const u8; N],
    places: [u64; N],
}

impl<const N: usize> Walk<N> {
    /// Links the slots of `memory` to a ring in this order, and walks round once, which proves that it is one cycle
    /// through all slots.
    ///
    /// # Errors
    /// [`Error::Disproved`] if it is not one cycle; [`Error::Usage`] if there are fewer slots than walkers or the memory is too
    /// small.
    pub fn new(memory: ResidentMemory, spread: Spread, visits: &[u32]) -> Result<Self> {
        let count = visits.len();
        ensure(count >= N, || Error::Usage(format!("{N} walkers in a ring of {count} slots")))?;
        let mut slots = Slots::link_ring(memory, spread, visits)?;
        slots.prove_one_cycle(visits)?;
        let places: [usize; N] = std::array::from_fn(|walker| walker * count / N);
        let at = places.map(|place| std::ptr::with_exposed_provenance(slots.slot_address(visits[place])));
        Ok(Self { slots, at, places: places.map(|place| place as u64) })
    }

    /// Moves each walker by `steps` and returns the new positions, which [`Walk::verify_arrival`] verifies and stores.
    #[inline(always)]
    pub fn walk_steps(&self, steps: u64) -> [*const u8; N] {
        if N == 1 {
            // SAFETY: RING.
            [unsafe { arch::chase(self.at[0], steps) }; N]
        } else {
            // SAFETY: RING.
            unsafe { follow_links(self.at, steps) }
        }
    }

    /// Evicts every line of the memory from all caches.
    pub fn evict_lines(&mut self) {
        self.slots.memory.bytes().chunks(LINE).for_each(arch::evict);
    }

    /// Verifies that each walker is `steps` further than before.
    ///
    /// # Errors
    /// [`Error::Disproved`] if one is elsewhere.
    pub fn verify_arrival(&mut self, steps: u64, at: [*const u8; N]) -> Result<()> {
        for (walker, at) in at.into_iter().enumerate() {
            let expected = (self.places[walker] + steps) % self.slots.count as u64;
            let found = self.slots.offset_of_address(at.addr()).map(|offset| self.slots.read(offset)[1]);
            if found != Some(expected) {
                let found = found.map_or("outside of it".into(), |place| format!("at place {place}"));
                return Err(Error::Disproved(format!(
                    "the walk did not end where the ring says: after {steps} steps {found}, not at place {expected}"
                )));
            }
            (self.at[walker], self.places[walker]) = (at, expected);
        }
        Ok(())
    }
}

/// Steps per turn of the loop.
const UNROLLED: u64 = 8;

/// Moves each walker by `steps` loads, one load of each in turn, and returns the new positions.
///
/// # Safety
/// RING must hold for the ring of these words.
#[inline(never)]
unsafe fn follow_links<const N: usize>(mut at: [*const u8; N], steps: u64) -> [*const u8; N] {
    // The compiler unrolls a plain loop over the walkers; `map` of an array remains a call per load, whose
    // instructions fill the core's window, so that it can look ahead to fewer loads.
    let turn = |at: &mut [*const u8; N]| {
        for walker in at {
            // SAFETY: RING, promised by the caller.
            *walker = unsafe { std::ptr::with_exposed_provenance(walker.cast::<usize>().read()) };
        }
    };
    for _ in 0..steps / UNROLLED {
        for _ in 0..UNROLLED {
            turn(&mut at);
        }
    }
    for _ in 0..steps % UNROLLED {
        turn(&mut at);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::resident::Pages;

    fn memory(slots: usize, spread: Spread) -> ResidentMemory {
        ResidentMemory::new(slots * spread.bytes_per_slot(), Pages::Base).expect("memory")
    }

    fn walk<const N: usize>(visits: &[u32], spread: Spread) -> Result<Walk<N>> {
        Walk::new(memory(visits.len(), spread), spread, visits)
    }

    fn ascending_slots(slots: u32) -> Vec<u32> {
        (0..slots).collect()
    }

    #[test]
    fn an_impossible_ring_is_refused() {
        for (visits, spread) in [(&[0, 1, 4, 2][..], 64), (&[0], 64), (&[0, 1], 8)] {
            assert!(walk::<1>(visits, Spread::Every(spread)).is_err(), "{visits:?}");
        }
        assert!(walk::<5>(&ascending_slots(4), Spread::Every(64)).is_err(), "more walkers than slots");
        assert!(walk::<1>(&[0, 1, 1, 3], Spread::Every(64)).is_err(), "a slot that is visited twice");
    }

    #[test]
    fn a_ring_of_two_cycles_is_noticed() {
        for slots in [4, 100, 1001] {
            let visits = ascending_slots(slots);
            let linked =
                || Slots::link_ring(memory(visits.len(), Spread::Every(64)), Spread::Every(64), &visits);
            linked().expect("linked").prove_one_cycle(&visits).expect("one cycle");
            for (from, to) in [(1, 0), (slots - 1, 2), (2, 2)] {
                let mut broken = linked().expect("linked");
                let next = broken.slot_address(to) as u64;
                broken.write(broken.spread.slot_offset(from as usize), [next, UNVISITED]);
                let error = broken.prove_one_cycle(&visits).expect_err("two cycles").to_string();
                assert!(error.contains("is not one cycle"), "{error}");
            }
            let mut astray = linked().expect("linked");
            astray.write(astray.spread.slot_offset(0), [4096, UNVISITED]);
            assert!(astray.prove_one_cycle(&visits).is_err());
        }
    }

    #[test]
    fn one_walker_and_many_arrive_where_the_ring_says() {
        fn walked<const N: usize>(spread: Spread) {
            let mut walk = walk::<N>(&ascending_slots(100), spread).expect("a ring");
            for steps in [0, 1, 63, 64, 65, 99, 100, 1000] {
                let at = walk.walk_steps(steps);
                walk.verify_arrival(steps, at).expect("there");
            }
        }
        for spread in [Spread::Every(16), Spread::Every(80), Spread::Scattered(4096)] {
            walked::<1>(spread);
            walked::<2>(spread);
            walked::<16>(spread);
        }
    }

    #[test]
    fn a_walk_that_was_cut_short_is_noticed() {
        let mut walk = walk::<1>(&ascending_slots(100), Spread::Every(64)).expect("a ring");
        let at = walk.walk_steps(9);
        let error = walk.verify_arrival(10, at).expect_err("a step too few").to_string();
        assert!(error.contains("after 10 steps at place 9, not at place 10"), "{error}");
        let error = walk.verify_arrival(10, [std::ptr::null()]).expect_err("nowhere").to_string();
        assert!(error.contains("outside of it"), "{error}");
    }

    #[test]
    fn scattered_slots_use_all_lines_of_a_page_equally_often() {
        let spread = Spread::Scattered(4096);
        let mut used = [[0; 64]; 4];
        for slot in 0..16_384 {
            let offset = spread.slot_offset(slot);
            assert_eq!((offset / 4096, spread.slot_at_offset(offset)), (slot, Some(slot)));
            used[slot % 4][offset % 4096 / LINE] += 1;
        }
        assert!(used.as_flattened().iter().all(|count| (48..80).contains(count)), "{used:?}");
        assert_eq!(spread.slot_at_offset(8), None);
    }
}
