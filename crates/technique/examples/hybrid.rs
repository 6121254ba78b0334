//! A hybrid monitor on two CPUs: slides 57 to 71 of *Measurement Techniques*.
//!
//!     cargo run --release --example hybrid
//!     cargo run --release --example hybrid -- --quick    # a twentieth of it; with --moved it fails at its end
//!
//! A program on one CPU sends each event to another, through a slot with one flag, a slot with two, and a ring: which
//! share is captured, and what does it cost the program? And it keeps its state in two sets of registers, which the other
//! CPU samples: how near is the fraction of time in a state to that which the program traces?
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syscost::clock::Clock;
use syscost_technique::Interval;
use syscost_technique::hybrid::{Interface, Observer, OneWay, Ring, TwoWay, encode_event};
use syscost_technique::known::Known;
use syscost_technique::sampled_hybrid::{InterfaceRegisters, SampledObserver};
use syscost_technique::state_measure::FractionOfTime;

/// Events of a run.
const EVENTS: u64 = 100_000;
const RUNS: usize = 5;
/// Loop iterations for each event: of the program, and of a slow monitor.
const WORK: u64 = 20;
const SLOW: u64 = 400;
/// The mean time between two samples.
const PERIOD: Duration = Duration::from_micros(100);

fn main() -> syscost_technique::Result<()> {
    let cpus = core_affinity::get_core_ids().unwrap_or_default();
    let [.., other, here] = cpus[..] else {
        println!("skipped: one CPU, and a hybrid monitor is a machine of its own");
        println!(
            "slide 69: two-way synchronisation causes monitor artifact; ours: nothing, for want of a second CPU"
        );
        return Ok(());
    };
    if !core_affinity::set_for_current(here) {
        println!("skipped: the program cannot be kept on one CPU");
        return Ok(());
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let events = if quick { EVENTS / 20 } else { EVENTS };
    let clock = Clock::start_up();
    let bare = each(&clock, events, |_| true);
    println!("the program alone: {bare:.1} ns an event\n");
    println!(
        "{:<22} {:<14} {:>12} {:>12} {:>10}",
        "interface", "monitor", "ns an event", "artifact", "captured"
    );
    let fast = row::<OneWay>(&clock, (other.id, events), bare, "one flag")?;
    let slow = row::<TwoWay>(&clock, (other.id, events), bare, "two flags")?;
    let ring = row::<Ring>(&clock, (other.id, events), bare, "ring of 4096")?;
    print_cost_of_registers(&clock, (other.id, events), bare)?;
    println!("\n{}", sampled(other.id, if quick { 1_000 } else { 20_000 })?);
    println!(
        "\nslide 69: two-way synchronisation causes monitor artifact, so avoid it; ours: it adds {:.0} ns to an event and \
         captures {:.0} %, one flag adds {:.1} ns and captures {:.1} %, a ring {:.1} ns and {:.0} %",
        slow.0 - bare,
        100.0 * slow.1,
        fast.0 - bare,
        100.0 * fast.1,
        ring.0 - bare,
        100.0 * ring.1
    );
    let sent = (events * RUNS as u64) as f64;
    for (name, captured) in [("two flags", slow.1 * sent), ("a ring", ring.1 * sent)] {
        let what = format!("events captured through {name}");
        println!(
            "{}",
            Known::from_arguments(std::env::args()).check_truth(
                &what,
                sent,
                Interval::exactly(captured.round())
            )?
        );
    }
    Ok(())
}

/// Nanoseconds for each state that is put into registers which the other CPU samples meanwhile.
fn print_cost_of_registers(
    clock: &Clock,
    (other, events): (usize, u64),
    bare: f64,
) -> syscost_technique::Result<()> {
    let registers = Arc::new(InterfaceRegisters::<1>::new()?);
    let _observer = SampledObserver::start(other, Arc::clone(&registers), PERIOD, 11)?;
    let ns = each(clock, events, |number| {
        registers.put([number as u32]);
        true
    });
    println!(
        "{:<22} {:<14} {ns:>12.1} {:>11.1}× {:>10}",
        "two register sets",
        "samples",
        ns / bare,
        "samples"
    );
    Ok(())
}

/// A program that is in state 1 every third turn, until its registers were sampled so often: the sentence that the traced
/// fraction of time lies within twice the interval, which it leaves once in ten thousand times.
fn sampled(other: usize, samples: u64) -> syscost_technique::Result<String> {
    let registers = Arc::new(InterfaceRegisters::<1>::new()?);
    let mut observer = SampledObserver::start(other, Arc::clone(&registers), PERIOD, 11)?;
    let (begun, mut truth) = (Instant::now(), FractionOfTime::new(Duration::ZERO));
    let mut turn = 0u64;
    let found = loop {
        let inside = turn % 3 == 0;
        turn += 1;
        truth.observe(inside, begun.elapsed());
        registers.put([u32::from(inside)]);
        (0..100 * WORK).for_each(|turn| _ = black_box(turn));
        let found = observer.samples()?;
        if found.count >= samples {
            break found;
        }
    };
    let truth = truth.fraction(begun.elapsed()).unwrap_or(f64::NAN);
    let Interval { estimate, low, high } = found.fraction_in_state(1);
    if found.missed > begun.elapsed() / 100 {
        return Ok(format!(
            "skipped: samples were late by {:?} in all: other tasks have the CPU",
            found.missed
        ));
    }
    let what =
        format!("fraction of time in a state, by {} samples, {} rejected", found.count, found.rejected);
    Known::from_arguments(std::env::args()).check_truth(&what, truth, Interval::around(estimate, high - low))
}

/// Median nanoseconds for each event of a program that sends them by `say`.
fn each(clock: &Clock, events: u64, mut say: impl FnMut(u64) -> bool) -> f64 {
    let mut runs: Vec<_> = (0..RUNS as u64)
        .map(|run| {
            let ticks = clock.time(|| {
                for number in run * events..(run + 1) * events {
                    (0..WORK).for_each(|turn| _ = black_box(turn));
                    black_box(say(number));
                }
            });
            clock.nanoseconds(ticks).0 / events as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

/// Measures a fast and a slow monitor with this interface; of the fast one, nanoseconds for each event and captured
/// share.
fn row<I: Interface>(
    clock: &Clock,
    (other, events): (usize, u64),
    bare: f64,
    name: &str,
) -> syscost_technique::Result<(f64, f64)> {
    let mut answers = Vec::new();
    for (monitor, turns) in [("fast", 0), ("slow", SLOW)] {
        let mut observer = Observer::<I>::start(other, turns)?;
        let kind = |number: u64| encode_event(number, (number % 7) as u8);
        let ns = each(clock, events, |number| observer.interface().send(kind(number)));
        let sent = events * RUNS as u64;
        let captured = observer.tally_after(kind(sent - 1))?.distinct_events() as f64 / sent as f64;
        println!("{name:<22} {monitor:<14} {ns:>12.1} {:>11.1}× {:>8.1} %", ns / bare, 100.0 * captured);
        answers.push((ns, captured));
    }
    Ok(answers[0])
}
