//! The cost without disturbance, from several executions of a case, and the interval that is printed with it. All that changes
//! this interval stands here: the spread of the executions, that of the other cases of its kind, and the figures of earlier runs.
//!
//! Noise only adds (Chen and Revels, arXiv 1608.04295): another task, a slow spell of the host, an unlucky draw of pages.
//! So the figure is taken from the lowest executions, and of each of these from the lower quartile of its samples, which a
//! few lucky batches cannot move. It is the mean of the two lowest, because the lowest alone may be a rare fast mode.

use crate::record::{Interval, Measured, Quiet};
use crate::statistic::{median, percentile};

/// The two lowest executions of a settled case agree within this share …
const AGREEMENT: f64 = 0.01;
/// … and the third is as near, since two may have met a rare mode.
const NEAR: f64 = 0.03;
/// Half of the narrowest interval, as a share of the figure: successive runs differ by up to this in any case.
/// Four runs of an idle guest: 95.1 % of 6 900 figures lay in another run's interval, 93.8 % with the narrower one for all.
const NARROWEST: f64 = 0.025;
/// The same if the executions agree within [`EXACT`], as they do for code that computes and never waits.
const NARROWEST_OF_EXACT: f64 = 0.015;
/// See [`NARROWEST_OF_EXACT`].
const EXACT: f64 = 0.0025;
/// An interval wider than this share of its figure does not count as a prediction. Some costs differ by a factor
/// of two from process to process, such as that of a ring of 4 MiB.
const WIDEST: f64 = 1.0;
/// Safety factor: the interval is this many times wider than the spread of the lowest three executions, or of the lower half.
const STRETCH: f64 = 2.0;
/// The same for two executions, which know less of the spread. Eight runs of 20 s, most cases of two executions, on a guest with
/// noisy neighbours: 85.7 % of 265 figures lay in the interval of the run before with [`STRETCH`], 93.6 % with this one.
const STRETCH_OF_TWO: f64 = 3.0;
/// Noise only adds: the next run's figure is not lower than this share of the figure …
const LOWEST: f64 = 0.5;
/// … and not higher than the slowest execution by more than this factor.
const BEYOND: f64 = 1.5;
/// The lowest execution has met a rare faster mode if the next is slower by more than this share …
const ALONE: f64 = 0.03;
/// … and this gap is at least this many times the span of the next three.
const TIMES: f64 = 4.0;

/// The quiet figure from the executions' lower quartiles; `None` for fewer than two. If `adds` is false, because
/// the figure is a difference and noise may lower it, it is their median.
pub fn quiet_from_lows(lows: &[f64], adds: bool) -> Option<Quiet> {
    let mut lows = lows.to_vec();
    lows.sort_by(f64::total_cmp);
    if lows.len() < 2 {
        return None;
    }
    Some(if adds { quiet_from_lowest(&lows) } else { quiet_from_median(&lows) })
}

/// From ascending lower quartiles.
fn quiet_from_lowest(lows: &[f64]) -> Quiet {
    let faster = lone_faster_mode(lows);
    let lows = if faster.is_some() { &lows[1..] } else { lows };
    let third = lows[2.min(lows.len() - 1)];
    let estimate = (lows[0] + lows[1]) / 2.0;
    let settled = is_within_share(lows[0], lows[1], AGREEMENT) && is_within_share(lows[0], third, NEAR);
    if lows[0] <= 0.0 {
        return Quiet { figure: widened_interval(estimate, lows[0], third), settled, ..Quiet::default() };
    }
    // The lowest executions show how far apart floors lie; the lower half, how often a run misses its floor.
    let half = 1.0 + STRETCH * (median(lows) / lows[0] - 1.0);
    let stretch = if lows.len() > 2 { STRETCH } else { STRETCH_OF_TWO };
    let apart = (third / lows[0]).powf(stretch).max(half);
    let mut figure = interval_by_factor(estimate, apart);
    figure.low = figure.low.max(LOWEST * estimate);
    figure.high = figure.high.min(BEYOND * lows[lows.len() - 1]);
    Quiet { figure, settled, faster, ..Quiet::default() }
}

fn quiet_from_median(ascending: &[f64]) -> Quiet {
    let (first, last) = (ascending[0], ascending[ascending.len() - 1]);
    let (estimate, settled) = (median(ascending), is_within_share(first, last, NEAR));
    if first <= 0.0 {
        return Quiet { figure: widened_interval(estimate, first, last), settled, ..Quiet::default() };
    }
    Quiet {
        figure: interval_by_factor(estimate, (last / first).powf(STRETCH)),
        settled: is_within_share(first, last, NEAR),
        ..Quiet::default()
    }
}

/// The lowest of these ascending values, if the distance to the next is several times that which the next three span.
pub(super) fn lone_faster_mode(lows: &[f64]) -> Option<f64> {
    let [first, second, _, fourth, ..] = lows else { return None };
    let gap = second / first - 1.0;
    (*first > 0.0 && gap > ALONE && is_within_share(*second, *fourth, gap / TIMES)).then_some(*first)
}

fn is_within_share(low: f64, high: f64, share: f64) -> bool {
    high - low <= share * low.abs()
}

/// The interval of a value that may be zero or negative: `first` to `last`, and their distance beyond both ends.
fn widened_interval(estimate: f64, first: f64, last: f64) -> Interval {
    let span = last - first;
    Interval { estimate, low: first - span, high: last + span }
}

/// The interval from a positive figure by this factor down and up, which never reaches below zero.
fn interval_by_factor(estimate: f64, factor: f64) -> Interval {
    let is_exact = factor < 1.0 + STRETCH * EXACT;
    let factor = factor.max(1.0 + if is_exact { NARROWEST_OF_EXACT } else { NARROWEST });
    Interval { estimate, low: estimate / factor, high: estimate * factor }
}

/// Makes the figure of a count that repeats exactly the range of its executions, without what noise may add.
pub fn make_figure_exact(measured: &mut Measured) {
    let ends = measured.executions.iter().flat_map(|execution| [execution.low, execution.median]);
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if let Some(quiet) = &mut measured.quiet {
        quiet.figure = Interval { estimate: quiet.figure.estimate, low, high };
    }
}

/// Compares a figure with those of earlier runs of the same case on the same machine, the newest first: notes whether the last one
/// predicted it, and widens its interval to all of them unless that was done before.
pub fn compare_with_earlier(quiet: &mut Quiet, earlier: &[Quiet]) {
    earlier.first().inspect(|last| check_against_last(quiet, last));
    if quiet.earlier == 0 {
        widen_to_earlier(quiet, earlier);
    }
}

/// Notes whether the figure lies in the interval of the last run on this machine.
fn check_against_last(quiet: &mut Quiet, last: &Quiet) {
    let Interval { estimate, low, high } = last.figure;
    let figure = quiet.figure.estimate * quiet.frequency_factor_to(last);
    let tells = high - low <= WIDEST * estimate.abs();
    quiet.in_last_interval = Some(tells && (low..=high).contains(&figure));
}

/// Widens the interval of a figure to those of earlier runs of the same case on the same machine.
fn widen_to_earlier(quiet: &mut Quiet, earlier: &[Quiet]) {
    for other in earlier {
        let figure = other.figure.estimate * other.frequency_factor_to(quiet);
        quiet.figure.low = quiet.figure.low.min(figure);
        quiet.figure.high = quiet.figure.high.max(figure);
    }
    quiet.earlier = earlier.len();
}

// Intervals that are no narrower than most among cases that wait for the same things.
//
// The two to six executions of a case show badly how far they spread: by chance they agree, and the next run lies elsewhere.
// Cases of one group wait for the same device, caches or tasks, so what moves one of them moves the others between runs, too.

/// Fewer cases than these do not show how far their kind spreads.
const FEWEST: usize = 4;
/// The percentile of the widths of a kind that is the least width of each. Nine whole runs of one guest with neighbours, within
/// 16 hours: of 45 590 figures 89.1 % lay in another run's interval without it, and 95.2 % with it; half of the width was 3.5 %
/// and 5.4 % (medians). A least width of 5.5 % for all, stretched by a half, is as wide and has 94.1 %, but 73 % of the reads of
/// a disk instead of 81 %.
const LEAST: f64 = 70.0;

/// Widens the intervals of a group's cases to the width that three in ten of their kind exceed. Those that wait for memory are one
/// kind, and those that do not another.
pub fn widen_to_kind<'a>(group: impl Iterator<Item = &'a mut Measured>) {
    let (memory, others) = group.partition(|case| case.contamination.busy_beside.is_some());
    widen_kind(memory);
    widen_kind(others);
}

fn widen_kind(cases: Vec<&mut Measured>) {
    let figures = cases.into_iter().filter_map(|case| Some(&mut case.quiet.as_mut()?.figure));
    // One that may be zero or negative has no width as a factor.
    let mut figures: Vec<_> = figures.filter(|figure| figure.low > 0.0).collect();
    if figures.len() < FEWEST {
        return;
    }
    let factors: Vec<f64> = figures.iter().map(|figure| figure.high / figure.estimate).collect();
    let least = percentile(&factors, LEAST);
    for figure in &mut figures {
        figure.low = figure.low.min(figure.estimate / least);
        figure.high = figure.high.max(figure.estimate * least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contamination, Interval, Quiet};

    fn quiet_times(lows: &[f64]) -> Option<Quiet> {
        quiet_from_lows(lows, true)
    }

    #[test]
    fn a_slow_spell_moves_nothing() {
        let calm = quiet_times(&[100.2, 100.0, 100.4]).expect("three");
        let spell = quiet_times(&[130.0, 100.2, 100.0, 125.0, 100.4]).expect("five");
        assert_eq!((calm.figure, calm.settled), (spell.figure, spell.settled));
        let slower = quiet_times(&[130.0, 100.2, 100.0, 125.0, 140.0]).expect("five").figure;
        assert!(
            slower.estimate == calm.figure.estimate && slower.high > 140.0,
            "few met the floor: {slower:?}"
        );
        assert!(calm.settled && (calm.figure.estimate - 100.1).abs() < 1e-9);
    }

    #[test]
    fn one_lucky_execution_is_a_mode_and_no_floor() {
        let lucky = quiet_times(&[339.0, 250.9, 340.0, 339.5]).expect("four");
        assert_eq!((lucky.faster, lucky.settled), (Some(250.9), true));
        assert!(lucky.figure.estimate > 338.0);
        let twice = quiet_times(&[339.0, 250.9, 340.0, 339.5, 251.0]).expect("five");
        assert_eq!((twice.faster, twice.settled), (None, false), "two are no accident");
    }

    #[test]
    fn two_executions_promise_less_than_three() {
        let width = |lows: &[f64]| quiet_times(lows).map(|quiet| quiet.figure.high - quiet.figure.low);
        assert!(width(&[100.0, 110.0]) > width(&[100.0, 110.0, 110.0]));
    }

    #[test]
    fn what_never_repeats_is_not_settled_and_says_so_by_its_width() {
        let drawn = quiet_times(&[68.0, 131.0, 97.0, 80.0]).expect("four");
        assert!(!drawn.settled && drawn.figure.high - drawn.figure.low > 50.0 && drawn.figure.low > 0.0);
        assert!(quiet_times(&[5.0]).is_none(), "one execution knows nothing of others");
    }

    #[test]
    fn one_execution_that_met_a_stalled_disk_makes_no_absurd_interval() {
        let stalled = quiet_times(&[10.0, 10.0, 400.0]).expect("three").figure;
        assert_eq!((stalled.estimate, stalled.low, stalled.high), (10.0, 5.0, 600.0));
    }

    #[test]
    fn a_count_of_nothing_has_a_finite_interval() {
        let faults = quiet_times(&[0.0, 0.5, 0.5]).expect("three").figure;
        assert_eq!((faults.estimate, faults.low, faults.high), (0.25, -0.5, 1.0));
        assert_eq!(quiet_times(&[0.0, 0.0, 0.0]).expect("three").figure, Interval::exactly(0.0));
        let gap = quiet_from_lows(&[-10.0, 0.4, 0.5], false).expect("three").figure;
        assert_eq!((gap.estimate, gap.low, gap.high), (0.4, -20.5, 11.0));
    }

    #[test]
    fn a_difference_may_be_too_low_as_well() {
        assert_eq!(
            quiet_from_lows(&[1.0, 9.0, 10.0, 11.0, 30.0], false).map(|quiet| quiet.figure.estimate),
            Some(10.0)
        );
    }

    #[test]
    fn earlier_runs_widen_and_never_narrow() {
        let mut found = quiet_times(&[100.0, 100.0, 100.0]).expect("three");
        let earlier = [100.1, 140.0].map(|ns| Quiet { figure: Interval::exactly(ns), ..Quiet::default() });
        widen_to_earlier(&mut found, &earlier);
        assert_eq!((found.figure.high, found.earlier), (140.0, 2));
        assert!((found.figure.low - 100.0 / 1.015).abs() < 1e-9);
    }

    #[test]
    fn a_figure_that_the_last_run_told_is_settled() {
        let said = |ns: f64, half| Quiet { figure: Interval::around(ns, half), ..Quiet::default() };
        let mut found = quiet_times(&[100.0, 105.0, 110.0]).expect("three");
        assert!(!found.is_settled() && found.in_last_interval.is_none());
        for (last, is) in [(said(104.0, 5.0), true), (said(150.0, 5.0), false), (said(100.0, 60.0), false)] {
            check_against_last(&mut found, &last);
            assert_eq!((found.in_last_interval, found.is_settled()), (Some(is), is), "{last:?}");
        }
    }

    fn case(ns: f64, factor: f64, waits_for_memory: bool) -> Measured {
        let figure = Interval { estimate: ns, low: ns / factor, high: ns * factor };
        let contamination =
            Contamination { busy_beside: waits_for_memory.then_some(0.0), ..Contamination::default() };
        Measured { quiet: Some(Quiet { figure, ..Quiet::default() }), contamination, ..Measured::default() }
    }

    fn widen(mut cases: Vec<Measured>) -> Vec<f64> {
        widen_to_kind(cases.iter_mut());
        let rounded = |case: &Measured| (1e3 * case.figure().high / case.figure().estimate).round() / 1e3;
        cases.iter().map(rounded).collect()
    }

    #[test]
    fn a_case_that_agrees_by_chance_is_as_wide_as_its_kind() {
        let reads = [1.02, 1.2, 1.2, 1.2, 1.5].map(|factor| case(36_000.0, factor, false));
        assert_eq!(widen(reads.to_vec()), [1.2, 1.2, 1.2, 1.2, 1.5]);
    }

    #[test]
    fn what_computes_stays_narrow_beside_what_waits_for_memory() {
        let computing = [1.015; 4].map(|factor| case(1.0, factor, false));
        let waiting = [1.2; 4].map(|factor| case(100.0, factor, true));
        let widened = widen([computing, waiting].concat());
        assert_eq!((&widened[..4], &widened[4..]), (&[1.015; 4][..], &[1.2; 4][..]));
    }

    #[test]
    fn few_cases_and_figures_that_may_be_zero_stay_as_they_are() {
        let three = [1.02, 1.2, 1.2].map(|factor| case(1.0, factor, false));
        assert_eq!(widen(three.to_vec()), [1.02, 1.2, 1.2]);
        let mut cases = [1.2; 5].map(|factor| case(1.0, factor, false));
        let zero = Interval { estimate: 0.5, low: -1.0, high: 0.6 };
        cases[0].quiet = Some(Quiet { figure: zero, ..Quiet::default() });
        widen_to_kind(cases.iter_mut());
        assert_eq!(cases[0].figure(), zero);
    }
}
