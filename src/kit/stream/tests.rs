use super::*;
use crate::statistic::Random;

/// Sizes in bytes around a word, a line, a block, several of these, and four pages once and twice with a remainder.
const SIZES: [usize; 18] =
    [0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1023, 1032, 1576, 4096, 5243, 16_384, 36_040];
/// Offsets in bytes of the three arrays.
const STARTS: [[usize; 3]; 4] = [[0, 0, 0], [1, 2, 3], [8, 16, 24], [63, 33, 7]];
const GUARD: u8 = 0xa5;
const MEANS: [Means; 7] =
    [Means::Scalar, Means::Sse2, Means::Avx2, Means::Avx512, Means::Neon, Means::Strings, Means::Library];

/// An array between guard bytes.
struct Guarded {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Guarded {
    fn new(start: usize, length: usize, fill: impl Fn(usize) -> u64) -> Self {
        let mut bytes = vec![GUARD; length + 256];
        let from = bytes.as_ptr().align_offset(64) + start;
        for (at, byte) in bytes[from..from + length].iter_mut().enumerate() {
            *byte = fill(at / 8).to_le_bytes()[at % 8];
        }
        Self { bytes, from, length }
    }

    fn inside(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }

    fn words(&mut self) -> Vec<u64> {
        self.inside().chunks(8).map(library::word_from_bytes).collect()
    }

    fn is_intact_around(&self) -> bool {
        let (before, rest) = self.bytes.split_at(self.from);
        before.iter().chain(&rest[self.length..]).all(|byte| *byte == GUARD)
    }
}

/// The expected word, by a plain second implementation.
fn expected(operation: Operation, [to, x, y]: [u64; 3], passes: u64, constant: u64) -> u64 {
    let real = f64::from_bits;
    match operation {
        Operation::Read => to,
        Operation::Write | Operation::WriteNonTemporal => constant,
        Operation::Copy | Operation::CopyNonTemporal => x,
        Operation::Update => (0..passes).fold(to, |word, _| word.wrapping_add(constant)),
        Operation::Scale => (real(constant) * real(x)).to_bits(),
        Operation::Add => (real(x) + real(y)).to_bits(),
        Operation::Triad => (real(x) + real(constant) * real(y)).to_bits(),
    }
}

fn calculates(operation: Operation) -> bool {
    matches!(operation, Operation::Update | Operation::Scale | Operation::Add | Operation::Triad)
}

fn every_stream() -> impl Iterator<Item = (Operation, Means, Stream)> {
    let all = Operation::ALL.into_iter().flat_map(|o| MEANS.map(|m| (o, m)));
    let made = all.filter_map(|(operation, means)| Some((operation, means, Stream::new(operation, means)?)));
    made.flat_map(|(operation, means, stream)| {
        let ahead = Some(stream.with_prefetch()).filter(Stream::has_prefetch);
        [stream].into_iter().chain(ahead).map(move |stream| (operation, means, stream))
    })
}

/// Runs a stream on fresh arrays and verifies every byte. Returns the sum.
fn sum(
    (operation, means, stream): (Operation, Means, Stream),
    bytes: usize,
    starts: [usize; 3],
    passes: u64,
) -> u64 {
    let mut random = Random::new(bytes as u64 + 1);
    let reals: Vec<_> = (0..=bytes / 8).map(|_| random.number_below(1 << 20) as f64 / 8.0).collect();
    let word = |array: usize| {
        let reals = &reals;
        move |at: usize| (reals[at] + array as f64).to_bits()
    };
    let constant = if means == Means::Library || means == Means::Strings {
        u64::from_ne_bytes([0x5c; 8])
    } else if calculates(operation) && operation != Operation::Update {
        1.5f64.to_bits()
    } else {
        0x0123_4567_89ab_cdef
    };
    let [mut to, mut x, mut y] = [0, 1, 2].map(|array| Guarded::new(starts[array], bytes, word(array)));
    let before = [to.words(), x.words(), y.words()];
    let mut arrays = Arrays { to: to.inside(), x: x.inside(), y: y.inside() };
    let sum = stream.run(&mut arrays, passes, constant);
    let what = format!("{operation:?} by {means:?}, {bytes} bytes from {starts:?}, {passes} passes");
    assert!([&to, &x, &y].iter().all(|field| field.is_intact_around()), "{what}: outside");
    assert_eq!([x.words(), y.words()], before[1..], "{what}: sources");
    for (at, word) in to.words().into_iter().enumerate() {
        let cut = bytes - 8 * at < 8;
        let olds = [before[0][at], before[1][at], before[2][at]];
        let mut wanted = if passes == 0 { olds[0] } else { expected(operation, olds, passes, constant) };
        if cut && calculates(operation) {
            wanted = olds[0];
        } else if cut {
            wanted &= (1 << (8 * (bytes % 8))) - 1;
        }
        assert_eq!(word, wanted, "{what}: word {at}");
    }
    let read = before[1].iter().fold(0u64, |sum, word| sum.wrapping_add(word.wrapping_mul(passes)));
    assert_eq!(sum, if operation == Operation::Read { read } else { 0 }, "{what}: sum");
    sum
}

#[test]
fn every_means_has_the_expected_result_at_every_size_and_offset() {
    for stream in every_stream() {
        for bytes in SIZES {
            for starts in STARTS {
                for passes in [0, 1, 3] {
                    sum(stream, bytes, starts, passes);
                }
            }
        }
    }
}

#[test]
fn every_vector_has_every_operation() {
    let is_there = |means| move |operation: &Operation| Stream::new(*operation, means).is_some();
    assert!(Operation::ALL.iter().all(is_there(Means::widest())), "{:?}", Means::widest());
    assert!([Operation::Read, Operation::Write].iter().all(is_there(Means::Scalar)));
    assert_ne!(Means::widest(), Means::Scalar);
}

#[test]
fn a_means_of_another_processor_is_none() {
    let other = if cfg!(target_arch = "x86_64") { Means::Neon } else { Means::Avx2 };
    assert!(!other.is_offered() && Stream::new(Operation::Read, other).is_none());
}

#[test]
fn the_shortest_array_bounds_all() {
    let [mut to, mut x] = [Guarded::new(0, 4096, |_| 1), Guarded::new(0, 1000, |at| at as u64)];
    let copy = Stream::new(Operation::Copy, Means::widest()).expect("every machine copies");
    copy.run(&mut Arrays { to: to.inside(), x: x.inside(), y: &[] }, 1, 0);
    assert_eq!((to.words()[124], to.words()[125]), (124, 1));
}
