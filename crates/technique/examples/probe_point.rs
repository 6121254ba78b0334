//! Probes put into a running program and taken out again: slides 39 to 41 of *Measurement Techniques*.
//!
//!     cargo run --release --example probe_point               # with `-- --moved` it fails at its end
//!
//! A program on a thread of its own handles requests, each with a size, and counts them itself: these are the true values. It
//! has a probe point that is not in use yet. While it runs, a probe is inserted that counts requests and adds up their sizes,
//! and is removed again.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::probe_point::ProbePoint;

/// The number of requests in each of three stretches; the probe is in during the second one.
const STRETCHES: [u64; 3] = [1000, 5000, 2000];

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let known = Known::from_arguments(std::env::args());
    let (count, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let probe = |size| {
        count.fetch_add(1, SeqCst);
        sum.fetch_add(size, SeqCst);
    };
    let point = match ProbePoint::new(probe) {
        Ok(point) => point,
        Err(error) if error.is_machine_limitation() => {
            println!("skipped: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let program = Program { handled: AtomicU64::new(0), ended: AtomicBool::new(false) };
    let sizes = std::thread::scope(|scope| {
        let (asks, asked) = channel();
        let (tells, sums) = channel();
        let (program, server) = (&program, &point);
        scope.spawn(move || program.serve(&asked, &tells, server));
        let sizes = run_stretches(&point, &asks, &sums)?;
        let exact = [count.swap(0, SeqCst), sum.swap(0, SeqCst)];
        run_without_stops(known, &point, &asks, program, &count)?;
        Done::Ok((sizes, exact))
    });
    let (sizes, [seen, summed]) = sizes?;
    print_pass_costs(&point)?;
    println!(
        "slide 39: hooks in the code, instrumentation is added later; ours: put in and out of a running program, it has seen \
         {seen} of {} requests",
        STRETCHES.iter().sum::<u64>()
    );
    println!("{}", known.check_truth("requests (A)", STRETCHES[1] as f64, Interval::exactly(seen as f64))?);
    println!("{}", known.check_truth("their sizes (B)", sizes as f64, Interval::exactly(summed as f64))?);
    Ok(())
}

struct Program {
    handled: AtomicU64,
    ended: AtomicBool,
}

impl Program {
    /// Handles as many requests as `asked` receives, and sends the sum of their sizes.
    fn serve<F: Fn(u64) + Sync>(&self, asked: &Receiver<u64>, tells: &Sender<u64>, point: &ProbePoint<F>) {
        let mut number = 0u64;
        for requests in asked {
            let (mut sizes, until) = (0, number.saturating_add(requests));
            while number < until && !self.ended.load(SeqCst) {
                let size = 64 + number % 7919 * 7919 % 1400;
                point.pass(size);
                (sizes, number) = (sizes + black_box(size), number + 1);
                self.handled.fetch_add(1, SeqCst);
            }
            let _ = tells.send(sizes);
        }
    }

    /// Waits until the program has handled this many more requests, and returns its count.
    fn wait_for_requests(&self, requests: u64) -> u64 {
        let until = self.handled.load(SeqCst) + requests;
        while self.handled.load(SeqCst) < until {
            std::thread::yield_now();
        }
        self.handled.load(SeqCst)
    }
}

/// Inserts and removes the probe between stretches, and returns the sum of the sizes while it was in.
fn run_stretches<F: Fn(u64) + Sync>(
    point: &ProbePoint<F>,
    asks: &Sender<u64>,
    sums: &Receiver<u64>,
) -> Done<u64> {
    let mut sizes = [0; 3];
    for (at, requests) in STRETCHES.into_iter().enumerate() {
        if at == 1 { point.insert_probe() } else { point.remove_probe() }?;
        asks.send(requests)?;
        sizes[at] = sums.recv()?;
        println!("{requests:>6} requests, the probe {}", if at == 1 { "in" } else { "out" });
    }
    Ok(sizes[1])
}

/// Inserts and removes the probe while the program never stops. The program's own count, read before and after each patch,
/// bounds the number of requests that the probe can have seen.
fn run_without_stops<F: Fn(u64) + Sync>(
    known: Known,
    point: &ProbePoint<F>,
    asks: &Sender<u64>,
    program: &Program,
    count: &AtomicU64,
) -> Done<()> {
    asks.send(u64::MAX)?;
    let before = program.wait_for_requests(1000);
    let patched = point.insert_probe();
    let first = program.handled.load(SeqCst);
    let last = program.wait_for_requests(1000);
    let patched_back = point.remove_probe();
    let after = program.wait_for_requests(1);
    program.ended.store(true, SeqCst);
    patched.and(patched_back)?;
    let seen = count.load(SeqCst);
    // A request in progress may be counted by the probe and not yet by the program, or the other way round.
    let bounds = Interval {
        estimate: (last - first) as f64,
        low: last as f64 - first as f64 - 1.0,
        high: (after - before + 1) as f64,
    };
    println!("{}", known.check_truth("requests of a program that never stops", seen as f64, bounds)?);
    Ok(())
}

/// Prints the nanoseconds of a pass without and with the probe.
fn print_pass_costs<F: Fn(u64) + Sync>(point: &ProbePoint<F>) -> Done<()> {
    const PASSES: u32 = 1_000_000;
    let pass = || {
        let begun = Instant::now();
        (0..u64::from(PASSES)).for_each(|value| point.pass(value));
        begun.elapsed().div_f64(f64::from(PASSES))
    };
    let out = (0..5).map(|_| pass()).min().unwrap_or(Duration::MAX);
    point.insert_probe()?;
    let within = (0..5).map(|_| pass()).min().unwrap_or(Duration::MAX);
    point.remove_probe()?;
    println!("a pass costs {out:?} without the probe, and {within:?} with it\n");
    Ok(())
}
