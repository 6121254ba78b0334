//! Makes artificial records, to try and to time `syscost compare`:
//!
//! ```text
//! cargo run --release --example store -- DIR 20 300 5 0.01
//! CRITERION_HOME=DIR syscost compare v00 v01 v02
//! ```
//!
//! Twenty baselines of five boots, each with one process, of 300 cases; boots deviate by 1 %. Every tenth case
//! drifts by 2 % from one baseline to the next. A file that cannot be written is a panic.
#![allow(clippy::unwrap_used, reason = "an example that nothing depends on")]

use std::path::Path;
use syscost::environment::Fingerprint;
use syscost::record::store::Store;
use syscost::record::{CaseRecord, ClockRun, FORMAT, GroupRun, Interval, Measured, Outcome, Record};
use syscost_analysis::record::bundle::Bundle;
use syscost_statistic::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: f64| arguments.get(at).map_or(usual, |text| text.parse().unwrap());
    let directory = arguments.first().expect("the directory of Criterion's files as the first argument");
    let [baselines, cases, boots] = [(1, 3.0), (2, 300.0), (3, 5.0)].map(|(at, n)| number(at, n) as usize);
    let mut random = Random::new(7);
    for at in 0..baselines {
        let name = format!("v{at:02}");
        let records = (0..boots).map(|boot| record(&name, at, boot, cases, number(4, 0.01), &mut random));
        let bundle = Bundle::from_records(&name, 1_795_182_245, records.collect()).unwrap();
        bundle.save_in(&Store::at(Path::new(directory))).unwrap();
    }
}

fn record(
    name: &str,
    baseline: usize,
    boot: usize,
    cases: usize,
    deviation: f64,
    random: &mut Random,
) -> Record {
    let groups: Vec<GroupRun> = (0..cases.div_ceil(20).max(1))
        .map(|group| {
            let name = if group == 0 { "known_work".into() } else { format!("group_{group:02}") };
            let cases =
                (0..20.min(cases - 20 * group)).map(|at| case(&name, at, baseline, deviation, random));
            let clock = ClockRun { source: "tsc".into(), hz: 2.6e9, ..ClockRun::default() };
            GroupRun { cases: cases.collect(), name: name.clone(), clock, ..GroupRun::default() }
        })
        .collect();
    Record {
        format: FORMAT,
        tool: "syscost 0.1.0".into(),
        run: format!("20261120T134405-{baseline}-{boot}"),
        session: Some(format!("{name}-{boot}")),
        boot: Some(format!("{name}-{boot}")),
        started: 1_795_182_245 + boot as u64,
        scale: "default".into(),
        unit: "ns".into(),
        seed: 1,
        fingerprint: Fingerprint {
            kernel_release: Some(format!("6.{}.0", baseline % 8)),
            ..Fingerprint::default()
        },
        unfinished: false,
        groups,
    }
}

fn case(group: &str, at: usize, baseline: usize, deviation: f64, random: &mut Random) -> CaseRecord {
    let variant = match (group, at) {
        ("known_work", 0) => "add".to_owned(),
        ("known_work", 1) => "multiply".to_owned(),
        _ => format!("variant-{at}/4KiB"),
    };
    let drift = if at % 10 == 3 { 0.02 * baseline as f64 } else { 0.0 };
    // Twelve uniform numbers less six are near enough to a normal one.
    let noise = (0..12).map(|_| random.number_below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
    let estimate = 10_f64.powf(0.3 * at as f64) * (drift + deviation * noise).exp();
    let median = Interval { estimate, low: estimate * 0.999, high: estimate * 1.001 };
    let measured = Measured { median, ..Measured::default() };
    CaseRecord {
        id: format!("{group}/{variant}"),
        title: variant,
        outcome: Outcome::Measured(Box::new(measured)),
    }
}
