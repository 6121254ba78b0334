//! The ends that are no whole block, byte by byte and word by word. Nothing of a measured size is one.

use super::{Arrays, Operation};
use std::ops::Range;

/// Does to this part of the arrays what a loop does to the rest.
pub(super) fn run(
    operation: Operation,
    arrays: &mut Arrays,
    part: Range<usize>,
    passes: u64,
    constant: u64,
) -> u64 {
    let real = f64::from_bits(constant);
    match operation {
        Operation::Read => {
            return arrays.x[part].chunks(8).map(word).fold(0, u64::wrapping_add).wrapping_mul(passes);
        }
        Operation::Write | Operation::WriteNonTemporal => {
            let bytes = constant.to_le_bytes();
            part.for_each(|at| arrays.to[at] = bytes[at % 8]);
        }
        Operation::Copy | Operation::CopyNonTemporal => {
            arrays.to[part.clone()].copy_from_slice(&arrays.x[part]);
        }
        Operation::Update => {
            let step = constant.wrapping_mul(passes);
            each(arrays, part, |old, _, _| old.wrapping_add(step));
        }
        Operation::Scale => each(arrays, part, |_, x, _| (real * f64::from_bits(x)).to_bits()),
        Operation::Add => each(arrays, part, |_, x, y| (f64::from_bits(x) + f64::from_bits(y)).to_bits()),
        Operation::Triad => {
            each(arrays, part, |_, x, y| (f64::from_bits(x) + real * f64::from_bits(y)).to_bits());
        }
    }
    0
}

/// Calculates each whole word anew from what was there and what the other arrays hold, if they reach so far.
fn each(arrays: &mut Arrays, part: Range<usize>, f: impl Fn(u64, u64, u64) -> u64) {
    for at in part.clone().step_by(8).take(part.len() / 8) {
        let of = |array: &[u8]| array.get(at..at + 8).map_or(0, word);
        let new = f(of(arrays.to), of(arrays.x), of(arrays.y));
        arrays.to[at..at + 8].copy_from_slice(&new.to_le_bytes());
    }
}

/// The word that these bytes are, in little-endian order; fewer than eight are filled up with zeroes.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
