//! Lying benchmarks of every known kind, as they are written for Criterion by mistake: an operation that was removed, one
//! that works only once, an error in place of the operation, an invented time. The optimiser decides how much of each is
//! detected, so:
//!
//!     cargo run --release --example criterion_lies -- --test

#[path = "../../examples/shared/polling_executor.rs"]
mod polling_executor;

use polling_executor::Polling;
use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use syscost_criterion as criterion;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};

/// Additions that the optimiser cannot remove.
fn work(additions: u64) -> u64 {
    (0..additions).fold(0, |sum, at| black_box(sum + at))
}

/// Arithmetic that the optimiser can compute in advance.
fn mixed(n: u64) -> u64 {
    (1..=8).fold(n, |hash, at| (hash ^ (hash >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15 + at))
}

fn shuffled(length: u64) -> Vec<u64> {
    (0..length).map(|at| mixed(at + 1)).collect()
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// A build with optimisation removes these operations.
fn removed(group: &mut Group<'_>) {
    let numbers = shuffled(1_000);
    group.bench_function("unused sum", |b| b.iter(|| _ = numbers.iter().copied().fold(0, u64::wrapping_add)));
    group.bench_function("nothing", |b| b.iter(|| ()));
    group.bench_function("constant sum", |b| b.iter(|| (1..=100u64).sum::<u64>()));
    group.bench_function("constant hash", |b| b.iter(|| mixed(7)));
    group.bench_function("length of a literal", |b| b.iter(|| "hello".len()));
    group.bench_function("unused box", |b| b.iter(|| drop(Box::new(5))));
    group.bench_function("unused vector", |b| b.iter(|| drop(Vec::<u8>::with_capacity(64))));
    group.bench_function("unused clone", |b| b.iter(|| drop(numbers.clone())));
    group.bench_function("unused sort", |b| {
        b.iter(|| {
            let mut few = [5, 3, 1];
            few.sort_unstable();
        });
    });
    group.bench_function("unused parse", |b| b.iter(|| _ = "12".parse::<u64>()));
    let word: u64 = std::env::args().count() as u64;
    group.bench_function("the same for every iteration", |b| b.iter(move || mixed(word)));
    let answer = mixed(black_box(3));
    group.bench_function("computed before", |b| b.iter(move || answer));
    group.bench_function("function in a black box", |b| b.iter(|| black_box(work)));
    group.bench_function("batched constant", |b| b.iter_batched(|| 5u64, |_| 7u64, BatchSize::SmallInput));
    group.bench_function("batched and unused", |b| {
        b.iter_batched_ref(|| [1u64, 2], |pair| _ = pair[0] + pair[1], BatchSize::SmallInput);
    });
    group.bench_function("dropped later and constant", |b| b.iter_with_large_drop(|| 5u64));
    group.bench_function("large constant", |b| b.iter(|| [0u8; 256]));
    group.bench_function("future of nothing", |b| b.to_async(Polling).iter(|| async {}));
}

/// Operations whose results must be called, awaited or collected before any work is done.
fn lazy(group: &mut Group<'_>) {
    let numbers = shuffled(1_000);
    group.bench_function("closure that is not called", |b| b.iter(|| || work(100)));
    group.bench_function("iterator", |b| b.iter(|| numbers.iter().map(|number| mixed(*number))));
    group.bench_function("future that is not awaited", |b| b.iter(|| async { work(100) }));
    group.bench_function("pointer to a function", |b| b.iter(|| black_box(work as fn(u64) -> u64)));
}

/// These operations work only at first.
fn once(group: &mut Group<'_>) {
    let mut queue: VecDeque<u64> = shuffled(1_000).into();
    group.bench_function("queue drained", |b| b.iter(|| queue.pop_front()));
    let mut few: VecDeque<u64> = shuffled(20).into();
    group.bench_function("short queue drained", |b| b.iter(|| few.pop_front()));
    let mut kept = shuffled(1_000);
    group.bench_function("sorting what is sorted", |b| b.iter(|| kept.sort_unstable()));
    group.bench_function("sorting a copy of each batch", |b| {
        let mut copy = shuffled(1_000);
        b.iter(|| copy.sort_unstable());
    });
    group.bench_function("sorting a short copy of each batch", |b| {
        let mut copy = shuffled(64);
        b.iter(|| copy.sort_unstable());
    });
    let (mut answers, mut at) = (HashMap::new(), 0u64);
    group.bench_function("memo of 64 keys", |b| {
        b.iter(|| {
            at = (at + 1) % 64;
            *answers.entry(at).or_insert_with(|| work(50 + at))
        });
    });
    let mut answers = HashMap::new();
    group.bench_function("memo of one key", |b| {
        b.iter(|| *answers.entry(black_box(7)).or_insert_with(|| work(30_000)));
    });
    let cell = OnceCell::new();
    group.bench_function("small cell", |b| b.iter(|| *cell.get_or_init(|| work(100))));
    group.bench_function("small cell of each batch", |b| {
        let cell = OnceCell::new();
        b.iter(|| *cell.get_or_init(|| work(1_000)));
    });
    group.bench_function("large cell of each batch", |b| {
        let mut answer = None;
        b.iter(|| *answer.get_or_insert_with(|| work(2_000_000)));
    });
    let mut calls = 0u64;
    group.bench_function("works a thousand times", |b| {
        b.iter(|| {
            calls += 1;
            if calls <= 1_000 { work(30) } else { calls }
        });
    });
    let start = Instant::now();
    work(100_000);
    let mut left = 10_000_000 / (start.elapsed().as_nanos() as u64 / 1_000).max(1);
    group.bench_function("works for ten milliseconds", |b| {
        b.iter(|| {
            left = left.saturating_sub(1);
            if black_box(left) == 0 { 0 } else { work(100) }
        });
    });
    let mut rest = shuffled(1_000).into_iter();
    group.bench_function("iterator that has ended", |b| b.iter(|| rest.next()));
    group.bench_function("duplicates removed once", |b| {
        let mut numbers = vec![7u64; 5_000];
        b.iter(|| numbers.dedup());
    });
}

/// These operations only return an error.
fn errors(group: &mut Group<'_>) {
    group.bench_function("file that is missing", |b| b.iter(|| std::fs::read("/there/is/no/such/file")));
    group.bench_function("text that is no number", |b| b.iter(|| black_box("x1").parse::<u64>()));
    let (send, receive) = mpsc::channel::<u64>();
    drop(send);
    group.bench_function("closed channel", |b| b.iter(|| receive.try_recv()));
}

/// The returned time is not that of the operation.
fn times(group: &mut Group<'_>) {
    let timed = |iterations: u64| {
        let start = Instant::now();
        (0..iterations).for_each(|_| _ = work(100));
        start.elapsed()
    };
    group.bench_function("half of the iterations", |b| b.iter_custom(|n| timed(n / 2)));
    group.bench_function("a tenth of the time", |b| b.iter_custom(|n| timed(n) / 10));
    group.bench_function("twice the time", |b| b.iter_custom(|n| timed(n) * 2));
    let mut seed = 1;
    group.bench_function("invented with noise", |b| {
        b.iter_custom(|n| {
            seed = mixed(seed);
            Duration::from_nanos(n * 100 + seed % (n + 1))
        });
    });
    group.bench_function("always the same", |b| b.iter_custom(|_| Duration::from_micros(50)));
    group.bench_function("loop that vanishes", |b| {
        b.iter_custom(|n| {
            let start = Instant::now();
            black_box(n);
            start.elapsed()
        });
    });
    group.bench_function("ends early", |b| b.iter_custom(|n| timed(n.min(64))));
    group.bench_function("never iterates", |_| {});
}

fn lies(c: &mut Criterion) {
    for (name, declare) in [
        ("removed", removed as fn(&mut Group<'_>)),
        ("lazy", lazy),
        ("once", once),
        ("error", errors),
        ("time", times),
    ] {
        declare(&mut c.benchmark_group(name));
    }
}

criterion_group!(benches, lies);
criterion_main!(benches);
