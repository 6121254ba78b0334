//! Loops over memory: reading, writing, copying and STREAM's arithmetic, with each kind of instructions of a processor.
//!
//! The loops are in one file per architecture and vector width, all in one form, so that they can be compared with
//! each other and with the disassembly. They are in assembly because a compiler may replace a loop that it
//! understands, and because an unoptimised build then measures the same.
//!
//! # Invariants
//!
//! * **INSIDE**: all bytes that a loop accesses are within slices that the caller holds, exclusively if it writes
//!   them. A loop does not access arrays that its operation does not use.
//! * **OFFERED**: the processor has reported that it has the instructions of the loop.
#![allow(unsafe_code)]

/// Defines `turns`, which finds the loop of an operation among the nine of a module.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! nine_turns {
    ($visibility:vis) => {
        $visibility fn turns(operation: Operation) -> Loop {
            match operation {
                Operation::Read => read,
                Operation::Write => write,
                Operation::WriteNonTemporal => write_non_temporal,
                Operation::Copy => copy,
                Operation::CopyNonTemporal => copy_non_temporal,
                Operation::Update => update,
                Operation::Scale => scale,
                Operation::Add => add,
                Operation::Triad => triad,
            }
        }
    };
}

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod library;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as here;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable as here;
#[cfg(target_arch = "x86_64")]
use x86_64 as here;

pub use here::fence;

/// Bytes of each array that one turn of a loop processes.
pub const BLOCK: usize = 512;
/// Bytes of a cache line. A non-temporal store must lie within one.
const LINE: usize = 64;

/// A loop: `passes` times over `bytes` of the arrays. It returns the sum of the words if its operation is to read.
type Loop =
    unsafe fn(to: *mut u8, x: *const u8, y: *const u8, bytes: usize, passes: u64, constant: u64) -> u64;

/// An operation on words of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The sum of `x`, as integers.
    Read,
    /// to = constant.
    Write,
    /// to = constant, past the caches.
    WriteNonTemporal,
    /// to = x.
    Copy,
    /// to = x, past the caches.
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
    /// All operations, for tests of each.
    #[cfg(test)]
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

    /// The number of arrays that it uses.
    pub fn array_count(self) -> usize {
        match self {
            Self::Read | Self::Write | Self::WriteNonTemporal | Self::Update => 1,
            Self::Copy | Self::CopyNonTemporal | Self::Scale => 2,
            Self::Add | Self::Triad => 3,
        }
    }

    /// Whether it stores past the caches.
    pub fn is_non_temporal(self) -> bool {
        matches!(self, Self::WriteNonTemporal | Self::CopyNonTemporal)
    }
}

/// The kind of instructions.
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
    /// The repeated string instructions of x86, `rep movsb` and `rep stosb`.
    Strings,
    /// The C library, `memcpy` and `memset`.
    Library,
}

impl Means {
    /// The widest vectors of this machine.
    pub fn widest() -> Self {
        let wide = [Self::Avx512, Self::Avx2, Self::Sse2, Self::Neon];
        wide.into_iter().find(|means| means.is_offered()).unwrap_or(Self::Scalar)
    }

    /// Whether this processor has the instructions and the kernel saves their registers.
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

/// The arrays of a stream. An array that its operation does not use may be empty.
pub struct Arrays<'a> {
    /// Written or updated.
    pub to: &'a mut [u8],
    /// Read.
    pub x: &'a [u8],
    /// Read by operations of three arrays.
    pub y: &'a [u8],
}

/// An operation and the loop that performs it on this machine.
#[derive(Clone, Copy)]
pub struct Stream {
    operation: Operation,
    means: Means,
    turns: Loop,
    prefetches: bool,
}

impl Stream {
    /// Chooses the loop; `None` if this machine lacks the means, or the means has no loop for the operation.
    pub fn new(operation: Operation, means: Means) -> Option<Self> {
        if !means.is_offered() {
            return None;
        }
        let turns = match means {
            Means::Library => library::find_loop(operation),
            _ => here::turns(operation, means),
        };
        turns.map(|turns| Self { operation, means, turns, prefetches: false })
    }

    /// Replaces the loop by one that prefetches the lines it will write or read, if there is such a loop. For arrays in
    /// main memory.
    pub fn with_prefetch(self) -> Self {
        let ahead = here::ahead(self.operation, self.means);
        Self { turns: ahead.unwrap_or(self.turns), prefetches: ahead.is_some(), ..self }
    }

    /// Whether the loop prefetches.
    pub fn has_prefetch(&self) -> bool {
        self.prefetches
    }

    /// Performs the operation `passes` times on the common length of the arrays. [`Operation::Read`] returns the sum
    /// of the little-endian words, of which an incomplete last one is padded with zeroes; the others return 0.
    /// Operations that calculate do not change an incomplete last word.
    #[inline]
    pub fn run(&self, arrays: &mut Arrays, passes: u64, constant: u64) -> u64 {
        let bytes = self.common_length(arrays);
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
            // The loop begins at `head`, so its constant begins with the byte that belongs there.
            let constant = constant.rotate_right(8 * (head as u32 % 8));
            // SAFETY: INSIDE: `head + body` is at most the length of the shortest array in use. OFFERED: verified in `new`.
            sum = unsafe { (self.turns)(to, x, y, body, passes, constant) };
        }
        for part in [0..head, head + body..bytes] {
            if !part.is_empty() && passes > 0 {
                sum = sum.wrapping_add(library::run_ragged(self.operation, arrays, part, passes, constant));
            }
        }
        sum
    }

    /// Length in bytes of the shortest array that the operation uses.
    fn common_length(&self, arrays: &Arrays) -> usize {
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
