//! Where in its arrays a stream is. One iteration is one chunk; batches follow one another round and round, so that
//! of large arrays every batch finds what none has used for long.

/// A place, and how often each chunk was visited until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    chunks: u64,
    /// Iterations so far.
    done: u64,
}

/// Chunks that lie one behind the other, all done so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) chunks: u64,
    pub(super) passes: u64,
}

impl Walk {
    /// At the first of so many chunks.
    pub(super) fn new(chunks: u64) -> Self {
        Self { chunks: chunks.max(1), done: 0 }
    }

    /// The chunk that comes next.
    pub(super) fn at(&self) -> u64 {
        self.done % self.chunks
    }

    /// The chunk that comes so many after that.
    pub(super) fn ahead(&self, distance: u64) -> u64 {
        (self.done + distance) % self.chunks
    }

    /// Goes on by one stretch of the iterations that are left, and takes them off.
    #[inline]
    pub(super) fn next(&mut self, left: &mut u64) -> Option<Stretch> {
        let from = self.at();
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

    /// How often a chunk was visited.
    pub(super) fn visits(&self, chunk: u64) -> u64 {
        (self.done + self.chunks - 1 - chunk) / self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_visited_in_turn() {
        for chunks in [1, 2, 3, 7, 16] {
            let mut walk = Walk::new(chunks);
            let mut seen = vec![0; chunks as usize];
            for batch in [0, 1, 5, chunks, 3 * chunks + 2, 2] {
                let (mut left, before) = (batch, walk.done);
                let mut count = 0;
                while let Some(stretch) = walk.next(&mut left) {
                    assert!(stretch.from + stretch.chunks <= chunks);
                    for chunk in stretch.from..stretch.from + stretch.chunks {
                        seen[chunk as usize] += stretch.passes;
                    }
                    count += stretch.chunks * stretch.passes;
                }
                assert_eq!((count, walk.done), (batch, before + batch));
                assert_eq!(walk.at(), walk.done % chunks);
                for (chunk, visits) in seen.iter().enumerate() {
                    assert_eq!(walk.visits(chunk as u64), *visits, "{chunk} of {chunks}");
                }
            }
        }
    }

    #[test]
    fn a_round_is_one_stretch_and_a_single_chunk_is_many_passes() {
        let mut walk = Walk::new(4);
        let mut left = 9;
        assert_eq!(walk.next(&mut left), Some(Stretch { from: 0, chunks: 4, passes: 2 }));
        assert_eq!(walk.next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 1 }));
        assert_eq!((walk.next(&mut left), walk.at(), walk.ahead(3)), (None, 1, 0));
        let mut left = 9;
        assert_eq!(Walk::new(1).next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 9 }));
    }
}
