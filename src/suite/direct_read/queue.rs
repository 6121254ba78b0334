//! Several reads in flight by one ring, and the queue full while it is timed.

use super::operation::Ring;
use super::{BLOCK, large};
use crate::Result;
use crate::case::{SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::blocks::{Blocks, Pattern};

struct Queue {
    blocks: Blocks,
    ring: Ring,
    depth: usize,
    /// Where and when each slot was asked for.
    asked: Vec<(u64, Ticks)>,
    /// How many reads there were so far.
    asked_for: u64,
}

/// A batch turns the queue over so often: completions come in bunches, and a bunch more or less must not matter.
const TURNS: u64 = 8;

/// How many blocks are read for a batch of so many iterations.
pub(super) fn at_least(iterations: u64, depth: usize) -> u64 {
    if depth == 1 { iterations } else { iterations.max(TURNS * depth as u64) }
}

/// What so many iterations took, where more blocks were read.
pub(super) fn share(ticks: Ticks, iterations: u64, read: u64) -> Ticks {
    Ticks((u128::from(ticks.0) * u128::from(iterations) / u128::from(read.max(1))) as u64)
}

pub(super) fn set_up(depth: usize) -> SetUp {
    Box::new(move |place| {
        let blocks = large(place, Pattern::Random, BLOCK)?;
        let ring = Ring::new(blocks.stamped.file(), BLOCK, depth)?;
        Ok(Box::new(Queue { blocks, ring, depth, asked: vec![(0, Ticks(0)); depth], asked_for: 0 })
            as Box<dyn Subject>)
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
            self.asked_for += 1;
        }
    }

    /// Turns the queue over untimed, reads at least `timed` blocks, and drains what is in flight then: how many were
    /// read in which time. Both ends are moments at which the kernel has handed over what was complete.
    fn turn(&mut self, timed: u64, clock: &Clock) -> Result<(u64, Ticks)> {
        let depth = self.depth as u64;
        let turned = if depth == 1 { 0 } else { depth };
        let (mut left, mut done) = (turned + timed + 2 * (depth - 1), 0);
        let mut began = (turned == 0).then(|| (0, clock.start()));
        let mut ended = None;
        while left > 0 || self.ring.in_flight() > 0 {
            self.fill(&mut left, clock);
            self.ring.wait()?;
            let now = clock.stop();
            while let Some((slot, answer)) = self.ring.completed() {
                let (offset, asked) = self.asked[slot];
                let got = usize::try_from(answer).map_err(|_| std::io::Error::from_raw_os_error(-answer));
                self.blocks.check(got, self.ring.block(slot), offset)?;
                done += 1;
                if began.is_some() && ended.is_none() {
                    clock.note(now - asked);
                }
            }
            match (began, ended) {
                (None, _) if done >= turned => began = Some((done, now)),
                (Some((before, _)), None) if done >= before + timed => ended = Some((done, now)),
                _ => {}
            }
        }
        // So many were asked for that both moments have come.
        let ((before, began), (done, ended)) = began.zip(ended).unwrap_or_default();
        Ok((done - before, ended - began))
    }
}

impl Subject for Queue {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.asked_for;
        self.blocks.proof.begin()?;
        let (read, ticks) = self.turn(at_least(iterations, self.depth), clock)?;
        let (last, _) = self.asked[0];
        self.blocks.prove(self.asked_for - before, last)?;
        Ok(share(ticks, iterations, read))
    }
}
