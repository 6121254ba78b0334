//! A hybrid monitor on two CPUs: slides 57 to 71 of *Measurement Techniques*.
//!
//!     cargo run --release --example hybrid
//!     cargo run --release --example hybrid -- --quick    # a twentieth of it; with --moved it fails at its end
//!
//! A program on one CPU sends each event to another CPU, through a slot with one flag, a slot with two, and a ring. The
//! example shows which share is captured, and what it costs the program. The program also keeps its state in two sets of
//! registers, which the other CPU samples: the sampled fraction of time in a state is compared with the traced one. Another
//! process counts for its own purposes, and a monitor copies the counters from the memory of the process, which does not
//! notice it: slide 63, DMA.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Lines, stdin};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use syscost::clock::Clock;
use syscost_technique::Interval;
use syscost_technique::by_turns::ByTurns;
use syscost_technique::foreign_memory::ForeignMemory;
use syscost_technique::hybrid::{Interface, Observer, OneWay, Ring, TwoWay, encode_event};
use syscost_technique::known::Known;
use syscost_technique::sampled_hybrid::{InterfaceRegisters, SampledObserver};
use syscost_technique::state_measure::FractionOfTime;
use syscost_technique::{Error, Result};

/// The number of events in a run.
const EVENTS: u64 = 100_000;
const RUNS: usize = 5;
/// Loop iterations for each event: those of the program, and those of a slow monitor.
const WORK: u64 = 20;
const SLOW: u64 = 400;
/// The mean time between two samples.
const PERIOD: Duration = Duration::from_micros(100);

fn main() -> Result<()> {
    let measured = std::env::args().skip_while(|argument| argument != "--measured").nth(1);
    if let Some(events) = measured.and_then(|events| events.parse().ok()) {
        run_measured(events);
        return Ok(());
    }
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
    let bare = median_ns_per_event(&clock, events, |_| true);
    println!("the program alone: {bare:.1} ns an event\n");
    println!(
        "{:<22} {:<14} {:>12} {:>12} {:>10}",
        "interface", "monitor", "ns an event", "artifact", "captured"
    );
    let fast = measure_interface::<OneWay>(&clock, (other.id, events), bare, "one flag")?;
    let slow = measure_interface::<TwoWay>(&clock, (other.id, events), bare, "two flags")?;
    let ring = measure_interface::<Ring>(&clock, (other.id, events), bare, "ring of 4096")?;
    print_cost_of_registers(&clock, (other.id, events), bare)?;
    let counted = copy_memory(other, slow.0 / bare)?;
    println!("\n{}", check_sampled_fraction(other.id, if quick { 1_000 } else { 20_000 })?);
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
    let copied = ("copies of memory", (EVENTS * RUNS as u64) as f64, counted);
    for (name, sent, captured) in
        [("two flags", sent, slow.1 * sent), ("a ring", sent, ring.1 * sent), copied]
    {
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

/// Prints the nanoseconds per state that is written to the registers while the other CPU samples them.
fn print_cost_of_registers(clock: &Clock, (other, events): (usize, u64), bare: f64) -> Result<()> {
    let registers = Arc::new(InterfaceRegisters::<1>::new()?);
    let _observer = SampledObserver::start(other, Arc::clone(&registers), PERIOD, 11)?;
    let ns = median_ns_per_event(clock, events, |number| {
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

/// Counters that a process keeps for its own purposes.
static COUNTERS: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

/// The measured process. It prints the address of its counters, works and counts, and prints its nanoseconds per event. It
/// knows of no monitor; a real program's address would be in its symbol table or in a file.
fn run_measured(events: u64) {
    println!("{}", COUNTERS.as_ptr() as usize);
    let ns = median_ns_per_event(&Clock::start_up(), events, |number| {
        let counter = &COUNTERS[number as usize % COUNTERS.len()];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
        true
    });
    println!("{ns}");
    // The process and its memory exist until its starter closes its input.
    let _ = stdin().read_line(&mut String::new());
}

/// Pairs of measured processes; one process of each pair is read by the monitor.
const PAIRS: usize = 5;

/// Measures a process with and without a monitor that copies its counters from its memory. Returns the number of events in
/// the last copy. The slowdown must be less than that of two flags, or less than half of the program's own time.
fn copy_memory(other: core_affinity::CoreId, two_flags: f64) -> Result<f64> {
    let mut counted = 0;
    let ns = ByTurns::measure(PAIRS, |is_read| {
        let found = run_process(other, is_read)?;
        counted = found.1;
        Ok(found.0)
    })?;
    let median = |values: &[f64]| syscost_statistic::median(values);
    println!(
        "{:<22} {:<14} {:>12.1} {:>11.2}× {:>8.1} %",
        "memory of a process",
        "copies",
        median(&ns.with),
        ns.ratio(),
        100.0 * counted as f64 / (EVENTS * RUNS as u64) as f64
    );
    println!(
        "{}",
        ns.check_ratio("ns an event without and with copies of the memory", ..two_flags.max(1.5))?
    );
    Ok(counted as f64)
}

/// Starts a measured process on this CPU, which a monitor on another CPU reads meanwhile if `is_read`. Returns its
/// nanoseconds per event, and the sum of its counters in the last copy.
fn run_process(other: core_affinity::CoreId, is_read: bool) -> Result<(f64, u64)> {
    let failed = |cause| Error::Kernel { call: "starting the measured process".into(), cause };
    let mut program = Command::new(std::env::current_exe().map_err(failed)?);
    program.args(["--measured", &EVENTS.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = program.spawn().map_err(failed)?;
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let memory = ForeignMemory::new(process.id() as i32, next_number(&mut lines)? as usize, COUNTERS.len());
    let ended = AtomicBool::new(false);
    let copy_all = || {
        core_affinity::set_for_current(other);
        let mut copies = 0;
        while !ended.load(Relaxed) {
            memory.read()?;
            copies += 1;
            std::thread::sleep(PERIOD);
        }
        if copies == 0 { Err(Error::Disturbed("the monitor got no CPU".into())) } else { Ok(()) }
    };
    let ns = std::thread::scope(|scope| {
        let monitor = is_read.then(|| scope.spawn(copy_all));
        let ns = next_number(&mut lines);
        ended.store(true, Relaxed);
        monitor.map_or(Ok(()), |monitor| monitor.join().expect("it does not panic"))?;
        ns
    })?;
    let sum = memory.read()?.iter().sum();
    drop(process.stdin.take());
    process.wait().map_err(failed)?;
    Ok((ns, sum))
}

fn next_number(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<f64> {
    let line = lines.next().and_then(std::result::Result::ok).and_then(|line| line.parse().ok());
    line.ok_or_else(|| Error::Disproved("the measured process ended early".into()))
}

/// Runs a program that is in state 1 every third turn until its registers were sampled `samples` times. Returns the sentence
/// that the traced fraction of time lies within twice the interval, which misses it once in ten thousand times.
fn check_sampled_fraction(other: usize, samples: u64) -> Result<String> {
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

/// Median nanoseconds per event of a program that sends its events by `say`.
fn median_ns_per_event(clock: &Clock, events: u64, mut say: impl FnMut(u64) -> bool) -> f64 {
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

/// Measures a fast and a slow monitor with this interface. Returns the nanoseconds per event and the captured share with the
/// fast one.
fn measure_interface<I: Interface>(
    clock: &Clock,
    (other, events): (usize, u64),
    bare: f64,
    name: &str,
) -> Result<(f64, f64)> {
    let mut answers = Vec::new();
    for (monitor, turns) in [("fast", 0), ("slow", SLOW)] {
        let mut observer = Observer::<I>::start(other, turns)?;
        let kind = |number: u64| encode_event(number, (number % 7) as u8);
        let ns = median_ns_per_event(clock, events, |number| observer.interface().send(kind(number)));
        let sent = events * RUNS as u64;
        let captured = observer.tally_after(kind(sent - 1))?.distinct_events() as f64 / sent as f64;
        println!("{name:<22} {monitor:<14} {ns:>12.1} {:>11.1}× {:>8.1} %", ns / bare, 100.0 * captured);
        answers.push((ns, captured));
    }
    Ok(answers[0])
}
