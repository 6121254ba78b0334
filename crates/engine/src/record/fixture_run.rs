//! A run for tests, with every outcome, most optional figures, and ids as long as real ones.

use super::{
    Bar, CaseRecord, ClockRun, Contamination, Derived, Distribution, Execution, FORMAT, FitRecord, GroupRun,
    Interval, Measured, Outcome, Predicted, Record,
};

pub fn fixture_record() -> Record {
    Record {
        format: FORMAT,
        tool: "syscost 0.1.0".into(),
        run: "20261120T134405-4711".into(),
        session: None,
        boot: None,
        started: 1_795_182_245,
        scale: "default".into(),
        unit: "ns".into(),
        seed: 42,
        fingerprint: crate::environment::Fingerprint::default(),
        unfinished: false,
        groups: vec![clock_read_group(), known_work_group(), call_group(), syscall_group()],
    }
}

fn group_run(name: &str, cases: Vec<CaseRecord>) -> GroupRun {
    let clock = ClockRun { source: "tsc".into(), hz: 2.59e9, uncertainty_ppm: 3.1, ..ClockRun::default() };
    GroupRun {
        name: name.into(),
        version: "1".into(),
        clock,
        cpu: Some(1),
        notes: vec!["Memory is not locked: RLIMIT_MEMLOCK is 64 KiB; raise it with `ulimit -l`.".into()],
        cases,
        ..GroupRun::default()
    }
}

fn clock_read_group() -> GroupRun {
    let need = "There is no CNTVCT_EL0 on x86-64; run this case on an AArch64 machine.";
    group_run(
        "clock_read",
        vec![
            full_case("clock_read/lfence-rdtsc-rdtscp-lfence", 12.34, Some((9.0, 3.0))),
            full_case("clock_read/cpuid-rdtsc-rdtscp-cpuid", 35_204.0, Some((16.0, 0.0))),
            full_case("clock_read/rdtsc", 7.021, Some((7.0, 0.0))),
            CaseRecord {
                outcome: Outcome::Skipped(need.into()),
                ..full_case("clock_read/cntvct", 0.0, None)
            },
        ],
    )
}

fn known_work_group() -> GroupRun {
    group_run("known_work", vec![full_case("known_work/chain-1000", 312.33, None)])
}

fn call_group() -> GroupRun {
    let costs = [0.313_4, 0.62, 0.93, 1.25, 1.56, 1.88, 2.19, 2.51, 2.8];
    let argument = |(i, cost)| full_case(&format!("call/u64/{i}"), cost, Some((1.2, 0.4)));
    let mut group = group_run("call", costs.into_iter().enumerate().map(argument).collect());
    group.fits.push(FitRecord {
        step: "a further u64 argument".into(),
        slope: interval_around(0.31),
        intercept: interval_around(0.3134),
        cases: 9,
        expected: None,
        worst: None,
    });
    let reason = "time(2n) is 1.31 times time(n), expected 2.00 ± 0.05: the call was optimised away.";
    group
        .cases
        .push(CaseRecord { outcome: Outcome::Failed(reason.into()), ..full_case("call/f64/0", 0.0, None) });
    group
}

fn syscall_group() -> GroupRun {
    let mut cold = full_case("syscall/getpid/cold", 2314.0, Some((200.0, 1500.0)));
    if let Outcome::Measured(measured) = &mut cold.outcome {
        // Timed one by one: neither a slope nor a control.
        (measured.slope, measured.net, measured.control) = (Interval::default(), None, None);
        let percentiles =
            [(5.0, 1_902.0), (50.0, 2_314.0), (95.0, 4_110.0), (99.0, 7_400.0), (100.0, 48_211.0)];
        let histogram =
            [(1_900.0, 40), (2_300.0, 150), (48_000.0, 10)].map(|(low, count)| Bar { low, count }).into();
        measured.distribution = Some(Distribution { count: 200, percentiles: percentiles.into(), histogram });
        let value = interval_around(1_157.0);
        measured.derived.push(Derived { name: "switch".into(), unit: "ns".into(), value });
    }
    let mut disturbed = full_case("syscall/open-close", 1_204.0, Some((100.0, 900.0)));
    if let Outcome::Measured(measured) = &mut disturbed.outcome {
        measured.contamination.involuntary_switches = (0..50).map(|i| u64::from(i % 4 == 1)).collect();
    }
    group_run("syscall", vec![full_case("syscall/getpid", 88.12, Some((20.0, 60.0))), cold, disturbed])
}

/// A measured case with everything that a case can have.
fn full_case(id: &str, cost: f64, predicted: Option<(f64, f64)>) -> CaseRecord {
    let loop_cost = 0.31;
    let measured = Measured {
        executions: vec![Execution {
            at: 2.0,
            samples: 3,
            low: 0.99 * cost,
            median: cost,
            core_hz: Some(3.1e9),
        }],
        iterations: vec![1000; 50],
        counted: (0..50).map(|i| ((cost * 2.59 * 1000.0) as u64) + i).collect(),
        core_mhz: vec![3100; 50],
        median: interval_around(cost + loop_cost),
        standard_deviation: cost * 0.008,
        ticks: (cost + loop_cost) * 2.59,
        slope: interval_around(cost + loop_cost),
        intercept: interval_around(4.0),
        control: Some(interval_around(loop_cost)),
        net: Some(interval_around(cost)),
        predicted: predicted.map(|(hardware, software)| Predicted {
            hardware,
            software,
            why: "two moves and a call".into(),
            whole: false,
        }),
        instructions: Some(5.0),
        core_hz: Some((3.1e9, 3.09e9)),
        evidence: (1..6).map(|i| format!("Claim {i} held.")).collect(),
        contamination: Contamination { involuntary_switches: vec![0; 50], ..Contamination::default() },
        ..Measured::default()
    };
    CaseRecord { title: id.replace(['/', '-'], " "), ..self::measured_case(id, measured) }
}

/// A case with this measurement.
pub fn measured_case(id: &str, measured: Measured) -> CaseRecord {
    CaseRecord { id: id.into(), title: String::new(), outcome: Outcome::Measured(Box::new(measured)) }
}

fn interval_around(estimate: f64) -> Interval {
    Interval { estimate, low: estimate * 0.9984, high: estimate * 1.0012 }
}
