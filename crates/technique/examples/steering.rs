//! Steering requests: a monitor changes its period, its level of detail and its event while the program runs
//! (Measurement Techniques, slide 41).
//!
//!     cargo run --release --example steering    # with `-- --moved` it fails at its end; --quick for a tenth of it
//!
//! A server handles requests from a queue, and writes its state (busy or not) and the length of its queue into two registers.
//! A monitor samples them. At first it has a long period and keeps only a fraction; requests then make it collect more.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use syscost_platform::arch::register_loop;
use syscost_technique::Interval;
use syscost_technique::event_register::variable;
use syscost_technique::known::Known;
use syscost_technique::sampled_hybrid::InterfaceRegisters;
use syscost_technique::steering::{DetailLevel, Request, Settings, SteeredMonitor, Stretch};

const SEED: u64 = 41;

fn main() -> syscost_technique::Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let pause = Duration::from_millis(if quick { 100 } else { 1000 });
    let registers = Arc::new(InterfaceRegisters::<2>::new()?);
    let ended = AtomicBool::new(false);
    let stretches = std::thread::scope(|scope| {
        scope.spawn(|| serve(&registers, &ended));
        let stretches = steer(Arc::clone(&registers), pause);
        ended.store(true, Relaxed);
        stretches
    })?;
    println!("{:<34}  {:>8}  {:>8}  {:>24}  {:>6}", "asked for", "period", "samples", "in the state", "kept");
    let asked = ["nothing", "a period of 0.5 ms", "all samples", "the event `queue of 2 or more`"];
    for (asked, stretch) in asked.iter().zip(&stretches) {
        let Interval { estimate, low, high } = stretch.fraction_in_state();
        println!(
            "{asked:<34}  {:>8}  {:>8}  {:>24}  {:>6}",
            format!("{:?}", stretch.settings.period),
            stretch.samples,
            format!("{estimate:.3} [{low:.3}, {high:.3}]"),
            stretch.kept.len()
        );
    }
    let shares = stretches.each_ref().map(Stretch::fraction_in_state);
    let [slow, fast, detailed, other] = stretches;
    println!(
        "\nslide 41: steering requests to a running program; ours: {} samples became {} in the same time, of which none and \
         then {} were kept",
        slow.samples, fast.samples, detailed.samples
    );
    let known = Known::from_arguments(std::env::args());
    let schedule = |state: fn(u32) -> bool| {
        let all = QUEUE.len() as f64;
        QUEUE.into_iter().filter(|queue| state(*queue)).count() as f64 / all
    };
    let judge = |what: &str, truth, found: Interval| {
        // Three times the 95 % interval, with room for other tasks: the server stays in a state while they run.
        let half = (1.5 * (found.high - found.low)).max(0.08);
        known.check_truth(what, truth, Interval::around(found.estimate, half))
    };
    let (busy, long) = (schedule(|queue| queue > 0), schedule(|queue| queue >= 2));
    println!("{}", judge("share of the time that the server is busy, by its schedule", busy, shares[1])?);
    println!("{}", judge("share of the time with a queue of 2 or more, by its schedule", long, shares[3])?);
    let kept = detailed.kept.len() as f64;
    println!(
        "{}",
        known.check_truth("samples kept of all", detailed.samples as f64, Interval::exactly(kept))?
    );
    let long = other.kept.iter().filter(|seen| seen.state[1] >= 2).count() as f64;
    let what = "samples in the state of the event that was asked for";
    println!("{}", known.check_truth(what, long, Interval::exactly(other.in_state as f64))?);
    Ok(())
}

/// The stretches that ended by each request, and the one after the last request.
fn steer(
    registers: Arc<InterfaceRegisters<2>>,
    pause: Duration,
) -> syscost_technique::Result<[Stretch<2>; 4]> {
    let settings = Settings {
        period: Duration::from_millis(20),
        detail: DetailLevel::Fraction,
        event: variable("busy").equals(1),
    };
    // The registers change during a read only if the server writes twice meanwhile; the previous values count then.
    let mut last = [0; 2];
    let look = move || {
        last = registers.read().unwrap_or(last);
        last.map(u64::from)
    };
    let monitor = SteeredMonitor::start(&["busy", "queue"], settings, SEED, look)?;
    let ask = |request| {
        std::thread::sleep(pause);
        monitor.request(request)
    };
    let slow = ask(Request::Period(Duration::from_micros(500)))?;
    let fast = ask(Request::Detail(DetailLevel::Samples))?;
    let detailed = ask(Request::Event(variable("queue").at_least(2)))?;
    std::thread::sleep(pause);
    Ok([slow, fast, detailed, monitor.end()?])
}

/// The queue of the server: it grows to three, is emptied, and rests. It stays equally long at each length.
const QUEUE: [u32; 6] = [1, 2, 3, 2, 1, 0];

/// Serves a queue of this schedule, over and over.
fn serve(registers: &InterfaceRegisters<2>, ended: &AtomicBool) {
    while !ended.load(Relaxed) {
        for queue in QUEUE {
            registers.put([u32::from(queue > 0), queue]);
            register_loop(black_box(1_000_000));
        }
    }
}
