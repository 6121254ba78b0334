//! One pair of sides that exclude each other: each has the machine to itself, in a state of its own, one after
//! the other in blocks of ABBA or BAAB.

use super::process::Launch;
use super::sequence::Meeting;
use super::turns::{Broken, Pair, Question, alone};
use crate::Result;
use crate::machine::cpu::Aside;
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
        let mut found = [None, None];
        for side in [first, 1 - first] {
            if self.state != Some(side) {
                (self.enter)(side)?;
                self.state = Some(side);
            }
            // The second side takes the first one's shape, so that both do the same.
            let shape = question.shape.or_else(|| found[1 - side].as_ref().map(|(_, shape, _)| *shape));
            match alone(launches[side], side, question, shape, aside, random) {
                Ok(half) => found[side] = Some(half),
                Err(broken) => return Ok(Err(broken)),
            }
        }
        let [Some((ready_a, shape, a)), Some((ready_b, _, b))] = found else {
            return Ok(Err(Broken::Failed("a side took no turn".into())));
        };
        Ok(Ok(Pair { shape, ready: [ready_a, ready_b], turns: [a, b] }))
    }

    /// No turn of one side stands beside one of the other: the lower quartile of its turns is each side's word.
    fn difference(&self, pair: &Pair) -> f64 {
        let word = |side: usize| percentile(&pair.costs(side), 25.0);
        (word(1) / word(0)).ln()
    }
}
