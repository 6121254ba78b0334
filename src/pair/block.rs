//! One pair of sides that exclude each other: each has the machine to itself, in a state of its own, one after
//! the other in blocks of ABBA or BAAB.

use super::process::Launch;
use super::sequence::Meeting;
use super::turns::{Broken, Pair, Question, alone, both};
use crate::Result;
use crate::platform::cpu::Aside;
use crate::statistic::{Random, percentile};

/// What puts the machine into a side's state.
pub type Enter<'a> = dyn FnMut(usize) -> Result<()> + 'a;

/// Whole processes, each after its side's state was entered.
pub struct ByBlocks<'a> {
    enter: &'a mut Enter<'a>,
    /// The side that begins the next pair, when this one is the second half of a block.
    mirrored: Option<usize>,
    /// The state that the machine is in.
    state: Option<usize>,
}

impl<'a> ByBlocks<'a> {
    /// Sides whose states are entered by this.
    pub fn new(enter: &'a mut Enter<'a>) -> Self {
        Self { enter, mirrored: None, state: None }
    }

    /// Who begins: chance in the first half of a block, the other one in the second.
    fn first(&mut self, random: &mut Random) -> usize {
        match self.mirrored.take() {
            Some(first) => first,
            None => {
                let first = random.below(2);
                self.mirrored = Some(1 - first);
                first
            }
        }
    }
}

impl Meeting for ByBlocks<'_> {
    fn pair(
        &mut self,
        launches: [&Launch; 2],
        question: &Question<'_>,
        aside: &Aside,
        random: &mut Random,
    ) -> Result<std::result::Result<Pair, Broken>> {
        let first = self.first(random);
        let mut found = [const { None }; 2];
        let mut shape = question.shape;
        for side in [first, 1 - first] {
            if self.state != Some(side) {
                (self.enter)(side)?;
                self.state = Some(side);
            }
            let half = alone(launches[side], side, question, shape, aside, random);
            // The second side takes the first one's shape, so that both do the same.
            shape = shape.or(half.as_ref().ok().map(|(_, shape, _)| *shape));
            let skipped = matches!(half, Err(Broken::Skipped(_)));
            let ended = half.is_err();
            found[side] = Some(half);
            // Whether the other side lacks it too must be known; anything else has ended the pair.
            if ended && !skipped {
                break;
            }
        }
        Ok(both(found).map(|[(ready_a, shape, a), (ready_b, _, b)]| Pair {
            shape,
            ready: [ready_a, ready_b],
            turns: [a, b],
        }))
    }

    /// A state may be that of the frequency.
    fn is_one_frequency(&self) -> bool {
        false
    }

    /// No turn of one side stands beside one of the other: the lower quartile of its turns is each side's word.
    fn difference(&self, pair: &Pair) -> f64 {
        let word = |side: usize| percentile(&pair.costs(side), 25.0);
        (word(1) / word(0)).ln()
    }
}
