//! Real-time control of a live server: background processes on its CPU are suspended and resumed so that its response
//! time stays at a goal (Measurement Techniques, slides 72 to 85).
//!
//!     cargo run --release --example control                  # about 30 s
//!     cargo run --release --example control -- --quick       # some seconds of it
//!     cargo run --release --example control -- --open-loop   # drops the controller's output; it must fail
//!     cargo run --release --example control -- --known       # only what is known beforehand; with --moved it fails
//!     cargo run --release --example control -- DIRECTORY     # and pictures there, as SVG and PNG
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks")]

#[path = "picture/experiment.rs"]
mod experiment;
#[path = "picture/panel.rs"]
mod panel;

use panel::{Line, Panel};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_platform::arch::register_loop;
use syscost_statistic::{median_interval, standard_deviation};
use syscost_technique::Interval;
use syscost_technique::by_turns::ByTurns;
use syscost_technique::control::{
    Background, Batch, ControlParameter, Controller, Halving, Interactive, Plant, Policy, Proportional,
    Stepwise, Transient, stability,
};
use syscost_technique::index::{BlockStatistic, PerformanceIndex, Quantity, blocks_to_settle, index_jitter};
use syscost_technique::known::Known;
use syscost_technique::{Error, Result};

/// CPU time of a command, and the number of background processes on the same CPU.
const DEMAND: Duration = Duration::from_millis(2);
const BATCH: usize = 8;
/// Response time of a command divided by its time alone. Beside three background processes it is four, beside four it is
/// five: the goal is in between.
const GOAL: f64 = 4.5;
/// Tolerance below the goal: more than half and less than one and a half of the effect of one process.
const SLACK: f64 = 1.2;

/// Pairs of turns with and without control; the commands of a turn until the controller has settled, and the commands after
/// that.
const PAIRS: usize = 3;
const SETTLING: usize = 24;
const MEASURED: usize = 16;

/// Compares the response of the live server in alternate turns: with all background processes, and with those that the
/// controller leaves running. The controller works in both turns, but its output reaches the processes only in one of them.
/// With three or four of eight processes left, the response is half as long; 0.75 lies between that and no effect.
fn compare_by_turns(on: usize, work: &mut dyn ControlParameter, closes_loop: bool) -> Result<String> {
    let mut server = Interactive::start(on, DEMAND)?;
    let responses = ByTurns::measure(PAIRS, |controlled| {
        work.apply(BATCH as f64)?;
        let policy = Stepwise { step: 1.0, slack: SLACK };
        let mut controller = Controller::new(PerformanceIndex::new(4, 0.3)?, GOAL, policy, BATCH as f64);
        let mut sum = 0.0;
        for command in 0..SETTLING + MEASURED {
            let response = server.time_command()?.as_secs_f64() / DEMAND.as_secs_f64();
            sum += if command < SETTLING { 0.0 } else { response };
            if let Some(step) = controller.add_response(response).filter(|_| controlled && closes_loop) {
                work.apply(step.parameter)?;
            }
        }
        Ok(sum / MEASURED as f64)
    })?;
    let what = format!("response of the live server, alone = 1, by {}", work.name());
    responses.check_ratio(&what, ..=0.75)
}

/// Starts as many batch jobs as there are background processes; the jobs compute as these do.
fn submit_batch(on: usize) -> Result<Batch> {
    let mut batch = Batch::new(on, BATCH);
    for _ in 0..BATCH {
        batch.submit(|| {
            loop {
                register_loop(1 << 20);
            }
        })?;
    }
    Ok(batch)
}

/// Prints every index that a controller may use, measured on the live server beside three processes.
fn print_quantities(on: usize, commands: u32) -> Result<()> {
    println!("\nThe live server beside 3 processes, {commands} commands: indices of one block\n");
    println!("  quantity                      mean   90th percentile");
    let mut server = Interactive::start(on, DEMAND)?;
    let _background = Background::start_computing(3, on)?;
    let rows = [
        ("response time, ms", Quantity::ResponseTime, 1e3),
        ("throughput, answers a second", Quantity::Throughput, 1.0),
        ("memory in use, MiB", Quantity::MemoryUse, 1.0 / (1 << 20) as f64),
    ];
    let transactions = (0..commands).map(|_| server.measure_transaction()).collect::<Result<Vec<_>>>()?;
    for (name, quantity, unit) in rows {
        let condensed = |statistic| {
            let index = PerformanceIndex::new(commands, 0.0)?.with_quantity(quantity);
            let mut index = index.with_statistic(statistic)?;
            transactions.iter().for_each(|transaction| _ = index.add_transaction(transaction));
            Ok::<_, Error>(unit * index.value().unwrap_or(f64::NAN))
        };
        let (mean, high) = (condensed(BlockStatistic::Mean)?, condensed(BlockStatistic::Percentile(90.0))?);
        println!("  {name:<28} {mean:>6.2} {high:>17.2}");
    }
    Ok(())
}

/// The parameters of a live run: title, n, λ and policy.
struct Trial {
    title: &'static str,
    block: u32,
    damping: f64,
    policy: Box<dyn Policy>,
}

fn trials() -> Vec<Trial> {
    let stepwise = || Box::new(Stepwise { step: 1.0, slack: SLACK });
    let gain = |share: f64, damping| share * stability::highest_stable_gain(damping, 1.0);
    let trial = |title, block, damping, policy| Trial { title, block, damping, policy };
    vec![
        trial("one by one, n 8, λ 0.3", 8, 0.3, stepwise()),
        trial("n 1, λ 0: jittery", 1, 0.0, stepwise()),
        trial("n 32, λ 0.8: sluggish", 32, 0.8, stepwise()),
        trial("halving, n 8, λ 0.3", 8, 0.3, Box::new(Halving::new(BATCH as f64, SLACK))),
        trial("proportional, 1/8 of the limit", 8, 0.3, Box::new(Proportional { gain: gain(0.125, 0.3) })),
        trial("proportional, twice the limit", 8, 0.3, Box::new(Proportional { gain: gain(2.0, 0.3) })),
    ]
}

/// The course of a live run: index and running processes, with their times in seconds.
struct Course {
    index: Vec<(f64, f64)>,
    running: Vec<(f64, f64)>,
    commands: usize,
    /// The share of commands in the second half that were slower than the goal.
    missed: f64,
}

impl Course {
    fn transient(&self) -> Transient {
        let values: Vec<f64> = self.index.iter().map(|place| place.1).collect();
        // The band contains both neighbours of the goal, 4 and 5, with their scatter.
        Transient::from_series(&values, GOAL, 1.5)
    }

    fn settling_time_text(&self) -> String {
        let settled = self.transient().settled.and_then(|at| self.index.get(at));
        settled.map_or("never".into(), |place| format!("{:.2} s", place.0))
    }
}

fn run_trial(trial: Trial, on: usize, time: Duration) -> Result<Course> {
    let mut server = Interactive::start(on, DEMAND)?;
    let mut background = Background::start_computing(BATCH, on)?;
    let index = PerformanceIndex::new(trial.block, trial.damping)?;
    let mut controller = Controller::new(index, GOAL, trial.policy, BATCH as f64);
    let begun = Instant::now();
    let mut course =
        Course { index: Vec::new(), running: vec![(0.0, BATCH as f64)], commands: 0, missed: 0.0 };
    let mut late = Vec::new();
    while begun.elapsed() < time {
        let response = server.time_command()?.as_secs_f64() / DEMAND.as_secs_f64();
        course.commands += 1;
        if begun.elapsed() > time / 2 {
            late.push(f64::from(u8::from(response > GOAL)));
        }
        if let Some(step) = controller.add_response(response) {
            background.run_first(step.parameter.round() as usize)?;
            let now = begun.elapsed().as_secs_f64();
            course.index.push((now, step.index));
            course.running.push((now, background.running_count() as f64));
        }
    }
    course.missed = late.iter().sum::<f64>() / late.len().max(1) as f64;
    Ok(course)
}

/// Prints the delay of the index after a step, and its jitter, without a controller.
fn print_index() {
    println!(
        "The index alone, of commands that scatter by 1: what n and λ buy, exactly and on 20 000 blocks\n"
    );
    println!("   n    λ   commands until 95 % of a step is seen   jitter, closed form   simulated");
    for block in [1, 8, 32] {
        for damping in [0.2, 0.5, 0.8] {
            let mut plant = Plant::new(0.0, 0.0, 1.0, 11);
            let policy = Proportional { gain: 0.0 };
            let series = plant.simulate_control(block, damping, 0.0, policy, 1.0, 0.0, 20_000);
            let found = Transient::from_series(&series, 0.0, f64::MAX).jitter;
            let settled = block * blocks_to_settle(damping, 0.05);
            let exact = index_jitter(1.0, block, damping);
            println!("{block:>4} {damping:>4} {settled:>30} {exact:>29.4} {found:>11.4}");
        }
    }
}

/// Checks twenty simulations of a closed loop. Their jitter must be that of the closed form, and their mean must be the goal,
/// which is half of the initial value. Without the controller's output both values differ.
fn on_paper(known: Known) -> Result<()> {
    const GOAL: f64 = 1000.0;
    for (block, damping) in [(1, 0.2), (8, 0.5), (32, 0.8)] {
        let gain = 0.6 * stability::highest_stable_gain(damping, 1.0);
        let settled = |seed| {
            let mut plant = Plant::new(0.0, 1.0, 1.0, seed);
            let policy = Proportional { gain };
            let series = plant.simulate_control(block, damping, GOAL, policy, 1e9, 2.0 * GOAL, 2200);
            series[200..].to_vec()
        };
        let runs: Vec<Vec<f64>> = (0..20).map(settled).collect();
        // Twice the 95 % interval, which misses the true value once in ten thousand times.
        let found = |figure: fn(&[f64]) -> f64| {
            let values: Vec<f64> = runs.iter().map(|run| figure(run)).collect();
            let Interval { estimate, low, high } = median_interval(&values);
            Interval::around(estimate, high - low)
        };
        let jitter = stability::loop_jitter(1.0, block, damping, 1.0, gain);
        let what = format!("n {block}, λ {damping}, in the loop");
        println!("{}", known.check_truth(&format!("jitter with {what}"), jitter, found(standard_deviation))?);
        let mean = found(|run| run.iter().sum::<f64>() / run.len() as f64);
        println!("{}", known.check_truth(&format!("mean with {what}"), GOAL, mean)?);
    }
    Ok(())
}

/// Prints which gains settle, for the loop on a linear plant.
fn print_loop() {
    println!(
        "\nThe loop with a proportional policy on a straight line of slope 1, λ 0.3: the goal is 50 away\n"
    );
    println!("  gain, of the limit   radius   blocks to settle within 1 %   overshoot");
    let (limit, calm) =
        (stability::highest_stable_gain(0.3, 1.0), stability::highest_gain_without_overshoot(0.3, 1.0));
    for share in [0.5 * calm / limit, calm / limit, 0.25, 0.5, 0.9, 0.99, 1.02] {
        let mut plant = Plant::new(1000.0, 1.0, 0.0, 1);
        let policy = Proportional { gain: share * limit };
        let series = plant.simulate_control(1, 0.3, 1050.0, policy, 1e9, 100.0, 1000);
        let transient = Transient::from_series(&series, 1050.0, 0.5);
        let settled = transient.settled.map_or("never".into(), |blocks| blocks.to_string());
        let radius = stability::error_decay_factor(0.3, 1.0, share * limit);
        println!("{share:>20.3} {radius:>8.3} {settled:>29} {:>9.0} %", 100.0 * transient.overshoot);
    }
}

/// Prints the response as a function of the control parameter, measured on the live server.
fn print_plant(on: usize, commands: usize) -> Result<()> {
    println!(
        "\nThe live server: {} ms of CPU time a command, its mean response in units of that\n",
        DEMAND.as_millis()
    );
    println!("  processes beside it   expected   measured   σ");
    let mut server = Interactive::start(on, DEMAND)?;
    let mut background = Background::start_computing(BATCH, on)?;
    for running in 0..=BATCH {
        background.run_first(running)?;
        let mut all = Vec::new();
        for _ in 0..commands + 2 {
            all.push(server.time_command()?.as_secs_f64() / DEMAND.as_secs_f64());
        }
        let all = &all[2..];
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares: f64 = all.iter().map(|response| (response - mean).powi(2)).sum();
        let deviation = (squares / (all.len() - 1) as f64).sqrt();
        println!("{running:>21} {:>10} {mean:>10.2} {deviation:>6.2}", running + 1);
    }
    Ok(())
}

/// Runs all trials, one after another.
fn run_all_trials(on: usize, time: Duration) -> Result<Vec<(&'static str, Course)>> {
    println!(
        "\nUnder control from {BATCH} processes on, goal {GOAL} times the response alone, {time:?} each\n"
    );
    println!(
        "  policy                           commands   settled after   overshoot   jitter   slower than the goal"
    );
    let mut courses = Vec::new();
    for trial in trials() {
        let (title, run) = (trial.title, run_trial(trial, on, time)?);
        let transient = run.transient();
        println!(
            "  {title:<32} {:>8} {:>15} {:>9.0} % {:>8.2} {:>20.0} %",
            run.commands,
            run.settling_time_text(),
            100.0 * transient.overshoot,
            transient.jitter,
            100.0 * run.missed
        );
        courses.push((title, run));
    }
    Ok(courses)
}

fn run(quick: bool, directory: Option<&str>) -> Result<()> {
    let all = core_affinity::get_core_ids().unwrap_or_default();
    let (Some(&on), Some(&aside)) = (all.last(), all.first()) else {
        return Err(Error::Missing("no CPU is allowed here".into()));
    };
    // The client must not wait for the contended CPU.
    if !core_affinity::set_for_current(aside) {
        return Err(Error::Missing("the user cannot be kept on a CPU of its own".into()));
    }
    let closes_loop = !std::env::args().any(|argument| argument == "--open-loop");
    let background = &mut Background::start_computing(BATCH, on.id)?;
    println!("{}", compare_by_turns(on.id, background, closes_loop)?);
    background.run_first(0)?;
    println!("{}\n", compare_by_turns(on.id, &mut submit_batch(on.id)?, closes_loop)?);
    print_index();
    print_loop();
    print_plant(on.id, if quick { 3 } else { 40 })?;
    print_quantities(on.id, if quick { 10 } else { 200 })?;
    let courses = run_all_trials(on.id, Duration::from_millis(if quick { 150 } else { 3500 }))?;
    println!(
        "\nslide 82: n too small is jittery, too large lags, 85: a policy may jitter, lag or be unstable; ours: jitter {:.2} with \
         n 8 and {:.2} with n 1; settled: {} with n 8, {} with n 32, {} by halves, {} with twice the stable gain",
        courses[0].1.transient().jitter,
        courses[1].1.transient().jitter,
        courses[0].1.settling_time_text(),
        courses[2].1.settling_time_text(),
        courses[3].1.settling_time_text(),
        courses[5].1.settling_time_text()
    );
    let Some(directory) = directory else { return Ok(()) };
    draw(
        directory,
        "control-blocks",
        "Control of a live server: n and λ",
        &[&courses[0], &courses[1], &courses[2]],
    )?;
    draw(
        directory,
        "control-policy",
        "Control of a live server: policies",
        &[&courses[0], &courses[3], &courses[4], &courses[5]],
    )
}

fn draw(directory: &str, name: &str, title: &str, courses: &[&(&str, Course)]) -> Result<()> {
    let index = |(title, run): &&(&str, Course)| Line {
        title: (*title).into(),
        points: run.index.clone(),
        keeps: false,
    };
    let running =
        |(_, run): &&(&str, Course)| Line { points: run.running.clone(), keeps: true, ..Line::default() };
    let panels = vec![
        Panel {
            axis: "performance index, response alone = 1".into(),
            lines: courses.iter().map(index).collect(),
            goal: Some((GOAL, format!("goal {GOAL}"))),
        },
        Panel {
            axis: "background processes that run".into(),
            lines: courses.iter().map(running).collect(),
            goal: None,
        },
    ];
    let subtitle =
        format!("{} ms of CPU time a command, {BATCH} background processes on its CPU", DEMAND.as_millis());
    panel::write(directory, name, [title, &subtitle], &panels)
}

fn main() -> ExitCode {
    experiment::main(run, on_paper)
}
