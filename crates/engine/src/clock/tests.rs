//! Tests of the clock's scale, its bracket, and its own description.

use super::*;

/// Shortest times of interleaved batches, ns. A batch is short enough to fit between two disturbances, and the fastest ones run
/// at the same frequency.
fn fastest<const N: usize>(clock: &Clock, work: [&dyn Fn(); N]) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..400 {
        for (best, work) in best.iter_mut().zip(work) {
            *best = best.min(clock.nanoseconds(clock.time(work)).0);
        }
    }
    best
}

/// Panics unless a claim about the clock holds in one of six attempts. It need hold only on a machine at rest, and other tests
/// run at the same time.
fn holds(claim: impl Fn() -> Result<(), String>) {
    let mut last = Ok(());
    for _ in 0..6 {
        last = claim();
        if last.is_ok() {
            return;
        }
    }
    panic!("six times: {last:?}");
}

fn within(value: f64, expected: f64, share: f64, what: &str) -> Result<(), String> {
    let off = (value / expected - 1.0).abs();
    if off <= share { Ok(()) } else { Err(format!("{what}: {value}, expected {expected} ± {share}")) }
}

#[test]
fn known_work_lies_on_a_straight_line() {
    let clock = Clock::start_up();
    holds(|| {
        let adds = [16, 24, 32, 48, 64].map(|k| k * 1024 * clock.work_multiplier());
        let runs = adds.map(|n| move || _ = arch::add_chain(n));
        let [a, b, c, d, e] = &runs;
        let times = fastest(&clock, [a, b, c, d, e]);
        let points: Vec<_> = adds.iter().map(|&n| n as f64).zip(times).collect();
        let line = crate::statistic::fit_line(&points).expect("five points");
        within(1.0 + line.worst_residual, 1.0, 0.005, "distance from a straight line")
    });
}

#[test]
fn a_multiplication_costs_three_additions() {
    if cfg!(not(target_arch = "x86_64")) {
        return crate::platform::testing::print_skipped("AArch64 cores differ: three to five additions");
    }
    let clock = Clock::start_up();
    holds(|| {
        let add = || _ = arch::add_chain(30_720);
        let multiply = || _ = arch::multiply_chain(10_240);
        let [add, multiply] = fastest(&clock, [&add, &multiply]);
        within(3.0 * multiply / add, 3.0, 0.01, "additions in a multiplication")
    });
}

#[test]
fn the_kernels_clock_and_the_counter_agree_on_the_same_work() {
    let (counter, raw) = (Clock::start_up(), Clock::fallback(Unfit::Declined));
    let turns = 30_720 * counter.work_multiplier();
    let work = || _ = arch::multiply_chain(turns);
    holds(|| {
        let ([counter], [raw]) = (fastest(&counter, [&work]), fastest(&raw, [&work]));
        within(counter / raw, 1.0, 0.01, "the two clocks' ratio")
    });
}

#[test]
fn the_clock_costs_little_more_than_its_two_reads() {
    if cfg!(debug_assertions) {
        return crate::platform::testing::print_skipped("the cost of an unoptimised build is not claimed");
    }
    let clock = Clock::start_up();
    holds(|| {
        let own = || (0..500).for_each(|_| _ = black_box(clock.stop() - clock.start()));
        let bare = || (0..500).for_each(|_| _ = black_box(arch::start() ^ arch::stop()));
        let [own, bare] = fastest(&clock, [&own, &bare]);
        if own <= 1.1 * bare { Ok(()) } else { Err(format!("{own} against {bare}")) }
    });
}

#[test]
fn single_times_add_up_to_the_sum() {
    let clock = Clock::start_up();
    clock.keep_single_times();
    let sum = (0..10).map(|_| clock.time(|| arch::add_chain(100)).0).sum();
    let singles = clock.take_single_times();
    assert_eq!(singles.len(), 10);
    assert!((singles.iter().sum::<f64>() - clock.nanoseconds(Ticks(sum)).0).abs() < 1e-6);
}
