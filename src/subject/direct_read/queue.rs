//! Several reads in flight by one ring, and the queue full while it is timed.

use super::super::blocks::{Blocks, Pattern};
use super::{BLOCK, large};
use crate::Result;
use crate::instrument::{Clock, Ticks};
use crate::machine::uring::Ring;
use crate::subject::{SetUp, Subject};

struct Queue {
    blocks: Blocks,
    ring: Ring,
    depth: usize,
    /// Where and when each slot was asked for.
    asked: Vec<(u64, Ticks)>,
}

pub(super) fn set_up(depth: usize) -> SetUp {
    Box::new(move |place| {
        let blocks = large(place, Pattern::Random, BLOCK)?;
        let ring = Ring::new(blocks.stamped.file(), BLOCK, depth)?;
        Ok(Box::new(Queue { blocks, ring, depth, asked: vec![(0, Ticks(0)); depth] }) as Box<dyn Subject>)
    })
}

impl Queue {
    /// Fills the queue as far as there are reads left.
    #[inline(always)]
    fn fill(&mut self, left: &mut u64, clock: &Clock) {
        while *left > 0 {
            let offset = self.blocks.order.next();
            let Some(slot) = self.ring.read(offset) else { return self.blocks.order.back() };
            self.asked[slot] = (offset, clock.start());
            *left -= 1;
        }
    }

    /// Reads `turned` blocks untimed and then `timed` ones, and drains what is in flight then.
    fn turn(&mut self, (turned, timed): (u64, u64), clock: &Clock) -> Result<Ticks> {
        let (mut left, mut done) = (turned + timed + self.depth as u64 - 1, 0);
        let (mut began, mut ended) = (clock.start(), Ticks(0));
        while left > 0 || self.ring.in_flight() > 0 {
            self.fill(&mut left, clock);
            self.ring.wait()?;
            while let Some((slot, answer)) = self.ring.completed() {
                let now = clock.stop();
                let (offset, asked) = self.asked[slot];
                let got = usize::try_from(answer).map_err(|_| std::io::Error::from_raw_os_error(-answer));
                self.blocks.check(got, self.ring.block(slot), offset)?;
                done += 1;
                if done > turned && done <= turned + timed {
                    clock.note(now - asked);
                }
                if done == turned {
                    began = now;
                } else if done == turned + timed {
                    ended = now;
                }
            }
        }
        Ok(ended - began)
    }
}

impl Subject for Queue {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        // A single one is turned over by nothing.
        let turned = if self.depth == 1 { 0 } else { self.depth as u64 };
        self.blocks.proof.begin()?;
        let ticks = self.turn((turned, iterations), clock)?;
        let (last, _) = self.asked[0];
        self.blocks.prove(turned + iterations + self.depth as u64 - 1, last)?;
        Ok(ticks)
    }
}
