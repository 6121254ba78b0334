//! A new compiler is slower than expected, and its symbol table is suspected. Which fraction of the time is spent there?
//! Slides 42 to 50 of *Measurement Techniques*, and the 90-10 rule of slide 56, on a real little compiler.
//!
//!     cargo run --release --example symbol_table
//!
//! The truth is known: what each compilation asked of the table is written down and done once more by itself, in one
//! bracket without a probe. Every program that is compiled is also executed, and must print what its author says.
#![allow(clippy::print_stdout, reason = "an example talks")]
#![allow(unreachable_pub, reason = "nobody reaches into an example; `pub` says what a module offers")]

mod lexer;
mod parser;
mod program;
mod stack;
mod symbol;
mod watch;

use parser::compile;
use std::hint::black_box;
use symbol::SymbolTable;
use syscost::machine::{arch, call, time};
use syscost::statistic::{Interval, median, median_interval};
use syscost::technique::estimate::{Estimates, Perturbation, Traced};
use syscost::technique::profile;
use watch::{Now, Watch};

/// Programs of the sample, and statements of each.
const PROGRAMS: u64 = 15;
const STATEMENTS: usize = 500;
/// Each is compiled so often in each way; the medians are taken.
const TIMES: usize = 9;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let programs: Vec<_> = (0..PROGRAMS).map(|seed| program::random(seed, STATEMENTS)).collect();
    let instructions = programs.iter().map(proven).sum::<Done<usize>>()?;
    println!(
        "{PROGRAMS} programs of {STATEMENTS} statements, {instructions} instructions: all print what they must\n"
    );
    let mut last = None;
    for (name, now) in [("cycle counter", arch::read as Now), ("virtual clock", time::thread_cpu_ns as Now)] {
        let results =
            programs.iter().map(|program| fractions(&program.text, now)).collect::<Done<Vec<_>>>()?;
        last = Some(tell(name, now, &results));
    }
    ninety_ten(&programs)?;
    let (truth, naive, pull) = last.ok_or("no clock")?;
    let why = match pull {
        Perturbation::Up => "a probe sees more than that share of its own cost, and pulls the fraction up",
        Perturbation::Down => "the whole suffers more than the part",
    };
    println!(
        "slide 48: frac is likely underestimated; ours: {naive:.1} % for a true {truth:.1} %, for {why}"
    );
    Ok(())
}

/// Compiles and executes a program; its number of instructions.
fn proven(program: &program::Program) -> Done<usize> {
    let watch = Watch::new(arch::read);
    let code = compile(&program.text, &watch, false)?.code;
    let printed = stack::execute(&code, drop)?;
    if printed == program.prints { Ok(code.len()) } else { Err("a program prints something else".into()) }
}

/// What was found of one program.
struct Fractions {
    truth: f64,
    estimates: Estimates,
    calls: f64,
    /// Time of the whole with the probes over that without.
    slower: f64,
}

fn fractions(text: &str, now: Now) -> Done<Fractions> {
    let watch = Watch::new(now);
    let operations = compile(text, &watch, true)?.operations;
    let probe = watch.table.probe_cost();
    let call = cost_of_a_call(now);
    let [mut alone, mut off, mut part, mut whole] = [const { Vec::new() }; 4];
    for _ in 0..TIMES {
        let mut table = SymbolTable::new(&watch, false);
        alone.push(took(now, || black_box(table.replay(&operations))));
        off.push(took(now, || compile(text, &watch, false).is_ok()));
        watch.table.clear();
        watch.table.switch(true);
        whole.push(took(now, || compile(text, &watch, false).is_ok()));
        watch.table.switch(false);
        part.push(watch.table.tally(0).total as f64);
    }
    let [alone, off, part, whole] = [alone, off, part, whole].map(|times| median(&times));
    let calls = watch.table.tally(0).calls;
    let estimates = Traced { part, whole, calls, call }.estimates(probe, off);
    Ok(Fractions { truth: alone / off, estimates, calls: calls as f64, slower: whole / off })
}

fn took<T>(now: Now, run: impl FnOnce() -> T) -> f64 {
    let begun = now();
    let value = black_box(run());
    let took = now() - begun;
    drop(value);
    took as f64
}

/// Of a function of two arguments, in steps of the clock.
fn cost_of_a_call(now: Now) -> f64 {
    const CALLS: u64 = 10_000;
    let [with, without] = [call::U64[2], call::control].map(|run| {
        let times: Vec<_> = (0..9).map(|_| took(now, || run(CALLS))).collect();
        median(&times) / CALLS as f64
    });
    (with - without).max(0.0)
}

/// Prints a table; answers the truth and the naive estimate in percent, and the way of the perturbation.
fn tell(name: &str, now: Now, results: &[Fractions]) -> (f64, f64, Perturbation) {
    let of = |figure: &dyn Fn(&Fractions) -> f64| {
        let values: Vec<_> = results.iter().map(figure).collect();
        median_interval(&values)
    };
    let truth = of(&|f| f.truth);
    let probe = Watch::new(now).table.probe_cost();
    let steps_ns = if now as usize == arch::read as Now as usize { 1e9 / counter_hz() } else { 1.0 };
    println!(
        "probes by the {name}: {:.0} ns inside, {:.0} ns outside; {:.0} calls a program, which makes it {:.2} times slower",
        probe.inside * steps_ns,
        probe.outside * steps_ns,
        of(&|f| f.calls).estimate,
        of(&|f| f.slower).estimate,
    );
    let row = |name: &str, figure: &dyn Fn(&Fractions) -> f64| {
        let Interval { estimate, low, high } = of(figure);
        let error = of(&|f| figure(f) / f.truth - 1.0).estimate;
        println!(
            "  {name:<34} {:5.1} %  [{:.1}, {:.1}]  {:+6.1} %",
            100.0 * estimate,
            100.0 * low,
            100.0 * high,
            100.0 * error
        );
    };
    println!("  {:<34} {:>7}  95 % interval   error", "fraction in the symbol table", "median");
    row("truth: the table's work alone", &|f| f.truth);
    row("naive", &|f| f.estimates.naive);
    row("corrected by calls times probe", &|f| f.estimates.corrected);
    row("… over the uninstrumented whole", &|f| f.estimates.of_uninstrumented);
    println!();
    (
        100.0 * truth.estimate,
        100.0 * of(&|f| f.estimates.naive).estimate,
        Perturbation::pull(truth.estimate, probe),
    )
}

fn counter_hz() -> f64 {
    syscost::instrument::Clock::start_up().hz()
}

/// The profile of all programs.
fn ninety_ten(programs: &[program::Program]) -> Done<()> {
    let watch = Watch::new(arch::read);
    watch.routines.switch(true);
    for program in programs {
        compile(&program.text, &watch, false)?;
    }
    let probe = watch.routines.probe_cost();
    // Each span's own probe is in its own time, and the outside of those below it as well: some calls later the
    // difference between the two does not matter for the order.
    let own = |tally: syscost::technique::trace::Tally| {
        (tally.own as f64 - tally.calls as f64 * probe.inside).max(0.0)
    };
    let rows =
        profile::ordered(watch.routines.tallies().map(|(name, tally)| (name, tally.calls, own(tally))));
    println!("{:<16} {:>9} {:>8}", "routine", "calls", "up to it");
    for row in &rows {
        println!("{:<16} {:>9} {:>7.1} %", row.name, row.calls, 100.0 * row.up_to_here);
    }
    let share = 100.0 * profile::routines_for(&rows, 0.9);
    println!("\nslide 56: 90 % of the time in 10 % of the code; ours: 90 % in {share:.0} % of the routines");
    Ok(())
}
