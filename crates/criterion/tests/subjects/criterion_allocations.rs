//! A bench for Criterion whose allocator counts the allocations beside the times.
//!
//!     cargo run --release --example criterion_allocations -- --bench

use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;
use syscost_criterion as criterion;

use criterion::alloc::Counting;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

fn benches(c: &mut Criterion) {
    c.bench_function("nothing", |b| b.iter(|| black_box(3u64).wrapping_mul(5)));
    c.bench_function("a box", |b| b.iter(|| Box::new(black_box(7u64))));
    c.bench_function("a vector that grows", |b| {
        b.iter(|| {
            let mut all = Vec::new();
            (0..black_box(9u32)).for_each(|n| all.push(n));
            all
        })
    });
    // The input is made outside of the timed part, and the results are dropped outside of it too.
    c.bench_function("a box from an input", |b| {
        b.iter_batched(|| vec![1u8; 100], |bytes| (Box::new(bytes.len()), bytes), BatchSize::SmallInput);
    });
    c.bench_function("results that are kept", |b| b.iter_with_large_drop(|| vec![0u64; black_box(100)]));
    c.bench_function("its own clock", |b| {
        b.iter_custom(|iterations| {
            let start = Instant::now();
            (0..iterations).for_each(|_| drop(black_box(Box::new(1u8))));
            start.elapsed()
        });
    });
}

criterion_group!(all, benches);
criterion_main!(all);
