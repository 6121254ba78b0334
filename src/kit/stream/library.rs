//! The C library's `memcpy` and `memset`, one call per pass; and the ends of arrays that do not fill a block, by bytes and words: the
//! measured sizes have no such ends.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`: the bytes are within slices that the caller holds, and a mutable slice overlaps no
//!   other.
#![allow(unsafe_code)]

use super::{Arrays, Loop, Operation};
use std::hint::black_box;
use std::ops::Range;

/// The loop for this operation: `memset` to write, `memcpy` to copy, none for any other.
pub(super) fn find_loop(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::Write => Some(memset_loop),
        Operation::Copy => Some(memcpy_loop),
        _ => None,
    }
}

/// Stores the lowest byte of the constant.
#[inline(never)]
unsafe fn memset_loop(to: *mut u8, _: *const u8, _: *const u8, bytes: usize, passes: u64, byte: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE. `black_box` keeps the compiler from dropping a call whose result another overwrites.
        unsafe { libc::memset(black_box(to.cast()), (byte & 0xff) as i32, bytes) };
    }
    0
}

#[inline(never)]
unsafe fn memcpy_loop(to: *mut u8, x: *const u8, _: *const u8, bytes: usize, passes: u64, _: u64) -> u64 {
    for _ in 0..passes {
        // SAFETY: INSIDE, as in `memset_loop`.
        unsafe { libc::memcpy(black_box(to.cast()), black_box(x.cast()), bytes) };
    }
    0
}

/// Performs the operation on this part of the arrays. Returns the sum of the words for `Read`, otherwise 0.
pub(super) fn run_ragged(
    operation: Operation,
    arrays: &mut Arrays,
    part: Range<usize>,
    passes: u64,
    constant: u64,
) -> u64 {
    let real = f64::from_bits(constant);
    match operation {
        Operation::Read => {
            return arrays.x[part]
                .chunks(8)
                .map(word_from_bytes)
                .fold(0, u64::wrapping_add)
                .wrapping_mul(passes);
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
            update_words(arrays, part, |old, _, _| old.wrapping_add(step));
        }
        Operation::Scale => update_words(arrays, part, |_, x, _| (real * f64::from_bits(x)).to_bits()),
        Operation::Add => {
            update_words(arrays, part, |_, x, y| (f64::from_bits(x) + f64::from_bits(y)).to_bits())
        }
        Operation::Triad => {
            update_words(arrays, part, |_, x, y| (f64::from_bits(x) + real * f64::from_bits(y)).to_bits());
        }
    }
    0
}

/// Replaces each whole word of `to` by a function of the words of all arrays; an array that does not reach so far
/// counts as 0.
fn update_words(arrays: &mut Arrays, part: Range<usize>, f: impl Fn(u64, u64, u64) -> u64) {
    for at in part.clone().step_by(8).take(part.len() / 8) {
        let word_at = |array: &[u8]| array.get(at..at + 8).map_or(0, word_from_bytes);
        let new = f(word_at(arrays.to), word_at(arrays.x), word_at(arrays.y));
        arrays.to[at..at + 8].copy_from_slice(&new.to_le_bytes());
    }
}

/// The little-endian word of these bytes; fewer than eight are padded with zeroes.
pub(super) fn word_from_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
