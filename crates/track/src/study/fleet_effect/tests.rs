use super::*;
use crate::record::fleet_record::{Experiment, Figure, JobRecord, LAYOUT};
use std::collections::BTreeMap;
use syscost_engine::environment::Fingerprint;
use syscost_statistic::Random;

const KERNELS: [&str; 2] = ["6.1", "6.12"];

fn experiment(hosts: usize, repeats: u32) -> Experiment {
    Experiment {
        name: "fork".into(),
        hosts: (0..hosts).map(|host| format!("n{host}")).collect(),
        kernels: KERNELS.map(str::to_owned).to_vec(),
        cases: None,
        repeats,
        processes: 3,
        scale: "default".into(),
        minutes: 10,
    }
}

/// A record of one case.
fn record(host: &str, kernel: usize, repeat: u32, ns: f64) -> JobRecord {
    let id = "fork/vfork".into();
    let figure = Figure { id, version: "1".into(), clock: "tsc".into(), ns, core_hz: None };
    JobRecord {
        fleet_job: LAYOUT,
        tool: "syscost 0.1.0".into(),
        experiment: "fork".into(),
        host: host.into(),
        kernel: KERNELS[kernel].into(),
        repeat,
        boot: format!("{host}-{kernel}-{repeat}"),
        started: u64::from(repeat) * 10 + kernel as u64,
        scale: "default".into(),
        fingerprint: Fingerprint { cpu_model: Some("Z80".into()), ..Fingerprint::default() },
        cases: vec![figure],
        without: BTreeMap::new(),
    }
}

/// The distribution of a simulated fleet: the mean effect, the spread between machines, the spread within a machine, and the
/// additional effect on one machine in ten.
struct Law {
    mean: f64,
    between: f64,
    within: f64,
    own: f64,
}

fn normal(random: &mut Random) -> f64 {
    let uniform = |random: &mut Random| (random.next_bits() >> 11) as f64 / (1_u64 << 53) as f64;
    (-2.0 * (1.0 - uniform(random)).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

fn fleet(law: &Law, hosts: usize, repeats: u32, random: &mut Random) -> FleetAnswer {
    let experiment = experiment(hosts, repeats);
    let mut gathering = Gathering::new(&experiment);
    for (at, host) in experiment.hosts.iter().enumerate() {
        let speed = 40_000.0 * (0.3 * normal(random)).exp();
        let own = if at % 10 == 9 { law.own } else { 0.0 };
        let effect = law.mean + own + law.between * normal(random);
        let jobs = experiment.jobs_of_host(host).map(|job| {
            let kernel = KERNELS.iter().position(|name| *name == job.kernel).unwrap();
            let log = effect * kernel as f64 + law.within * normal(random);
            record(host, kernel, job.repeat, speed * log.exp())
        });
        let jobs: Vec<_> = jobs.collect();
        gathering.add(host, jobs);
    }
    gathering.into_answer(None)
}

fn case(answer: &FleetAnswer) -> &CaseEffect {
    &answer.columns[0].cases[0]
}

#[test]
fn the_interval_contains_the_true_mean_in_19_of_20_fleets() {
    let mut random = Random::new(1);
    for (hosts, repeats, between, within) in [(8, 3, 0.02, 0.01), (40, 3, 0.0, 0.02), (12, 1, 0.03, 0.01)] {
        let law = Law { mean: 0.05, between, within, own: 0.0 };
        let held = (0..400).filter(|_| {
            let ratio = case(&fleet(&law, hosts, repeats, &mut random)).ratio.unwrap();
            (ratio.low..=ratio.high).contains(&0.05_f64.exp())
        });
        let held = held.count();
        assert!((364..=395).contains(&held), "{hosts} hosts: {held} of 400");
    }
}

#[test]
fn fleets_without_an_effect_have_no_findings_and_no_outlying_machines() {
    let mut random = Random::new(2);
    let law = Law { mean: 0.0, between: 0.01, within: 0.02, own: 0.0 };
    let (mut alarms, mut named) = (0, 0);
    for _ in 0..400 {
        let answer = fleet(&law, 10, 3, &mut random);
        alarms += usize::from(case(&answer).verdict.is_change());
        named += usize::from(!case(&answer).standing_out.is_empty());
    }
    assert!(alarms <= 4 && named <= 8, "{alarms} alarms, {named} named");
}

#[test]
fn outlying_machines_are_found_and_left_out_of_the_mean() {
    let mut random = Random::new(3);
    let law = Law { mean: 0.03, between: 0.003, within: 0.005, own: 0.10 };
    let (mut found, mut wrong, mut held) = (0, 0, 0);
    for _ in 0..100 {
        let answer = fleet(&law, 40, 3, &mut random);
        let is_own = |effect: &MachineEffect| effect.machine % 10 == 9;
        let case = case(&answer);
        found += case.standing_out.iter().filter(|effect| is_own(effect)).count();
        wrong += case.standing_out.iter().filter(|effect| !is_own(effect)).count();
        let ratio = case.ratio.unwrap();
        held += usize::from((ratio.low..=ratio.high).contains(&0.03_f64.exp()));
        assert_eq!(case.verdict, Verdict::Slower);
    }
    assert!(found >= 396 && wrong <= 2 && held >= 88, "{found} of 400 found, {wrong} wrong, {held} held");
}

#[test]
fn one_disturbed_job_does_not_make_a_machine_stand_out() {
    let experiment = experiment(12, 3);
    let mut gathering = Gathering::new(&experiment);
    let mut random = Random::new(4);
    for host in &experiment.hosts {
        let jobs = experiment.jobs_of_host(host).map(|job| {
            let kernel = usize::from(job.kernel == KERNELS[1]);
            let disturbed = host == "n5" && kernel == 1 && job.repeat == 2;
            let ns = 1000.0 * (0.001 * normal(&mut random)).exp() * if disturbed { 1.5 } else { 1.0 };
            record(host, kernel, job.repeat, ns)
        });
        let jobs: Vec<_> = jobs.collect();
        gathering.add(host, jobs);
    }
    assert!(case(&gathering.into_answer(None)).standing_out.is_empty());
}

#[test]
fn a_host_with_new_microcode_is_two_machines_and_classes_are_labelled_by_differences() {
    let experiment = experiment(3, 2);
    let mut gathering = Gathering::new(&experiment);
    for host in &experiment.hosts {
        let jobs = experiment.jobs_of_host(host).map(|job| {
            let mut record = record(host, usize::from(job.kernel == KERNELS[1]), job.repeat, 100.0);
            let is_new = host == "n1" && job.repeat == 2;
            record.fingerprint.microcode = Some(if is_new { "0x2" } else { "0x1" }.into());
            record
        });
        let jobs: Vec<_> = jobs.collect();
        gathering.add(host, jobs);
    }
    let answer = gathering.into_answer(Some("n1"));
    let names: Vec<_> = answer.machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["n0", "n1#1", "n1#2", "n2"]);
    let classes: Vec<_> = answer.classes.iter().map(|class| (class.machines, class.what.as_str())).collect();
    assert_eq!(classes, [(3, "Z80, CPUs unknown, microcode 0x1"), (1, "Z80, CPUs unknown, microcode 0x2")]);
    assert!(answer.warnings.iter().any(|warning| warning.starts_with("n1 changed in the middle")));
    assert_eq!(case(&answer).effects.len(), 2, "the host that was asked for, in both states");
}

#[test]
fn hosts_of_one_boot_give_a_warning() {
    let experiment = experiment(2, 1);
    let mut gathering = Gathering::new(&experiment);
    for host in &experiment.hosts {
        let jobs = [0, 1].map(|kernel| JobRecord { boot: "b".into(), ..record(host, kernel, 1, 100.0) });
        gathering.add(host, jobs.to_vec());
    }
    let warnings = gathering.into_answer(None).warnings;
    assert!(warnings[0].contains("n0, n1 ran under one boot"), "{warnings:?}");
    assert!(warnings[1].contains("2 jobs ran under the boot of another"), "{warnings:?}");
}

#[test]
fn one_machine_gets_a_verdict_only_from_repeated_jobs() {
    let verdict_after = |repeats: u32| {
        let experiment = experiment(1, repeats);
        let mut gathering = Gathering::new(&experiment);
        let jobs = experiment.jobs_of_host("n0").map(|job| {
            let kernel = usize::from(job.kernel == KERNELS[1]);
            record("n0", kernel, job.repeat, 100.0 + 10.0 * kernel as f64 + 0.1 * f64::from(job.repeat))
        });
        let jobs: Vec<_> = jobs.collect();
        gathering.add("n0", jobs);
        let answer = gathering.into_answer(None);
        (case(&answer).verdict, case(&answer).reason.clone())
    };
    assert_eq!(verdict_after(3).0, Verdict::Slower);
    let (verdict, reason) = verdict_after(1);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(reason.unwrap().contains("one job a kernel"));
}
