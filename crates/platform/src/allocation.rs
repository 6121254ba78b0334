//! A global allocator that counts what is allocated, in batches that are not timed.
//!
//! The counts cover the whole process, not one thread: work that an operation hands to its threads belongs to it, and a
//! block is often freed by another thread than the one that allocated it. A thread that is handed work before the end of a
//! bracket sees that counting is on, since the handover orders the memory accesses. While counting is off, an allocation
//! costs one relaxed load more.
//!
//! # Invariants
//!
//! * **PASSED-ON**: every call reaches the inner allocator with unchanged arguments, and its result reaches the caller
//!   unchanged. The caller therefore promises exactly what the inner allocator requires. Counting touches no block,
//!   allocates nothing and does not panic.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static BRACKETS: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes allocated minus bytes freed since the bracket was opened; negative if older blocks are freed in it.
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// An allocator around another one. A bench that declares it as the global allocator reports, beside its times, the
/// allocations of an iteration, their bytes and the peak of live bytes:
///
/// ```
/// use std::alloc::System;
/// use syscost_platform::allocation::Counting;
///
/// #[global_allocator]
/// static ALLOCATOR: Counting<System> = Counting::new(System);
/// # fn main() {}
/// ```
///
/// Allocations are counted in batches that are not timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting<A>(A);

impl<A> Counting<A> {
    /// Counts what this allocator allocates.
    pub const fn new(allocator: A) -> Self {
        Self(allocator)
    }
}

// While counting is off, each function ends with the call of the inner allocator, a tail call.
// SAFETY: PASSED-ON.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            // SAFETY: PASSED-ON.
            return count_block(unsafe { self.0.alloc(layout) }, layout.size(), 0);
        }
        // SAFETY: PASSED-ON.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            // SAFETY: PASSED-ON.
            return count_block(unsafe { self.0.alloc_zeroed(layout) }, layout.size(), 0);
        }
        // SAFETY: PASSED-ON.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            // SAFETY: PASSED-ON.
            return count_block(unsafe { self.0.realloc(block, layout, bytes) }, bytes, layout.size());
        }
        // SAFETY: PASSED-ON.
        unsafe { self.0.realloc(block, layout, bytes) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if IS_COUNTING.load(Relaxed) {
            LIVE.fetch_sub(layout.size() as i64, Relaxed);
        }
        // SAFETY: PASSED-ON.
        unsafe { self.0.dealloc(block, layout) };
    }
}

/// Counts a block of `bytes` that replaces one of `freed` bytes, and returns it. A null block is not counted.
#[cold]
#[inline(never)]
fn count_block(block: *mut u8, bytes: usize, freed: usize) -> *mut u8 {
    if !block.is_null() {
        let grown = bytes as i64 - freed as i64;
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
        let live = LIVE.fetch_add(grown, Relaxed) + grown;
        PEAK.fetch_max(live, Relaxed);
    }
    block
}

/// What was allocated between [`open_bracket`] and [`close_bracket`], in all brackets since the last [`take_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of brackets.
    pub brackets: u64,
    /// Number of blocks that were allocated. A block that is given another size counts as a new one.
    pub allocations: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// The most bytes that a bracket had allocated and not yet freed.
    pub peak: u64,
}

/// Opens a bracket: allocations are counted from here on.
pub fn open_bracket() {
    BRACKETS.fetch_add(1, Relaxed);
    LIVE.store(0, Relaxed);
    IS_COUNTING.store(true, Relaxed);
}

/// Closes the bracket: counting stops.
pub fn close_bracket() {
    IS_COUNTING.store(false, Relaxed);
}

/// Returns the counts so far and resets them. Closes a bracket that a panic left open.
pub fn take_counts() -> Counts {
    close_bracket();
    Counts {
        brackets: BRACKETS.swap(0, Relaxed),
        allocations: ALLOCATIONS.swap(0, Relaxed),
        bytes: BYTES.swap(0, Relaxed),
        peak: PEAK.swap(0, Relaxed).max(0) as u64,
    }
}

/// Whether the global allocator of this program is a [`Counting`]. Resets the counts.
pub fn is_declared() -> bool {
    open_bracket();
    drop(black_box(Box::new(0u8)));
    take_counts().allocations > 0
}
