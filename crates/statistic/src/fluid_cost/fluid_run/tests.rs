use super::*;
use crate::fluid_cost::Window;

const TURN: f64 = 120.0;

fn calibration(turn: f64) -> Calibration {
    let loops = 5e6 / turn;
    let window = Window { elapsed: 5e6, loops, own: 5e6, gaps: 1.0, gapped: turn, ..Window::default() };
    Calibration::from_windows(&[window]).expect("turns")
}

/// A run of 1000 operations of this cost, half of it in interrupts; others have this much time.
fn run(cost: f64, others: f64) -> Replicate {
    let fluid = 20e6;
    let window = Window {
        elapsed: fluid + 1e3 * cost + others,
        loops: fluid / TURN,
        own: fluid + 500.0 * cost,
        gaps: 1e3,
        gapped: 1e3 * (cost + TURN) + others,
        after: 1e3 * TURN,
        afters: 1e3,
        preempted: 1e3,
    };
    let charged = 500.0 * cost;
    let covered = Covered {
        window,
        charged,
        rusage: charged,
        deferred: 0.0,
        operations: 1e3,
        waits: 1e3,
        interrupts_apart: false,
    };
    let (before, after) = (calibration(TURN), calibration(TURN));
    Replicate { before, covered, after, ..Replicate::default() }
}

fn summary(runs: &[Replicate]) -> Summary {
    Summary::from_runs(runs, 5)
}

#[test]
fn quiet_runs_agree_and_nothing_is_flagged() {
    let runs: Vec<_> = (0..10).map(|i| run(20_000.0 + 50.0 * f64::from(i), 0.0)).collect();
    let found = summary(&runs);
    assert!(found.quiet && found.flags.is_empty() && found.kept == (10, 10), "{found:?}");
    for column in [found.paper, found.gap, found.daemon_free] {
        let column = column.expect("a column");
        assert!(column.low < 20_225.0 && column.high > 20_225.0, "{column:?}");
    }
    let missed = found.missed.expect("a share");
    assert!((missed.estimate - 0.5).abs() < 0.01 && missed.low > 0.4, "{missed:?}");
}

#[test]
fn a_spoilt_run_is_left_out_by_its_covariates() {
    let mut runs: Vec<_> = (0..8).map(|i| run(20_000.0 + f64::from(i), 0.0)).collect();
    runs.push(run(20_000.0, 9e6));
    runs.push(Replicate { after: calibration(1.04 * TURN), ..run(20_000.0, 0.0) });
    runs.push(Replicate { stolen_ticks: 1, ..run(20_000.0, 0.0) });
    let found = summary(&runs);
    assert_eq!((found.kept, found.spoilt), ((8, 11), [1, 1, 1, 0]));
    assert!(found.quiet && found.paper.is_some(), "{found:?}");
}

#[test]
fn what_the_hypervisor_took_spoils_a_run_by_its_share() {
    let short = Replicate { stolen_ticks: 1, ..run(20_000.0, 0.0) };
    assert_eq!(short.disturbance(), Some(Spoilt::Stolen));
    let window = &short.covered.window;
    let long = Window {
        elapsed: 100.0 * window.elapsed,
        loops: 100.0 * window.loops,
        own: 100.0 * window.own,
        gaps: 100.0 * window.gaps,
        gapped: 100.0 * window.gapped,
        ..*window
    };
    let covered = Covered { window: long, charged: 100.0 * short.covered.charged, ..short.covered };
    assert_eq!(Replicate { covered, ..short }.disturbance(), None, "10 ms of 4 s");
}

#[test]
fn turns_that_are_a_little_longer_are_no_interrupts() {
    let even = run(20_000.0, 0.0);
    let slow = 0.3 * even.covered.window.loops;
    let window = Window {
        gaps: even.covered.window.gaps + slow,
        gapped: even.covered.window.gapped + 1.5 * TURN * slow,
        elapsed: even.covered.window.elapsed + 0.5 * TURN * slow,
        own: even.covered.window.own + 0.5 * TURN * slow,
        ..even.covered.window
    };
    let uneven = Replicate { covered: Covered { window, ..even.covered }, ..even };
    assert_eq!((even.disturbance(), uneven.disturbance()), (None, Some(Spoilt::Drift)));
}

#[test]
fn on_a_machine_that_is_not_quiet_the_papers_is_missing_and_it_is_said() {
    let runs: Vec<_> = (0..8).map(|i| run(20_000.0 + f64::from(i), 20e6)).collect();
    let found = summary(&runs);
    assert!(!found.quiet && found.paper.is_none());
    assert!(found.gap.is_some_and(|gap| gap.estimate > 20_000.0), "{found:?}");
    assert!(found.flags.iter().any(|flag| flag.contains("not quiet")), "{:?}", found.flags);
}

#[test]
fn a_contaminated_calibration_leaves_a_column_empty_and_says_why() {
    let slow = calibration(1.5 * TURN);
    let runs: Vec<_> = (0..8).map(|_| Replicate { before: slow, after: slow, ..run(600.0, 0.0) }).collect();
    let found = summary(&runs);
    assert_eq!((found.paper, found.daemon_free), (None, None), "{found:?}");
    assert!(found.flags.iter().any(|flag| flag.contains("calibration was disturbed")), "{:?}", found.flags);
    assert!(found.gap.is_some(), "{found:?}");
}

#[test]
fn estimators_that_disagree_are_flagged() {
    let off = calibration(0.95 * TURN);
    let runs: Vec<_> =
        (0..8).map(|i| Replicate { before: off, after: off, ..run(20_000.0 + f64::from(i), 0.0) }).collect();
    let found = summary(&runs);
    assert!(found.flags.iter().any(|flag| flag.contains("do not agree")), "{:?}", found.flags);
}

#[test]
fn on_a_machine_that_is_not_quiet_estimators_that_contradict_each_other_are_none() {
    let off = calibration(0.8 * TURN);
    let runs: Vec<_> =
        (0..8).map(|i| Replicate { before: off, after: off, ..run(20_000.0 + f64::from(i), 2e6) }).collect();
    let found = summary(&runs);
    assert_eq!((found.quiet, found.gap, found.daemon_free, found.missed), (false, None, None, None));
    assert!(found.flags.iter().any(|flag| flag.contains("contradict")), "{:?}", found.flags);
}

#[test]
fn no_column_reaches_down_to_nothing() {
    let runs: Vec<_> = [100.0, 60_000.0, 200.0].map(|cost| run(cost, 0.0)).into();
    assert_eq!(summary(&runs).gap, None);
}

#[test]
fn each_run_is_without_its_own_empty_run() {
    // Starting takes more from run to run, and the operations always the same.
    let start = |i: u32| 5e6 + 1e6 * f64::from(i);
    let runs: Vec<_> = (0..8)
        .map(|i| Replicate {
            empty: run(1e-3 * start(i), 0.0).totals(),
            ..run(20_000.0 + 1e-3 * start(i), 0.0)
        })
        .collect();
    let found = summary(&runs);
    for column in [found.paper, found.gap, found.daemon_free] {
        let column = column.expect("a column");
        assert!((column.estimate - 20_000.0).abs() < 100.0, "{column:?}");
        assert!(column.high - column.low < 100.0, "the starts must not widen it: {column:?}");
    }
}
