//! Benchmarks, written for Criterion, whose numbers would mean nothing, beside honest ones that look similar.
//!
//!     cargo run --release --example criterion_liars -- --bench

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use syscost_criterion::{Criterion, criterion_group, criterion_main};

/// Additions that take some microseconds and that the optimiser cannot remove.
fn work(additions: u64) -> u64 {
    (0..additions).fold(0, |sum, at| black_box(sum + at))
}

fn liars(c: &mut Criterion) {
    let mut group = c.benchmark_group("liar");
    group.bench_function("vanishes", |b| b.iter(|| (1..=100u64).sum::<u64>()));
    group.bench_function("vanishes whole", |b| {
        b.iter_custom(|iterations| {
            let start = Instant::now();
            black_box(iterations);
            start.elapsed()
        });
    });
    group.bench_function("ends early", |b| {
        b.iter_custom(|iterations| {
            let start = Instant::now();
            (0..iterations.min(64)).for_each(|_| _ = work(20));
            start.elapsed()
        });
    });
    group.bench_function("makes up", |b| {
        b.iter_custom(|iterations| Duration::from_micros(iterations * work(2)))
    });
    group.bench_function("never iterates", |_| {});
    let mut answers = HashMap::new();
    group.bench_function("remembers", |b| {
        b.iter(|| *answers.entry(black_box(7)).or_insert_with(|| work(30_000)))
    });
    // The queue lasts for ten milliseconds; after that there is no work left.
    let start = Instant::now();
    work(100_000);
    let mut left = 10_000_000 / (start.elapsed().as_nanos() as u64 / 1_000).max(1);
    group.bench_function("runs out", |b| {
        b.iter(|| {
            left = left.saturating_sub(1);
            if black_box(left) == 0 { 0 } else { work(100) }
        });
    });
    let (send, receive) = mpsc::channel::<u64>();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let helper = std::thread::spawn(move || {
        receive.iter().take_while(|_| !is_over.load(Relaxed)).for_each(|additions| _ = work(additions));
    });
    group.bench_function("hands over", |b| b.iter(|| send.send(2_000).expect("a helper")));
    // Requests that are left in the channel are never served.
    over.store(true, Relaxed);
    drop(send);
    helper.join().expect("the helper ends");
}

fn honest(c: &mut Criterion) {
    let mut group = c.benchmark_group("honest");
    group.bench_function("work", |b| b.iter(|| work(black_box(100))));
    group.bench_function("long", |b| b.iter(|| work(black_box(200_000))));
    group.bench_function("grows", |b| {
        let mut numbers = Vec::new();
        b.iter(|| numbers.push(black_box(1u64)));
    });
    let lengths: Vec<u64> = (0..50).map(|at| 10 + at * 7 % 90).collect();
    group.bench_function("goes round", |b| {
        let mut inputs = lengths.iter().cycle();
        b.iter(|| work(*inputs.next().expect("a cycle")));
    });
    group.bench_function("in parallel", |b| {
        b.iter(|| {
            std::thread::scope(|scope| {
                let helper = scope.spawn(|| work(black_box(100_000)));
                work(black_box(100_000)) + helper.join().expect("the helper ends")
            })
        });
    });
}

criterion_group!(benches, liars, honest);
criterion_main!(benches);
