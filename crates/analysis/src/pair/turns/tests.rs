use super::*;

#[test]
fn turns_are_ordered_in_blocks_that_even_out_a_drift() {
    let order = turn_order(12, &mut Random::new(1));
    assert_eq!(order.len(), 24);
    for block in order.chunks(4) {
        assert_eq!((block[0], block[1]), (block[3], block[2]));
        assert_ne!(block[0], block[1]);
    }
    let first: Vec<_> = order.chunks(4).map(|block| block[0]).collect();
    assert!(first.contains(&0) && first.contains(&1), "both ways round: {first:?}");
}

#[test]
fn a_skip_of_one_side_alone_is_a_failure() {
    let skipped = || Some(Err::<(), _>(CaseEnd::Skipped("no clock".into())));
    assert_eq!(combine_halves([skipped(), skipped()]), Err(CaseEnd::Skipped("no clock".into())));
    for halves in [[skipped(), Some(Ok(()))], [Some(Ok(())), skipped()]] {
        assert!(matches!(combine_halves(halves), Err(CaseEnd::Failed(said)) if said.contains("no clock")));
    }
}

#[test]
fn time_that_the_host_took_is_added_to_a_guests_turn() {
    let taken = |waited_ns, stolen_ticks| Some(Taken { waited_ns, stolen_ticks });
    let turn = || Turn { waited_ns: Some(5), ..Turn::default() };
    let seen = add_taken_time(turn(), taken(100, 2), taken(130, 3));
    assert_eq!((seen.waited_ns, seen.stolen_ticks), (Some(35), Some(1)));
    assert_eq!(add_taken_time(turn(), None, None), turn());
}

#[test]
fn turns_in_two_random_modes_are_no_difference() {
    let mut random = Random::new(5);
    let shape = Shape { rounds: 48, batches: 1, iterations: 1 };
    let mut turns = |by: f64| -> Vec<Turn> {
        let mut turn = || 10_000.0 * by + if random.number_below(2) == 0 { 0.0 } else { 2_500.0 };
        (0..48).map(|_| Turn { ticks: vec![turn() as u64], ..Turn::default() }).collect()
    };
    let turns = [turns(1.0), turns(1.07)];
    let pair = Pair { shape, ready: Default::default(), turns, samples: [None, None] };
    assert!((pair.log_ratio() - 0.07_f64.ln_1p()).abs() < 0.001, "{}", pair.log_ratio());
}

/// Turns that take 10 000 ticks at 3 GHz, and inversely fewer at higher frequencies.
fn turns_at(frequencies_ghz: impl IntoIterator<Item = f64>) -> Vec<Turn> {
    let turn =
        |ghz: f64| Turn { ticks: vec![(30_000.0 / ghz) as u64], core_hz: ghz * 1e9, ..Turn::default() };
    frequencies_ghz.into_iter().map(turn).collect()
}

#[test]
fn steps_between_two_frequencies_reject_no_pair_and_are_no_difference() {
    let mut random = Random::new(9);
    for _ in 0..50 {
        // The steps last some turns, and come at different times for the two sides.
        let mut ghz = 2.99;
        let mut stepping = || -> Vec<f64> {
            let mut step = || {
                if random.number_below(12) == 0 {
                    ghz = if ghz == 2.99 { 3.19 } else { 2.99 };
                }
                ghz
            };
            (0..80).map(|_| step()).collect()
        };
        let order = stepping();
        let side = |at: usize| turns_at(order.iter().copied().skip(at).step_by(2));
        let shape = Shape { rounds: 40, batches: 1, iterations: 1 };
        let pair =
            Pair { shape, ready: Default::default(), turns: [side(0), side(1)], samples: [None, None] };
        assert!(pair.runs_at_one_frequency());
        assert!(pair.log_ratio().abs() < 0.002, "{}", pair.log_ratio());
    }
}

#[test]
fn sides_at_different_frequencies_are_rejected() {
    let turns = [turns_at([2.99; 40]), turns_at([3.19; 40])];
    let shape = Shape { rounds: 40, batches: 1, iterations: 1 };
    let pair = Pair { shape, ready: Default::default(), turns, samples: [None, None] };
    assert!(!pair.runs_at_one_frequency());
}

#[test]
fn a_long_operation_has_fewer_turns_of_at_least_one_iteration() {
    let shape_with =
        |iteration_ns| Shape::for_sides(&[10.0, iteration_ns].map(|iteration_ns| ready(iteration_ns, 0)));
    assert_eq!(shape_with(100.0), Shape { rounds: 40, batches: 8, iterations: 1000 });
    assert_eq!(shape_with(400e3), Shape { rounds: 40, batches: 2, iterations: 1 });
    assert_eq!(shape_with(40e6), Shape { rounds: 6, batches: 1, iterations: 1 });
    assert_eq!(shape_with(50e6), Shape { rounds: 2, batches: 1, iterations: 1 });
}

fn ready(iteration_ns: f64, iterations: u64) -> Ready {
    Ready { iteration_ns, iterations, ..Ready::default() }
}

#[test]
fn a_batch_with_a_long_untimed_part_is_a_turn() {
    let shape = Shape::for_sides(&[ready(90.0, 8_900), ready(80.0, 10_000)]);
    assert_eq!(shape, Shape { rounds: 40, batches: 1, iterations: 8_900 });
    assert_eq!(Shape::for_sides(&[ready(100.0, 1_000)]), Shape { rounds: 40, batches: 8, iterations: 1_000 });
}
