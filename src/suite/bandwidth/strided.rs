//! Reading and writing all bytes of a large array with a stride: the bandwidth that remains where no prefetcher guesses
//! the next line. The walk visits each line once a round, one stride after another, column by column. Even columns come before odd
//! ones: a processor that fetches lines in pairs has evicted the other line of a pair again when its turn comes.

use super::{claim_no_faults, memory_module};
use crate::kit::contract::*;
use crate::kit::evidence::WithEvidence;
use crate::kit::stream::fence;
use crate::platform::limit;
use crate::platform::resident::{Pages, ResidentMemory};
use std::hint::black_box;

/// Bytes of the array, and of the array of a smoke run.
const BYTES: usize = 256 << 20;
const SMOKE: usize = 2 << 20;
/// Bytes of an iteration, and its lines.
const ITERATION: u64 = 16 << 10;
const LINES: u64 = ITERATION / LINE as u64;
/// The strides, in bytes. The first reads in order. Prefetchers of current cores follow strides within a page; the
/// largest strides leave the page with every line.
const STRIDES: [(&str, usize); 8] = [
    ("64B", 64),
    ("128B", 128),
    ("256B", 256),
    ("512B", 512),
    ("1KiB", 1 << 10),
    ("2KiB", 2 << 10),
    ("4KiB", 4 << 10),
    ("8KiB", 8 << 10),
];
/// The only stride that is measured at default scale, in bytes.
const USUAL: usize = 4 << 10;
/// The integer that is written.
const PATTERN: u64 = 0x5c5c_5c5c_5c5c_5c5c;
/// Distances from the beginning of a batch to the iterations in which one word is spoilt (set to a wrong value) beforehand.
const SPOILT: [u64; 6] = [0, 3, 15, 63, 255, 1023];

/// What is done to each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Read,
    Write,
}

pub(super) fn cases() -> impl Iterator<Item = Case> {
    [Work::Read, Work::Write].into_iter().flat_map(|work| STRIDES.map(|row| stride_case(work, row)))
}

fn stride_case(work: Work, (name, stride): (&str, usize)) -> Case {
    let (what, words) = match work {
        Work::Read => ("read", "all words added up"),
        Work::Write => ("write", "a constant stored"),
    };
    let title = format!("{words}, lines {name} apart until all of 256MiB were visited");
    let set_up = set_up(move |place| strided_subject(work, stride, place));
    let mut case = Case::new(format!("{what}-strided-256MiB/{name}"), title, set_up)
        .claim(Claim::Checked(TOUCHED))
        .claim(Claim::Regime(claim_no_faults))
        .claim(Claim::Linear)
        .derived_figure("bandwidth", Rule::Bandwidth(ITERATION))
        .derived_figure("cycle", Rule::BytesPerCycle(ITERATION))
        .predict(ITERATION as f64 / 2.0, 0.0, "ten lines wait for memory at a time, for 300 cycles each")
        .shares_memory();
    if let Ok((of, _)) = memory_module::bandwidth_limit() {
        case = case.derived_figure("share", Rule::Share { bytes: ITERATION, on_all: false, of });
    }
    if stride == USUAL { case } else { case.need(FULL_SCALE) }
}

const TOUCHED: &str = "every byte that counts was touched: the words read have the sum of their closed form, and each \
                       word of the first round, and those spoilt since, hold what was to be written";

/// # Errors
/// Too little memory, or a word is wrong after the first round.
fn strided_subject(work: Work, stride: usize, place: &Place) -> Result<impl Subject + use<>> {
    let bytes = if place.scale == Scale::Smoke { SMOKE } else { BYTES };
    limit::check_half_of_memory(bytes as u64).map_err(Error::Missing)?;
    let mut strided = Strided::new(work, bytes, stride)?;
    let description = strided.description();
    let inner = move |n: u64, clock: &Clock| -> Result<Ticks> {
        let ticks = clock.time(|| strided.visit_lines(n));
        strided.verify_batch().map_err(Error::Disproved).map(|()| ticks)
    };
    Ok(WithEvidence::new(inner, [description]))
}

/// The memory and the position in its order.
struct Strided {
    work: Work,
    order: StrideOrder,
    memory: ResidentMemory,
    /// Lines visited until now.
    done: u64,
    /// The value of `done` when the last batch began, and the sum that the batch read.
    begun: u64,
    sum: u64,
    /// Spoilt words: the number of lines after which the next batch must have written one, and its index.
    spoilt: Vec<(u64, usize)>,
    random: u64,
}

impl Strided {
    /// Numbers all words, visits each line once, and verifies every word.
    fn new(work: Work, bytes: usize, stride: usize) -> Result<Self> {
        let memory = ResidentMemory::new(bytes, Pages::Huge)?;
        let order = StrideOrder { lines: (bytes / LINE) as u64, stride: (stride / LINE) as u64 };
        let (done, begun, sum, random) = (0, 0, 0, 1);
        let mut strided = Self { work, order, memory, done, begun, sum, spoilt: Vec::new(), random };
        for (word, place) in strided.memory.bytes().chunks_exact_mut(8).enumerate() {
            place.copy_from_slice(&(word as u64).to_le_bytes());
        }
        strided.visit_lines(order.lines / LINES);
        strided.verify_all_words().and_then(|()| strided.verify_batch()).map_err(Error::Disproved)?;
        Ok(strided)
    }

    fn description(&self) -> String {
        let kib = (self.order.lines * LINE as u64) >> 10;
        let stride = self.order.stride * LINE as u64;
        format!("word by word in lines {stride} bytes apart, on {kib} KiB in huge pages of 2 MiB")
    }

    /// Visits the lines of this many iterations.
    fn visit_lines(&mut self, iterations: u64) {
        let (order, work) = (self.order, self.work);
        let memory = self.memory.bytes();
        self.begun = self.done;
        let (end, mut sum) = (self.done + iterations * LINES, 0u64);
        while self.done < end {
            let segment = order.segment_at(self.done % order.lines, end - self.done);
            let from = &mut memory[segment.first as usize * LINE..];
            let (stride, lines) = (order.stride as usize * LINE, segment.lines as usize);
            match work {
                Work::Read => sum = sum.wrapping_add(sum_strided_words(from, stride, lines)),
                Work::Write => store_strided(from, stride, lines, black_box(PATTERN)),
            }
            self.done += segment.lines;
        }
        fence();
        self.sum = sum;
    }

    /// Verifies the last batch, untimed, and spoils words of the next.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn verify_batch(&mut self) -> std::result::Result<(), String> {
        match self.work {
            Work::Read => self.verify_sum(),
            Work::Write => {
                let visited = self.done - self.begun;
                for (lines, word) in std::mem::take(&mut self.spoilt) {
                    if lines <= visited {
                        self.verify_word(word)?;
                    }
                }
                self.spoil_words_ahead();
                Ok(())
            }
        }
    }

    /// Verifies the sum that the last batch read against its closed form.
    fn verify_sum(&self) -> std::result::Result<(), String> {
        let (mut at, mut expected) = (self.begun, 0u64);
        while at < self.done {
            let segment: Segment = self.order.segment_at(at % self.order.lines, self.done - at);
            expected = expected.wrapping_add(self.order.segment_sum(segment));
            at += segment.lines;
        }
        let (sum, lines) = (self.sum, self.done - self.begun);
        if sum == expected {
            return Ok(());
        }
        Err(format!("the sum of the words of {lines} lines is {sum:#x} and should be {expected:#x}"))
    }

    fn verify_all_words(&mut self) -> std::result::Result<(), String> {
        let words = self.memory.bytes().len() / 8;
        if self.work == Work::Read { Ok(()) } else { (0..words).try_for_each(|word| self.verify_word(word)) }
    }

    fn verify_word(&mut self, word: usize) -> std::result::Result<(), String> {
        let found = u64::from_le_bytes(self.word_bytes(word).try_into().unwrap_or_default());
        if found == PATTERN {
            return Ok(());
        }
        Err(format!(
            "word {word} holds {found:#x} where {PATTERN:#x} was to be written: the line was left out"
        ))
    }

    fn word_bytes(&mut self, word: usize) -> &mut [u8] {
        &mut self.memory.bytes()[word * 8..][..8]
    }

    /// Sets one word to a wrong value in each of a few iterations ahead: few, so that few lines enter a cache because of it.
    fn spoil_words_ahead(&mut self) {
        let order = self.order;
        for distance in SPOILT.into_iter().filter(|distance| (distance + 1) * LINES <= order.lines) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let within = self.random >> 33;
            let line = order.line_at((self.done + distance * LINES + within % LINES) % order.lines);
            let word = line as usize * 8 + (within / LINES % 8) as usize;
            self.word_bytes(word).copy_from_slice(&(!PATTERN).to_le_bytes());
            self.spoilt.push(((distance + 1) * LINES, word));
        }
    }
}

/// The sum of all words of this number of lines, `stride` bytes apart, the first at the beginning.
#[inline(never)]
fn sum_strided_words(memory: &[u8], stride: usize, lines: usize) -> u64 {
    let line = |from: &[u8]| {
        let words =
            from[..LINE].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        words.fold(0, u64::wrapping_add)
    };
    memory.chunks(stride).take(lines).map(line).fold(0, u64::wrapping_add)
}

/// Stores this constant in all words of this number of lines.
#[inline(never)]
fn store_strided(memory: &mut [u8], stride: usize, lines: usize, constant: u64) {
    for from in memory.chunks_mut(stride).take(lines) {
        from[..LINE].chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&constant.to_le_bytes()));
    }
}

/// Size of a cache line, bytes.
pub(super) const LINE: usize = 64;

/// The lines of some memory and the stride, in lines. The stride is a power of two and divides their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StrideOrder {
    pub(super) lines: u64,
    pub(super) stride: u64,
}

/// Consecutive lines of one column, which lie a stride apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) lines: u64,
}

impl StrideOrder {
    /// Lines of a column.
    fn lines_per_column(self) -> u64 {
        self.lines / self.stride
    }

    /// The line at this position of the order.
    pub(super) fn line_at(self, position: u64) -> u64 {
        let (turn, row) = (position / self.lines_per_column(), position % self.lines_per_column());
        let even = self.stride.div_ceil(2);
        let column = if turn < even { 2 * turn } else { 2 * (turn - even) + 1 };
        row * self.stride + column
    }

    /// The segment that begins at this position and has at most this number of lines.
    #[inline]
    pub(super) fn segment_at(self, position: u64, most: u64) -> Segment {
        let left = self.lines_per_column() - position % self.lines_per_column();
        Segment { first: self.line_at(position), lines: most.min(left) }
    }

    /// The sum of the words of a segment, if each word holds its number.
    pub(super) fn segment_sum(self, segment: Segment) -> u64 {
        // A line has eight words, whose numbers are eight times the line's number plus 0 to 7.
        let Segment { first, lines } = segment;
        let sum_of_lines = u128::from(lines) * u128::from(first)
            + u128::from(self.stride) * (u128::from(lines) * u128::from(lines.max(1) - 1) / 2);
        (64 * sum_of_lines + 28 * u128::from(lines)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::value_or_skip;

    const SMALL: usize = 256 << 10;

    #[test]
    fn batches_of_any_length_are_proven_at_every_stride() {
        for (_, stride) in STRIDES {
            for work in [Work::Read, Work::Write] {
                let Some(mut strided) = value_or_skip(Strided::new(work, SMALL, stride)) else { return };
                for n in [0, 1, 5, 16, 33, 2] {
                    strided.visit_lines(n);
                    assert_eq!(strided.verify_batch(), Ok(()), "{work:?} {stride} {n}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_left_out_is_noticed() {
        for work in [Work::Read, Work::Write] {
            let Some(mut strided) = value_or_skip(Strided::new(work, SMALL, USUAL)) else { return };
            strided.visit_lines(1);
            strided.verify_batch().expect("proven");
            // It counts an iteration whose lines were not visited, among them that of a spoilt word.
            strided.begun = strided.done;
            strided.done += LINES;
            strided.sum = 0;
            assert!(strided.verify_batch().is_err(), "{work:?}");
        }
    }

    #[test]
    fn every_line_is_visited_once_a_round_at_every_stride() {
        for stride in [1, 2, 4, 8, 128] {
            let order = StrideOrder { lines: 1024, stride };
            let mut seen: Vec<_> = (0..1024).map(|position| order.line_at(position)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..1024), "{stride}");
        }
    }

    #[test]
    fn the_other_line_of_a_pair_is_visited_half_a_round_later() {
        let order = StrideOrder { lines: 1024, stride: 16 };
        let at = |line| (0..1024).position(|position| order.line_at(position) == line);
        for line in [0, 6, 512] {
            assert_eq!(at(line + 1).zip(at(line)).map(|(odd, even)| odd - even), Some(512));
        }
        assert_eq!(order.line_at(1), 16);
    }

    #[test]
    fn the_closed_form_is_the_sum_of_the_words() {
        for stride in [1, 2, 64] {
            let order = StrideOrder { lines: 256, stride };
            let mut position = 3;
            while position < 256 {
                let segment = order.segment_at(position, 7);
                let lines = (0..segment.lines).map(|row| segment.first + row * stride);
                let words: u64 = lines.flat_map(|line| line * 8..line * 8 + 8).sum();
                assert_eq!(order.segment_sum(segment), words, "{stride} {position}");
                position += segment.lines;
            }
        }
    }
}
