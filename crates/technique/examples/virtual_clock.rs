//! A process's virtual clock and a programmable timer on it: slides 33 to 36 of *Measurement Techniques*.
//!
//!     cargo run --release --example virtual_clock
//!     cargo run --release --example virtual_clock -- --known    # only what is known beforehand; with --moved it fails
//!
//! The clock must advance only while its process executes, so that it measures process-specific time. The timer must run down
//! on that clock and call an arbitrary routine when it expires. Both are compared with real time over the same phases.
//!
//! The last experiment is an application: it measures the share of a program's work that one of its two parts does, which
//! also waits. The share is known, because the instructions are counted. By real time, that part takes nearly all of the time.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use syscost_platform::arch;
use syscost_statistic::median;
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::virtual_clock::{VirtualClock, VirtualTimer, measure_quality};

const PHASE: Duration = Duration::from_millis(200);
const INTERVAL: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let known = Known::from_arguments(std::env::args());
    if !std::env::args().any(|argument| argument == "--known") {
        live()?;
    }
    println!("{}", share_of_work(known)?);
    Ok(())
}

/// A program of two parts, one of which does a quarter of the work and waits 3 ms each time. The virtual clock must
/// find that quarter, and real time something else.
fn share_of_work(known: Known) -> Result<String, Box<dyn Error>> {
    const TURNS: usize = 40;
    const STEPS: u64 = 1_000_000;
    let own = VirtualClock::Own;
    let time = |work: &dyn Fn()| -> Result<[f64; 2], Box<dyn Error>> {
        let (real, ran) = (Instant::now(), own.read()?);
        work();
        let ran = own.read()? - ran;
        Ok([ran, real.elapsed()].map(|time| time.as_secs_f64()))
    };
    let [mut ran, mut real] = [const { [const { Vec::new() }; 2] }; 2];
    for _ in 0..TURNS {
        let waits = time(&|| {
            arch::register_loop(black_box(STEPS));
            std::thread::sleep(Duration::from_millis(3));
        })?;
        let computes = time(&|| arch::register_loop(black_box(3 * STEPS)))?;
        for (part, [virtual_time, real_time]) in [waits, computes].into_iter().enumerate() {
            ran[part].push(virtual_time);
            real[part].push(real_time);
        }
    }
    // Medians over the turns: an interruption of one turn, or a short change of pace, does not change the result.
    let share = |[waits, computes]: &[Vec<f64>; 2]| median(waits) / (median(waits) + median(computes));
    println!(
        "\na part that does a quarter of the work and waits: {:.0} % by real time, {:.1} % by the virtual clock",
        100.0 * share(&real),
        100.0 * share(&ran)
    );
    // Falling asleep and waking up also take CPU time: some 10 µs beside the half millisecond of a turn.
    let bounds = Interval::around(share(&ran), 0.1);
    Ok(known.check_truth("the share of the work", 0.25, bounds)?)
}

fn live() -> Result<(), Box<dyn Error>> {
    let own = VirtualClock::Own;
    let quality = measure_quality()?;
    println!(
        "the clock: steps of {:?}, {:?} promised; a reading costs {:?}",
        quality.step, quality.promised, quality.cost
    );
    println!("a timer on it expires in steps of {:?}\n", VirtualTimer::measure_resolution()?);

    // The routine runs on a thread of its own, so that it may allocate, lock and write.
    let intervals = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&intervals);
    let timer = VirtualTimer::every(INTERVAL, &own, move |expiry| {
        counted.fetch_add(expiry.intervals, Relaxed);
    })?;
    println!("{:<22} {:>10} {:>14} {:>20}", "this process", "real time", "virtual clock", "timer × interval");
    let row = |name: &str, phase: &dyn Fn()| -> Result<f64, Box<dyn Error>> {
        let (begun, ran, expired) = (Instant::now(), own.read()?, intervals.load(Relaxed));
        phase();
        let (real, ran) = (begun.elapsed(), own.read()? - ran);
        let timed = INTERVAL * (intervals.load(Relaxed) - expired) as u32;
        println!(
            "{name:<22} {:>7} ms {:>11} ms {:>17} ms",
            real.as_millis(),
            ran.as_millis(),
            timed.as_millis()
        );
        Ok(ran.as_secs_f64() / real.as_secs_f64())
    };
    let computing = row("computes", &compute)?;
    let sleeping = row("sleeps", &|| std::thread::sleep(PHASE))?;
    drop(timer);

    let other = other_process()?;
    println!(
        "\nslide 35: a clock that runs only while process n is executing; ours: it runs for {:.0} % of the time that the process \
         computes, {:.0} % of the time that it sleeps, and {:.0} % of the time that another process is stopped",
        100.0 * computing,
        100.0 * sleeping,
        100.0 * other
    );
    Ok(())
}

fn compute() {
    let begun = Instant::now();
    while begun.elapsed() < PHASE {
        black_box(0);
    }
}

/// Runs a child that computes and is then stopped. Returns the share of the real time for which its clock advanced.
fn other_process() -> Result<f64, Box<dyn Error>> {
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?;
    let share = watch(child.id());
    child.kill()?;
    child.wait()?;
    share
}

fn watch(pid: u32) -> Result<f64, Box<dyn Error>> {
    let clock = VirtualClock::from_pid(pid as i32)?;
    let before = clock.read()?;
    std::thread::sleep(PHASE);
    println!("\nanother process, {PHASE:?} while it computes: {:?}", clock.read()? - before);
    let stopped = Command::new("kill").args(["-STOP", &pid.to_string()]).status()?;
    // The signal takes a moment to reach a process on another CPU.
    std::thread::sleep(PHASE / 4);
    let before = clock.read()?;
    std::thread::sleep(PHASE);
    let ran = clock.read()? - before;
    println!("another process, {PHASE:?} while it is stopped: {ran:?}");
    if stopped.success() {
        Ok(ran.as_secs_f64() / PHASE.as_secs_f64())
    } else {
        Err("kill -STOP failed".into())
    }
}
