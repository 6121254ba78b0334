//! Intervals that are no narrower than most among cases that wait for the same things.
//!
//! The two to six executions of a case show badly how far they spread: by chance they agree, and the next run lies elsewhere.
//! Cases of one group wait for the same device, caches or tasks, so what moves one of them moves the others between runs, too.

use crate::record::Measured;
use crate::statistic::percentile;

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
