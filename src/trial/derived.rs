//! Figures that follow from those of a case: half of what a round trip costs beyond its transfers is a switch.

use super::sweep::Sweep;
use crate::case::{Case, Found, Rule};
use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Interval, Matrix};
use crate::statistic::median;

/// What a case costs, as far as it is known.
pub(super) struct Costs<'a> {
    /// The line of time against iterations, where one was drawn.
    pub(super) sweep: Option<&'a Sweep>,
    /// The median of the samples: the cost, where operations are timed one by one.
    pub(super) median: Interval,
    /// One of the events that the subject counted.
    pub(super) event: Option<Interval>,
    /// The core's frequency, Hz.
    pub(super) core_hz: f64,
    /// CPUs that a case on all of them has.
    pub(super) cpus: usize,
}

/// The figures that the case asks for and its costs can give.
pub(super) fn figures(case: &Case, costs: &Costs<'_>) -> Vec<Derived> {
    let figure = |derived: &crate::case::Derived| {
        let (value, unit) = figure(derived.rule, costs)?;
        Some(Derived { name: derived.name.into(), unit: unit.into(), value })
    };
    case.derived.iter().filter_map(figure).collect()
}

fn figure(rule: Rule, costs: &Costs<'_>) -> Option<(Interval, &'static str)> {
    let cost = costs.sweep.map_or(costs.median, |sweep| sweep.slope);
    Some(match rule {
        Rule::OfNet(times) => (scaled(costs.sweep?.net?, times), NANOSECONDS),
        Rule::OfCost(times) => (scaled(cost, times), NANOSECONDS),
        Rule::ControlOverCost => (costs.sweep?.ratio?, ""),
        Rule::Rate => (rate(1e9, cost), "/s"),
        Rule::Bandwidth(bytes) => (rate(bytes as f64, cost), "GB/s"),
        Rule::BandwidthOfAll(bytes) => (rate(bytes as f64 * costs.cpus as f64, cost), "GB/s"),
        Rule::Share { bytes, on_all, of } => {
            let all = bytes as f64 * if on_all { costs.cpus as f64 } else { 1.0 };
            (rate(all * 1e9 / of, cost), "")
        }
        Rule::BytesPerCycle(bytes) => (rate(bytes as f64 * 1e9 / costs.core_hz, cost), "B/cycle"),
        Rule::PerEvent => (costs.event?, NANOSECONDS),
    })
}

/// The median of what was found beside the time.
pub(super) fn found(found: Found) -> Option<Derived> {
    let Found { name, unit, values } = found;
    let value = (!values.is_empty()).then(|| crate::statistic::median_interval(&values))?;
    Some(Derived { name: name.into(), unit: unit.into(), value })
}

/// The median of what the batches found between every two CPUs.
pub(super) fn matrix(found: crate::case::Matrix) -> Matrix {
    let mut rows: Vec<_> = (0..found.cpus.len()).map(|i| vec![0.0; i]).collect();
    for ((a, b), figures) in &found.figures {
        rows[*a.max(b)][*a.min(b)] = median(figures);
    }
    Matrix { cpus: found.cpus, rows }
}

/// So much in a cost of nanoseconds: its ends change places. Bytes in a nanosecond are gigabytes in a second.
fn rate(amount: f64, cost: Interval) -> Interval {
    Interval { estimate: amount / cost.estimate, low: amount / cost.high, high: amount / cost.low }
}

fn scaled(interval: Interval, times: f64) -> Interval {
    Interval { estimate: times * interval.estimate, low: times * interval.low, high: times * interval.high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(estimate: f64) -> Interval {
        Interval { estimate, low: estimate, high: estimate }
    }

    #[test]
    fn without_a_line_the_cost_is_the_median() {
        let costs = Costs { sweep: None, median: at(4096.0), event: Some(at(9.0)), core_hz: 1e9, cpus: 2 };
        let value = |rule| figure(rule, &costs).map(|(value, _)| value.estimate);
        assert_eq!(value(Rule::OfCost(1.0 / 4096.0)), Some(1.0));
        assert_eq!(value(Rule::Bandwidth(4096)), Some(1.0));
        assert_eq!(value(Rule::PerEvent), Some(9.0));
        assert_eq!(value(Rule::OfNet(1.0)), None, "there is no control");
    }

    #[test]
    fn what_was_not_counted_has_no_cost() {
        let costs = Costs { sweep: None, median: at(1.0), event: None, core_hz: 1e9, cpus: 2 };
        assert!(figure(Rule::PerEvent, &costs).is_none());
    }
}
