//! The order in which a strided walk visits the lines of its memory: each once a round, one stride after another, column
//! by column. Even columns come before odd ones: a processor that fetches lines in pairs has lost the other of a pair
//! again when its turn comes.

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
        // Eight words in a line: their numbers are eight times the line's and 0 to 7.
        let Segment { first, lines } = segment;
        let sum_of_lines = u128::from(lines) * u128::from(first)
            + u128::from(self.stride) * (u128::from(lines) * u128::from(lines.max(1) - 1) / 2);
        (64 * sum_of_lines + 28 * u128::from(lines)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_other_line_of_a_pair_comes_half_a_round_later() {
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
