//! Allocations as [`Counting`] counts them, against an allocator of this test that counts by itself.
//!
//! # Invariants
//!
//! * **PASSED-ON**: every call goes to the system's allocator with the arguments that it came with, and its answer goes back.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use syscost_platform::allocation::{Counting, Counts, close_bracket, is_declared, open_bracket, take_counts};

static IS_ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Counts calls and bytes, and has no `realloc` of its own: the standard one allocates, copies and frees.
struct Own;

// SAFETY: PASSED-ON.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_ON.load(SeqCst) {
            CALLS.fetch_add(1, SeqCst);
            BYTES.fetch_add(layout.size(), SeqCst);
        }
        // SAFETY: PASSED-ON.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if IS_ON.load(SeqCst) {
            FREED.fetch_add(layout.size(), SeqCst);
        }
        // SAFETY: PASSED-ON.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting<Own> = Counting::new(Own);

/// The counts of this operation, which must be those of the test's own allocator.
fn counts_of<T>(name: &str, operation: impl FnOnce() -> T) -> Counts {
    [&CALLS, &BYTES, &FREED].into_iter().for_each(|count| count.store(0, SeqCst));
    take_counts();
    open_bracket();
    IS_ON.store(true, SeqCst);
    let value = black_box(operation());
    IS_ON.store(false, SeqCst);
    close_bracket();
    let counts = take_counts();
    let [calls, bytes, freed] = [&CALLS, &BYTES, &FREED].map(|count| count.load(SeqCst) as u64);
    assert_eq!((counts.allocations, counts.bytes, counts.brackets), (calls, bytes, 1), "{name}");
    assert!(counts.peak <= bytes && counts.peak >= bytes.saturating_sub(freed), "{name}: {counts:?}");
    drop(value);
    assert_eq!(take_counts(), Counts::default(), "{name}: what is outside of the bracket was counted");
    counts
}

#[test]
fn counts_are_those_of_another_allocator_on_ten_functions() {
    assert!(is_declared());
    let counts = |allocations, bytes, peak| Counts { brackets: 1, allocations, bytes, peak };
    assert_eq!(counts_of("nothing", || black_box(3) + 4), counts(0, 0, 0));
    assert_eq!(counts_of("box", || Box::new(7u64)), counts(1, 8, 8));
    assert_eq!(counts_of("box, dropped", || drop(black_box(Box::new(7u64)))), counts(1, 8, 8));
    assert_eq!(
        counts_of("push", || (0..4u32).fold(vec![], |mut all, n| {
            all.push(n);
            all
        })),
        counts(1, 16, 16)
    );
    // 4, 8 and 16 numbers: two times another size, each a block.
    let grown = counts_of("growth", || {
        (0..9u32).fold(vec![], |mut all, n| {
            all.push(n);
            all
        })
    });
    assert_eq!(grown, counts(3, 112, 64));
    let kept = String::from("a string that is copied");
    assert_eq!(counts_of("clone", || kept.clone()), counts(1, 23, 23));
    assert_eq!(counts_of("arc", || [Arc::new(5u64); 1].map(|one| (Arc::clone(&one), one))).allocations, 1);
    assert_eq!(counts_of("zeroed", || vec![0u8; black_box(100)]), counts(1, 100, 100));
    assert_eq!(counts_of("freed before", || drop(kept)), counts(0, 0, 0));
    counts_of("format", || format!("{} {:?}", black_box(3), black_box("text")));
    counts_of("hash map", || (0..100).map(|n| (n, n)).collect::<HashMap<_, _>>());
    counts_of("tree", || (0..100).map(|n| (n, n)).collect::<BTreeMap<_, _>>());
    let threads = counts_of("threads", || {
        std::thread::scope(|scope| drop([1, 2].map(|n| scope.spawn(move || vec![n; 1_000]))))
    });
    assert!(threads.bytes >= 8_000, "what other threads allocate belongs to the operation: {threads:?}");
}
