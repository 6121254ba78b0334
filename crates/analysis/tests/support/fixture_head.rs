//! Heads for tests. This crate and the crates that use its comparisons include this file.
#![allow(dead_code, reason = "a crate need not use all of it")]
#![allow(unreachable_pub, reason = "`pub` marks what it offers")]

use syscost_analysis::record::bundle::{Head, LAYOUT, Run, Series, Value};
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::Interval;
use syscost_statistic::Random;

/// The cases of [`head`].
pub const CASES: [&str; 4] =
    ["known_work/add", "known_work/multiply", "syscall/getpid", "syscall/openat-close"];

/// The head of a machine without noise: `boots` boots, each with one session of `processes` processes. Every value is 100 ns.
pub fn head(name: &str, boots: usize, processes: usize) -> Head {
    head_with_cases(name, boots, processes, &CASES.map(str::to_owned))
}

/// As [`head`], of these cases.
pub fn head_with_cases(name: &str, boots: usize, processes: usize, cases: &[String]) -> Head {
    let run = |at: usize| Run {
        name: format!("{name}-{at}"),
        session: format!("{name}-session-{}", at / processes),
        boot: format!("{name}-boot-{}", at / processes),
        started: 1_795_182_245 + at as u64,
        fingerprint: 0,
    };
    let runs = boots * processes;
    let exactly = Interval { estimate: 100.0, low: 99.0, high: 101.0 };
    let series = |id: &String| Series {
        id: id.clone(),
        version: "1".into(),
        clock: "tsc".into(),
        peer: None,
        values: (0..runs).map(|run| Value { run, median: exactly, core_hz: None }).collect(),
        without: Vec::new(),
    };
    Head {
        bundle: LAYOUT,
        tool: "syscost 0.1.0".into(),
        name: name.into(),
        created: 1_795_182_245,
        unit: "ns".into(),
        scale: "default".into(),
        fingerprints: vec![Fingerprint { kernel_release: Some(name.into()), ..Fingerprint::default() }],
        runs: (0..runs).map(run).collect(),
        runs_end: None,
        series: cases.iter().map(series).collect(),
    }
}

/// Multiplies every value of the cases whose ids begin with `prefix`.
pub fn scale_cases(head: &mut Head, prefix: &str, factor: f64) {
    for series in head.series.iter_mut().filter(|series| series.id.starts_with(prefix)) {
        series.values.iter_mut().for_each(|value| multiply(value, factor));
    }
}

/// Adds independent noise to every case. `between` and `within` are the standard deviations, of the logarithm, between boots
/// and within a boot.
pub fn add_noise(head: &mut Head, between: f64, within: f64, seed: u64) {
    let mut random = Random::new(seed);
    for series in &mut head.series {
        let mut boot = String::new();
        let mut mood = 0.0;
        for value in &mut series.values {
            if boot != head.runs[value.run].boot {
                boot.clone_from(&head.runs[value.run].boot);
                mood = between * draw_normal(&mut random);
            }
            multiply(value, (mood + within * draw_normal(&mut random)).exp());
        }
    }
}

fn multiply(value: &mut Value, factor: f64) {
    value.median = value.median.map(|end| end * factor);
}

/// A standard normal number, by the method of Box and Muller.
fn draw_normal(random: &mut Random) -> f64 {
    let mut share = || (random.number_below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
    (-2.0 * share().ln()).sqrt() * (std::f64::consts::TAU * share()).cos()
}

/// Puts all runs into one boot, each session as it is.
pub fn join_into_one_boot(head: &mut Head) {
    head.runs.iter_mut().for_each(|run| run.boot = "the-only-boot".into());
}
