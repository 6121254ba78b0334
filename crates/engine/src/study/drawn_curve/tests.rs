use super::*;
use crate::environment::Cache;
use crate::record::{Derived, Outcome};

const CAPTURED: &str = include_str!("../../../../../fixtures/captured/chase-zen4-guest.txt");
const LATENCY: Curve =
    Curve::new("chase/random/", "random order", Axis::Bytes("ring")).with_study(Study::Levels);

fn case(id: String, measured: Measured) -> CaseRecord {
    CaseRecord { id, title: String::new(), outcome: Outcome::Measured(Box::new(measured)) }
}

/// The captured walk as a group.
fn chase() -> GroupRun {
    let case = |line: &str| {
        let row: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let slope = Interval { estimate: row[1], low: row[2], high: row[3] };
        let measured = Measured { slope, core_hz: Some((3.7e9, 3.7e9)), ..Measured::default() };
        case(format!("chase/random/{}B", row[0]), measured)
    };
    let mut run = GroupRun { cases: CAPTURED.lines().map(case).collect(), ..GroupRun::default() };
    run.clock.hz = 2.596e9;
    run.cpu = Some(1);
    run
}

fn guest() -> Fingerprint {
    let cache = |(level, bytes): (u8, u64)| {
        let kind = if level == 1 { "Data" } else { "Unified" };
        Cache { level, kind: kind.into(), bytes, shared_by: 1, cpus: "0-1".into() }
    };
    Fingerprint {
        caches: [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)].map(cache).into(),
        cpus_allowed: Some("0-1".into()),
        hypervisor: Some("KVM".into()),
        ..Fingerprint::default()
    }
}

#[test]
fn levels_of_a_guest_are_named_and_a_smaller_l3_is_remarked() {
    let drawn = draw_curve(&LATENCY, &chase(), &guest()).expect("a curve");
    let level = |name: &str| {
        let ends = |level: &&LevelRecord| level.name.as_deref() == Some(name) && level.reported.is_some();
        drawn.levels.iter().find(ends).unwrap_or_else(|| panic!("no {name} in {:?}", drawn.levels))
    };
    assert_eq!(
        (
            level("L1").agrees_with_kernel(),
            level("L2").agrees_with_kernel(),
            level("L3").agrees_with_kernel()
        ),
        (Some(true), Some(true), Some(false))
    );
    assert_eq!(level("L1").step.map(|step| step.0), Some(32 << 10));
    let cycles = level("L1").cycles.expect("known");
    assert!((3.9..4.3).contains(&cycles) && level("L1").ticks.is_some_and(|ticks| ticks < cycles));
    assert_eq!(drawn.levels.last().and_then(|level| level.name.as_deref()), Some("memory"));
    assert!(
        drawn.remarks.iter().any(|r| r.contains("32 MiB of L3") && r.contains("hypervisor")),
        "{drawn:?}"
    );
    assert!(!drawn.remarks.iter().any(|r| r.contains("of L1") || r.contains("of L2")), "{drawn:?}");
}

#[test]
fn a_curve_is_kept_and_read_back() {
    let drawn = draw_curve(&LATENCY, &chase(), &guest()).expect("a curve");
    let text = serde_json::to_string(&drawn).expect("plain data");
    assert_eq!(serde_json::from_str::<CurveRecord>(&text).expect("its own text"), drawn);
}

#[test]
fn a_curve_of_a_derived_figure_begins_at_its_start_point() {
    let at = |name: &str, estimate: f64| {
        let value = Interval { estimate, low: estimate, high: estimate };
        let derived = vec![Derived { name: "efficiency".into(), unit: String::new(), value }];
        case(format!("scale/pipe-processes/{name}"), Measured { derived, ..Measured::default() })
    };
    let curve = Curve::new("scale/pipe-processes/", "pipe", Axis::Count("processes"))
        .with_figure("efficiency")
        .with_start(1, 1.0);
    let mut run = GroupRun { cases: vec![at("all", 0.9)], ..GroupRun::default() };
    let points = |run: &GroupRun| {
        let drawn = draw_curve(&curve, run, &guest());
        drawn.map(|d| d.points.iter().map(|p| (p.at, p.value.estimate)).collect::<Vec<_>>())
    };
    assert_eq!(points(&run), Some(vec![(1, 1.0), (2, 0.9)]));
    run.cases.clear();
    assert_eq!(points(&run), None);
}

#[test]
fn a_fall_has_the_two_sizes_between_which_it_lies() {
    let rates = [9.0, 9.1, 8.9, 2.0, 2.1];
    let case = |(i, estimate): (usize, &f64)| {
        let value = Interval { estimate: *estimate, low: *estimate, high: *estimate };
        let derived = vec![Derived { name: "bandwidth".into(), unit: "GB/s".into(), value }];
        case(format!("read/{}MiB", 1 << i), Measured { derived, ..Measured::default() })
    };
    let run = GroupRun { cases: rates.iter().enumerate().map(case).collect(), ..GroupRun::default() };
    let curve =
        Curve::new("read/", "read", Axis::Bytes("file")).with_figure("bandwidth").with_study(Study::Fall);
    let drawn = draw_curve(&curve, &run, &guest()).expect("a curve");
    assert_eq!(drawn.unit, "GB/s");
    assert_eq!(drawn.fall.map(|fall| fall.step), Some((4 << 20, 8 << 20)));
}

#[test]
fn the_remark_says_between_which_points_a_bound_is_passed() {
    let remark_for = |costs: [f64; 3]| {
        let case = |(i, estimate): (usize, &f64)| {
            let slope = Interval { estimate: *estimate, low: *estimate, high: *estimate };
            case(format!("load/{}", 50 + i), Measured { slope, ..Measured::default() })
        };
        let run = GroupRun { cases: costs.iter().enumerate().map(case).collect(), ..GroupRun::default() };
        let curve = Curve::new("load/", "p99", Axis::Count("%")).with_study(Study::Bound(1e6));
        draw_curve(&curve, &run, &guest()).expect("a curve").remarks.concat()
    };
    assert_eq!(remark_for([1e5, 2e5, 3e6]), "it passes 1 ms between 51 and 52 %");
    assert_eq!(remark_for([2e6, 3e6, 4e6]), "it is above 1 ms at 50 % already");
    assert_eq!(remark_for([1e5, 2e5, 3e5]), "it stays below 1 ms up to 52 %");
}

#[test]
fn a_curve_names_the_basis_of_its_figures_where_it_is_not_the_quiet_cost() {
    let curve = Curve::new("call/u64/", "calls", Axis::Count("arguments"));
    let title = |measured: Measured| {
        let cases = (0..3).map(|at| case(format!("call/u64/{at}"), measured.clone())).collect();
        let run = GroupRun { cases, ..GroupRun::default() };
        draw_curve(&curve, &run, &Fingerprint::default()).expect("a curve").title
    };
    let (median, slope) = (Interval::exactly(1.0), Interval::exactly(0.9));
    let whole = Measured { median, ..Measured::default() };
    let sloped = Measured { slope, ..whole.clone() };
    let net = Measured { net: Some(Interval::exactly(0.67)), ..sloped.clone() };
    assert_eq!([whole, sloped, net].map(title), ["calls", "calls, slope", "calls, net"]);
}
