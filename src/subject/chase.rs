//! # What is timed
//! A load that needs the one before it: each step reads, from a line of memory, which line comes next. The lines
//! form a ring in random order, so no prefetcher knows the next one, and no two loads overlap.
//!
//! # What is not
//! The drawing of the ring, and the first walks over it, which bring it into the caches as far as it fits. The
//! loop's own counting and the check of the index run beside the load that they do not wait for.
//!
//! # How we know
//! The ring is walked once at set-up and must come back to its first line after exactly as many steps as it has
//! lines. A witness counts the instructions of a step. Time grows in proportion to the number of steps.
//!
//! # What fools it
//! A ring that falls into two: then part of it is never read, and the size lies. A ring larger than the reach of
//! the translation caches adds page walks; pages of 4 KiB reach some megabytes. Neighbours share the last level.
//!
//! # Reading the number
//! Divide by the core's cycle, the addition of `known_work`: 4 or 5 cycles is the first level, 12 to 17 the second.
//!
//! # Source
//! lmbench's `lat_mem_rd` (McVoy and Staelin 1996); Sattolo 1986 for a permutation that is one cycle; CSE 221
//! project report (memory latency).

use super::{Case, Claim, Group, Place, SetUp, Subject};
use crate::instrument::Clock;
use crate::statistic::Random;
use crate::{Error, Result};
use std::hint::black_box;

/// The group.
pub const GROUP: Group =
    Group { name: "chase", manual: include_str!("chase.rs"), sources: &[], cases, fits: &[] };

/// A line of the cache on every machine that this crate knows; where it is longer, two lines share one.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line {
    next: usize,
}

fn cases() -> Vec<Case> {
    vec![
        random("random/16KiB", 16 << 10).predict(5.0, 0.0, "a hit in the first level"),
        random("random/256KiB", 256 << 10).predict(
            15.0,
            0.0,
            "a hit in the second level, here and there the first",
        ),
    ]
}

fn random(name: &'static str, bytes: usize) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        let ring = ring(bytes / size_of::<Line>())?;
        let mut at = 0;
        Ok(Box::new(move |n: u64, clock: &Clock| Ok(clock.time(|| at = walk(&ring, at, n))))
            as Box<dyn Subject>)
    });
    Case::new(name, format!("a load that needs the one before, {name}"), set_up)
        .claim(Claim::Executes(2.0))
        .claim(Claim::Linear)
}

#[inline(never)]
fn walk(ring: &[Line], from: usize, steps: u64) -> usize {
    let mut at = from;
    for _ in 0..steps {
        at = ring[at].next;
    }
    black_box(at)
}

/// Lines in random order, in one cycle: in Sattolo's shuffle no line is left where it was.
fn ring(lines: usize) -> Result<Vec<Line>> {
    let mut ring: Vec<_> = (0..lines).map(|next| Line { next }).collect();
    let mut random = Random::new(lines as u64);
    for i in (1..lines).rev() {
        ring.swap(i, random.below(i));
    }
    match cycle(&ring) {
        length if length == lines => Ok(ring),
        length => Err(Error::Usage(format!("the ring comes back after {length} of {lines} lines"))),
    }
}

/// Steps until the walk is back at the first line.
fn cycle(ring: &[Line]) -> usize {
    let mut at = 0;
    let steps = (0..ring.len()).take_while(|_| {
        at = ring[at].next;
        at != 0
    });
    steps.count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_one_cycle_at_every_size() {
        for lines in (2..200).chain([256, 1 << 10, 1 << 14]) {
            assert_eq!(cycle(&ring(lines).expect("a ring")), lines);
        }
    }

    #[test]
    fn two_rings_are_noticed() {
        let lines = [1, 0, 3, 2].map(|next| Line { next });
        assert_eq!(cycle(&lines), 2);
    }
}
