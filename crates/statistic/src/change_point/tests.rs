//! Recall and false alarms, counted on seeded series. The asserted limits are the counts with a small margin.

use super::*;
use crate::Random;

const NIGHTS: usize = 30;
const SERIES: usize = 40;
/// The first night of a planted step.
const AT: usize = 15;

/// The properties of a generated series.
#[derive(Clone, Copy)]
struct Plan {
    noise: f64,
    step: f64,
    outliers: f64,
    drift: f64,
    /// Factor of the noise from the middle on.
    louder: f64,
}

impl Plan {
    fn new(noise: f64, step: f64) -> Self {
        Self { noise, step, outliers: 0.0, drift: 0.0, louder: 1.0 }
    }

    fn series(&self, random: &mut Random, length: usize) -> Vec<Value> {
        let unit = |random: &mut Random| random.number_below(1 << 30) as f64 / f64::from(1 << 30);
        let normal = |random: &mut Random| (0..12).map(|_| unit(random) - 0.5).sum::<f64>();
        let one = |night: usize| {
            let noise = self.noise * if night < length / 2 { 1.0 } else { self.louder };
            let stray = if unit(random) < self.outliers {
                [-10.0, 10.0][random.number_below(2)] * noise
            } else {
                0.0
            };
            let step = if night >= AT { self.step } else { 0.0 };
            let drift = self.drift * night as f64 / length as f64;
            let value = step + drift + stray + noise * normal(random);
            Value { value, error: noise * (0.8 + 0.1 * normal(random)).max(0.3) }
        };
        (0..length).map(one).collect()
    }
}

/// The changes that would have been reported for series of these plans, in months of [`SERIES`].
fn reported_changes(plans: &[Plan], months: usize, seed: u64) -> Vec<Vec<ChangePoint>> {
    let mut random = Random::new(seed);
    let month = |_| {
        let plans = plans.iter().cycle().take(SERIES);
        let all: Vec<_> = plans.map(|plan| plan.series(&mut random, NIGHTS)).collect();
        let family = Family::learn(all.iter().map(Vec::as_slice));
        let found =
            |values: &Vec<Value>| change_points(values, &family.noise_of_series(values), error_level(SERIES));
        all.iter().map(found).collect::<Vec<_>>()
    };
    (0..months).flat_map(month).collect()
}

fn alarms(plans: &[Plan], months: usize) -> usize {
    reported_changes(plans, months, 7).iter().map(Vec::len).sum()
}

const QUIET: Plan = Plan { noise: 0.002, step: 0.0, outliers: 0.0, drift: 0.0, louder: 1.0 };
const MIXED: [f64; 4] = [0.002, 0.005, 0.01, 0.02];

#[test]
fn forty_series_without_a_change_give_no_alarm_in_ten_months() {
    assert_eq!(alarms(&MIXED.map(|noise| Plan::new(noise, 0.0)), 10), 0, "of 12 000 points");
}

#[test]
fn a_step_of_one_percent_is_reported_within_two_nights() {
    let mut plans = vec![QUIET; 8];
    plans.extend([Plan::new(0.002, 0.01); 2]);
    let told = reported_changes(&plans, 10, 8);
    let stepped: Vec<_> = told.chunks(10).flat_map(|ten| &ten[8..]).collect();
    let within = |nights: usize| {
        stepped
            .iter()
            .filter(|found| found.first().is_some_and(|c| (AT..AT + nights).contains(&c.found)))
            .count()
    };
    assert_eq!(stepped.len(), 80);
    assert_eq!((within(2), within(3)), WITHIN_TWO_AND_THREE, "of 80");
    let steady: usize = told.chunks(10).flat_map(|ten| &ten[..8]).map(Vec::len).sum();
    assert_eq!(steady, 0, "false alarms in 9600 points beside them");
}

/// Of 80 steps of five deviations, the number that must be reported within two and within three nights.
const WITHIN_TWO_AND_THREE: (usize, usize) = (67, 79);

/// The share of steps of this size that is reported within 15 nights; a quarter of the series have one.
fn recall(noise: f64, step: f64) -> f64 {
    let told = reported_changes(
        &[Plan::new(noise, step), Plan::new(noise, 0.0), Plan::new(noise, 0.0), Plan::new(noise, 0.0)],
        4,
        9,
    );
    let found = told.iter().step_by(4).filter(|found| found.iter().any(|c| c.at.abs_diff(AT) <= 2));
    found.count() as f64 / 40.0
}

#[test]
fn recall_depends_on_the_ratio_of_step_to_noise() {
    // Steps of 2.5 deviations are found in about nine of ten cases. Steps of half a deviation need more than 15 nights.
    for (noise, step, least) in [
        (0.002, 0.005, 0.8),
        (0.002, 0.03, 1.0),
        (0.005, 0.03, 0.95),
        (0.01, 0.03, 0.85),
        (0.01, 0.05, 0.95),
        (0.02, 0.05, 0.8),
    ] {
        let found = recall(noise, step);
        assert!(found >= least, "{noise} {step}: {found}");
    }
    assert!(recall(0.02, 0.01) <= 0.05);
}

#[test]
fn outliers_drifts_and_louder_noise_are_mostly_no_steps() {
    let each = |change: fn(&mut Plan)| {
        let mut plan = QUIET;
        change(&mut plan);
        alarms(&[plan], 5)
    };
    // Each number of alarms is out of 6000 points.
    assert!(each(|plan| plan.outliers = 0.01) <= 6, "two lone outliers in a row look like a step");
    assert!(each(|plan| plan.outliers = 0.05) <= 12);
    assert!(each(|plan| plan.drift = 0.002) <= 4);
    assert_eq!(each(|plan| plan.louder = 3.0), 0, "the intervals of the points tell of it");
    assert!(each(|plan| plan.drift = 0.01) > 50, "a drift of 1 % is a change");
}

#[test]
fn growing_noise_that_the_errors_do_not_show_is_rarely_a_step() {
    let mut random = Random::new(11);
    let louder = Plan { louder: 3.0, ..QUIET };
    let mut all: Vec<_> = (0..4 * SERIES).map(|_| louder.series(&mut random, 2 * NIGHTS)).collect();
    all.iter_mut().flatten().for_each(|value| value.error = QUIET.noise);
    let family = Family::learn(all.iter().map(Vec::as_slice));
    let found = |values: &Vec<Value>| {
        change_points(values, &family.noise_of_series(values), error_level(SERIES)).len()
    };
    let told: usize = all.iter().map(found).sum();
    // Without the local deviation there are more than twice as many.
    assert!(told <= 40, "{told} of {} series", all.len());
}

#[test]
fn one_outlier_is_no_change_and_two_alike_are() {
    let mut random = Random::new(3);
    let mut values = QUIET.series(&mut random, 20);
    values[19].value = 0.5;
    assert_eq!(change_points(&values, &Noise::default(), 1e-5), []);
    values.push(Value { value: 0.5, error: 0.002 });
    assert_eq!(change_points(&values, &Noise::default(), 1e-5).len(), 1);
}

#[test]
fn a_large_step_of_imprecise_values_is_found_after_a_short_base() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let quiet = Plan { noise: 0.001, ..QUIET };
        let mut values = quiet.series(&mut random, 12);
        values[9..].iter_mut().for_each(|value| *value = Value { value: value.value + 0.3, error: 0.003 });
        let found = change_points(&values, &Noise::default(), error_level(10));
        assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), [9], "seed {seed}: {values:?}");
    }
}

#[test]
fn a_reported_change_stays_as_the_series_grows() {
    let mut random = Random::new(5);
    let values = Plan::new(0.002, 0.02).series(&mut random, 60);
    let noise = Noise::default();
    for end in 20..60 {
        let found = change_points(&values[..end], &noise, 1e-5);
        assert_eq!(found.len(), 1, "{end}");
        assert_eq!((found[0].at, found[0].found), (AT, AT + 1), "{end}");
    }
}

#[test]
fn few_values_and_equal_values_have_no_change() {
    let value = Value { value: 0.1, error: 0.0 };
    for length in 0..50 {
        assert_eq!(change_points(&vec![value; length], &Noise::default(), 1e-5), []);
    }
    assert_eq!(Family::learn([&[value; 9][..]]).noise_of_series(&[value]).degrees, 0.0);
}

#[test]
fn nine_steps_are_found_in_ten_thousand_values() {
    let mut random = Random::new(6);
    let mut values = QUIET.series(&mut random, 10_000);
    values.iter_mut().enumerate().for_each(|(at, value)| value.value += 0.01 * (at / 1000 % 2) as f64);
    let found = change_points(&values, &Noise::default(), 1e-7);
    let places: Vec<_> = found.iter().map(|change| (change.at + 2) / 1000).collect();
    assert_eq!(places, [1, 2, 3, 4, 5, 6, 7, 8, 9], "{found:?}");
}

#[test]
fn a_change_that_lasts_two_nights_is_found_with_its_end() {
    let levels = [0.0, 0.0001, 0.0, -0.0001, 0.0, 0.0001, 0.0, 0.0606, 0.0607, -0.0001, 0.0];
    let values = levels.map(|value| Value { value, error: 0.0001 });
    let found = change_points(
        &values,
        &Noise { deviation: 0.0001, degrees: 20.0, ..Noise::default() },
        error_level(20),
    );
    assert_eq!(
        found.iter().map(|change| (change.at, change.found)).collect::<Vec<_>>(),
        [(7, 8), (9, 10)],
        "{found:?}"
    );
    assert!((found[0].step - 0.0606).abs() < 0.0002, "{found:?}");
}
