//! Benches whose set-up or operation breaks other harnesses: a fixed port that is kept, values of a user-defined measurement,
//! an operation that never ends.
//!
//! `cargo run --example criterion_setups -- --bench` measures them; `HELD_PORT=8080` names the port.

use std::hint::black_box;
use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use syscost_criterion as criterion;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A server of the bench, which lives until its process ends.
static SERVER: OnceLock<TcpListener> = OnceLock::new();

fn port(criterion: &mut Criterion) {
    let port = std::env::var("HELD_PORT").ok().and_then(|text| text.parse().ok()).unwrap_or(0u16);
    let server = SERVER.get_or_init(|| TcpListener::bind(("127.0.0.1", port)).expect("the port is free"));
    criterion.bench_function("address", |bencher| bencher.iter(|| server.local_addr().is_ok()));
}

/// The measurement of Criterion's book: its values are `Duration`s, shown in half seconds.
struct HalfSeconds;

impl Measurement for HalfSeconds {
    type Intermediate = Instant;
    type Value = Duration;
    fn start(&self) -> Instant {
        Instant::now()
    }
    fn end(&self, start: Instant) -> Duration {
        start.elapsed()
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        2.0 * value.as_secs_f64()
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for HalfSeconds {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "s/2"
    }
    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        "/(s/2)"
    }
    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "s/2"
    }
}

fn durations(criterion: &mut Criterion<HalfSeconds>) {
    criterion.bench_function("half seconds", |bencher| {
        bencher.iter_custom(|iterations| {
            let begun = Instant::now();
            (0..iterations).for_each(|at| _ = black_box(at ^ (at >> 3)));
            begun.elapsed()
        });
    });
}

fn endless(criterion: &mut Criterion<WallTime>) {
    criterion.bench_function("endless", |bencher| {
        bencher.iter(|| std::thread::sleep(Duration::from_secs(u64::from(u32::MAX))));
    });
    criterion.bench_function("behind it", |bencher| bencher.iter(|| black_box(7_u64).pow(3)));
}

criterion_group!(ports, port);
criterion_group!(name = values; config = Criterion::default().with_measurement(HalfSeconds); targets = durations);
criterion_group!(ends, endless);
criterion_main!(ports, values, ends);
