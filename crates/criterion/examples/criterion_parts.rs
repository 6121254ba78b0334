//! A bench as it is written for Criterion, with every part of its interface. Only `Cargo.toml` names this crate instead.
//!
//!     cargo run --release --example criterion_parts -- --bench

#[path = "shared/polling_executor.rs"]
mod polling_executor;

use polling_executor::Polling;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};
use syscost_criterion as criterion;

use criterion::measurement::WallTime;
use criterion::{
    AxisScale, BatchSize, BenchmarkGroup, BenchmarkId, Criterion, PlotConfiguration, SamplingMode,
    Throughput, criterion_group, criterion_main,
};

fn hash(word: &[u8]) -> u64 {
    word.iter().fold(14_695_981_039_346_656_037, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    })
}

fn loops(c: &mut Criterion) {
    c.bench_function("hash of a word", |b| b.iter(|| hash(black_box(b"a word to hash"))));
    c.bench_with_input(BenchmarkId::new("sort", 64), &64u32, |b, &length| {
        let numbers: Vec<u32> = (0..length).map(|at| at.wrapping_mul(2_654_435_761)).collect();
        b.iter_batched(|| numbers.clone(), |mut numbers| numbers.sort_unstable(), BatchSize::SmallInput);
    });
}

fn inputs(group: &mut BenchmarkGroup<'_, WallTime>) {
    for size in [16usize, 256] {
        let bytes = vec![7u8; size];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_with_input(BenchmarkId::from_parameter(size), &bytes[..], |b, bytes| {
            b.iter(|| hash(black_box(bytes)))
        });
    }
}

fn groups(c: &mut Criterion) {
    let mut group = c.benchmark_group("hash");
    group.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
    group.sampling_mode(SamplingMode::Flat).sample_size(10).measurement_time(Duration::from_secs(1));
    inputs(&mut group);
    group.finish();

    let mut group = c.benchmark_group("bencher");
    group.throughput(Throughput::Elements(3));
    group.bench_function("iter_batched_ref", |b| {
        b.iter_batched_ref(|| vec![3, 1, 2], |numbers| numbers.sort_unstable(), BatchSize::LargeInput);
    });
    group.bench_function("iter_with_setup", |b| b.iter_with_setup(|| vec![1u8; 100], |bytes| hash(&bytes)));
    group.bench_function("iter_with_large_drop", |b| b.iter_with_large_drop(|| vec![0u64; black_box(100)]));
    group.bench_function("iter_custom", |b| {
        b.iter_custom(|iterations| {
            let start = Instant::now();
            (0..iterations).for_each(|_| _ = black_box(hash(black_box(b"custom"))));
            start.elapsed()
        });
    });
    group.bench_function("to_async", |b| {
        b.to_async(Polling).iter(|| async { hash(black_box(b"asynchronous")) });
    });
    // This benchmark borrows values that live only in this function.
    let mut counts = HashMap::new();
    group.bench_function("borrowed", |b| {
        b.iter(|| *counts.entry(black_box(7)).and_modify(|n| *n += 1).or_insert(0))
    });
    group.bench_function("twice?", |b| b.iter(|| hash(black_box(b"the same name"))));
    group.bench_function("twice?", |b| b.iter(|| hash(black_box(b"the same name"))));
}

criterion_group!(short, loops);
criterion_group! {
    name = long;
    config = Criterion::default().sample_size(20).without_plots();
    targets = groups
}
criterion_main!(short, long);
