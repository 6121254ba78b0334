//! Loops over memory: reading, writing, copying and STREAM's arithmetic, by every means that a processor has.
//!
//! The loops themselves are in one file an architecture, all of one form, so that a reader can hold one against
//! another and against the disassembly. They are written in assembly, because a compiler that sees what a loop
//! does may do something else, and because a build that is not optimised then measures the same.
//!
//! # Invariants
//!
//! * **INSIDE**: a loop is given arrays of which all of its bytes lie within slices that the caller holds, those
//!   that it writes exclusively; what an operation does not use it does not touch.
//! * **OFFERED**: the instructions are those of a means that the processor was asked for.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod library;
mod ragged;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as here;
#[cfg(target_arch = "x86_64")]
use x86_64 as here;

pub use here::fence;

/// One turn of a loop does so many bytes of each array.
pub const BLOCK: usize = 512;
/// A non-temporal store writes a whole line, and must lie in one.
const LINE: usize = 64;

/// A loop: `passes` times over `bytes` of the arrays. What it answers is the sum of what it read, if it is to read.
type Loop =
    unsafe fn(to: *mut u8, x: *const u8, y: *const u8, bytes: usize, passes: u64, constant: u64) -> u64;

/// What is done with words of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The sum of x, as integers.
    Read,
    /// to = constant.
    Write,
    /// The same past the caches.
    WriteNonTemporal,
    /// to = x.
    Copy,
    /// The same past the caches.
    CopyNonTemporal,
    /// to = to + constant, as integers.
    Update,
    /// to = constant · x, as floating point.
    Scale,
    /// to = x + y, as floating point.
    Add,
    /// to = x + constant · y, as floating point.
    Triad,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::WriteNonTemporal,
        Self::Copy,
        Self::CopyNonTemporal,
        Self::Update,
        Self::Scale,
        Self::Add,
        Self::Triad,
    ];

    /// How many arrays it goes over.
    pub fn arrays(self) -> usize {
        match self {
            Self::Read | Self::Write | Self::WriteNonTemporal | Self::Update => 1,
            Self::Copy | Self::CopyNonTemporal | Self::Scale => 2,
            Self::Add | Self::Triad => 3,
        }
    }

    /// Whether it goes past the caches.
    pub fn is_non_temporal(self) -> bool {
        matches!(self, Self::WriteNonTemporal | Self::CopyNonTemporal)
    }
}

/// By what it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Registers of eight bytes.
    Scalar,
    /// Vectors of 16 bytes, which every x86-64 processor has.
    Sse2,
    /// Vectors of 32 bytes.
    Avx2,
    /// Vectors of 64 bytes.
    Avx512,
    /// Vectors of 16 bytes, which every AArch64 processor has.
    Neon,
    /// The instructions of x86 that repeat themselves, `rep movsb` and `rep stosb`.
    Strings,
    /// The C library, `memcpy` and `memset`.
    Library,
}

impl Means {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512, Self::Neon, Self::Strings, Self::Library];

    /// The widest vectors of this machine.
    pub fn widest() -> Self {
        let wide = [Self::Avx512, Self::Avx2, Self::Sse2, Self::Neon];
        wide.into_iter().find(|means| means.is_offered()).unwrap_or(Self::Scalar)
    }

    /// Whether this processor has it, and the kernel keeps its registers.
    pub fn is_offered(self) -> bool {
        matches!(self, Self::Scalar | Self::Library) || here::is_offered(self)
    }

    /// The name in a sentence.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Scalar => "registers of 8 bytes",
            Self::Sse2 => "SSE2 vectors of 16 bytes",
            Self::Avx2 => "AVX2 vectors of 32 bytes",
            Self::Avx512 => "AVX-512 vectors of 64 bytes",
            Self::Neon => "NEON vectors of 16 bytes",
            Self::Strings => "string instructions",
            Self::Library => "the C library",
        }
    }
}

/// What a stream goes over. What its operation does not use may be empty.
pub struct Arrays<'a> {
    /// What is written, or updated.
    pub to: &'a mut [u8],
    /// What is read.
    pub x: &'a [u8],
    /// What is read beside it.
    pub y: &'a [u8],
}

/// An operation by a means that this machine has.
#[derive(Clone, Copy)]
pub struct Stream {
    operation: Operation,
    means: Means,
    turns: Loop,
    asks_ahead: bool,
}

impl Stream {
    /// Chooses the loop; `None` where this machine lacks the means, or the means does not know the operation.
    pub fn new(operation: Operation, means: Means) -> Option<Self> {
        if !means.is_offered() {
            return None;
        }
        let turns = match means {
            Means::Library => library::turns(operation),
            _ => here::turns(operation, means),
        };
        turns.map(|turns| Self { operation, means, turns, asks_ahead: false })
    }

    /// The same for arrays that lie in memory: where there is such a loop, it asks ahead for lines that it will write, or
    /// read.
    pub fn of_memory(self) -> Self {
        let ahead = here::ahead(self.operation, self.means);
        Self { turns: ahead.unwrap_or(self.turns), asks_ahead: ahead.is_some(), ..self }
    }

    /// Whether it asks ahead.
    pub fn asks_ahead(&self) -> bool {
        self.asks_ahead
    }

    /// Goes over the arrays so many times, as far as the shortest of them reaches, and answers the sum of what was
    /// read if that is the operation: of words in little-endian order, a last one that is cut short filled up with
    /// zeroes. Operations that calculate leave a word that is cut short as it was.
    #[inline]
    pub fn run(&self, arrays: &mut Arrays, passes: u64, constant: u64) -> u64 {
        let bytes = self.length(arrays);
        let head = if self.operation.is_non_temporal() {
            arrays.to.as_ptr().align_offset(LINE).min(bytes)
        } else {
            0
        };
        let body = match self.means {
            Means::Library | Means::Strings => bytes,
            _ => (bytes - head) / BLOCK * BLOCK,
        };
        let mut sum = 0u64;
        if body > 0 && passes > 0 {
            let [x, y] = [arrays.x, arrays.y].map(|array| array.as_ptr().wrapping_add(head));
            let to = arrays.to.as_mut_ptr().wrapping_add(head);
            // Its first byte is the one that stands at `head` in a row of constants.
            let constant = constant.rotate_right(8 * (head as u32 % 8));
            // SAFETY: INSIDE: `length` is that of the shortest array in use. OFFERED: asked in `new`.
            sum = unsafe { (self.turns)(to, x, y, body, passes, constant) };
        }
        for part in [0..head, head + body..bytes] {
            if !part.is_empty() && passes > 0 {
                sum = sum.wrapping_add(ragged::run(self.operation, arrays, part, passes, constant));
            }
        }
        sum
    }

    fn length(&self, arrays: &Arrays) -> usize {
        let (to, x, y) = (arrays.to.len(), arrays.x.len(), arrays.y.len());
        match self.operation {
            Operation::Read => x,
            Operation::Write | Operation::WriteNonTemporal | Operation::Update => to,
            Operation::Copy | Operation::CopyNonTemporal | Operation::Scale => to.min(x),
            Operation::Add | Operation::Triad => to.min(x).min(y),
        }
    }
}

#[cfg(test)]
mod tests;
