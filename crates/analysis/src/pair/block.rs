//! Pairs of sides that exclude each other: each runs alone, in its own state of the machine, in blocks of ABBA or BAAB.

use super::sequence::Schedule;
use super::turns::{Pair, PairSpec, combine_halves, run_half};
use crate::error::Result;
use crate::statistic::{Random, percentile};
use syscost_engine::trial::CaseEnd;

/// Puts the machine into the state of a side (0 for A, 1 for B).
pub type Enter<'a> = dyn FnMut(usize) -> Result<()> + 'a;

/// Runs whole processes one after the other, each after its side's state was entered.
pub struct ByBlocks<'a> {
    enter: &'a mut Enter<'a>,
    /// The side that begins the next pair, if that pair completes a block.
    mirrored: Option<usize>,
    /// The side whose state the machine is in.
    state: Option<usize>,
}

impl<'a> ByBlocks<'a> {
    /// A schedule that enters states by this function.
    pub fn new(enter: &'a mut Enter<'a>) -> Self {
        Self { enter, mirrored: None, state: None }
    }

    /// The side that begins: random in the first pair of a block, the other one in the second.
    fn first_side(&mut self, random: &mut Random) -> usize {
        self.mirrored.take().unwrap_or_else(|| {
            let first = random.number_below(2);
            self.mirrored = Some(1 - first);
            first
        })
    }
}

impl Schedule for ByBlocks<'_> {
    fn run_pair(
        &mut self,
        spec: &PairSpec<'_>,
        random: &mut Random,
    ) -> Result<std::result::Result<Pair, CaseEnd>> {
        let first = self.first_side(random);
        let mut found = [const { None }; 2];
        let mut shape = spec.shape;
        for side in [first, 1 - first] {
            if self.state != Some(side) {
                (self.enter)(side)?;
                self.state = Some(side);
            }
            let half = run_half(spec, side, shape, random);
            // Both sides do the same: the second one takes the first one's shape.
            shape = shape.or(half.as_ref().ok().map(|half| half.shape));
            let goes_on = matches!(half, Ok(_) | Err(CaseEnd::Skipped(_)));
            found[side] = Some(half);
            // A skip of one side is judged by whether the other skips too; any other end decides the pair.
            if !goes_on {
                break;
            }
        }
        Ok(combine_halves(found).map(|[a, b]| Pair {
            shape: a.shape,
            ready: [a.ready, b.ready],
            turns: [a.turns, b.turns],
            samples: [a.samples, b.samples],
        }))
    }

    /// The log ratio of the lower quartiles of each side's turns, since no turn of A has a neighbour of B.
    fn log_ratio(&self, pair: &Pair) -> f64 {
        let [a, b] = [0, 1].map(|side| percentile(&pair.turn_costs(side), 25.0));
        (b / a).ln()
    }
}
