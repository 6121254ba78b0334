use super::*;
use crate::Random;

fn exactly(values: &[f64]) -> Vec<Interval> {
    values.iter().map(|&value| Interval { estimate: value, low: value, high: value }).collect()
}

/// `count` points of each value.
fn plateaus(parts: &[(usize, f64)]) -> Vec<f64> {
    parts.iter().flat_map(|&(count, value)| std::iter::repeat_n(value, count)).collect()
}

/// Each value off by up to this share, up or down.
fn noisy(values: &[f64], share: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    values.iter().map(|v| v * (1.0 + share * (random.number_below(2001) as f64 / 1000.0 - 1.0))).collect()
}

/// Levels of points a quarter of an octave apart.
fn near(values: &[Interval]) -> Vec<Level> {
    let octaves: Vec<f64> = (0..values.len()).map(|i| 10.0 + 0.25 * i as f64).collect();
    find_levels(&octaves, values)
}

fn found(values: &[f64]) -> Vec<(usize, usize)> {
    near(&exactly(values)).iter().map(|level| (level.first, level.last)).collect()
}

#[test]
fn steps_are_found_where_they_are() {
    let steps = plateaus(&[(6, 1.1), (8, 4.0), (9, 13.0), (7, 150.0)]);
    for seed in 0..50 {
        let noisy = noisy(&steps, 0.05, seed);
        assert_eq!(found(&noisy), [(0, 5), (6, 13), (14, 22), (23, 29)], "{seed}: {noisy:?}");
    }
}

#[test]
fn a_curve_that_stays_is_one_level() {
    for seed in 0..50 {
        assert_eq!(found(&noisy(&[3.0; 25], 0.08, seed)), [(0, 24)], "{seed}");
    }
}

#[test]
fn the_points_of_a_ramp_belong_to_no_level() {
    let mut values = plateaus(&[(10, 4.0), (5, 0.0), (10, 14.0)]);
    for (step, value) in values[10..15].iter_mut().enumerate() {
        *value = 4.0 * 3.5f64.powf((step + 1) as f64 / 6.0);
    }
    assert_eq!(found(&values), [(0, 9), (15, 24)]);
    let ramp: Vec<f64> = (0..30).map(|i| 1.25f64.powi(i)).collect();
    assert_eq!(found(&ramp), []);
}

#[test]
fn one_bad_point_is_neither_a_level_nor_the_end_of_one() {
    let mut values = plateaus(&[(9, 1.1), (9, 4.0)]);
    (values[4], values[13]) = (2.9, 40.0);
    assert_eq!(found(&values), [(0, 8), (9, 17)]);
    assert_eq!(near(&exactly(&values))[1].value.estimate, 4.0);
}

#[test]
fn a_wide_interval_of_its_own_excuses_a_point() {
    let mut values = exactly(&plateaus(&[(4, 4.0), (4, 5.2)]));
    assert_eq!(near(&values).len(), 2);
    for value in &mut values {
        (value.low, value.high) = (0.5 * value.estimate, 2.0 * value.estimate);
    }
    assert_eq!(near(&values).len(), 1);
}

#[test]
fn too_few_points_are_no_level() {
    assert_eq!(found(&[]), []);
    assert_eq!(found(&[1.0, 1.0]), []);
    // Three points cost as much loose as on a level; four do not.
    assert_eq!(found(&[1.0; 3]), []);
    assert_eq!(found(&[1.0; 4]), [(0, 3)]);
}

#[test]
fn a_fall_is_no_second_level() {
    assert_eq!(found(&plateaus(&[(6, 10.0), (6, 2.0)])).len(), 1);
}

/// Every choice of stretches, by trying all.
fn least_cost(points: &[Point], from: usize, above: f64) -> f64 {
    let mut best = loose_points_cost(from, points.len());
    for first in from..points.len() {
        for end in first + 3..=points.len() {
            let stretch = fit_stretch(points, first, end, LEVEL[0]);
            if stretch.log >= above {
                let rest = least_cost(points, end, stretch.log + STEP.ln());
                best = best.min(loose_points_cost(from, first) + stretch.cost + rest);
            }
        }
    }
    best
}

#[test]
fn nothing_costs_less_than_what_is_found() {
    let mut random = Random::new(5);
    for round in 0..200 {
        let values: Vec<f64> = (0..6 + random.number_below(8))
            .map(|i| {
                (1.0 + (i / 4) as f64 * random.number_below(3) as f64)
                    * (1.0 + random.number_below(30) as f64 / 100.0)
            })
            .collect();
        let points: Vec<Point> =
            exactly(&values).iter().map(|v| Point::from_interval(v, TOLERANCE)).collect();
        let stretches = candidate_stretches(&points, 3, LEVEL[0]);
        let chosen = cheapest_fit(&stretches, points.len());
        let covered: usize = chosen.iter().map(|&at| stretches[at].end - stretches[at].first).sum();
        let cost: f64 = chosen.iter().map(|&at| stretches[at].cost).sum();
        let cost = cost + loose_points_cost(covered, points.len());
        let least = least_cost(&points, 0, f64::NEG_INFINITY);
        assert!((cost - least).abs() < 1e-9, "round {round}: {cost} and not {least} for {values:?}");
    }
}

#[test]
fn half_way_counts_the_points_between() {
    let values = exactly(&[1.0, 1.0, 1.0, 1.0, 1.8, 3.5, 2.9, 5.0, 5.0, 5.0, 5.0]);
    let found = near(&values);
    assert_eq!((found[0].last, found[1].first), (3, 7));
    assert_eq!(step_midpoint(&values, &found[0], &found[1]), 5, "1.8 and 2.9 are below 3");
}

/// Dependent loads in random order, pages of 4 KiB, on a guest of a Zen 4 whose kernel reports 32 KiB, 1 MiB and
/// 32 MiB: size, then median, least and greatest of seven passes, ns.
const CAPTURED: &str = include_str!("../../../../fixtures/captured/chase-zen4-guest.txt");

/// The ends of the levels of the captured curve, taking one of every `step` points, KiB.
fn ends(every: usize) -> Vec<f64> {
    let row = |line: &str| line.split(' ').map(|word| word.parse().expect("a number")).collect::<Vec<f64>>();
    let rows: Vec<_> = CAPTURED.lines().step_by(every).map(row).collect();
    let values: Vec<Interval> =
        rows.iter().map(|row| Interval { estimate: row[1], low: row[2], high: row[3] }).collect();
    let octaves: Vec<f64> = rows.iter().map(|row| row[0].log2()).collect();
    let found = find_levels(&octaves, &values);
    found.windows(2).map(|pair| rows[step_midpoint(&values, &pair[0], &pair[1])][0] / 1024.0).collect()
}

#[test]
fn a_real_curve_has_the_levels_of_its_machine() {
    let sizes = ends(1);
    let within = |low: f64, high: f64| sizes.iter().any(|size| (low..=high).contains(size));
    assert_eq!(sizes[0], 32.0, "{sizes:?}");
    assert!(within(861.0, 1219.0) && within(4_000.0, 8_200.0), "{sizes:?}");
}

#[test]
fn a_point_an_octave_shows_the_same_levels_and_one_in_two_octaves_shows_none() {
    assert_eq!(ends(4), [32.0, 512.0, 4096.0]);
    assert!(ends(8).is_empty());
}

#[test]
fn a_fall_is_found_where_it_is() {
    for seed in 0..50 {
        for at in 2..9 {
            let values: Vec<f64> = (0..11).map(|i| if i < at { 8.0 } else { 2.0 }).collect();
            let found = locate_fall(&noisy(&values, 0.1, seed)).expect("it falls");
            assert_eq!(found.last, at - 1, "seed {seed}");
            assert!(found.before.estimate > 7.0 && found.after.estimate < 2.3, "{found:?}");
        }
    }
}

#[test]
fn of_several_falls_the_deepest_is_told() {
    let values = [12.0, 12.0, 12.0, 8.0, 8.0, 8.0, 8.0, 0.5, 0.5, 0.5];
    assert_eq!(locate_fall(&values).expect("it falls").last, 6);
}

#[test]
fn a_gradual_fall_is_in_its_middle_and_a_bad_point_moves_nothing() {
    let values = [10.0, 10.0, 2.1, 10.0, 10.0, 8.0, 4.0, 2.5, 2.0, 2.0, 2.0, 2.0];
    assert_eq!(locate_fall(&values).expect("it falls").last, 5);
}

#[test]
fn what_stays_rises_or_is_noise_does_not_fall() {
    for seed in 0..50 {
        assert_eq!(locate_fall(&noisy(&[5.0; 12], 0.1, seed)), None);
        assert_eq!(locate_fall(&noisy(&[1.0, 1.0, 1.0, 4.0, 4.0, 4.0], 0.1, seed)), None);
    }
    let wild: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 1.0 } else { 9.0 }).collect();
    assert_eq!(locate_fall(&wild), None);
}

#[test]
fn too_few_points_have_no_fall() {
    for values in [&[][..], &[9.0], &[9.0, 1.0], &[9.0, 9.0, 1.0]] {
        assert_eq!(locate_fall(values), None);
    }
    assert!(locate_fall(&[9.0, 9.0, 1.0, 1.0]).is_some());
}
