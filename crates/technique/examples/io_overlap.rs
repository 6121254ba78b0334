//! IO_OVERLAP(k, X) of the slides, live: the share of time for which the CPU and at least k of n channels are busy at
//! once, by
//! 2ᴺ samples at random times, compared with the exact trace (Measurement Techniques, slides 20 to 26).
//!
//!     cargo run --release --example io_overlap               # about 20 s
//!     cargo run --release --example io_overlap -- --quick    # a second of it
//!     cargo run --release --example io_overlap -- --known    # only what is known beforehand; with --moved it fails
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks")]

use std::process::ExitCode;
use std::time::Duration;
use syscost_statistic::{Random, proportion_interval};
use syscost_technique::io_overlap::{Finished, Load, Monitor, exact_overlap};
use syscost_technique::known::Known;
use syscost_technique::pulse::PulseCounter;
use syscost_technique::{Error, Result};

const CHANNELS: usize = 3;

/// The share of a window for which the CPU and at least `k` channels would be busy if all were independent.
fn independent_overlap(finished: &Finished, k: u32, window: (u64, u64)) -> f64 {
    let busy: Vec<f64> = finished.channels.iter().map(|trace| exact_overlap(trace, &[], 0, window)).collect();
    // The distribution of the number of busy channels is built up one channel at a time.
    let mut distribution = vec![1.0];
    for share in busy {
        let mut next = vec![0.0; distribution.len() + 1];
        for (count, probability) in distribution.iter().enumerate() {
            next[count] += probability * (1.0 - share);
            next[count + 1] += probability * share;
        }
        distribution = next;
    }
    exact_overlap(&finished.cpu, &[], 0, window) * distribution[k as usize..].iter().sum::<f64>()
}

/// Draws busy times of a CPU and its channels from a seed and samples them 2¹² times. Each true share must lie in its
/// interval.
fn on_paper(known: Known) -> Result<()> {
    const END: u64 = 4_000_000;
    let mut random = Random::new(20);
    let mut drawn = |busy: usize, idle: usize| {
        let (mut trace, mut at) = (Vec::new(), 0);
        while at < END {
            let from = at + random.number_below(2 * idle) as u64;
            at = from + 1 + random.number_below(2 * busy) as u64;
            trace.push((from, at));
        }
        trace
    };
    let cpu = drawn(300, 200);
    let channels: Vec<_> = (0..CHANNELS).map(|_| drawn(500, 400)).collect();
    let is_busy = |trace: &[(u64, u64)], at: u64| {
        let next = trace.partition_point(|(from, _)| *from <= at);
        next > 0 && at < trace[next - 1].1
    };
    for k in 0..=CHANNELS {
        let mut counter = PulseCounter::<12>::default();
        let found = loop {
            let at = random.number_below(END as usize) as u64;
            let busy = channels.iter().filter(|trace| is_busy(trace, at)).count();
            if let Some(fraction) = counter.count_pulse(is_busy(&cpu, at) && busy >= k) {
                break proportion_interval(fraction.counter(), 1 << 12);
            }
        };
        let truth = exact_overlap(&cpu, &channels, k as u32, (0, END));
        println!("{}", known.check_truth(&format!("IO_OVERLAP({k}, X) on paper"), truth, found)?);
    }
    Ok(())
}

fn run(quick: bool) -> Result<()> {
    let directory = std::env::temp_dir();
    let all = core_affinity::get_core_ids().unwrap_or_default();
    let (Some(&on), Some(&aside)) = (all.last(), all.first()) else {
        return Err(Error::Missing("no CPU is allowed here".into()));
    };
    // The channels and the monitor must not wait for the CPU that runs the computing load.
    if !core_affinity::set_for_current(aside) {
        return Err(Error::Missing("the monitor cannot be kept on a CPU of its own".into()));
    }
    let load = Load::start(&directory, CHANNELS, on.id)?;
    let (bits, period) = (if quick { 7 } else { 12 }, Duration::from_millis(1));
    let overlaps = (0..=CHANNELS as u32).map(|k| {
        let monitor = Monitor { period, seed: u64::from(k) };
        let signals = load.signals();
        let overlap =
            if quick { monitor.io_overlap::<7>(k, signals) } else { monitor.io_overlap::<12>(k, signals) };
        overlap.map(|overlap| (k, overlap))
    });
    let overlaps = overlaps.collect::<Result<Vec<_>>>()?;
    let finished = load.finish()?;
    println!("One CPU that computes in bursts, {CHANNELS} channels that read a disk past the page cache;");
    println!("2^{bits} samples each, {period:?} apart on average, at times drawn by chance\n");
    println!("  k   IO_OVERLAP(k, X)   95 % interval     exact trace   if independent");
    let mut inside = 0;
    for (k, overlap) in &overlaps {
        let truth = exact_overlap(&finished.cpu, &finished.channels, *k, overlap.window);
        let sampled = overlap.fraction;
        let is_inside = (sampled.low..=sampled.high).contains(&truth);
        inside += usize::from(is_inside);
        println!(
            "  {k} {:>18.4}   {:.4} – {:.4} {truth:>15.4} {:>16.4}{}",
            sampled.estimate,
            sampled.low,
            sampled.high,
            independent_overlap(&finished, *k, overlap.window),
            if is_inside { "" } else { "   outside" }
        );
    }
    let (_, first) = &overlaps[0];
    println!(
        "\nslide 26: k = 0 measures the utilisation of the CPU, 20: the counter is the fraction; ours: {:.4} where it was {:.4}, \
         and {inside} of {} true shares in their interval",
        first.fraction.estimate,
        exact_overlap(&finished.cpu, &[], 0, first.window),
        overlaps.len()
    );
    Ok(())
}

fn main() -> ExitCode {
    let has = |flag| std::env::args().any(|argument| argument == flag);
    let live = if has("--known") { Ok(()) } else { run(has("--quick")) };
    let live = live.or_else(|error| {
        if !error.is_machine_limitation() {
            return Err(error);
        }
        println!("skipped: {error}");
        Ok(())
    });
    match live.and_then(|()| on_paper(Known::from_arguments(std::env::args()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
