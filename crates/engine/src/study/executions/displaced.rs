//! Joins the executions of one case that was measured by displacement. Every column is the median of the executions, with an
//! interval that reflects their spread; the figure of the case itself is found by the same rule.

use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Displaced, Interval, Measured, Throughput};
use crate::statistic::{mean, median};
use crate::study::interval::quiet_from_lows;

/// Joins the executions of these outcomes into one; `None` if one of them was not measured by displacement. `gap` is the
/// figure of all executions, and `deviation` the standard deviation over all runs.
pub(super) fn pool_displaced(parts: &[Measured], gap: Interval, deviation: f64) -> Option<Displaced> {
    let displaced = parts.iter().map(|part| part.displaced.as_ref()).collect::<Option<Vec<_>>>()?;
    let each: Vec<Displaced> = displaced.into_iter().flat_map(Displaced::each_execution).cloned().collect();
    let [first, _, ..] = &each[..] else { return each.into_iter().next() };
    let column = |field: fn(&Displaced) -> Option<Interval>| pool_intervals(each.iter().filter_map(field));
    let average = |field: fn(&Displaced) -> f64| mean(&each.iter().map(field).collect::<Vec<_>>());
    let mut flags: Vec<String> = Vec::new();
    for flag in each.iter().flat_map(|one| &one.flags) {
        if !flags.contains(flag) {
            flags.push(flag.clone());
        }
    }
    Some(Displaced {
        kept: each.iter().fold((0, 0), |(kept, all), one| (kept + one.kept.0, all + one.kept.1)),
        quiet: each.iter().any(|one| one.quiet),
        others: average(|one| one.others),
        operations: first.operations,
        computed: first.computed,
        wall: median(&each.iter().map(|one| one.wall).collect::<Vec<_>>()),
        paper: column(|one| one.paper),
        gap: Some(gap),
        daemon_free: column(|one| one.daemon_free),
        charged: column(|one| one.charged),
        rusage: column(|one| one.rusage),
        missed: column(|one| one.missed),
        difference: column(|one| one.difference),
        deviation,
        error_daemons: average(|one| one.error_daemons),
        error_start: average(|one| one.error_start),
        error_resolution: average(|one| one.error_resolution),
        turns: [average(|one| one.turns[0]), average(|one| one.turns[1])],
        error_cache: average(|one| one.error_cache),
        flags,
        throughput: pool_throughput(&each),
        executions: each,
    })
}

fn pool_throughput(each: &[Displaced]) -> Option<Throughput> {
    let rates: Vec<_> = each.iter().filter_map(|one| one.throughput.as_ref()).collect();
    let column = |field: fn(&Throughput) -> Interval| pool_intervals(rates.iter().map(|rate| field(rate)));
    Some(Throughput {
        real: column(|rate| rate.real)?,
        displaced: column(|rate| rate.displaced)?,
        displaced_off: column(|rate| rate.displaced_off)?,
        charged: column(|rate| rate.charged)?,
        charged_off: column(|rate| rate.charged_off)?,
    })
}

/// The median of several executions' results, with an interval for the next run's result that is at least as wide as the widest
/// of theirs. A single execution is returned as it is; without executions the result is `None`.
pub fn pool_intervals(each: impl Iterator<Item = Interval>) -> Option<Interval> {
    let each: Vec<Interval> = each.collect();
    let estimates: Vec<f64> = each.iter().map(|one| one.estimate).collect();
    let Some(quiet) = quiet_from_lows(&estimates, false) else { return each.first().copied() };
    let figure = quiet.figure;
    let widest = each.iter().map(|one| 0.5 * (one.high - one.low)).fold(0.0, f64::max);
    Some(figure.widened_to(Interval::around(figure.estimate, widest)))
}

impl Displaced {
    /// The results of each pooled execution, or this result alone if it is of a single execution.
    pub fn each_execution(&self) -> &[Self] {
        if self.executions.is_empty() { std::slice::from_ref(self) } else { &self.executions }
    }

    /// The columns that the observation table shows below the figure.
    pub fn derived_figures(&self) -> Vec<Derived> {
        let figure = |name: &str, unit: &str, value: Option<Interval>| {
            Some(Derived { name: name.into(), unit: unit.into(), value: value? })
        };
        let figures = [
            figure("paper", NANOSECONDS, self.paper),
            figure("daemon-free", NANOSECONDS, self.daemon_free),
            figure("accounting", NANOSECONDS, self.charged),
            figure("getrusage", NANOSECONDS, self.rusage),
            figure("missed", "", self.missed),
        ];
        figures.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool_executions;
    use super::*;
    use crate::record::Execution;

    fn part(gap: f64) -> Measured {
        let around = |estimate: f64| Some(Interval::around(estimate, 0.01 * gap));
        let displaced = Displaced {
            kept: (20, 25),
            gap: around(gap),
            charged: around(0.9 * gap),
            difference: Some(Interval::around(gap / 24.0 - 1.0, 0.01)),
            ..Displaced::default()
        };
        Measured {
            executions: vec![Execution { low: gap, median: gap, ..Execution::default() }],
            iterations: vec![1],
            counted: vec![(1000.0 * gap) as u64],
            ticks: 1000.0 * gap,
            median: Interval::exactly(gap),
            derived: displaced.derived_figures(),
            displaced: Some(displaced),
            ..Measured::default()
        }
    }

    #[test]
    fn pooled_columns_are_medians_with_intervals_that_cover_all_executions() {
        let all = pool_executions(&[part(18.98), part(23.78)], None).expect("two");
        let displaced = all.displaced.as_ref().expect("displaced");
        assert_eq!((displaced.kept, displaced.gap), ((40, 50), Some(all.figure())));
        let charged = displaced.charged.expect("both were charged");
        assert!((charged.estimate - 0.9 * 21.38).abs() < 1e-9 && charged.low < 0.9 * 18.98, "{charged:?}");
        let difference = displaced.difference.expect("both");
        assert!(
            difference.low < 18.98 / 24.0 - 1.0 && difference.high > 23.78 / 24.0 - 1.0,
            "{difference:?}"
        );
        let shown = |name: &str| all.derived.iter().find(|figure| figure.name == name).map(|f| f.value);
        assert_eq!(shown("accounting"), displaced.charged, "--group shows what --paper shows");
    }

    #[test]
    fn pooling_in_steps_gives_what_pooling_at_once_gives() {
        let parts = [10.0, 12.0, 11.0].map(part);
        let pool = |parts: &[Measured]| pool_executions(parts, None).expect("some");
        let (once, steps) = (pool(&parts), pool(&[pool(&parts[..2]), parts[2].clone()]));
        let columns = |all: &Measured| {
            let displaced = all.displaced.clone().expect("displaced");
            (displaced.gap, displaced.charged, displaced.kept, displaced.executions.len())
        };
        assert_eq!(columns(&once), columns(&steps));
        assert_eq!(pool(&parts[..1]).displaced, parts[0].displaced, "one stays what it is");
    }

    #[test]
    fn a_pooled_interval_is_at_least_as_wide_as_the_widest_of_the_executions() {
        let pooled = pool_intervals([Interval::around(10.0, 4.0), Interval::around(10.0, 1.0)].into_iter());
        assert_eq!(pooled, Some(Interval::around(10.0, 4.0)));
        assert_eq!(pool_intervals(std::iter::empty()), None);
    }
}
