//! A new compiler is slower than expected, and its symbol table is suspected. Which fraction of the time is spent
//! there? Slides 42 to 50 of *Measurement Techniques*, and the 90-10 rule of slide 56, on a real little compiler.
//!
//!     cargo run --release --example symbol_table
//!     cargo run --release --example symbol_table -- --quick    # three programs of it
//!     cargo run --release --example symbol_table -- --known    # only what is known beforehand; with --moved it fails
//!     cargo run --release --example symbol_table -- --profile FILE    # also the flat profile and the call graph, there
//!
//! The true fraction is known: the operations of each compilation on the table are logged and repeated alone, in one bracket
//! without a probe, minus the loop that repeats them. This truth is accurate to some percent, since the table has the caches
//! to itself when it runs alone. Every compiled program is also executed, and must print what its author expects.
//!
//! A correction subtracts the cost of the probes from both times. That cost is measured either around an empty body, or in
//! place: by a second probe in each probe, and by one more reading of the clock in each. By the cycle counter both
//! corrections are about as near as no correction, since the probes pull towards a share that the table really has. With the
//! virtual clock, the probes' entries into the kernel cost more than the table's own calls, and slow down neighbouring code:
//! the result is a small difference of large times.
#![allow(clippy::print_stdout, reason = "an example talks")]
#![allow(unreachable_pub, reason = "`pub` marks what a module of the example offers")]

mod known;
mod parser;
mod program;
mod stack;
mod symbol;

use nix::time::ClockId;
use parser::compile;
use std::hint::black_box;
use std::time::Duration;
use symbol::{Now, SymbolTable, Watch, dispatch};
use syscost::suite::call::operation as call;
use syscost_platform::arch;
use syscost_statistic::{median, median_interval};
use syscost_technique::Interval;
use syscost_technique::by_turns::ByTurns;
use syscost_technique::estimate::{Estimates, ProbeCost, Traced};
use syscost_technique::known::Known;
use syscost_technique::probe_effect::{RunCounts, measure_probe_effect};
use syscost_technique::profile;

/// The number of programs in the sample, usually and with `--quick`, and the statements of each.
const PROGRAMS: [u64; 2] = [15, 3];
const STATEMENTS: usize = 500;
/// The number of compilations of each program in each way, whose medians are used. The cost of a probe is a difference of two
/// medians.
const TIMES: usize = 31;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let has = |flag| std::env::args().any(|argument| argument == flag);
    let (quick, known) = (has("--quick"), Known::from_arguments(std::env::args()));
    if has("--known") {
        println!("{}", known::held(known)?);
        return Ok(());
    }
    let programs: Vec<_> =
        (0..PROGRAMS[usize::from(quick)]).map(|seed| program::random(seed, STATEMENTS)).collect();
    let instructions =
        programs.iter().map(|program| compile_and_check(program, false)).sum::<Done<usize>>()?;
    println!(
        "{} programs of {STATEMENTS} statements, {instructions} instructions: all print what they must\n",
        programs.len()
    );
    let mut live = None;
    let clocks = [("cycle counter", arch::read as Now), ("virtual clock", thread_cpu_ns as Now)];
    let mut words = Vec::new();
    for (name, now) in clocks {
        let found = |program: &program::Program| measure_fractions(&program.text, now);
        let results = programs.iter().map(found).collect::<Done<Vec<_>>>()?;
        words.push(print_estimates(name, now, &results));
        live.get_or_insert(results);
    }
    print_probe_effect(&programs)?;
    print_profile(&programs)?;
    println!("{}\n", measure_remedy()?);
    println!("slide 48: frac is likely underestimated; ours: {}", words.join("; "));
    let live = live.unwrap_or_default();
    let middle = |figure: fn(&Fractions) -> f64| median(&live.iter().map(figure).collect::<Vec<_>>());
    let found = Interval::around(middle(|f| f.in_place.of_uninstrumented), LIVE_ERROR);
    println!("{}", known.check_truth("fraction in the live symbol table", middle(|f| f.truth), found)?);
    println!("{}", known::held(known)?);
    Ok(())
}

/// The error that the corrected fraction of the compiler's time may have, since the table alone finds other caches.
const LIVE_ERROR: f64 = 0.1;

/// The virtual clock of this thread.
fn thread_cpu_ns() -> u64 {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// Compiles and executes a program, checks its output, and returns its number of instructions.
fn compile_and_check(program: &program::Program, has_index: bool) -> Done<usize> {
    let watch = Watch::new(arch::read);
    watch.has_index.set(has_index);
    let code = compile(&program.text, &watch, false)?.code;
    let printed = stack::execute(&code, drop)?;
    if printed == program.prints { Ok(code.len()) } else { Err("a program prints something else".into()) }
}

/// The results for one program.
struct Fractions {
    truth: f64,
    /// The estimates with the cost of a probe around an empty body.
    estimates: Estimates,
    /// The estimates with the cost of a probe in place.
    in_place: Estimates,
    /// The cost of a probe in place.
    probe: ProbeCost,
    calls: f64,
    /// The time of the whole with the probes, divided by the time without them.
    slower: f64,
}

fn measure_fractions(text: &str, now: Now) -> Done<Fractions> {
    let watch = Watch::new(now);
    let operations = compile(text, &watch, true)?.operations;
    let call = cost_of_a_call(now);
    let [mut alone, mut off] = [const { Vec::new() }; 2];
    let [mut once, mut read_again, mut twice] = [const { Vec::new() }; 3];
    for _ in 0..TIMES {
        let mut table = SymbolTable::new(&watch, false);
        let with = took(now, || black_box(table.replay(&operations)));
        alone.push(with - took(now, || black_box(dispatch(&operations))));
        off.push(took(now, || compile(text, &watch, false).is_ok()));
        once.push(run_traced(text, &watch, now));
        watch.reads_again.set(true);
        read_again.push(run_traced(text, &watch, now));
        watch.reads_again.set(false);
        watch.again.set_enabled(true);
        twice.push(run_traced(text, &watch, now));
        watch.again.set_enabled(false);
    }
    let (alone, off) = (median(&alone), median(&off));
    let calls = watch.table.tally(0).calls;
    let [once, read_again, twice] = [once, read_again, twice].map(|runs| {
        let (part, whole): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        Traced { part: median(&part), whole: median(&whole), calls, call }
    });
    let probe = ProbeCost::from_traced_runs(&once, &read_again, &twice);
    Ok(Fractions {
        truth: alone / off,
        estimates: once.estimate_fraction(watch.table.probe_cost(), off),
        in_place: once.estimate_fraction(probe, off),
        probe,
        calls: calls as f64,
        slower: once.whole / off,
    })
}

/// Compiles with the table's probes on. Returns the time in the table and that of the whole.
fn run_traced(text: &str, watch: &Watch, now: Now) -> (f64, f64) {
    watch.table.clear();
    watch.table.set_enabled(true);
    let whole = took(now, || compile(text, watch, false).is_ok());
    watch.table.set_enabled(false);
    (watch.table.tally(0).total as f64, whole)
}

fn took<T>(now: Now, run: impl FnOnce() -> T) -> f64 {
    let begun = now();
    let value = black_box(run());
    let took = now() - begun;
    drop(value);
    took as f64
}

/// The cost of a call of a function of two arguments, in steps of the clock.
fn cost_of_a_call(now: Now) -> f64 {
    const CALLS: u64 = 10_000;
    let [with, without] = [call::U64[2].turns, call::control].map(|run| {
        let times: Vec<_> = (0..9).map(|_| took(now, || run(CALLS))).collect();
        median(&times) / CALLS as f64
    });
    (with - without).max(0.0)
}

/// Prints a table, and returns a sentence on the naive estimate.
fn print_estimates(name: &str, now: Now, results: &[Fractions]) -> String {
    let median_of = |figure: &dyn Fn(&Fractions) -> f64| {
        let values: Vec<_> = results.iter().map(figure).collect();
        median_interval(&values)
    };
    let steps_ns = if now as usize == arch::read as Now as usize { 1e9 / counter_hz() } else { 1.0 };
    println!(
        "the {name}: {:.0} calls a program, which their probes make {:.2} times slower",
        median_of(&|f| f.calls).estimate,
        median_of(&|f| f.slower).estimate,
    );
    let probe = ProbeCost {
        inside: median_of(&|f| f.probe.inside).estimate,
        outside: median_of(&|f| f.probe.outside).estimate,
    };
    for (place, ProbeCost { inside, outside }) in
        [("around nothing", Watch::new(now).table.probe_cost()), ("in its place", probe)]
    {
        println!(
            "  a probe {place:<14} {:4.0} ns inside, {:4.0} ns outside",
            inside * steps_ns,
            outside * steps_ns
        );
    }
    let row = |name: &str, figure: &dyn Fn(&Fractions) -> f64| {
        let Interval { estimate, low, high } = median_of(figure);
        let error = median_of(&|f| figure(f) / f.truth - 1.0);
        println!(
            "  {name:<34} {:5.1} %  [{:.1}, {:.1}]  {:+6.1} %  [{:+.1}, {:+.1}]",
            100.0 * estimate,
            100.0 * low,
            100.0 * high,
            100.0 * error.estimate,
            100.0 * error.low,
            100.0 * error.high
        );
    };
    println!("  {:<34} {:>7}  95 % interval  error  95 % interval", "fraction in the symbol table", "median");
    row("truth: the table's work alone", &|f| f.truth);
    row("naive", &|f| f.estimates.naive);
    row("corrected, probes around nothing", &|f| f.estimates.corrected);
    row("… over the uninstrumented whole", &|f| f.estimates.of_uninstrumented);
    row("corrected, probes in their place", &|f| f.in_place.corrected);
    row("… over the uninstrumented whole", &|f| f.in_place.of_uninstrumented);
    println!();
    let percent = |figure: &dyn Fn(&Fractions) -> f64| 100.0 * median_of(figure).estimate;
    format!(
        "by the {name} {:.1} % for a true {:.1} %, pulled towards the {:.0} % that its probes see of their own cost; \
         corrected {:.1} %",
        percent(&|f| f.estimates.naive),
        percent(&|f| f.truth),
        100.0 * probe.inside / (probe.inside + probe.outside),
        percent(&|f| f.in_place.of_uninstrumented)
    )
}

fn counter_hz() -> f64 {
    syscost::clock::Clock::start_up().hz()
}

/// One of the counts of a run.
type Count = fn(&RunCounts) -> i64;

/// Prints the context switches and page faults that the table's probes, with the virtual clock, add to the compilations.
fn print_probe_effect(programs: &[program::Program]) -> Done<()> {
    let watch = Watch::new(thread_cpu_ns);
    let effect = measure_probe_effect(TIMES, |probed| {
        watch.table.set_enabled(probed);
        programs.iter().for_each(|program| _ = black_box(compile(&program.text, &watch, false)));
        Ok(())
    })?;
    let counts: [(&str, Count); 4] = [
        ("voluntary switches", |counts| counts.voluntary_switches),
        ("involuntary switches", |counts| counts.involuntary_switches),
        ("minor page faults", |counts| counts.minor_faults),
        ("major page faults", |counts| counts.major_faults),
    ];
    println!("of all compilations, medians   without probes   with probes   added by the probes");
    for (name, count) in counts {
        let [without, with] = [false, true].map(|probed| effect.usual(probed, count));
        println!("  {name:<28} {without:>14.0} {with:>13.0} {:>21.0}", effect.added(count));
    }
    println!();
    Ok(())
}

/// Slide 56: the table gets a better data structure, which pays off for a long program. Returns the sentence that its
/// compilation is faster.
fn measure_remedy() -> Done<String> {
    let (program, watch) = (program::random(56, LONG), Watch::new(arch::read));
    compile_and_check(&program, true)?;
    let ms = ByTurns::measure(TIMES, |has_index| {
        watch.has_index.set(has_index);
        Ok(took(thread_cpu_ns, || compile(&program.text, &watch, false).is_ok()) / 1e6)
    })?;
    Ok(ms.check_ratio("ms of compiling, by a list of symbols and with an index of their names", ..=REMEDY)?)
}

/// Statements of a long program, and the share of its compile time that the compiler with the index may take.
const LONG: usize = 5_000;
const REMEDY: f64 = 0.9;

/// Prints the profile of all programs.
fn print_profile(programs: &[program::Program]) -> Done<()> {
    let watch = Watch::new(arch::read);
    watch.routines.set_enabled(true);
    for program in programs {
        compile(&program.text, &watch, false)?;
    }
    let rows = watch.routines.flat_profile(watch.routines.probe_cost());
    println!("{:<16} {:>9} {:>8}", "routine", "calls", "up to it");
    for row in &rows {
        println!("{:<16} {:>9} {:>7.1} %", row.name, row.calls, 100.0 * row.up_to_here);
    }
    let profile_path = std::env::args().skip_while(|argument| argument != "--profile").nth(1);
    if let Some(path) = profile_path {
        watch.routines.write_profile(path.as_ref(), "ticks of the cycle counter")?;
        println!("\nflat profile and call graph: {path}");
    }
    let share = 100.0 * profile::routine_share_for_time(&rows, 0.9);
    println!(
        "\nslide 56: 90 % of the time in 10 % of the code; ours: 90 % in {share:.0} % of ten routines, which all lie on the way of a token"
    );
    Ok(())
}
