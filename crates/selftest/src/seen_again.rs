//! Checks intervals against later runs of the same machine: how often the next run's figure lies in the interval.

use crate::statistic::{Interval, percentile, proportion_interval};
use serde::Serialize;
use std::collections::BTreeMap;
use syscost_engine::record::{Measured, Quiet, Record};
use syscost_engine::study::interval::compare_with_earlier;

/// The predictions of the intervals, and how many held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Again {
    /// Number of runs.
    pub runs: usize,
    /// Figures of a run that the run before it had an interval for.
    pub figures: usize,
    /// Share of them that lay in that interval, with the 95 % interval of the share.
    pub inside: Interval,
    /// Distance of two runs' figures of a case, as a share: median and 90th percentile.
    pub distance: [f64; 2],
    /// Half of an interval, as a share of its figure: median and 90th percentile.
    pub half_width: [f64; 2],
    /// Share of the cases whose executions agree, over all runs.
    pub agreeing: f64,
    /// Share of the cases that are settled by their executions or by the run before, of those that an earlier run has.
    pub settled: f64,
    /// The cases whose figures lay furthest apart: id, both figures in the record's unit.
    pub furthest: Vec<(String, [f64; 2])>,
}

/// Cases that are named.
const NAMED: usize = 5;

/// Compares every run with the one before it. Intervals that were not yet widened to earlier runs, as those of
/// unsaved runs, are widened here. `None` if no two successive runs have a figure in common.
pub fn compare_successive(runs: &[Record]) -> Option<Again> {
    let mut known: BTreeMap<&str, Vec<Quiet>> = BTreeMap::new();
    let (mut pairs, mut settled) = (Vec::new(), Vec::new());
    for (at, run) in runs.iter().enumerate() {
        let next = runs.get(at + 1).map(quiet_figures).unwrap_or_default();
        for (id, mut quiet) in quiet_figures(run) {
            let earlier = known.entry(id).or_default();
            compare_with_earlier(&mut quiet, earlier);
            settled.push((quiet.settled, earlier.first().map(|_| quiet.is_settled())));
            earlier.insert(0, quiet);
            // A saved run converts its figures to the frequency of those before it.
            let figure = |next: &Quiet| next.figure.estimate * next.frequency_factor_to(&quiet);
            pairs.extend(next.get(id).map(|next| (id, quiet.figure, figure(next))));
        }
    }
    summarize_pairs(runs.len(), &mut pairs, &settled)
}

fn quiet_figures(run: &Record) -> BTreeMap<&str, Quiet> {
    let quiet = |measured: &Measured| measured.quiet.filter(|quiet| quiet.figure.estimate > 0.0);
    run.cases().filter_map(|(_, case)| Some((case.id.as_str(), quiet(case.measured()?)?))).collect()
}

fn summarize_pairs(
    runs: usize,
    pairs: &mut [(&str, Interval, f64)],
    settled: &[(bool, Option<bool>)],
) -> Option<Again> {
    if pairs.is_empty() {
        return None;
    }
    let apart = |(_, figure, next): &(&str, Interval, f64)| (next / figure.estimate).ln().abs();
    pairs.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
    let inside = pairs.iter().filter(|(_, figure, next)| (figure.low..=figure.high).contains(next)).count();
    let half = |figure: &Interval| (figure.high - figure.low) / 2.0 / figure.estimate;
    let both = |values: Vec<f64>| [percentile(&values, 50.0), percentile(&values, 90.0)];
    Some(Again {
        runs,
        figures: pairs.len(),
        inside: proportion_interval(inside as u64, pairs.len() as u64),
        distance: both(pairs.iter().map(apart).collect()),
        half_width: both(pairs.iter().map(|(_, figure, _)| half(figure)).collect()),
        agreeing: share_of_true(settled.iter().map(|(agreeing, _)| *agreeing)),
        settled: share_of_true(settled.iter().filter_map(|(_, settled)| *settled)),
        furthest: pairs.iter().take(NAMED).map(|(id, a, b)| ((*id).to_owned(), [a.estimate, *b])).collect(),
    })
}

/// The share that is true; 0 of none.
fn share_of_true(all: impl Iterator<Item = bool> + Clone) -> f64 {
    all.clone().filter(|is| *is).count() as f64 / all.count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{Outcome, fixture_run};

    /// The fixture with its first case at this figure, ± 1, and nothing else measured.
    fn run(ns: f64) -> Record {
        let mut run = fixture_run::fixture_record();
        run.groups.truncate(1);
        run.groups[0].cases.truncate(1);
        if let Outcome::Measured(measured) = &mut run.groups[0].cases[0].outcome {
            measured.quiet =
                Some(Quiet { figure: Interval::around(ns, 1.0), settled: true, ..Quiet::default() });
        }
        run
    }

    #[test]
    fn a_figure_outside_the_interval_is_counted_once_and_known_from_then_on() {
        let seen = compare_successive(&[run(100.0), run(100.5), run(110.0), run(100.0), run(109.0)])
            .expect("figures");
        // 100 → 100.5 inside; 100.5 → 110 outside; 110 → 100 and 100 → 109 inside, since 100 and 110 were seen.
        assert_eq!((seen.runs, seen.figures, seen.inside.estimate), (5, 4, 0.75));
        assert!(seen.distance[1] > 0.09 && seen.furthest[0].1 == [110.0, 100.0], "{seen:?}");
        assert_eq!((seen.agreeing, seen.settled), (1.0, 1.0));
    }

    #[test]
    fn executions_that_disagree_are_settled_where_the_run_before_told_them() {
        let mut runs = [run(100.0), run(100.5), run(110.0)];
        for run in &mut runs {
            if let Outcome::Measured(measured) = &mut run.groups[0].cases[0].outcome {
                measured.quiet.iter_mut().for_each(|quiet| quiet.settled = false);
            }
        }
        let seen = compare_successive(&runs).expect("figures");
        assert_eq!((seen.agreeing, seen.settled), (0.0, 0.5));
    }

    #[test]
    fn runs_without_a_common_figure_say_nothing() {
        assert_eq!(compare_successive(&[run(100.0)]), None);
        assert_eq!(
            compare_successive(&[fixture_run::fixture_record(), fixture_run::fixture_record()]),
            None,
            "single executions promise nothing"
        );
    }
}
