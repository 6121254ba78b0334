//! The arrays of one thread, the loop over them, and the proof of its results.

use super::cursor::Cursor;
use super::stream_plan::{Level, Plan};
use crate::error::{Error, Result};
use crate::kit::stream::{Arrays, Operation, Stream, fence};
use crate::platform::resident::{Pages, ResidentMemory};

/// The alignment of the arrays, before the offset of the plan, bytes.
const PAGE: usize = 4 << 10;
/// Distances, in chunks, from the beginning of a batch to the chunks of which a word is verified.
const VERIFIED: [u64; 8] = [0, 3, 15, 63, 255, 1023, 4095, 16383];

/// The arrays and the state of a thread.
pub(super) struct Workload {
    plan: Plan,
    stream: Stream,
    memory: ResidentMemory,
    /// Bytes from one array to the next.
    stride: usize,
    cursor: Cursor,
    /// The beginning of the last batch, its iterations, and the sum that it read.
    begun: Cursor,
    batch: u64,
    sum: u64,
    /// Words to verify after the next batch: the distance of their chunk from its beginning, and their number.
    marked: Vec<(u64, u64)>,
    /// State of the generator that chooses them.
    random: u64,
}

impl Workload {
    /// The evidence of a case: how and where the loop works.
    pub(super) fn description(&self) -> String {
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
        format!("by {}{ahead}, on {kib} KiB in {pages}", self.plan.means.phrase())
    }

    /// Fills the arrays, processes all of them once, and verifies every word.
    ///
    /// # Errors
    /// [`Error::Missing`] if this machine lacks the means or the memory; [`Error::Disproved`] if a word is wrong.
    pub(super) fn new(plan: Plan) -> Result<Self> {
        let stream = Stream::new(plan.operation, plan.means).ok_or_else(|| {
            let means = plan.means.phrase();
            Error::Missing(format!("this processor does not have {means}, or the kernel keeps them from it"))
        })?;
        let stream = if plan.level() == Level::Memory { stream.of_memory() } else { stream };
        let stride = (plan.chunk() * plan.chunks() + plan.skew).next_multiple_of(PAGE);
        let memory = ResidentMemory::new(stride * plan.operation.arrays(), plan.pages)?;
        let cursor = Cursor::new(plan.chunks() as u64);
        let (batch, sum, random, marked) = (0, 0, 0, Vec::with_capacity(VERIFIED.len()));
        let mut workload =
            Self { plan, stream, memory, stride, cursor, begun: cursor, batch, sum, marked, random };
        workload.fill();
        workload.run(plan.chunks() as u64);
        workload.prove_all()?;
        workload.mark();
        Ok(workload)
    }

    /// The arrays `to`, `x` and `y`. Those that the operation does not use are empty.
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

    /// Runs a batch. The hot loop is that of the stream.
    pub(super) fn run(&mut self, iterations: u64) {
        let chunk = self.plan.chunk();
        let constant = self.plan.constant();
        let [to, x, y] = Self::arrays(&mut self.memory, self.plan, self.stride);
        (self.begun, self.batch) = (self.cursor, iterations);
        let mut left = iterations;
        let mut sum = 0u64;
        while let Some(stretch) = self.cursor.next(&mut left) {
            let from = stretch.from as usize * chunk;
            let part = from..from + stretch.chunks as usize * chunk;
            let range_of = |array: &'_ [u8]| if array.is_empty() { 0..0 } else { part.clone() };
            let (at_to, at_x, at_y) = (range_of(to), range_of(x), range_of(y));
            let mut arrays = Arrays { to: &mut to[at_to], x: &x[at_x], y: &y[at_y] };
            sum = sum.wrapping_add(self.stream.run(&mut arrays, stretch.passes, constant));
        }
        fence();
        self.sum = sum;
    }

    /// Verifies the results of the last batch, untimed, and marks the words that the next must change.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn prove(&mut self) -> std::result::Result<(), String> {
        self.prove_sum()?;
        for at in 0..self.marked.len() {
            let (distance, word) = self.marked[at];
            if distance < self.batch {
                self.prove_word(word)?;
            }
        }
        self.mark();
        Ok(())
    }

    /// The words that are read are consecutive numbers, whose sum has a closed form.
    fn prove_sum(&self) -> std::result::Result<(), String> {
        if self.plan.operation != Operation::Read {
            return Ok(());
        }
        let words = self.plan.chunk() as u64 / 8;
        let (mut cursor, mut left, mut expected) = (self.begun, self.batch, 0u64);
        while let Some(stretch) = cursor.next(&mut left) {
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
        let visits = self.cursor.visits(word * 8 / self.plan.chunk() as u64);
        let (found, expected) = (self.word(word), self.plan.result(word, visits));
        if found == expected {
            return Ok(());
        }
        Err(format!("word {word} holds {found:#x} where the operation leaves {expected:#x}: it was not done"))
    }

    fn prove_all(&mut self) -> Result<()> {
        self.prove_sum().map_err(Error::Disproved)?;
        let (plan, words, cursor) = (self.plan, self.plan.chunk() as u64 / 8, self.cursor);
        let [to, ..] = Self::arrays(&mut self.memory, plan, self.stride);
        let wrong = to.chunks_exact(8).zip(0..).find_map(|(bytes, word)| {
            (little_endian(bytes) != plan.result(word, cursor.visits(word / words))).then_some(word)
        });
        wrong.map_or(Ok(()), |word| self.prove_word(word).map_err(Error::Disproved))
    }

    fn place(&mut self, word: u64) -> &mut [u8] {
        let [to, ..] = Self::arrays(&mut self.memory, self.plan, self.stride);
        &mut to[word as usize * 8..][..8]
    }

    fn word(&mut self, word: u64) -> u64 {
        little_endian(self.place(word))
    }

    /// Chooses words of chunks ahead, each time another word of a chunk, and spoils them. They are few, so that few
    /// lines come into a cache because of them. Words that are updated are not spoilt: their value shows the number
    /// of visits.
    fn mark(&mut self) {
        self.marked.clear();
        if self.plan.operation == Operation::Read {
            return;
        }
        let (words, chunks) = (self.plan.chunk() as u64 / 8, self.plan.chunks() as u64);
        for distance in VERIFIED.into_iter().filter(|distance| *distance < chunks) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = self.cursor.ahead(distance) * words + (self.random >> 33) % words;
            if self.plan.operation != Operation::Update {
                let spoilt = !self.plan.result(word, 0);
                self.place(word).copy_from_slice(&spoilt.to_le_bytes());
            }
            self.marked.push((distance, word));
        }
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests;
