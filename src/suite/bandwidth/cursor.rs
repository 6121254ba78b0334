//! The position of a stream in its arrays. One iteration is one chunk. Batches continue one another round and round,
//! so that in large arrays every batch finds chunks that were not used for long.

/// The position, and the number of visits of each chunk.
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
    /// The beginning of arrays of this many chunks.
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

    /// Advances by one stretch of the iterations that are left, and subtracts them.
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
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_visited_in_turn() {
        for chunks in [1, 2, 3, 7, 16] {
            let mut cursor = Cursor::new(chunks);
            let mut seen = vec![0; chunks as usize];
            for batch in [0, 1, 5, chunks, 3 * chunks + 2, 2] {
                let (mut left, before) = (batch, cursor.done);
                let mut count = 0;
                while let Some(stretch) = cursor.next(&mut left) {
                    assert!(stretch.from + stretch.chunks <= chunks);
                    for chunk in stretch.from..stretch.from + stretch.chunks {
                        seen[chunk as usize] += stretch.passes;
                    }
                    count += stretch.chunks * stretch.passes;
                }
                assert_eq!((count, cursor.done), (batch, before + batch));
                assert_eq!(cursor.next_chunk(), cursor.done % chunks);
                for (chunk, visits) in seen.iter().enumerate() {
                    assert_eq!(cursor.chunk_visits(chunk as u64), *visits, "{chunk} of {chunks}");
                }
            }
        }
    }

    #[test]
    fn a_round_is_one_stretch_and_a_single_chunk_is_many_passes() {
        let mut cursor = Cursor::new(4);
        let mut left = 9;
        assert_eq!(cursor.next(&mut left), Some(Stretch { from: 0, chunks: 4, passes: 2 }));
        assert_eq!(cursor.next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 1 }));
        assert_eq!((cursor.next(&mut left), cursor.next_chunk(), cursor.chunk_ahead(3)), (None, 1, 0));
        let mut left = 9;
        assert_eq!(Cursor::new(1).next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 9 }));
    }
}
