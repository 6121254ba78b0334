//! Honest benchmarks that look like lies: of one cycle, batched, sleeping, growing, parallel, or with inputs that repeat in a
//! cycle.
//!
//!     cargo run --release --example criterion_odd -- --test

#[path = "../../examples/shared/polling_executor.rs"]
mod polling_executor;

use polling_executor::Polling;
use std::collections::HashMap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use syscost_criterion as criterion;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};

/// A future that is pending once and asks to be polled again.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(black_box(&mut self.0), true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Additions that the optimiser cannot remove.
fn work(additions: u64) -> u64 {
    (0..additions).fold(0, |sum, at| black_box(sum + at))
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn rotated(n: u64) -> u64 {
    n.rotate_left(23).wrapping_mul(n | 7)
}

fn batched(group: &mut Group<'_>) {
    let mut seed = 1u64;
    let mut next = move || {
        seed = rotated(seed.wrapping_add(99));
        seed
    };
    let sizes = [
        ("small", BatchSize::SmallInput),
        ("large", BatchSize::LargeInput),
        ("one by one", BatchSize::PerIteration),
        ("ten", BatchSize::NumIterations(10)),
        ("two batches", BatchSize::NumBatches(2)),
    ];
    for (name, size) in sizes {
        group.bench_function(format!("rotation, {name}"), |b| b.iter_batched(&mut next, rotated, size));
    }
    // A loop that the compiler makes of one multiplication, with fewer instructions than the loop without it.
    group.bench_function("multiplication of halfwords", |b| {
        let hash = |n: u16| u64::from(n).wrapping_mul(0x517c_c1b7_2722_0a95);
        b.iter_batched(|| next() as u16, hash, BatchSize::NumIterations(50_000));
    });
    group.bench_function("division", |b| {
        b.iter_batched(&mut next, |n| n / (n >> 40 | 1), BatchSize::SmallInput)
    });
    group.bench_function("swap", |b| {
        b.iter_batched_ref(|| [1u64; 16], |numbers| numbers.swap(0, 15), BatchSize::SmallInput);
    });
    group.bench_function("multiplication", |b| b.iter_with_large_drop(|| black_box(5u64).wrapping_mul(9)));
    group.bench_function("strings dropped inside", |b| {
        b.iter_batched(|| vec![String::from("a string of text"); 8], drop, BatchSize::LargeInput);
    });
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn short(group: &mut Group<'_>) {
    group.bench_function("addition", |b| b.iter(|| black_box(5u64) + 1));
    group.bench_function("atomic addition", |b| b.iter(|| _ = CALLS.fetch_add(1, Relaxed)));
    group.bench_function("count of a pointer", |b| {
        let pointer = Rc::new(5);
        b.iter(|| Rc::clone(&pointer));
    });
    group.bench_function("minimum", |b| b.iter(|| black_box(5u64).min(black_box(7))));
    group.bench_function("large result", |b| b.iter(|| [black_box(7u8); 256]));
    group.bench_function("option", |b| b.iter(|| black_box(5u64).checked_add(1)));
}

fn changing(group: &mut Group<'_>) {
    group.bench_function("grows in each batch", |b| {
        let mut numbers = Vec::new();
        b.iter(|| numbers.push(black_box(1u64)));
    });
    let mut numbers = Vec::new();
    group.bench_function("grows for ever", |b| b.iter(|| numbers.push(black_box(1u8))));
    let mut counts = HashMap::new();
    group.bench_function("counts a key", |b| {
        b.iter(|| *counts.entry(black_box(7)).and_modify(|n| *n += 1).or_insert(0));
    });
    let lengths: Vec<u64> = (0..50).map(|at| 10 + at * 7 % 90).collect();
    group.bench_function("inputs that go round", |b| {
        let mut inputs = lengths.iter().cycle();
        b.iter(|| work(*inputs.next().expect("a cycle")));
    });
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    group.bench_function("table that is made once", |b| {
        b.iter(|| TABLE.get_or_init(|| (0..256).collect())[black_box(9)].wrapping_mul(black_box(3)));
    });
}

fn waiting(group: &mut Group<'_>) {
    group.bench_function("sleep", |b| b.iter(|| std::thread::sleep(Duration::from_micros(200))));
    group.bench_function("yield to threads", |b| b.iter(std::thread::yield_now));
    group.bench_function("spin", |b| {
        b.iter(|| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(20) {}
        });
    });
    group.bench_function("async addition", |b| b.to_async(Polling).iter(|| async { black_box(5u64) + 1 }));
    group.bench_function("async yield", |b| b.to_async(Polling).iter(|| Yield(false)));
}

fn timed(group: &mut Group<'_>) {
    group.bench_function("own clock", |b| {
        b.iter_custom(|n| {
            let start = Instant::now();
            (0..n).for_each(|_| _ = work(100));
            start.elapsed()
        });
    });
    group.bench_function("long", |b| b.iter(|| work(black_box(2_000_000))));
    group.bench_function("in parallel", |b| {
        b.iter(|| {
            std::thread::scope(|scope| {
                let helper = scope.spawn(|| work(black_box(100_000)));
                work(black_box(100_000)) + helper.join().expect("the helper ends")
            })
        });
    });
}

fn odd(c: &mut Criterion) {
    for (name, declare) in [
        ("batched", batched as fn(&mut Group<'_>)),
        ("short", short),
        ("changing", changing),
        ("waiting", waiting),
        ("timed", timed),
    ] {
        declare(&mut c.benchmark_group(name));
    }
}

criterion_group!(benches, odd);
criterion_main!(benches);
