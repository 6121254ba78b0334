//! Adaptive control of the degree of multiprogramming, live: jobs that read random pages of files in a memory control
//! group, which thrash without any swap (Measurement Techniques, slides 86 to 91).
//!
//!     cargo run --release --example multiprogramming              # about 30 s; needs a memory control group
//!     cargo run --release --example multiprogramming -- --quick   # some seconds of it
//!     cargo run --release --example multiprogramming -- --open-loop # drops the controller's output; it must fail
//!     cargo run --release --example multiprogramming -- --known   # only what is known beforehand; with --moved it fails
//!     cargo run --release --example multiprogramming -- DIRECTORY # and a picture there, as SVG and PNG
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks")]

#[path = "picture/experiment.rs"]
mod experiment;
#[path = "picture/panel.rs"]
mod panel;

use panel::{Line, Panel};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_technique::Interval;
use syscost_technique::by_turns::ByTurns;
use syscost_technique::control::{ControlParameter, Controller, Stepwise};
use syscost_technique::index::PerformanceIndex;
use syscost_technique::known::Known;
use syscost_technique::multiprogramming::{Computer, Job, Paging, Pilot};
use syscost_technique::{Error, Result};

/// Size of a job's file, and memory for all jobs, bytes: three files fit.
const FILE: usize = 16 << 20;
const MEMORY: u64 = 56 << 20;
const JOBS: usize = 6;
/// Windows in which a job brings its 4096 pages in.
const LAG: u32 = 8;
/// A job computes a third of the time and waits for the rest, so that one job alone leaves the CPU idle.
const JOB: Job = Job { bytes: FILE, touches: 400, turns: 8_000, wait: Duration::from_millis(5) };

fn microseconds(time: Option<Duration>) -> String {
    time.map_or("–".into(), |time| format!("{:.0} µs", time.as_secs_f64() * 1e6))
}

fn print_row(degree: usize, paging: &Paging) {
    println!(
        "  {degree:>3} {:>16.0} {:>14.0} {:>9} {:>9} {:>8.2}",
        paging.throughput(),
        paging.page_ins as f64 / paging.window.as_secs_f64(),
        microseconds(paging.mean_fault_interval()),
        microseconds(paging.mean_page_in_time()),
        paging.mean_queue_length()
    );
}

/// The paging with 1, 2, … running jobs.
fn curve(computer: &mut Computer, settle: Duration, window: Duration) -> Result<Vec<Paging>> {
    println!("  DMP   touches a second   page-ins a s         F         S      S/F");
    let mut curve = Vec::new();
    for degree in 1..=computer.job_count() {
        computer.run_first(degree)?;
        computer.measure_paging(settle);
        let paging = computer.measure_paging(window);
        print_row(degree, &paging);
        curve.push(paging);
    }
    Ok(curve)
}

/// Simulates a computer where three of the jobs fit. From either end of the range, the pilot must run three jobs most of the
/// time.
fn on_paper(known: Known) -> Result<()> {
    const FITS: usize = 3;
    const WINDOWS: usize = 2000;
    let window = Duration::from_millis(100);
    let paging = |degree: usize| {
        let queue = if degree <= FITS { 0.05 } else { (degree - FITS) as f64 + 0.8 };
        Paging { window, touches: 1, page_ins: 1, waited: window.mul_f64(queue) }
    };
    for from in [1, JOBS] {
        let mut pilot = Pilot::new(JOBS, 0.3, LAG)?.with_initial_degree(from);
        let mut windows_at = [0u64; JOBS + 1];
        for _ in 0..WINDOWS {
            windows_at[pilot.update_degree(&paging(pilot.degree()))] += 1;
        }
        let most = (0..=JOBS).max_by_key(|degree| windows_at[*degree]).unwrap_or(0);
        let what = format!("jobs that fit, as flown from {from}");
        println!("{}", known.check_truth(&what, FITS as f64, Interval::exactly(most as f64))?);
    }
    Ok(())
}

struct Course {
    throughput: Vec<(f64, f64)>,
    queue: Vec<(f64, f64)>,
    degree: Vec<(f64, f64)>,
    /// The mean over the second half of the run.
    mean: f64,
}

fn run_pilot(computer: &mut Computer, from: usize, time: Duration, window: Duration) -> Result<Course> {
    let mut pilot = Pilot::new(computer.job_count(), 0.3, LAG)?.with_initial_degree(from);
    computer.run_first(from)?;
    let begun = Instant::now();
    let mut course =
        Course { throughput: vec![], queue: vec![], degree: vec![(0.0, from as f64)], mean: 0.0 };
    let (mut touches, mut seconds) = (0, 0.0);
    while begun.elapsed() < time {
        let paging = computer.measure_paging(window);
        let now = begun.elapsed();
        if now > time / 2 {
            touches += paging.touches;
            seconds += paging.window.as_secs_f64();
        }
        computer.run_first(pilot.update_degree(&paging))?;
        let at = now.as_secs_f64();
        course.throughput.push((at, paging.throughput()));
        course.queue.push((at, paging.mean_queue_length()));
        course.degree.push((at, pilot.degree() as f64));
    }
    course.mean = touches as f64 / seconds;
    Ok(course)
}

/// A controller: computes the parameter from the paging of a window.
type WindowController = Box<dyn FnMut(&Paging) -> f64>;

/// A control loop over the paging of windows.
struct Loop {
    /// The parameter at the beginning of each turn.
    initial: f64,
    apply: fn(&mut Computer, f64) -> Result<()>,
    /// Makes a new controller.
    controller: fn() -> Result<WindowController>,
}

/// Runs fewer jobs while jobs queue for the paging device.
const BY_DEGREE: Loop = Loop {
    initial: JOBS as f64,
    apply: |computer, degree| computer.apply(degree),
    controller: || {
        let mut pilot = Pilot::new(JOBS, 0.3, LAG)?.with_initial_degree(JOBS);
        Ok(Box::new(move |paging: &Paging| pilot.update_degree(paging) as f64))
    },
};

/// Gives all jobs more memory while they queue for the paging device, at most twice as much.
const BY_MEMORY: Loop = Loop {
    initial: MEMORY as f64,
    apply: |computer, bytes| computer.memory().apply(bytes),
    controller: || {
        let policy = Stepwise { step: -((8 << 20) as f64), slack: 1.0 };
        let controller = Controller::new(PerformanceIndex::new(4, 0.3)?, 1.0, policy, 2.0 * MEMORY as f64);
        let mut controller = controller.with_initial_parameter(MEMORY as f64);
        Ok(Box::new(move |paging: &Paging| {
            controller.add_response(paging.mean_queue_length());
            controller.parameter()
        }))
    },
};

/// Compares the mean fault interval F in alternate turns, each of which begins with all jobs. The controller works in both
/// turns, but its output reaches the jobs only in one of them.
fn compare_by_turns(
    computer: &mut Computer,
    parameter: &str,
    by: &Loop,
    closes_loop: bool,
) -> Result<String> {
    const PAIRS: usize = 3;
    /// Windows until the remaining jobs have their pages, and windows that are measured after that.
    const SETTLING: u32 = 60;
    const MEASURED: u32 = 15;
    const WINDOW: Duration = Duration::from_millis(20);
    computer.run_first(JOBS)?;
    let intervals = ByTurns::measure(PAIRS, |controlled| {
        let mut controller = (by.controller)()?;
        (by.apply)(computer, by.initial)?;
        let (mut time, mut page_ins) = (Duration::ZERO, 0);
        for window in 0..SETTLING + MEASURED {
            let paging = computer.measure_paging(WINDOW);
            if window >= SETTLING {
                time += paging.window;
                page_ins += paging.page_ins;
            }
            let value = controller(&paging);
            if controlled && closes_loop {
                (by.apply)(computer, value)?;
            }
        }
        // Without a fault the interval is at least the measured time.
        Ok(time.as_secs_f64() * 1e6 / page_ins.max(1) as f64)
    })?;
    (by.apply)(computer, by.initial)?;
    intervals.check_ratio(&format!("time between two page-ins, µs, by {parameter}"), 1.5..)
}

fn run(quick: bool, directory: Option<&str>) -> Result<()> {
    let all = core_affinity::get_core_ids().unwrap_or_default();
    let (Some(&on), Some(&aside)) = (all.last(), all.first()) else {
        return Err(Error::Missing("no CPU is allowed here".into()));
    };
    if !core_affinity::set_for_current(aside) {
        return Err(Error::Missing("the controller cannot be kept on a CPU of its own".into()));
    }
    let mut computer = Computer::start(&std::env::temp_dir(), MEMORY, JOBS, JOB, on.id)?;
    let scale = |ms: u64| Duration::from_millis(if quick { ms / 15 } else { ms });
    println!(
        "{JOBS} jobs of {} MiB each on one CPU, {} MiB of memory for all of them\n",
        FILE >> 20,
        MEMORY >> 20
    );
    let closes_loop = !std::env::args().any(|argument| argument == "--open-loop");
    let (degree, memory) = (computer.name(), computer.memory().name());
    println!("{}", compare_by_turns(&mut computer, degree, &BY_DEGREE, closes_loop)?);
    println!("{}\n", compare_by_turns(&mut computer, memory, &BY_MEMORY, closes_loop)?);
    let curve = curve(&mut computer, scale(900), scale(900))?;
    let best =
        (0..JOBS).max_by(|a, b| curve[*a].throughput().total_cmp(&curve[*b].throughput())).unwrap_or(0);
    let most = curve[best].throughput();
    let idle = curve.iter().take_while(|paging| paging.mean_queue_length() < 1.0).count();
    let low = run_pilot(&mut computer, 1, scale(10_000), scale(100))?;
    let high = run_pilot(&mut computer, JOBS, scale(10_000), scale(100))?;
    println!("\n  best of the curve        {most:>9.0} touches a second with {} jobs", best + 1);
    println!("  all {JOBS} jobs               {:>9.0}", curve[JOBS - 1].throughput());
    let share = |course: &Course| 100.0 * course.mean / most;
    for (name, course) in [("controlled from 1 job ", &low), ("controlled from 6 jobs", &high)] {
        println!(
            "  {name}   {:>9.0}   {:.0} % of the best, second half of the run",
            course.mean,
            share(course)
        );
    }
    println!(
        "\nslide 89: F ≈ S is desirable, fewer jobs idle and more thrash; ours: F > S with up to {idle} jobs, F < S with more, \
         the best throughput with {}, and {:.0} % and {:.0} % of it under control",
        best + 1,
        share(&low),
        share(&high)
    );
    directory.map_or(Ok(()), |directory| draw(directory, low, high, most))
}

fn draw(directory: &str, low: Course, high: Course, best: f64) -> Result<()> {
    let lines = |low, high, keeps, named: bool| {
        let title = |title: &str| if named { title.to_owned() } else { String::new() };
        vec![
            Line { title: title("from 1 job"), points: low, keeps },
            Line { title: title("from 6 jobs"), points: high, keeps },
        ]
    };
    let panels = vec![
        Panel {
            axis: "touches a second".into(),
            lines: lines(low.throughput, high.throughput, false, true),
            goal: Some((best, "best of the curve".into())),
        },
        Panel {
            axis: "S/F".into(),
            lines: lines(low.queue, high.queue, false, false),
            goal: Some((1.0, "F = S".into())),
        },
        Panel {
            axis: "jobs that run".into(),
            lines: lines(low.degree, high.degree, true, false),
            goal: None,
        },
    ];
    let subtitle = format!("jobs of {} MiB, {} MiB of memory, one CPU", FILE >> 20, MEMORY >> 20);
    let title = "Adaptive control of the degree of multiprogramming";
    panel::write(directory, "multiprogramming", [title, &subtitle], &panels)
}

fn main() -> ExitCode {
    experiment::main(run, on_paper)
}
