//! The arrays of one thread, the loop over them, the position of the stream in them, and the proof of its results.
//!
//! One iteration is one chunk. Each batch continues where the last one ended, and starts over at the end of the arrays, so
//! that in large arrays it finds chunks that were not used for a long time.

use super::variant::{Level, Plan};
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
    /// Words to verify after the next batch: the distance, in chunks, from its beginning, and the index of the word.
    marked: Vec<(u64, u64)>,
    /// State of the generator that chooses the marked words.
    random: u64,
}

impl Workload {
    /// The evidence of a case: how and where the loop works.
    pub(super) fn description(&self) -> String {
        let pages = match self.plan.pages {
            Pages::Base => "the kernel's base pages",
            _ => "huge pages of 2 MiB",
        };
        let kib =
            (self.plan.bytes_per_chunk() * self.plan.chunk_count() * self.plan.operation.array_count()) >> 10;
        let ahead = match self.stream.has_prefetch() {
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
        let stream = if plan.memory_level() == Level::Memory { stream.with_prefetch() } else { stream };
        let stride = (plan.bytes_per_chunk() * plan.chunk_count() + plan.skew).next_multiple_of(PAGE);
        let memory = ResidentMemory::new(stride * plan.operation.array_count(), plan.pages)?;
        let cursor = Cursor::new(plan.chunk_count() as u64);
        let (batch, sum, random, marked) = (0, 0, 0, Vec::with_capacity(VERIFIED.len()));
        let mut workload =
            Self { plan, stream, memory, stride, cursor, begun: cursor, batch, sum, marked, random };
        workload.fill_arrays();
        workload.run_batch(plan.chunk_count() as u64);
        workload.verify_all_words()?;
        workload.mark_words_to_verify();
        Ok(workload)
    }

    /// The arrays `to`, `x` and `y`. An array that the operation does not use is empty.
    fn split_arrays(memory: &mut ResidentMemory, plan: Plan, stride: usize) -> [&mut [u8]; 3] {
        let length = plan.bytes_per_chunk() * plan.chunk_count();
        let mut rest = memory.bytes();
        let mut next = |is_there: bool| {
            if !is_there {
                return Default::default();
            }
            let (array, behind) = std::mem::take(&mut rest).split_at_mut(stride);
            rest = behind;
            &mut array[plan.skew..plan.skew + length]
        };
        let count = plan.operation.array_count();
        let writes = plan.operation != Operation::Read;
        [next(writes), next(!writes || count > 1), next(count > 2)]
    }

    /// The memory of all arrays.
    pub(super) fn all_bytes(&mut self) -> &[u8] {
        self.memory.bytes()
    }

    fn fill_arrays(&mut self) {
        let plan = self.plan;
        let arrays = Self::split_arrays(&mut self.memory, plan, self.stride);
        for (number, array) in arrays.into_iter().enumerate() {
            for (word, place) in array.chunks_exact_mut(8).enumerate() {
                place.copy_from_slice(&plan.source(number, word as u64).to_le_bytes());
            }
        }
    }

    /// Runs a batch. The hot loop is that of the stream.
    pub(super) fn run_batch(&mut self, iterations: u64) {
        let chunk = self.plan.bytes_per_chunk();
        let constant = self.plan.constant_bits();
        let [to, x, y] = Self::split_arrays(&mut self.memory, self.plan, self.stride);
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
    pub(super) fn verify_last_batch(&mut self) -> std::result::Result<(), String> {
        self.verify_sum()?;
        for at in 0..self.marked.len() {
            let (distance, word) = self.marked[at];
            if distance < self.batch {
                self.verify_word(word)?;
            }
        }
        self.mark_words_to_verify();
        Ok(())
    }

    /// Verifies the sum of the words read in the last batch: they are consecutive numbers, whose sum has a closed form.
    fn verify_sum(&self) -> std::result::Result<(), String> {
        if self.plan.operation != Operation::Read {
            return Ok(());
        }
        let words = self.plan.bytes_per_chunk() as u64 / 8;
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

    /// Verifies that a word holds what the operation leaves after all visits of its chunk.
    fn verify_word(&mut self, word: u64) -> std::result::Result<(), String> {
        let visits = self.cursor.chunk_visits(word * 8 / self.plan.bytes_per_chunk() as u64);
        let (found, expected) = (self.read_word(word), self.plan.expected_word(word, visits));
        if found == expected {
            return Ok(());
        }
        Err(format!("word {word} holds {found:#x} where the operation leaves {expected:#x}: it was not done"))
    }

    /// Verifies the sum of the last batch and every written word.
    fn verify_all_words(&mut self) -> Result<()> {
        self.verify_sum().map_err(Error::Disproved)?;
        let (plan, words, cursor) = (self.plan, self.plan.bytes_per_chunk() as u64 / 8, self.cursor);
        let [to, ..] = Self::split_arrays(&mut self.memory, plan, self.stride);
        let wrong = to.chunks_exact(8).zip(0..).find_map(|(bytes, word)| {
            (u64_from_le_bytes(bytes) != plan.expected_word(word, cursor.chunk_visits(word / words)))
                .then_some(word)
        });
        wrong.map_or(Ok(()), |word| self.verify_word(word).map_err(Error::Disproved))
    }

    fn word_bytes_mut(&mut self, word: u64) -> &mut [u8] {
        let [to, ..] = Self::split_arrays(&mut self.memory, self.plan, self.stride);
        &mut to[word as usize * 8..][..8]
    }

    fn read_word(&mut self, word: u64) -> u64 {
        u64_from_le_bytes(self.word_bytes_mut(word))
    }

    /// Chooses a random word in each of a few chunks ahead, and sets it to a wrong value. The words are few, so that few
    /// lines enter a cache because of them. Words of an update keep their value, which shows the number of visits.
    fn mark_words_to_verify(&mut self) {
        self.marked.clear();
        if self.plan.operation == Operation::Read {
            return;
        }
        let (words, chunks) = (self.plan.bytes_per_chunk() as u64 / 8, self.plan.chunk_count() as u64);
        for distance in VERIFIED.into_iter().filter(|distance| *distance < chunks) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = self.cursor.chunk_ahead(distance) * words + (self.random >> 33) % words;
            if self.plan.operation != Operation::Update {
                let spoilt = !self.plan.expected_word(word, 0);
                self.word_bytes_mut(word).copy_from_slice(&spoilt.to_le_bytes());
            }
            self.marked.push((distance, word));
        }
    }
}

fn u64_from_le_bytes(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// The position in the arrays, from which the number of visits of each chunk follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    chunks: u64,
    /// Iterations until now.
    done: u64,
}

/// Consecutive chunks that are processed `passes` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) chunks: u64,
    pub(super) passes: u64,
}

impl Cursor {
    /// A cursor at the beginning of arrays of this many chunks.
    pub(super) fn new(chunks: u64) -> Self {
        Self { chunks: chunks.max(1), done: 0 }
    }

    /// The next chunk.
    pub(super) fn next_chunk(&self) -> u64 {
        self.done % self.chunks
    }

    /// The chunk at this distance after the next.
    pub(super) fn chunk_ahead(&self, distance: u64) -> u64 {
        (self.done + distance) % self.chunks
    }

    /// Advances by one stretch and subtracts its iterations from `left`. Returns `None` if no iteration is left.
    #[inline]
    pub(super) fn next(&mut self, left: &mut u64) -> Option<Stretch> {
        let from = self.next_chunk();
        let stretch = match *left {
            0 => return None,
            whole if from == 0 && whole >= self.chunks => {
                Stretch { from, chunks: self.chunks, passes: whole / self.chunks }
            }
            part => Stretch { from, chunks: part.min(self.chunks - from), passes: 1 },
        };
        let iterations = stretch.chunks * stretch.passes;
        *left -= iterations;
        self.done += iterations;
        Some(stretch)
    }

    /// The number of visits of a chunk.
    pub(super) fn chunk_visits(&self, chunk: u64) -> u64 {
        (self.done + self.chunks - 1 - chunk) / self.chunks
    }
}

#[cfg(test)]
mod tests;
