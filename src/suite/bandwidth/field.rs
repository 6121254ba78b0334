//! The arrays of one thread, the stream over them, and the proof that it did what it should.

use super::row::level;
use super::walk::Walk;
use crate::kit::stream::{Arrays, Means, Operation, Stream, fence};
use crate::platform::resident::{Pages, ResidentMemory};
use crate::{Error, Result};

/// An iteration goes over so many bytes, those read and those written counted alike: a part of a large array, and
/// the whole of the smallest. Three arrays have no third of it, and a little less.
const ITERATION: usize = 16 << 10;
/// An array begins at a page's beginning, or as far behind it as its case says.
const PAGE: usize = 4 << 10;
/// Distances, in chunks, from where a batch begins to those of which a word is looked at afterwards.
const LOOKED_AT: [u64; 8] = [0, 3, 15, 63, 255, 1023, 4095, 16383];
/// The integer that is written, and by how much integers grow: no byte of it is zero, since some processors store
/// zeroes in another way.
const PATTERN: u64 = 0x5c5c_5c5c_5c5c_5c5c;
/// STREAM's scalar.
const FACTOR: f64 = 3.0;

/// What is to be done, on how much, and in what memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) operation: Operation,
    pub(super) means: Means,
    /// All arrays together.
    pub(super) bytes: usize,
    /// Each begins so many bytes behind a page's beginning.
    pub(super) skew: usize,
    /// Zeroes are written, and no pattern.
    pub(super) zeroes: bool,
    pub(super) pages: Pages,
}

impl Plan {
    /// Whether a call goes over a whole array: the C library and the processor's microcode choose their way by the
    /// length that they are given.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.means, Means::Library | Means::Strings)
    }

    /// Bytes of each array that one iteration goes over.
    pub(super) fn chunk(&self) -> usize {
        let array = self.bytes / self.operation.arrays();
        let most = if self.is_whole() { array } else { array.min(ITERATION / self.moved_arrays()) };
        // Whole blocks of the loops.
        (most / 1024 * 1024).max(1024)
    }

    /// Bytes that one iteration moves.
    pub(super) fn moved(&self) -> u64 {
        (self.chunk() * self.moved_arrays()) as u64
    }

    /// What is updated is read and written.
    fn moved_arrays(&self) -> usize {
        if self.operation == Operation::Update { 2 } else { self.operation.arrays() }
    }

    fn chunks(&self) -> usize {
        (self.bytes / self.operation.arrays() / self.chunk()).max(1)
    }

    fn constant(&self) -> u64 {
        match self.operation {
            Operation::Scale | Operation::Triad => FACTOR.to_bits(),
            _ if self.zeroes => 0,
            _ => PATTERN,
        }
    }

    fn calculates_reals(&self) -> bool {
        matches!(self.operation, Operation::Scale | Operation::Add | Operation::Triad)
    }

    /// What a word of a source, or of what is updated, holds in the beginning: its number, so that no two agree; as
    /// a floating-point number a small whole one, of which sums and products are exact.
    fn source(&self, array: usize, word: u64) -> u64 {
        if self.calculates_reals() { ((word % 4096 + array as u64) as f64).to_bits() } else { word }
    }

    /// What a word that is written must hold after so many visits.
    fn result(&self, word: u64, visits: u64) -> u64 {
        let real = |array| f64::from_bits(self.source(array, word));
        match self.operation {
            Operation::Read => 0,
            Operation::Write | Operation::WriteNonTemporal => self.constant(),
            Operation::Copy | Operation::CopyNonTemporal => self.source(1, word),
            Operation::Update => word.wrapping_add(visits.wrapping_mul(self.constant())),
            Operation::Scale => (FACTOR * real(1)).to_bits(),
            Operation::Add => (real(1) + real(2)).to_bits(),
            Operation::Triad => (real(1) + FACTOR * real(2)).to_bits(),
        }
    }
}

/// The live thing.
pub(super) struct Field {
    plan: Plan,
    stream: Stream,
    memory: ResidentMemory,
    /// Bytes from the beginning of one array to that of the next.
    stride: usize,
    walk: Walk,
    /// Where the last batch began, how long it was, and what it read.
    begun: Walk,
    batch: u64,
    sum: u64,
    /// Words to look at after the next batch: how many chunks from its beginning, and which word of all.
    looked_at: Vec<(u64, u64)>,
    turn: u64,
}

impl Field {
    /// What a reader must know of its memory.
    pub(super) fn words(&self) -> String {
        let pages = match self.plan.pages {
            Pages::Base => "the kernel's base pages",
            _ => "huge pages of 2 MiB",
        };
        let kib = (self.plan.chunk() * self.plan.chunks() * self.plan.operation.arrays()) >> 10;
        let ahead = match self.stream.asks_ahead() {
            true if self.plan.operation.is_non_temporal() => {
                ", four pages in turns, asking ahead for what is read"
            }
            true => " that ask ahead for the lines they write",
            false => "",
        };
        format!("by {}{ahead}, on {kib} KiB in {pages}", self.plan.means.words())
    }

    /// Fills the arrays, goes over all of them once, and looks at every word.
    ///
    /// # Errors
    /// [`Error::Missing`] where this machine lacks the means or the memory.
    pub(super) fn new(plan: Plan) -> Result<Self> {
        let stream = Stream::new(plan.operation, plan.means).ok_or_else(|| {
            let means = plan.means.words();
            Error::Missing(format!("this processor does not have {means}, or the kernel keeps them from it"))
        })?;
        let stream = if level(plan.bytes).is_memory() { stream.of_memory() } else { stream };
        let stride = (plan.chunk() * plan.chunks() + plan.skew).next_multiple_of(PAGE);
        let memory = ResidentMemory::new(stride * plan.operation.arrays(), plan.pages)?;
        let walk = Walk::new(plan.chunks() as u64);
        let (batch, sum, turn, looked_at) = (0, 0, 0, Vec::with_capacity(LOOKED_AT.len()));
        let mut field = Self { plan, stream, memory, stride, walk, begun: walk, batch, sum, looked_at, turn };
        field.fill();
        field.run(plan.chunks() as u64);
        field.prove_all()?;
        field.mark();
        Ok(field)
    }

    /// The arrays in the order to, x, y; what the operation does not know is empty.
    fn arrays(memory: &mut ResidentMemory, plan: Plan, stride: usize) -> [&mut [u8]; 3] {
        let length = plan.chunk() * plan.chunks();
        let mut rest = memory.bytes();
        let mut next = |is_there: bool| {
            if !is_there {
                return Default::default();
            }
            let (array, behind) = std::mem::take(&mut rest).split_at_mut(stride);
            rest = behind;
            &mut array[plan.skew..plan.skew + length]
        };
        let count = plan.operation.arrays();
        let writes = plan.operation != Operation::Read;
        [next(writes), next(!writes || count > 1), next(count > 2)]
    }

    fn fill(&mut self) {
        let plan = self.plan;
        let arrays = Self::arrays(&mut self.memory, plan, self.stride);
        for (number, array) in arrays.into_iter().enumerate() {
            for (word, place) in array.chunks_exact_mut(8).enumerate() {
                place.copy_from_slice(&plan.source(number, word as u64).to_le_bytes());
            }
        }
    }

    /// So many iterations. The hot loop is the stream's.
    pub(super) fn run(&mut self, iterations: u64) {
        let chunk = self.plan.chunk();
        let constant = self.plan.constant();
        let [to, x, y] = Self::arrays(&mut self.memory, self.plan, self.stride);
        (self.begun, self.batch) = (self.walk, iterations);
        let mut left = iterations;
        let mut sum = 0u64;
        while let Some(stretch) = self.walk.next(&mut left) {
            let from = stretch.from as usize * chunk;
            let part = from..from + stretch.chunks as usize * chunk;
            let of = |array: &'_ [u8]| if array.is_empty() { 0..0 } else { part.clone() };
            let (at_to, at_x, at_y) = (of(to), of(x), of(y));
            let mut arrays = Arrays { to: &mut to[at_to], x: &x[at_x], y: &y[at_y] };
            sum = sum.wrapping_add(self.stream.run(&mut arrays, stretch.passes, constant));
        }
        fence();
        self.sum = sum;
    }

    /// Looks at what the last batch has left, outside of what is timed, and marks what the next must change.
    pub(super) fn prove(&mut self) -> std::result::Result<(), String> {
        self.prove_sum()?;
        for at in 0..self.looked_at.len() {
            let (distance, word) = self.looked_at[at];
            if distance < self.batch {
                self.prove_word(word)?;
            }
        }
        self.mark();
        Ok(())
    }

    /// What is read are numbers in order, of which the sum has a closed form.
    fn prove_sum(&self) -> std::result::Result<(), String> {
        if self.plan.operation != Operation::Read {
            return Ok(());
        }
        let words = self.plan.chunk() as u64 / 8;
        let (mut walk, mut left, mut expected) = (self.begun, self.batch, 0u64);
        while let Some(stretch) = walk.next(&mut left) {
            let count = u128::from(stretch.chunks * words);
            let twice_mean = 2 * u128::from(stretch.from * words) + count - 1;
            let once = (count * twice_mean / 2) as u64;
            expected = expected.wrapping_add(once.wrapping_mul(stretch.passes));
        }
        if self.sum == expected {
            return Ok(());
        }
        let (sum, batch) = (self.sum, self.batch);
        Err(format!("the sum of what was read in {batch} iterations is {sum:#x} and should be {expected:#x}"))
    }

    fn prove_word(&mut self, word: u64) -> std::result::Result<(), String> {
        let visits = self.walk.visits(word * 8 / self.plan.chunk() as u64);
        let (found, expected) = (self.word(word), self.plan.result(word, visits));
        if found == expected {
            return Ok(());
        }
        Err(format!("word {word} holds {found:#x} where the operation leaves {expected:#x}: it was not done"))
    }

    fn prove_all(&mut self) -> Result<()> {
        self.prove_sum().map_err(Error::Usage)?;
        let (plan, words, walk) = (self.plan, self.plan.chunk() as u64 / 8, self.walk);
        let [to, ..] = Self::arrays(&mut self.memory, plan, self.stride);
        let wrong = to.chunks_exact(8).zip(0..).find_map(|(bytes, word)| {
            (little_endian(bytes) != plan.result(word, walk.visits(word / words))).then_some(word)
        });
        wrong.map_or(Ok(()), |word| self.prove_word(word).map_err(Error::Usage))
    }

    fn place(&mut self, word: u64) -> &mut [u8] {
        let [to, ..] = Self::arrays(&mut self.memory, self.plan, self.stride);
        &mut to[word as usize * 8..][..8]
    }

    fn word(&mut self, word: u64) -> u64 {
        little_endian(self.place(word))
    }

    /// Chooses words ahead, another one of a chunk each time, and spoils them. Few lines are touched, so that few
    /// are found in a cache that would not be there. What is updated is left as it is: its number of visits tells.
    fn mark(&mut self) {
        self.looked_at.clear();
        if self.plan.operation == Operation::Read {
            return;
        }
        let (words, chunks) = (self.plan.chunk() as u64 / 8, self.plan.chunks() as u64);
        for distance in LOOKED_AT.into_iter().filter(|distance| *distance < chunks) {
            self.turn = self.turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = self.walk.ahead(distance) * words + (self.turn >> 33) % words;
            if self.plan.operation != Operation::Update {
                let spoilt = !self.plan.result(word, 0);
                self.place(word).copy_from_slice(&spoilt.to_le_bytes());
            }
            self.looked_at.push((distance, word));
        }
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests;
