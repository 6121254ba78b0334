use super::*;

/// A CPU of which everything is known: what the estimators must find is put in.
#[derive(Clone, Copy)]
struct World {
    /// A turn of the fluid without anything, ns.
    turn: f64,
    /// The interval between ticks and the cost of a tick, ns.
    tick: (f64, f64),
    /// What an operation runs in its own name, and what interrupts do for it in others', ns.
    own: f64,
    interrupts: f64,
    /// What of an operation's waking is charged to it while the fluid still runs.
    overcharge: f64,
    /// The share of the time that is left by the operation, which an intruder takes.
    intruder: f64,
}

const QUIET_WORLD: World = World {
    turn: 120.0,
    tick: (4e6, 2_000.0),
    own: 14_000.0,
    interrupts: 12_000.0,
    overcharge: 0.0,
    intruder: 0.0,
};

impl World {
    fn truth(&self) -> f64 {
        self.own + self.interrupts
    }

    /// The fluid alone for so long.
    fn idle_window(&self, elapsed: f64) -> Window {
        let ticks = elapsed / self.tick.0;
        let mine = (elapsed - ticks * self.tick.1) * (1.0 - self.intruder);
        let own = mine + ticks * self.tick.1 * (1.0 - self.intruder);
        let loops = mine / self.turn;
        let gapped = (elapsed - mine) + ticks * self.turn;
        let after = ticks * self.turn;
        Window { elapsed, loops, own, gaps: ticks, gapped, after, afters: ticks, preempted: 0.0 }
    }

    /// This number of operations, each followed by a wait.
    fn covered_operations(&self, operations: f64, wait: f64) -> Covered {
        let elapsed = operations * (self.own + self.interrupts + wait);
        let ticks = elapsed / self.tick.0;
        let free = elapsed - operations * self.truth() - ticks * self.tick.1;
        let (mine, theirs) = (free * (1.0 - self.intruder), free * self.intruder);
        // Interrupts are charged to the task that has the CPU.
        let in_mine = (operations * self.interrupts + ticks * self.tick.1) * (1.0 - self.intruder);
        let wrongly = operations * self.overcharge;
        let loops = mine / self.turn;
        let gaps = operations * 3.0 + ticks;
        let window = Window {
            elapsed,
            loops,
            own: mine + in_mine - wrongly * (1.0 - self.intruder),
            gaps,
            gapped: elapsed - (loops - gaps) * self.turn,
            after: gaps * self.turn,
            afters: gaps,
            preempted: operations * (1.0 - self.intruder),
        };
        assert!(theirs >= 0.0);
        let charged = operations * (self.own + self.overcharge);
        Covered {
            window,
            charged,
            rusage: charged,
            deferred: 0.0,
            operations,
            waits: operations,
            interrupts_apart: false,
        }
    }

    fn estimate_with(&self, calibration: &Calibration) -> Estimate {
        estimate_costs(&self.covered_operations(2_000.0, 24_000.0), calibration, &Totals::default())
    }
}

fn calibrated(world: &World) -> Calibration {
    Calibration::from_windows(&[world.idle_window(5e6), world.idle_window(5e6), world.idle_window(5e6)])
        .unwrap()
}

fn off(found: Result<Cost, Nonsense>, truth: f64) -> f64 {
    found.map_or(f64::INFINITY, |cost| (cost.ns() / truth - 1.0).abs())
}

#[test]
fn on_a_quiet_machine_all_three_find_what_accounting_misses() {
    let found = QUIET_WORLD.estimate_with(&calibrated(&QUIET_WORLD));
    let truth = QUIET_WORLD.truth();
    for (name, cost) in [("paper", found.paper), ("gap", found.gap), ("free", found.daemon_free.unwrap())] {
        assert!(off(cost, truth) < 0.001, "{name}: {cost:?}, {truth}");
    }
    assert!(off(found.charged, QUIET_WORLD.own) < 1e-9);
}

#[test]
fn an_over_charge_by_a_remote_wake_up_is_seen_as_one() {
    let world = World { interrupts: 0.0, overcharge: 5_000.0, ..QUIET_WORLD };
    let found = world.estimate_with(&calibrated(&world));
    for cost in [found.paper, found.gap, found.daemon_free.unwrap()] {
        assert!(off(cost, world.own) < 0.001, "{cost:?}");
    }
    assert!(found.charged.unwrap().ns() > 1.3 * found.gap.unwrap().ns());
}

#[test]
fn a_half_time_intruder_is_taken_out_of_two_and_stays_in_the_papers() {
    let world = World { intruder: 0.5, ..QUIET_WORLD };
    // The calibration is quiet once and beside the intruder once.
    for calibration in [calibrated(&QUIET_WORLD), calibrated(&world)] {
        let found = world.estimate_with(&calibration);
        for cost in [found.gap, found.daemon_free.unwrap()] {
            assert!(off(cost, world.truth()) < 0.01, "{cost:?}, {}", world.truth());
        }
    }
    let paper = world.estimate_with(&calibrated(&QUIET_WORLD)).paper;
    assert!(off(paper, world.truth()) > 0.3, "{paper:?}");
    assert!(world.covered_operations(2_000.0, 24_000.0).others_share() > 0.2);
}

#[test]
fn an_intruder_that_met_none_of_the_interrupts_adds_none() {
    let covered = QUIET_WORLD.covered_operations(2_000.0, 24_000.0);
    // While it had the CPU, as long as all else together, the operation waited for it and not for an interrupt.
    let window = Window { elapsed: 2.0 * covered.window.elapsed, ..covered.window };
    let window = Window { gapped: window.gapped + covered.window.elapsed, ..window };
    let long = Covered { window, ..covered };
    assert!(long.others_share() > 0.45 && long.unmet_interrupt_ratio() == 0.0, "{long:?}");
    let found = estimate_costs(&long, &calibrated(&QUIET_WORLD), &Totals::default());
    for cost in [found.gap, found.daemon_free.unwrap()] {
        assert!(off(cost, QUIET_WORLD.truth()) < 0.001, "{cost:?}");
    }
}

#[test]
fn a_contaminated_calibration_gives_no_cost_and_never_a_negative_one() {
    // The processor was slow while the fluid was alone: 40 % longer turns.
    let slow = World { turn: 168.0, ..QUIET_WORLD };
    let cheap = World { own: 500.0, interrupts: 100.0, ..QUIET_WORLD };
    let found = cheap.estimate_with(&calibrated(&slow));
    assert!(matches!(found.paper, Err(Nonsense::NotPositive)), "{found:?}");
    assert!(matches!(found.daemon_free, Some(Err(Nonsense::NotPositive))), "{found:?}");
    // The gap estimator takes its pace from the same window and does not care.
    assert!(off(found.gap, cheap.truth()) < 0.02, "{found:?}");
}

#[test]
fn a_calibration_much_too_fast_gives_no_cost_above_the_time_that_there_was() {
    let covered = QUIET_WORLD.covered_operations(10.0, 1_000.0);
    assert!(matches!(
        Cost::per_operation(1.1 * covered.window.elapsed, &covered),
        Err(Nonsense::MoreThanTime)
    ));
    assert!(Cost::per_operation(f64::NAN, &covered) == Err(Nonsense::NoNumber));
    assert!(Cost::per_operation(0.0, &covered) == Err(Nonsense::NotPositive));
    assert!(Cost::per_operation(1.0, &Covered::default()) == Err(Nonsense::NoNumber), "no operation");
}

#[test]
fn nothing_is_made_of_windows_without_a_turn() {
    assert_eq!(Calibration::from_windows(&[]), None);
    assert_eq!(
        Calibration::from_windows(&[
            Window::default(),
            Window { gaps: 3.0, loops: 3.0, ..QUIET_WORLD.idle_window(1e6) }
        ]),
        None
    );
}

#[test]
fn what_was_there_while_the_fluid_was_calibrated_is_not_taken_off() {
    let world = World { tick: (4e6, 0.0), ..QUIET_WORLD };
    // A service that cannot be stopped: the calibration sees it as the run does.
    let seen = Calibration::from_windows(&[world.covered_operations(100.0, 24_000.0).window]).unwrap();
    let both_estimates = |calibration: &Calibration| {
        let found =
            estimate_costs(&world.covered_operations(2_000.0, 24_000.0), calibration, &Totals::default());
        [found.gap, found.daemon_free.unwrap()]
    };
    for (wrong, right) in both_estimates(&seen).into_iter().zip(both_estimates(&seen.without_interrupts())) {
        assert!(off(wrong, world.own) < 0.01 && off(right, world.truth()) < 0.001, "{wrong:?} {right:?}");
    }
}

#[test]
fn a_window_in_which_others_ran_is_left_out_of_a_calibration() {
    let disturbed = World { intruder: 0.5, ..QUIET_WORLD }.idle_window(5e6);
    let found =
        Calibration::from_windows(&[QUIET_WORLD.idle_window(5e6), disturbed, QUIET_WORLD.idle_window(5e6)])
            .unwrap();
    assert_eq!(Some(found), Calibration::from_windows(&[QUIET_WORLD.idle_window(5e6); 2]));
}

#[test]
fn where_interrupts_are_charged_to_nobody_the_wall_clock_alone_tells() {
    let calibration = calibrated(&QUIET_WORLD);
    let mut covered = QUIET_WORLD.covered_operations(2_000.0, 24_000.0);
    covered.window.own -= 2_000.0 * QUIET_WORLD.interrupts;
    covered.interrupts_apart = true;
    let found = estimate_costs(&covered, &calibration, &Totals::default());
    assert_eq!(found.daemon_free, None);
    for cost in [found.paper, found.gap] {
        assert!(off(cost, QUIET_WORLD.truth()) < 0.001, "{cost:?}");
    }
}

#[test]
fn what_it_takes_to_begin_and_to_end_is_taken_off() {
    let (calibration, covered) = (calibrated(&QUIET_WORLD), QUIET_WORLD.covered_operations(100.0, 24_000.0));
    let empty = Totals {
        paper: 260_000.0,
        gap: Some(260_000.0),
        daemon_free: 260_000.0,
        charged: 140_000.0,
        rusage: 140_000.0,
        others: 0.0,
    };
    let found = estimate_costs(&covered, &calibration, &empty);
    assert!(off(found.gap, 0.9 * QUIET_WORLD.truth()) < 0.002, "{found:?}");
    assert!(off(found.charged, 0.9 * QUIET_WORLD.own) < 1e-9);
    let terms = ErrorTerms::from_run(&covered, &calibration, &empty);
    assert_eq!(terms.start, 2_600.0);
    assert!(terms.resolution > 0.0 && terms.resolution < 5.0 && terms.daemons.abs() < 1.0, "{terms:?}");
}

#[test]
fn a_calibration_of_fewer_turns_than_the_run_is_less_resolved() {
    let covered = QUIET_WORLD.covered_operations(100.0, 24_000.0);
    let terms = |elapsed: f64| {
        let calibration = Calibration::from_windows(&[QUIET_WORLD.idle_window(elapsed)]).unwrap();
        ErrorTerms::from_run(&covered, &calibration, &Totals::default())
    };
    let long = terms(1e12);
    // The run's own edges: half a turn of 120 ns each, over 100 operations.
    assert!((long.resolution - 0.6).abs() < 1e-3, "{long:?}");
    let [run, short] = [covered.window.loops, terms(5e5).turns[0]];
    assert!((short - 5e5 / 120.0).abs() < 10.0, "{short}");
    assert!((terms(5e5).resolution / 0.6 - (1.0 + run / short)).abs() < 1e-3);
}

#[test]
fn caches_that_an_interruption_left_cold_make_no_turn_longer_and_are_in_the_cost() {
    // A thousand turns of 120 ns, ten of 5 µs with an interrupt in them, and the ten after these, each 50 ns longer.
    let window = Window {
        elapsed: 1000.0 * 120.0 + 10.0 * 5_000.0 + 10.0 * 170.0,
        loops: 1020.0,
        gaps: 10.0,
        gapped: 10.0 * 5_000.0,
        after: 10.0 * 170.0,
        afters: 10.0,
        ..Window::default()
    };
    assert_eq!(window.mean_undisturbed_turn(), Some(120.0));
    let covered = Covered { window, operations: 5.0, ..Covered::default() };
    let terms = ErrorTerms::from_run(&covered, &Calibration::default(), &Totals::default());
    assert_eq!(terms.cache, 100.0);
}
