//! The cost without disturbance, from several executions of a case, and the interval that is printed with it. The interval
//! depends on the spread of the executions, on that of other cases of the same kind, and on that of earlier runs.
//!
//! Noise only adds to a cost (Chen and Revels, arXiv 1608.04295): another task, a slow phase of the host, an unlucky set of
//! pages. The figure is therefore the mean of the two lowest executions: the lowest alone may be a rare fast mode. Each
//! execution counts by the lower quartile of its samples, which a few lucky batches cannot change.

use super::reference_frequency::convert_executions;
use crate::record::{Interval, Measured, Quiet};
use crate::statistic::{median, standard_deviation};

/// Half width of the interval, in standard deviations of the logarithms of the lowest executions.
const DEVIATIONS: f64 = 3.0;
/// Half width of the narrowest interval, as a logarithm. Successive runs differ by this much in any case.
const NARROWEST: f64 = 0.012;
/// The least standard deviation of logarithms that is assumed, since a few executions may agree by chance.
const LEAST_DEVIATION: f64 = 0.002;
/// The lower end of an interval is at least this share of the figure, because noise only adds.
const LOWEST_SHARE: f64 = 0.5;
/// The upper end of an interval is at most the slowest execution times this factor.
const HIGHEST_FACTOR: f64 = 1.5;
/// For a rare faster mode, the next execution must be slower than the lowest by more than this share.
const FASTER_MODE_GAP: f64 = 0.03;
/// For a faster mode, that gap must also be at least this many times the span of the next three executions.
const FASTER_MODE_SPANS: f64 = 4.0;

/// The quiet figure from the executions' lower quartiles; `None` for fewer than two. `adds` says that noise only adds; it is
/// false for a figure that is a difference and that noise may lower: its quiet figure is the median.
pub fn quiet_from_lows(lows: &[f64], adds: bool) -> Option<Quiet> {
    let mut lows = lows.to_vec();
    lows.sort_by(f64::total_cmp);
    if lows.len() < 2 {
        return None;
    }
    Some(if adds { quiet_from_lowest(&lows) } else { quiet_from_median(&lows) })
}

/// The quiet figure from ascending lower quartiles to which noise only adds: the mean of the two lowest.
fn quiet_from_lowest(lows: &[f64]) -> Quiet {
    let faster = lone_faster_mode(lows);
    let lows = if faster.is_some() { &lows[1..] } else { lows };
    let third = lows[2.min(lows.len() - 1)];
    let estimate = (lows[0] + lows[1]) / 2.0;
    let figure = if lows[0] > 0.0 {
        interval_by_deviation(estimate, deviation_of_lowest(lows), lows[lows.len() - 1])
    } else {
        widened_interval(estimate, lows[0], third)
    };
    Quiet { figure, faster, ..Quiet::default() }
}

/// The quiet figure from ascending values that noise may raise or lower: the median.
fn quiet_from_median(ascending: &[f64]) -> Quiet {
    let (first, last) = (ascending[0], ascending[ascending.len() - 1]);
    let estimate = median(ascending);
    let figure = if first > 0.0 {
        interval_by_deviation(estimate, deviation(ascending), last)
    } else {
        widened_interval(estimate, first, last)
    };
    Quiet { figure, ..Quiet::default() }
}

/// The standard deviation of the logarithms of the lower half of these ascending values, but of at least three. The slower
/// half is left out, because it shows disturbances of the run.
fn deviation_of_lowest(ascending: &[f64]) -> f64 {
    let half = ascending.len().div_ceil(2).max(3).min(ascending.len());
    deviation(&ascending[..half])
}

/// The standard deviation of the logarithms of these values, at least [`LEAST_DEVIATION`].
fn deviation(values: &[f64]) -> f64 {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    standard_deviation(&logarithms).max(LEAST_DEVIATION)
}

/// The lowest of these ascending values, if it is a lone faster mode: its gap to the next is several times the span of the next three.
pub(super) fn lone_faster_mode(lows: &[f64]) -> Option<f64> {
    let [first, second, _, fourth, ..] = lows else { return None };
    let gap = second / first - 1.0;
    (*first > 0.0 && gap > FASTER_MODE_GAP && is_within_share(*second, *fourth, gap / FASTER_MODE_SPANS))
        .then_some(*first)
}

fn is_within_share(low: f64, high: f64, share: f64) -> bool {
    high - low <= share * low.abs()
}

/// The interval of a value that may be zero or negative: `first` to `last`, extended by their distance at both ends.
fn widened_interval(estimate: f64, first: f64, last: f64) -> Interval {
    let span = last - first;
    Interval { estimate, low: first - span, high: last + span }
}

/// The interval around a positive figure for this standard deviation of logarithms; `slowest` is the slowest execution.
fn interval_by_deviation(estimate: f64, deviation: f64, slowest: f64) -> Interval {
    let factor = (DEVIATIONS * deviation).max(NARROWEST).exp();
    let low = (estimate / factor).max(LOWEST_SHARE * estimate);
    Interval { estimate, low, high: (estimate * factor).min(HIGHEST_FACTOR * slowest) }
}

/// Sets the interval of an exactly repeating count to the range of its executions, without an allowance for noise.
pub fn make_figure_exact(measured: &mut Measured) {
    let ends = measured.executions.iter().flat_map(|execution| [execution.low, execution.median]);
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if let Some(quiet) = &mut measured.quiet {
        quiet.figure = Interval { estimate: quiet.figure.estimate, low, high };
    }
}

// Two to six executions of a case are a poor estimate of its spread: they may agree by chance, or one may be disturbed. Two
// further sources are the other cases of its kind, which wait for the same device, caches or tasks, and the figures of earlier
// runs. The variances are averaged, each weighted by the number of its values (empirical Bayes); intervals widen or narrow.

/// The fewest cases that show the spread of their kind.
const FEWEST: usize = 4;
/// Weight of a case's own variance, as a number of values.
const OWN_WEIGHT: f64 = 2.0;
/// Weight of the median variance of its kind, as a number of values.
const KIND_WEIGHT: f64 = 4.0;

/// Shrinks or widens the intervals of a group's cases towards the spread of their kind. Cases that wait for memory are one
/// kind, all others another kind.
pub fn draw_to_kind<'a>(group: impl Iterator<Item = &'a mut Measured>) {
    let (memory, others) = group.partition(|case| case.contamination.busy_beside.is_some());
    draw_kind(memory);
    draw_kind(others);
}

/// Averages each case's own variance with the median variance of these cases, and sets the interval by the result.
fn draw_kind(cases: Vec<&mut Measured>) {
    let spread = |case: &&mut Measured| own_spread(case);
    let spreads: Vec<Option<Spread>> = cases.iter().map(spread).collect();
    let variances: Vec<f64> = spreads.iter().flatten().map(|spread| spread.deviation.powi(2)).collect();
    if variances.len() < FEWEST {
        return;
    }
    let kind = median(&variances);
    for (case, spread) in cases.into_iter().zip(spreads) {
        let (Some(quiet), Some(Spread { deviation, slowest })) = (&mut case.quiet, spread) else { continue };
        let variance = (OWN_WEIGHT * deviation.powi(2) + KIND_WEIGHT * kind) / (OWN_WEIGHT + KIND_WEIGHT);
        quiet.figure = interval_by_deviation(quiet.figure.estimate, variance.sqrt(), slowest);
    }
}

/// The spread of a case's executions.
struct Spread {
    /// Standard deviation of the logarithms.
    deviation: f64,
    slowest: f64,
}

/// The spread of a case's executions; `None` if the figure may be zero or negative and thus has no logarithm.
fn own_spread(case: &Measured) -> Option<Spread> {
    let quiet = case.quiet.filter(|quiet| quiet.figure.low > 0.0)?;
    let mut lows: Vec<f64> = convert_executions(case, quiet.core_hz).iter().map(|e| e.low).collect();
    lows.sort_by(f64::total_cmp);
    let lows = &lows[usize::from(quiet.faster.is_some())..];
    let slowest = *lows.last()?;
    let adds = case.displaced.is_none();
    Some(Spread { deviation: if adds { deviation_of_lowest(lows) } else { deviation(lows) }, slowest })
}

/// Shrinks or widens the interval of a figure towards the spread of the same case's figures in earlier runs on the same machine,
/// unless that was done before. The interval of a figure that may be zero is widened to include them.
pub fn draw_to_earlier(quiet: &mut Quiet, earlier: &[Quiet]) {
    if quiet.earlier > 0 {
        return;
    }
    let figures: Vec<f64> =
        earlier.iter().map(|other| other.figure.estimate * other.frequency_factor_to(quiet)).collect();
    let Interval { estimate, low, high } = quiet.figure;
    quiet.figure = if low <= 0.0 || figures.iter().any(|figure| *figure <= 0.0) {
        figures.iter().fold(quiet.figure, |all, figure| all.widened_to(Interval::exactly(*figure)))
    } else {
        let own = ((high / estimate).max(estimate / low).ln() / DEVIATIONS).powi(2);
        // The difference of two figures has twice the variance of one.
        let between: f64 = figures.iter().map(|figure| (figure / estimate).ln().powi(2) / 2.0).sum();
        let executions = OWN_WEIGHT + KIND_WEIGHT;
        let variance = (executions * own + between) / (executions + figures.len() as f64);
        interval_by_deviation(estimate, variance.sqrt(), f64::INFINITY)
    };
    quiet.earlier = earlier.len();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contamination, Execution};

    fn quiet_times(lows: &[f64]) -> Option<Quiet> {
        quiet_from_lows(lows, true)
    }

    #[test]
    fn slow_executions_do_not_change_the_figure_if_three_are_quiet() {
        let calm = quiet_times(&[100.2, 100.0, 100.4]).expect("three");
        let spell = quiet_times(&[130.0, 100.2, 100.0, 125.0, 100.4]).expect("five");
        assert_eq!(calm.figure, spell.figure);
        let slower = quiet_times(&[130.0, 100.2, 100.0, 125.0, 140.0]).expect("five").figure;
        assert!(
            slower.estimate == calm.figure.estimate && slower.high > 140.0,
            "few met the floor: {slower:?}"
        );
        assert!(calm.is_settled() && (calm.figure.estimate - 100.1).abs() < 1e-9);
    }

    #[test]
    fn a_single_fast_execution_is_a_faster_mode_and_is_left_out() {
        let lucky = quiet_times(&[339.0, 250.9, 340.0, 339.5]).expect("four");
        assert_eq!((lucky.faster, lucky.is_settled()), (Some(250.9), true));
        assert!(lucky.figure.estimate > 338.0);
        let twice = quiet_times(&[339.0, 250.9, 340.0, 339.5, 251.0]).expect("five");
        assert_eq!((twice.faster, twice.is_settled()), (None, false), "two are no accident");
    }

    #[test]
    fn the_interval_of_two_executions_is_wider_than_that_of_three() {
        let width = |lows: &[f64]| quiet_times(lows).map(|quiet| quiet.figure.high - quiet.figure.low);
        assert!(width(&[100.0, 110.0]) > width(&[100.0, 110.0, 110.0]));
    }

    #[test]
    fn a_figure_that_never_repeats_has_a_wide_interval_and_is_not_settled() {
        let drawn = quiet_times(&[68.0, 131.0, 97.0, 80.0]).expect("four");
        assert!(!drawn.is_settled() && drawn.figure.high - drawn.figure.low > 50.0 && drawn.figure.low > 0.0);
        assert!(quiet_times(&[5.0]).is_none(), "one execution knows nothing of others");
    }

    #[test]
    fn the_interval_stays_bounded_if_one_execution_met_a_stalled_disk() {
        let stalled = quiet_times(&[10.0, 10.0, 400.0]).expect("three").figure;
        assert_eq!((stalled.estimate, stalled.low, stalled.high), (10.0, 5.0, 600.0));
    }

    #[test]
    fn counts_of_zero_have_a_finite_interval() {
        let faults = quiet_times(&[0.0, 0.5, 0.5]).expect("three").figure;
        assert_eq!((faults.estimate, faults.low, faults.high), (0.25, -0.5, 1.0));
        assert_eq!(quiet_times(&[0.0, 0.0, 0.0]).expect("three").figure, Interval::exactly(0.0));
        let gap = quiet_from_lows(&[-10.0, 0.4, 0.5], false).expect("three").figure;
        assert_eq!((gap.estimate, gap.low, gap.high), (0.4, -20.5, 11.0));
    }

    #[test]
    fn the_quiet_figure_of_a_difference_is_the_median() {
        assert_eq!(
            quiet_from_lows(&[1.0, 9.0, 10.0, 11.0, 30.0], false).map(|quiet| quiet.figure.estimate),
            Some(10.0)
        );
    }

    #[test]
    fn earlier_runs_widen_an_interval_if_they_differ_and_narrow_it_if_they_agree() {
        let earlier = |all: &[f64]| -> Vec<Quiet> {
            all.iter().map(|&ns| Quiet { figure: Interval::exactly(ns), ..Quiet::default() }).collect()
        };
        let drawn = |lows: &[f64], all: &[f64]| {
            let mut found = quiet_times(lows).expect("three");
            let before = found.figure.high;
            draw_to_earlier(&mut found, &earlier(all));
            (before, found.figure.high, found.earlier)
        };
        let (before, after, runs) = drawn(&[100.0, 100.0, 100.0], &[100.1, 140.0]);
        assert!(after > 1.2 * before && runs == 2, "{before} {after}");
        let (before, after, _) = drawn(&[100.0, 104.0, 108.0], &[102.0, 102.1, 101.9]);
        assert!(after < before, "{before} {after}");
        let (_, around, _) = drawn(&[0.0, 0.5, 0.5], &[3.0]);
        assert_eq!(around, 3.0, "a count that may be zero has no logarithm");
    }

    /// A case of three executions; the second and the third cost `factor` times as much as the first.
    fn case(ns: f64, factor: f64, waits_for_memory: bool) -> Measured {
        let lows = [ns, factor * ns, factor * ns];
        let contamination =
            Contamination { busy_beside: waits_for_memory.then_some(0.0), ..Contamination::default() };
        Measured {
            quiet: quiet_times(&lows),
            executions: lows.map(|low| Execution { low, ..Execution::default() }).to_vec(),
            contamination,
            ..Measured::default()
        }
    }

    /// The ratio of each interval's upper end to its figure, before and after [`draw_to_kind`].
    fn drawn_factors(mut cases: Vec<Measured>) -> Vec<(f64, f64)> {
        let factors = |cases: &[Measured]| -> Vec<f64> {
            cases.iter().map(|case| case.figure().high / case.figure().estimate).collect()
        };
        let before = factors(&cases);
        draw_to_kind(cases.iter_mut());
        before.into_iter().zip(factors(&cases)).collect()
    }

    #[test]
    fn intervals_below_the_spread_of_their_kind_are_widened_and_those_above_narrowed() {
        let reads = [1.0, 1.1, 1.1, 1.1, 1.4].map(|factor| case(36_000.0, factor, false));
        let drawn = drawn_factors(reads.to_vec());
        assert!(drawn[0].1 > 2.0 * drawn[0].0 - 1.0, "{drawn:?}");
        assert!(drawn[4].1 < drawn[4].0, "{drawn:?}");
        assert!((drawn[1].1 - drawn[1].0).abs() < 1e-9, "what is as its kind stays: {drawn:?}");
    }

    #[test]
    fn cases_that_wait_for_memory_do_not_widen_those_that_compute() {
        let computing = [1.0; 4].map(|factor| case(1.0, factor, false));
        let waiting = [1.2; 4].map(|factor| case(100.0, factor, true));
        let drawn = drawn_factors([computing, waiting].concat());
        assert!(drawn[..4].iter().all(|(_, after)| (after - NARROWEST.exp()).abs() < 1e-9), "{drawn:?}");
        assert!(drawn[4..].iter().all(|(_, after)| *after > 1.2), "{drawn:?}");
    }

    #[test]
    fn few_cases_and_figures_that_may_be_zero_stay_as_they_are() {
        let three = [1.02, 1.2, 1.2].map(|factor| case(1.0, factor, false));
        assert!(drawn_factors(three.to_vec()).iter().all(|(before, after)| before == after));
        let mut cases = [1.2; 5].map(|factor| case(1.0, factor, false));
        let zero = Interval { estimate: 0.5, low: -1.0, high: 0.6 };
        cases[0].quiet = Some(Quiet { figure: zero, ..Quiet::default() });
        draw_to_kind(cases.iter_mut());
        assert_eq!(cases[0].figure(), zero);
    }
}
