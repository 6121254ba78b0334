//! A ring in memory: slots of which each holds the address of another one, in one cycle through all of them.
//!
//! # Invariants
//!
//! * **RING**: the word of every slot holds the address of the word of a slot of the same memory. It was proven by
//!   walking once through all of them when the ring was linked; the memory lives as long as the ring, and is written
//!   no more.
#![allow(unsafe_code)]

use super::arch;
use super::touched::Touched;
use crate::{Error, Result};

/// This file, for the version of a body.
pub const SOURCE: &str = include_str!("ring.rs");

/// A slot holds the address of the next one, and behind it its place in the ring.
pub const SLOT: usize = 2 * size_of::<u64>();
/// What a processor fetches at once. Where it is more, two lines of ours share one of its.
pub const LINE: usize = 64;

/// Where the slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One in so many bytes, at their beginning.
    Every(usize),
    /// One in so many bytes, each a line further from their beginning than the one before: slots of equal places
    /// would share few sets of a cache.
    Scattered(usize),
}

impl Spread {
    /// Bytes from a slot to the next.
    pub fn bytes(self) -> usize {
        match self {
            Self::Every(bytes) | Self::Scattered(bytes) => bytes,
        }
    }

    /// Where a slot begins.
    fn offset(self, slot: usize) -> usize {
        match self {
            Self::Every(bytes) => slot * bytes,
            Self::Scattered(bytes) => slot * bytes + slot % (bytes / LINE) * LINE,
        }
    }

    /// The slot that begins there, if one does.
    fn slot(self, offset: usize) -> Option<usize> {
        let slot = offset / self.bytes();
        (self.offset(slot) == offset).then_some(slot)
    }
}

/// The place of a slot that was not come to yet.
const NOWHERE: u64 = u64::MAX;

/// Slots in memory that holds nothing else.
struct Slots {
    memory: Touched,
    spread: Spread,
    count: usize,
    /// The address of the memory.
    begins: usize,
}

impl Slots {
    /// Writes into each slot the address of the next.
    fn link(mut memory: Touched, spread: Spread, next: &[u32]) -> Result<Self> {
        let (count, bytes) = (next.len(), memory.bytes().len());
        if count < 2 || spread.bytes() < SLOT || count * spread.bytes() > bytes {
            let each = spread.bytes();
            return Err(Error::Usage(format!("{count} slots of {each} bytes are no ring in {bytes} bytes")));
        }
        let begins = memory.bytes().as_mut_ptr().expose_provenance();
        let mut slots = Self { memory, spread, count, begins };
        for (slot, &next) in next.iter().enumerate() {
            slots.write(spread.offset(slot), [(begins + spread.offset(next as usize)) as u64, NOWHERE]);
        }
        Ok(slots)
    }

    fn write(&mut self, offset: usize, [next, place]: [u64; 2]) {
        let slot = &mut self.memory.bytes()[offset..offset + SLOT];
        slot[..8].copy_from_slice(&next.to_ne_bytes());
        slot[8..].copy_from_slice(&place.to_ne_bytes());
    }

    /// What a slot holds: the address of the next one, and its place.
    fn read(&mut self, offset: usize) -> [u64; 2] {
        let slot = &self.memory.bytes()[offset..offset + SLOT];
        [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|i| slot[at + i])))
    }

    /// Where in the memory the slot is that begins at this address, if one does.
    fn offset(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.begins);
        self.spread.slot(offset).filter(|slot| *slot < self.count).map(|_| offset)
    }

    /// Walks round once, writes its place into each slot, and answers the addresses of these places. It brings the
    /// ring into the caches as far as it fits.
    fn prove<const N: usize>(&mut self, places: [u64; N]) -> Result<[usize; N]> {
        let (first, count) = (self.begins + self.spread.offset(0), self.count);
        let (mut address, mut found) = (first, [first; N]);
        for place in 0..count as u64 {
            let Some(offset) = self.offset(address) else {
                return Err(Error::Usage(format!("place {place} of the ring lies outside of its slots")));
            };
            let [next, seen] = self.read(offset);
            if seen != NOWHERE {
                return Err(Error::Usage(format!("the ring comes back after {place} of {count} slots")));
            }
            self.write(offset, [next, place]);
            if let Some(at) = places.iter().position(|wanted| *wanted == place) {
                found[at] = address;
            }
            address = next as usize;
        }
        match address == first {
            true => Ok(found),
            false => Err(Error::Usage(format!("after all {count} slots the ring is not back at the first"))),
        }
    }
}

/// `N` walkers in one ring, which begin evenly spread and never meet. Each batch goes on where the last has ended:
/// a slot is come to again only after all the others, and no part of a large ring is warmer than the rest.
pub struct Walk<const N: usize> {
    slots: Slots,
    at: [*const u8; N],
    places: [u64; N],
}

impl<const N: usize> Walk<N> {
    /// Links the slots of `memory` so that slot `i` leads to slot `next[i]`, and walks round once, which proves that
    /// they are one cycle through all of them.
    ///
    /// # Errors
    /// They are not, or there are fewer slots than walkers.
    pub fn new(memory: Touched, spread: Spread, next: &[u32]) -> Result<Self> {
        if next.len() < N {
            return Err(Error::Usage(format!("{N} walkers in a ring of {} slots", next.len())));
        }
        let mut slots = Slots::link(memory, spread, next)?;
        let places: [u64; N] = std::array::from_fn(|walker| (walker * next.len() / N) as u64);
        let at = slots.prove(places)?.map(std::ptr::with_exposed_provenance);
        Ok(Self { slots, at, places })
    }

    /// So many steps of each. Answers where they led; [`Walk::arrive`] is to be told.
    #[inline(always)]
    pub fn go(&self, steps: u64) -> [*const u8; N] {
        if N == 1 {
            // SAFETY: RING.
            [unsafe { arch::chase(self.at[0], steps) }; N]
        } else {
            // SAFETY: RING.
            unsafe { follow(self.at, steps) }
        }
    }

    /// Whether each has arrived at the slot that is so many steps further.
    ///
    /// # Errors
    /// One is elsewhere: the walk was not done as it was asked for.
    pub fn arrive(&mut self, steps: u64, at: [*const u8; N]) -> Result<()> {
        for (walker, at) in at.into_iter().enumerate() {
            let expected = (self.places[walker] + steps) % self.slots.count as u64;
            let found = self.slots.offset(at.addr()).map(|offset| self.slots.read(offset)[1]);
            if found != Some(expected) {
                let found = found.map_or("outside of it".into(), |place| format!("at place {place}"));
                return Err(Error::Usage(format!(
                    "the walk did not end where the ring says: after {steps} steps {found}, not at place {expected}"
                )));
            }
            (self.at[walker], self.places[walker]) = (at, expected);
        }
        Ok(())
    }
}

/// Steps that stand in one turn of the loop.
const UNROLLED: u64 = 8;

/// `steps` loads of each walker, one of each in turn.
///
/// # Safety
/// RING, from each of the words on.
#[inline(never)]
unsafe fn follow<const N: usize>(mut at: [*const u8; N], steps: u64) -> [*const u8; N] {
    // SAFETY: RING, promised by the caller.
    let next = |at: *const u8| unsafe { std::ptr::with_exposed_provenance(at.cast::<usize>().read()) };
    for _ in 0..steps / UNROLLED {
        for _ in 0..UNROLLED {
            at = at.map(next);
        }
    }
    for _ in 0..steps % UNROLLED {
        at = at.map(next);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::touched::Pages;

    fn walk<const N: usize>(next: &[u32], spread: Spread) -> Result<Walk<N>> {
        Walk::new(Touched::new(next.len() * spread.bytes(), Pages::Base)?, spread, next)
    }

    fn around(slots: u32) -> Vec<u32> {
        (0..slots).map(|slot| (slot + 1) % slots).collect()
    }

    #[test]
    fn what_is_not_one_cycle_is_refused() {
        for (next, words) in [
            ([1, 0, 3, 2], "comes back after 2 of 4 slots"),
            ([1, 2, 1, 0], "comes back after 3 of 4 slots"),
            ([1, 2, 3, 3], "after all 4 slots the ring is not back"),
            ([1, 2, 7, 0], "place 3 of the ring lies outside"),
        ] {
            let error = walk::<1>(&next, Spread::Every(64)).err().expect("no ring").to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(walk::<5>(&around(4), Spread::Every(64)).is_err(), "more walkers than slots");
    }

    #[test]
    fn one_walker_and_many_arrive_where_the_ring_says() {
        fn walked<const N: usize>(spread: Spread) {
            let mut walk = walk::<N>(&around(100), spread).expect("a ring");
            for steps in [0, 1, 63, 64, 65, 99, 100, 1000] {
                let at = walk.go(steps);
                walk.arrive(steps, at).expect("there");
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
        let mut walk = walk::<1>(&around(100), Spread::Every(64)).expect("a ring");
        let at = walk.go(9);
        let error = walk.arrive(10, at).expect_err("a step too few").to_string();
        assert!(error.contains("after 10 steps at place 9, not at place 10"), "{error}");
        let error = walk.arrive(10, [std::ptr::null()]).expect_err("nowhere").to_string();
        assert!(error.contains("outside of it"), "{error}");
    }

    #[test]
    fn scattered_slots_use_every_line_of_a_page_in_turn() {
        let spread = Spread::Scattered(4096);
        let lines: std::collections::BTreeSet<_> = (0..64).map(|slot| spread.offset(slot) % 4096).collect();
        assert_eq!((lines.len(), spread.slot(spread.offset(77))), (64, Some(77)));
        assert_eq!(spread.slot(8), None);
    }
}
