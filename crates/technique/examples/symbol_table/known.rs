//! A program on a clock that only its own steps advance. The times of its parts are known to the step, and so is the
//! fraction.

use crate::program;
use std::cell::Cell;
use syscost_statistic::Random;
use syscost_technique::Interval;
use syscost_technique::estimate::Traced;
use syscost_technique::known::Known;
use syscost_technique::trace::Monitor;

/// The number of steps that a reading of the clock takes.
const READING: u64 = 20;

thread_local! {
    static TIME: Cell<u64> = const { Cell::new(0) };
}

fn pass(steps: u64) {
    TIME.with(|time| time.set(time.get() + steps));
}

fn now() -> u64 {
    pass(READING);
    TIME.with(Cell::get)
}

/// Some other work and then a call of the part, each in steps.
type Call = (u64, u64);

fn calls(seed: u64) -> Vec<Call> {
    let mut random = Random::new(seed);
    let words = program::random(seed, 100).text.split_whitespace().count();
    (0..words).map(|_| (random.number_below(120) as u64, random.number_below(40) as u64)).collect()
}

/// Runs the program, and returns the steps of the whole, without the last reading of the clock.
fn run(calls: &[Call], monitor: &Monitor<fn() -> u64>) -> f64 {
    let begun = now();
    for (other, part) in calls {
        pass(*other);
        let _span = monitor.open_span(0);
        pass(*part);
    }
    (now() - begun - READING) as f64
}

/// Checks that the corrected fraction is the true one and the naive fraction is not.
pub fn held(known: Known) -> syscost_technique::Result<String> {
    let monitor = Monitor::new(&["part"], now as fn() -> u64);
    let probe = monitor.probe_cost();
    let (mut true_fraction, mut corrected, mut naive) = (0.0, 0.0, 0.0);
    const PROGRAMS: u64 = 15;
    for calls in (0..PROGRAMS).map(calls) {
        monitor.set_enabled(false);
        let off = run(&calls, &monitor);
        monitor.clear();
        monitor.set_enabled(true);
        let whole = run(&calls, &monitor);
        let tally = monitor.tally(0);
        let traced = Traced { part: tally.total as f64, whole, calls: tally.calls, call: 0.0 };
        let estimates = traced.estimate_fraction(probe, off);
        let (other, part) = calls.iter().fold((0, 0), |sum, call| (sum.0 + call.0, sum.1 + call.1));
        true_fraction += part as f64 / (other + part) as f64;
        corrected += estimates.corrected;
        naive += estimates.naive;
    }
    let [truth, corrected, naive] = [true_fraction, corrected, naive].map(|sum| sum / PROGRAMS as f64);
    println!("on a clock that only the program moves: naive {naive:.4}, corrected {corrected:.4}");
    // The rounding of the measured cost of a probe is a thousandth of it.
    known.check_truth("fraction in the part", truth, Interval::around(corrected, 0.001))
}
