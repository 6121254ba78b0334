//! Synchronous and random sampling: slides 7, 26, 27 to 31 and 51 to 53 of *Measurement Techniques*.
//!
//!     cargo run --release --example sampling                # about 10 s
//!     cargo run --release --example sampling -- --quick     # a second of it
//!     cargo run --release --example sampling -- --known     # only what is known beforehand; with --moved it fails
//!
//! A load is on for 48 % of the time. A monitor that is synchronous with the load finds it on in two of three samples; a
//! monitor with random periods finds the true fraction. The same is shown for the kernel's own monitor, the tick behind
//! `/proc/stat`. Then the time in a loop is estimated from sampled instruction addresses.
#![allow(clippy::print_stdout, reason = "an example talks")]

use core_affinity::CoreId;
use nix::sched::sched_getcpu;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use std::hint::black_box;
use std::time::Duration;
use syscost_counters::{Processors, Spent};
use syscost_platform::arch;
use syscost_statistic::Random;
use syscost_technique::Interval;
use syscost_technique::extent::executed_range;
use syscost_technique::known::Known;
use syscost_technique::sample::{Period, SampledMonitor};
use syscost_technique::visit::{Coverage, Visit, true_fraction};

/// The period of synchronous samples. The load has a period of three of these.
const STEP_NS: u64 = 2_000_000;
/// The load is on for 48 % of its period, from this time before a sample.
const ON_NS: u64 = 3 * STEP_NS * 48 / 100;
const LEAD_NS: u64 = STEP_NS / 5;
/// The number of periods of the load: usually, and with `--quick`.
const PERIODS: [u64; 2] = [150, 15];

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let step = Duration::from_nanos(STEP_NS);
    let has = |flag| std::env::args().any(|argument| argument == flag);
    let (quick, known) = (has("--quick"), Known::from_arguments(std::env::args()));
    if has("--known") {
        println!("{}", on_paper(known)?);
        return Ok(());
    }
    let periods = PERIODS[usize::from(quick)];
    let measure = |name, period| measure_load(name, period, periods);
    println!(
        "{:<28} {:>6} {:>7} {:>16}   visits missed, found once, more often",
        "looks", "truth", "found", "95 % interval"
    );
    let (truth, in_step) = measure("every step", Period::Fixed(step))?;
    measure("every two steps", Period::Fixed(2 * step))?;
    let (_, once) = measure("every three steps", Period::Fixed(3 * step))?;
    let (_, drawn) = measure("at random, a step in the mean", Period::random(step, now()))?;
    let tenth = || measure("at random, a tenth of a step", Period::random(step / 10, now()));
    let (mut live, mut seen) = tenth()?;
    for _ in 0..4 {
        // On a busy machine the monitor takes too few samples, and the result shows nothing.
        if 1.5 * (seen.high - seen.low) > 0.3 {
            (live, seen) = tenth()?;
        }
    }
    measure("at random, six steps", Period::random(6 * step, now()))?;
    sample_by_kernel_tick(if quick { 6 } else { 60 })?;
    time_in_a_loop()?;
    println!(
        "\nslide 26: avoid synchrony between sampling and sampled signal: perfectly in step the value would be 100 or 0; ours: \
         for a true {:.0} % a look a period finds {:.0} %, three find {:.0} %, and looks at random {:.0} % [{:.0}, {:.0}]",
        100.0 * truth,
        100.0 * once.estimate,
        100.0 * in_step.estimate,
        100.0 * drawn.estimate,
        100.0 * drawn.low,
        100.0 * drawn.high
    );
    // Three times the deviation: the 95 % interval itself misses the true value once in twenty runs.
    let wide = Interval::around(seen.estimate, 1.5 * (seen.high - seen.low));
    println!("{}", known.check_truth("the live load seen at random moments", live, wide)?);
    println!("{}", on_paper(known)?);
    Ok(())
}

/// The same load without a clock: its fraction is 48 %, and the sample times are drawn from a seed.
fn on_paper(known: Known) -> Done<String> {
    const PERIODS: u64 = 2000;
    let visits: Vec<Visit> = (0..PERIODS).map(|at| (300 * at, 300 * at + 144)).collect();
    let (mut random, mut looks, mut moment) = (Random::new(26), Vec::new(), 0);
    while moment < 300 * PERIODS {
        looks.push(moment);
        moment += 1 + random.number_below(200) as u64;
    }
    let in_step = Coverage::from_visits(&visits, &(0..300 * PERIODS).step_by(100).collect::<Vec<_>>())
        .sampled_fraction();
    if in_step.low <= 0.48 {
        return Err("looks in step with the load find the truth".into());
    }
    Ok(known.check_truth(
        "a load seen at random moments",
        0.48,
        Coverage::from_visits(&visits, &looks).sampled_fraction(),
    )?)
}

fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

fn nanoseconds(clock: ClockId) -> u64 {
    clock.now().map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

fn sleep_until(moment: u64) {
    let moment = TimeSpec::from_duration(Duration::from_nanos(moment));
    // A signal may wake the load early; it then begins early, and its true fraction is measured all the same.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &moment);
}

/// Runs the load under a monitor, prints the true fraction and its estimate, and returns both.
fn measure_load(name: &str, period: Period, periods: u64) -> Done<(f64, Interval)> {
    let monitor = SampledMonitor::new(period, 0..0)?;
    // The first sample of a fixed period is one period after the start.
    let zero = now() + STEP_NS - LEAD_NS;
    monitor.start();
    let mut visits: Vec<Visit> = Vec::with_capacity(periods as usize);
    for begins in (0..periods).map(|at| zero + 3 * STEP_NS * at) {
        while now() < begins {}
        monitor.enter_state(1);
        let entered = now();
        while now() < begins + ON_NS {}
        monitor.enter_state(0);
        visits.push((entered, now()));
    }
    let end = zero + 3 * STEP_NS * periods;
    while now() < end {}
    monitor.stop();
    let moments = monitor.samples_so_far().moments;
    let within: Vec<_> = moments.iter().copied().filter(|moment| (zero..end).contains(moment)).collect();
    let shifted: Vec<_> = visits.iter().map(|(entered, left)| (entered - zero, left - zero)).collect();
    let truth = true_fraction(&shifted, end - zero);
    let coverage = Coverage::from_visits(&visits, &within);
    let found = monitor.fraction_in_state(1);
    println!(
        "{name:<28} {:>5.1}% {:>6.1}%   [{:>5.1}, {:>5.1}]   {:>5} {:>5} {:>5} of {periods}",
        100.0 * truth,
        100.0 * found.estimate,
        100.0 * found.low,
        100.0 * found.high,
        coverage.missed,
        coverage.once,
        coverage.repeatedly
    );
    Ok((truth, found))
}

/// The same load, synchronous with the kernel's tick, which charges a whole tick to the task that it finds. The phase
/// of this CPU's tick is unknown, so the load is tried at several phases.
fn sample_by_kernel_tick(periods: u64) -> Done<()> {
    const PHASES: u64 = 4;
    let first = tick_after(last_tick_time());
    let tick = tick_after(first) - first;
    if tick > 20_000_000 {
        println!("\nskipped: this kernel's tick is not regular ({tick} ns)");
        return Ok(());
    }
    let here = sched_getcpu()?;
    if !core_affinity::set_for_current(CoreId { id: here }) {
        return Err("the load cannot be kept on one CPU".into());
    }
    println!(
        "\nin step with the kernel's tick of {:.1} ms, on CPU {here} with what others do there:",
        tick as f64 / 1e6
    );
    for phase in 0..PHASES {
        let zero = tick_after(last_tick_time()) + 5 * tick + tick * phase / PHASES;
        let (truth, found) = measure_by_ticks(here, zero, tick, periods)?;
        let (begins, truth, found) = (100 * phase / PHASES, 100.0 * truth, 100.0 * found);
        println!(
            "  begun {begins:>2} % of a tick later: the process clock {truth:.1} %, /proc/stat {found:.1} %"
        );
    }
    Ok(())
}

/// The time of the kernel's last tick.
fn last_tick_time() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC_COARSE)
}

fn tick_after(before: u64) -> u64 {
    loop {
        let at = last_tick_time();
        if at != before {
            return at;
        }
    }
}

/// Runs the load from `zero` on. Returns its fraction by the thread's clock and by the CPU's ticks.
fn measure_by_ticks(here: usize, zero: u64, tick: u64, periods: u64) -> Done<(f64, f64)> {
    let mut processors = Processors::open()?;
    sleep_until(zero);
    let before = processors.time_spent(Some(here))?.value;
    let ran = nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID);
    for begins in (0..periods).map(|at| zero + 3 * tick * at) {
        sleep_until(begins);
        while now() < begins + 3 * tick * 48 / 100 {}
    }
    sleep_until(zero + 3 * tick * periods);
    let all = (3 * tick * periods) as f64;
    let truth = (nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID) - ran) as f64 / all;
    let busy = |spent: &Spent| spent.user + spent.nice + spent.system;
    let ticks = busy(&processors.time_spent(Some(here))?.value) - busy(&before);
    Ok((truth, ticks as f64 * 1e9 / syscost_platform::proc::USER_HZ / all))
}

/// Prints the share of time in one loop of a program, estimated from sampled instruction addresses.
fn time_in_a_loop() -> Done<()> {
    let function = arch::register_loop as *const () as usize;
    let range = match executed_range(function, || arch::register_loop(100)) {
        Ok(range) => range,
        Err(error) => {
            println!("\nskipped: {error}");
            return Ok(());
        }
    };
    let bytes = range.len();
    let monitor = SampledMonitor::new(Period::random(Duration::from_micros(200), now()), range)?;
    let (mut inside, begun) = (0, now());
    monitor.start();
    while now() - begun < 500_000_000 {
        let entered = now();
        arch::register_loop(black_box(20_000));
        inside += now() - entered;
        black_box(arch::multiply_chain(black_box(6_000)));
    }
    let all = now() - begun;
    monitor.stop();
    let (truth, found) = (inside as f64 / all as f64, monitor.fraction_in_range());
    println!(
        "\ntime in a loop of {bytes} bytes: by the clock {:.1} %, by the address at {} random moments {:.1} % [{:.1}, {:.1}]",
        100.0 * truth,
        monitor.samples_so_far().count,
        100.0 * found.estimate,
        100.0 * found.low,
        100.0 * found.high
    );
    Ok(())
}
