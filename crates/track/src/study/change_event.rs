//! The events of a history. Change points of several series at one point of the history form one event, which also lists the other
//! changes at this point. A new kernel that changes forty cases is reported once, not forty times.

use super::ratio_series::RatioSeries;
use crate::record::history_point::HistoryPoint;
use std::collections::BTreeMap;
use syscost_engine::environment::{Difference, Weight};
use syscost_engine::record::guest_side::ClockKind;
use syscost_statistic::change_point::{Family, Noise, Value, change_points, error_level};

/// A step at the first point after a new reference may be the bridge's error: it must exceed this many standard errors of the bridge.
const BEYOND_BRIDGE: f64 = 4.0;
/// The smallest reported change of a case that changes alone, a share. Most smaller steps come from chance or from a binary's layout.
const LEAST: f64 = 0.006;
/// The same for counted instructions, which do not depend on the layout of a binary and hardly on chance.
const LEAST_OF_COUNTS: f64 = 0.001;
/// The noise of counted instructions. Counts of one kernel repeat exactly: their noise is below a tenth of the smallest reported
/// change. This value replaces an estimate, since equal values have no deviation to estimate it from.
const NOISE_OF_COUNTS: Noise = Noise { deviation: 1e-4, degrees: 60.0, strays: 1e-3 };
/// The most points by which noise may shift the place of a step.
const NEAR: usize = 2;
/// If this many cases change together, smaller changes are reported, too.
const TOGETHER: usize = 3;

/// The most functions of a case that are named.
const NAMED_FUNCTIONS: usize = 3;

/// The changes at one point of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeEvent {
    /// Index of the first point after the change.
    pub at: usize,
    /// Index of the last point before the change in the series that changed.
    pub before: usize,
    /// Index of the point at which the change of the last of its cases became significant.
    pub found: usize,
    /// The cases that changed, the largest change first.
    pub moved: Vec<Moved>,
    /// The differences of the machine between the two points.
    pub profile: Vec<Difference>,
}

/// A case that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether neither side can change its cost: then the machine has changed.
    pub canary: bool,
    /// The change, a share: 0.03 is 3 % slower.
    pub change: f64,
    /// Standard error of the change.
    pub error: f64,
    /// With counted instructions: the functions that changed most between the two points, and their changes per iteration.
    pub functions: Vec<(String, f64)>,
}

impl ChangeEvent {
    /// The cases that became slower, without the canaries.
    pub fn slower_cases(&self) -> impl Iterator<Item = &Moved> {
        self.moved.iter().filter(|moved| moved.change > 0.0 && !moved.canary)
    }

    /// Whether it has at least [`TOGETHER`] cases or a change of at least `least`.
    fn is_reportable(&self, least: f64) -> bool {
        self.moved.len() >= TOGETHER || self.moved.iter().any(|moved| moved.change.abs() >= least)
    }

    /// The cases that became faster, without the canaries.
    pub fn faster_cases(&self) -> impl Iterator<Item = &Moved> {
        self.moved.iter().filter(|moved| moved.change < 0.0 && !moved.canary)
    }
}

/// A change point of one series, with indexes into the history's points.
struct Step {
    at: usize,
    before: usize,
    found: usize,
    moved: Moved,
}

/// The events of these series, in the order of the points.
pub fn find_change_events(points: &[HistoryPoint], series: &[RatioSeries]) -> Vec<ChangeEvent> {
    let values: Vec<Vec<Value>> =
        series.iter().map(|one| one.links.iter().map(|link| link.value).collect()).collect();
    let family = Family::learn(values.iter().map(Vec::as_slice));
    let level = error_level(series.len());
    let is_counted = points.first().is_some_and(|point| point.clock == ClockKind::Icount);
    let noise = |values: &[Value]| if is_counted { NOISE_OF_COUNTS } else { family.noise_of_series(values) };
    let of_one = |(one, values): (&RatioSeries, &Vec<Value>)| find_steps(one, values, &noise(values), level);
    let steps: Vec<Step> = series.iter().zip(&values).flat_map(of_one).collect();
    // Counts have no noise that could shift a step.
    let near = if is_counted { 0 } else { NEAR };
    let events = group_by_place(steps, near).into_iter().map(|steps| event_of_steps(points, steps));
    let least = if is_counted { LEAST_OF_COUNTS } else { LEAST };
    events.filter(|event| event.is_reportable(least)).collect()
}

/// Groups the steps by their place. Noise may shift the steps of some cases by up to `farthest` nights: they join a nearby
/// group that is at least twice as large.
fn group_by_place(steps: Vec<Step>, farthest: usize) -> Vec<Vec<Step>> {
    let mut places: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
    for step in steps {
        places.entry(step.at).or_default().push(step);
    }
    let mut sizes: Vec<(usize, usize)> = places.iter().map(|(at, steps)| (steps.len(), *at)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    for (size, centre) in sizes {
        let is_near = |at: usize, steps: &[Step]| {
            at != centre && at.abs_diff(centre) <= farthest && 2 * steps.len() <= size
        };
        if !places.contains_key(&centre) {
            continue;
        }
        let near: Vec<usize> =
            places.iter().filter(|(at, steps)| is_near(**at, steps)).map(|(at, _)| *at).collect();
        let joining: Vec<Step> = near.iter().filter_map(|at| places.remove(at)).flatten().collect();
        places.entry(centre).or_default().extend(joining);
    }
    places.into_values().collect()
}

/// The change points of one series, without those that may be an error of a bridge.
fn find_steps(series: &RatioSeries, values: &[Value], noise: &Noise, level: f64) -> Vec<Step> {
    let found = change_points(values, noise, level);
    let step = |change: &syscost_statistic::change_point::ChangePoint| {
        let (before, after) = (&series.links[change.at - 1], &series.links[change.at]);
        // The bridges that both points share cancel out.
        let bridge = (after.bridged.powi(2) - before.bridged.powi(2)).abs().sqrt();
        let is_bridge = change.step.abs() < BEYOND_BRIDGE * bridge;
        let moved = Moved {
            id: series.id.clone(),
            canary: series.canary,
            change: change.step.exp_m1(),
            error: change.error.hypot(bridge),
            functions: Vec::new(),
        };
        (!is_bridge).then(|| Step {
            at: after.point,
            before: before.point,
            found: series.links[change.found].point,
            moved,
        })
    };
    found.iter().filter_map(step).collect()
}

/// The event of steps that belong together. It lies at the point of the first step.
fn event_of_steps(points: &[HistoryPoint], steps: Vec<Step>) -> ChangeEvent {
    let (at, before) = (steps[0].at, steps[0].before);
    let found = steps.iter().map(|step| step.found).max().unwrap_or(at);
    let with_functions = |step: Step| {
        let functions = moved_functions([&points[step.before], &points[step.at]], &step.moved.id);
        Moved { functions, ..step.moved }
    };
    let mut moved: Vec<Moved> = steps.into_iter().map(with_functions).collect();
    moved.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    let differences = points[at].fingerprint.differences(&points[before].fingerprint);
    // Fields that only follow from other fields are not reported.
    let is_news = |d: &Difference| d.weight > Weight::Fact || NEWS.contains(&d.field);
    ChangeEvent { at, before, found, moved, profile: differences.into_iter().filter(is_news).collect() }
}

/// The functions of a case that changed most between two points, computed from their differences to the common reference;
/// empty if the points have different references.
fn moved_functions(points: [&HistoryPoint; 2], id: &str) -> Vec<(String, f64)> {
    let cases = points.map(|point| point.cases.iter().find(|case| case.id == id));
    let [Some(before), Some(after)] = cases else { return Vec::new() };
    if points[0].reference != points[1].reference {
        return Vec::new();
    }
    let mut differences: BTreeMap<&str, f64> =
        after.functions.iter().map(|(name, difference)| (name.as_str(), *difference)).collect();
    for (name, difference) in &before.functions {
        *differences.entry(name).or_default() -= difference;
    }
    // Sums of divided counts have rounding errors, which are far below one instruction.
    let mut moved: Vec<_> = differences.into_iter().filter(|(_, by)| by.abs() > 1e-6).collect();
    moved.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    moved.into_iter().take(NAMED_FUNCTIONS).map(|(name, by)| (name.to_owned(), by)).collect()
}

/// Fields of lower weight that can nevertheless explain a change.
const NEWS: [&str; 6] =
    ["kernel_release", "kernel_version", "kernel_command_line", "compiler", "profile", "crate_version"];

#[cfg(test)]
mod tests {
    use super::super::ratio_series::{build_ratio_series, tests::test_point};
    use super::*;
    use syscost_statistic::Random;

    /// Nights of 40 cases with a deviation of 0.2 %. From the twentieth night on, every fourth case is slower by the share `step`.
    fn nights(seed: u64, count: usize, step: f64) -> Vec<HistoryPoint> {
        let mut random = Random::new(seed);
        let uniform = |random: &mut Random| random.number_below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        let mut normal = move || (0..12).map(|_| uniform(&mut random)).sum::<f64>();
        let mut night = |night: usize| {
            let moved = |case: usize| if night >= 20 && case % 4 == 0 { 1.0 + step } else { 1.0 };
            let ratios: Vec<f64> = (0..40).map(|case| moved(case) * (1.0 + 0.002 * normal())).collect();
            let mut point = test_point(night, "r0", None, &ratios);
            let release = if night >= 20 { "6.1.0-30" } else { "6.1.0-29" };
            point.fingerprint.kernel_release = Some(release.into());
            point
        };
        (0..count).map(&mut night).collect()
    }

    fn events(points: &[HistoryPoint]) -> Vec<ChangeEvent> {
        find_change_events(points, &build_ratio_series(points).0)
    }

    #[test]
    fn ten_cases_that_change_together_are_one_event_with_its_cause() {
        for seed in 0..10 {
            let points = nights(seed, 30, 0.01);
            let events = events(&points);
            assert_eq!(events.len(), 1, "seed {seed}: {events:#?}");
            assert_eq!((events[0].at, events[0].before), (20, 19), "seed {seed}");
            assert!(
                events[0].slower_cases().count() >= 9 && events[0].faster_cases().count() == 0,
                "seed {seed}"
            );
            assert_eq!(events[0].profile[0].field, "kernel_release");
        }
    }

    #[test]
    fn a_change_of_one_per_cent_is_found_within_two_nights() {
        let (mut found, mut all) = (0, 0);
        for seed in 0..10 {
            let points = nights(100 + seed, 22, 0.01);
            all += 10;
            found += events(&points).iter().map(|event| event.slower_cases().count()).sum::<usize>();
        }
        assert!(found * 10 >= all * 9, "{found} of {all} with the second night");
    }

    #[test]
    fn a_month_without_a_change_has_no_event() {
        let alarms: usize = (0..20).map(|seed| events(&nights(200 + seed, 30, 0.0)).len()).sum();
        assert_eq!(alarms, 0, "alarms in 20 months of 40 series");
    }

    #[test]
    fn a_step_of_counts_names_the_functions_that_changed() {
        let mut points: Vec<_> = (0..6)
            .map(|release| test_point(release, "6.1", None, &[if release < 3 { 1.1 } else { 1.2 }]))
            .collect();
        for (release, point) in points.iter_mut().enumerate() {
            point.clock = ClockKind::Icount;
            let of_step = if release < 3 { ("gone", -8.0) } else { ("come", 62.0) };
            point.cases[0].error = 0.0;
            point.cases[0].functions =
                [("always", 74.0), of_step].map(|(name, by): (&str, f64)| (name.to_owned(), by)).into();
        }
        let events = events(&points);
        let functions: Vec<_> =
            events[0].moved[0].functions.iter().map(|(name, by)| (name.as_str(), *by)).collect();
        assert_eq!((events.len(), events[0].at, functions), (1, 3, vec![("come", 62.0), ("gone", 8.0)]));
    }

    #[test]
    fn steps_of_counts_at_two_points_are_two_events() {
        let ratios = |release: usize| match release {
            0..3 => [1.1, 1.1, 1.1],
            3 => [1.1, 1.1, 1.2],
            _ => [1.2, 1.3, 1.2],
        };
        let points: Vec<_> = (0..7)
            .map(|release| {
                let mut point = test_point(release, "6.1", None, &ratios(release));
                point.clock = ClockKind::Icount;
                point.cases.iter_mut().for_each(|case| case.error = 0.0);
                point
            })
            .collect();
        let found: Vec<_> = events(&points).iter().map(|event| (event.at, event.moved.len())).collect();
        assert_eq!(found, [(3, 1), (4, 2)]);
    }

    #[test]
    fn an_error_of_a_bridge_is_not_reported_as_a_change() {
        let mut points: Vec<_> = (0..12).map(|night| test_point(night, "r0", None, &[1.0; 8])).collect();
        let mut bridge = test_point(12, "r0", Some("r1"), &[1.004; 8]);
        bridge.cases.iter_mut().for_each(|case| case.error = 0.003);
        points.push(bridge);
        points.extend((13..25).map(|night| test_point(night, "r1", None, &[1.0; 8])));
        assert_eq!(events(&points), []);
    }
}
