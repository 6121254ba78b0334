//! Counts how often each instruction is executed, by the methods of slides 59 to 67 of *Measurement Techniques*.
//!
//!     cargo run --release --example instruction_frequency    # with `-- --moved` it fails at its end
//!
//! First it counts the processor's instructions by a trap after each, and compares them with loops in assembly whose
//! instructions are known. Then it counts the instructions of a small emulated machine, in memory and on another CPU. The
//! true counts follow from the emulated program, which has no jumps.
#![allow(clippy::print_stdout, reason = "an example talks")]
#![allow(unreachable_pub, reason = "`pub` marks what a module of the example offers")]

#[path = "symbol_table/stack.rs"]
mod stack;

use core_affinity::CoreId;
use stack::{Instruction, execute};
use std::hint::black_box;
use syscost::clock::Clock;
use syscost_platform::arch;
use syscost_statistic::{Random, median};
use syscost_technique::Interval;
use syscost_technique::hybrid::{Interface, Observer, OneWay, Ring, TwoWay, encode_event};
use syscost_technique::instruction_frequency::{InstructionKind, count_instructions, count_kinds};
use syscost_technique::known::Known;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let clock = Clock::start_up();
    let cpus = core_affinity::get_core_ids().unwrap_or_default();
    if !core_affinity::set_for_current(*cpus.last().ok_or("no CPU is allowed here")?) {
        return Err("the program cannot be kept on one CPU".into());
    }
    let slower = by_trapping(&clock)?;
    let (counted, truth) = count_emulated(&clock, &cpus)?;
    println!(
        "slide 61: huge overhead, a trap on every instruction; ours: {}",
        slower
            .map_or("ptrace is refused here".into(), |times| format!("{times:.0} times slower than without"))
    );
    let known = Known::from_arguments(std::env::args());
    for (name, (counted, truth)) in NAMES.iter().zip(counted.into_iter().zip(truth)) {
        println!("{}", known.check_truth(name, truth as f64, Interval::exactly(counted as f64))?);
    }
    Ok(())
}

/// A loop: its name, the function, and the instructions of an iteration.
type Written = (&'static str, fn(u64), f64);

/// Traps after each instruction of known loops. Returns the factor by which the loops become slower.
fn by_trapping(clock: &Clock) -> Done<Option<f64>> {
    const TURNS: u64 = 640;
    let known: [Written; 3] = [
        ("a loop of a decrement and a jump", arch::register_loop, 2.0),
        ("64 additions, a decrement, a jump", |n| _ = arch::add_chain(n), 66.0 / 64.0),
        ("64 multiplications likewise", |n| _ = arch::multiply_chain(n), 66.0 / 64.0),
    ];
    let mut slower = Vec::new();
    for (name, run, each) in known {
        let mut seen = None;
        let stepped = clock.time(|| seen = Some(count_instructions(run, TURNS)));
        let Some(Ok(Some(seen))) = seen else {
            println!("skipped: instructions cannot be stepped through here: {seen:?}\n");
            return Ok(None);
        };
        let bare = clock.time(|| run(black_box(3 * TURNS)));
        slower.push(stepped.0 as f64 / bare.0 as f64);
        println!(
            "{name}: {} instructions in {TURNS} turns, {:.0} are written there",
            seen.total(),
            each * TURNS as f64
        );
        for (opcode, count, share) in seen.sorted_by_count() {
            println!("  {:<8} {count:>6} {:>6.2} %", opcode.to_string(), 100.0 * share);
        }
    }
    println!();
    print_kinds()?;
    Ok(Some(median(&slower)))
}

/// Counts the instructions of two loops by kind, which are known from their assembly.
fn print_kinds() -> Done<()> {
    const TURNS: u64 = 500;
    type Turns = fn(u64);
    let loops: [(&str, Turns); 2] = [
        ("a loop of eight instructions", |n| _ = arch::mixed_loop(n)),
        ("a loop with its counter in memory", arch::memory_loop),
    ];
    println!("instructions by kind, of {TURNS} turns");
    print!("{:<34}", "");
    InstructionKind::ALL.iter().for_each(|kind| print!("{:>12}", format!("{kind:?}")));
    println!();
    for (name, run) in loops {
        print!("{name:<34}");
        let counts = count_kinds(run, TURNS)?.ok_or("it has too many instructions")?;
        InstructionKind::ALL.iter().for_each(|kind| print!("{:>12}", counts.get(kind).copied().unwrap_or(0)));
        println!();
    }
    println!();
    Ok(())
}

/// The index of an instruction in [`NAMES`].
fn kind(instruction: Instruction) -> u8 {
    match instruction {
        Instruction::Push(_) => 0,
        Instruction::Load(_) => 1,
        Instruction::Store(_) => 2,
        Instruction::Add => 3,
        Instruction::Subtract => 4,
        Instruction::Multiply => 5,
        Instruction::Print => 6,
    }
}
const NAMES: [&str; 7] = ["push", "load", "store", "add", "subtract", "multiply", "print"];

type Counts = [u64; NAMES.len()];

/// A random program for the machine.
fn program(groups: usize) -> Vec<Instruction> {
    let mut random = Random::new(9);
    let mut code = vec![Instruction::Push(1), Instruction::Store(0)];
    for _ in 0..groups {
        let operand = |random: &mut Random| match random.number_below(3) {
            0 => Instruction::Push(random.number_below(100) as i64),
            _ => Instruction::Load(0),
        };
        code.extend([operand(&mut random), operand(&mut random)]);
        code.push([Instruction::Add, Instruction::Subtract, Instruction::Multiply][random.number_below(3)]);
        code.push(if random.number_below(50) == 0 { Instruction::Print } else { Instruction::Store(0) });
    }
    code
}

/// The counts of each instruction: those taken in memory, and those of the program.
fn count_emulated(clock: &Clock, cpus: &[CoreId]) -> Done<(Counts, Counts)> {
    let code = program(25_000);
    let mut truth: Counts = [0; NAMES.len()];
    code.iter().for_each(|&instruction| truth[usize::from(kind(instruction))] += 1);
    println!("an emulated machine, {} instructions", code.len());
    println!("{:<12} {:>10} {:>10} {:>12}", "monitor", "ns each", "counted", "off by");
    let bare = ns_per_instruction(clock, &code, |_| ())?;
    println!("{:<12} {bare:>10.1}", "none");
    let mut counts: Counts = [0; NAMES.len()];
    let ns = ns_per_instruction(clock, &code, |kind| counts[usize::from(kind)] += 1)?;
    print_row("in memory", ns, &counts, &truth);
    let [.., other, _] = cpus[..] else {
        println!("skipped: one CPU, and a hybrid monitor is a machine of its own\n");
        return Ok((counts, truth));
    };
    count_on_other_cpu::<OneWay>(clock, "one flag", &code, &truth, other.id)?;
    count_on_other_cpu::<TwoWay>(clock, "two flags", &code, &truth, other.id)?;
    count_on_other_cpu::<Ring>(clock, "ring", &code, &truth, other.id)?;
    let must: Vec<_> = NAMES.iter().zip(truth).map(|(name, count)| format!("{name} {count}")).collect();
    println!("what is counted must be: {}\n", must.join(", "));
    Ok((counts, truth))
}

/// Executes the code and passes each instruction to `watch`. Returns the nanoseconds per instruction.
fn ns_per_instruction(clock: &Clock, code: &[Instruction], mut watch: impl FnMut(u8)) -> Done<f64> {
    let mut printed = Ok(Vec::new());
    let ticks = clock.time(|| printed = execute(code, |instruction| watch(kind(instruction))));
    printed?;
    Ok(clock.nanoseconds(ticks).0 / code.len() as f64)
}

fn print_row(name: &str, ns: f64, counted: &Counts, truth: &Counts) {
    let all: u64 = truth.iter().sum();
    let off: u64 = truth.iter().zip(counted).map(|(a, b)| a.abs_diff(*b)).sum();
    let share = 100.0 * counted.iter().sum::<u64>() as f64 / all as f64;
    println!("{name:<12} {ns:>10.1} {share:>8.1} % {off:>12}");
}

fn count_on_other_cpu<I: Interface>(
    clock: &Clock,
    name: &str,
    code: &[Instruction],
    truth: &Counts,
    other: usize,
) -> Done<()> {
    let mut observer = Observer::<I>::start(other, 0)?;
    let (mut number, mut last) = (0u64, 0);
    let ns = ns_per_instruction(clock, code, |kind| {
        last = encode_event(number, kind);
        number += 1;
        observer.interface().send(last);
    })?;
    let tally = observer.tally_after(last)?;
    print_row(name, ns, &std::array::from_fn(|kind| tally.counts[kind]), truth);
    Ok(())
}
