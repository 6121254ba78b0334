//! Figures derived from those of a case, such as bytes per second, or a switch as half of a round trip's net cost.

use super::sweep::Sweep;
use crate::case::{Case, Found, Rule};
use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Interval, Matrix};
use crate::statistic::median;

/// The costs of a case.
pub(super) struct Costs<'a> {
    /// Time against iterations, if there was a sweep.
    pub(super) sweep: Option<&'a Sweep>,
    /// Median of the samples, which is the cost where operations are timed one by one, ns.
    pub(super) median: Interval,
    /// Cost of an event that the subject counted, ns.
    pub(super) event: Option<Interval>,
    /// The core's frequency, Hz.
    pub(super) core_hz: f64,
    /// Number of CPUs of a case that runs on all of them.
    pub(super) cpus: usize,
}

/// The figures that the case asks for and that its costs allow.
pub(super) fn derived_figures(case: &Case, costs: &Costs<'_>) -> Vec<Derived> {
    let figure = |derived: &crate::case::Derived| {
        let (value, unit) = derive_figure(derived.rule, costs)?;
        Some(Derived { name: derived.name.into(), unit: unit.into(), value })
    };
    case.derived.iter().filter_map(figure).collect()
}

fn derive_figure(rule: Rule, costs: &Costs<'_>) -> Option<(Interval, &'static str)> {
    let cost = costs.sweep.map_or(costs.median, |sweep| sweep.slope);
    Some(match rule {
        Rule::OfNet(times) => (costs.sweep?.net?.map(|ns| times * ns), NANOSECONDS),
        Rule::OfCost(times) => (cost.map(|ns| times * ns), NANOSECONDS),
        Rule::ControlOverCost => (costs.sweep?.ratio?, ""),
        Rule::Rate => (rate_per_ns(1e9, cost), "/s"),
        Rule::Elements(elements) => (rate_per_ns(1e9 * elements as f64, cost), "elem/s"),
        Rule::Bandwidth(bytes) => (rate_per_ns(bytes as f64, cost), "GB/s"),
        Rule::BandwidthOfAll(bytes) => (rate_per_ns(bytes as f64 * costs.cpus as f64, cost), "GB/s"),
        Rule::Share { bytes, on_all, of } => {
            let all = bytes as f64 * if on_all { costs.cpus as f64 } else { 1.0 };
            (rate_per_ns(all * 1e9 / of, cost), "")
        }
        Rule::BytesPerCycle(bytes) => (rate_per_ns(bytes as f64 * 1e9 / costs.core_hz, cost), "B/cycle"),
        Rule::PerEvent => (costs.event?, NANOSECONDS),
    })
}

/// The median of a figure that the subject found.
pub(super) fn median_of_found(found: Found) -> Option<Derived> {
    let Found { name, unit, values } = found;
    let value = (!values.is_empty()).then(|| crate::statistic::median_interval(&values))?;
    Some(Derived { name: name.into(), unit: unit.into(), value })
}

/// The median over the batches for each pair of CPUs.
pub(super) fn median_matrix(found: crate::case::Matrix) -> Matrix {
    let mut rows: Vec<_> = (0..found.cpus.len()).map(|i| vec![0.0; i]).collect();
    for ((a, b), figures) in &found.figures {
        rows[*a.max(b)][*a.min(b)] = median(figures);
    }
    Matrix { cpus: found.cpus, rows }
}

/// `amount` per nanosecond of cost; the ends of the interval change places. Bytes per nanosecond are GB/s.
fn rate_per_ns(amount: f64, cost: Interval) -> Interval {
    Interval { estimate: amount / cost.estimate, low: amount / cost.high, high: amount / cost.low }
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
        let value = |rule| derive_figure(rule, &costs).map(|(value, _)| value.estimate);
        assert_eq!(value(Rule::OfCost(1.0 / 4096.0)), Some(1.0));
        assert_eq!(value(Rule::Bandwidth(4096)), Some(1.0));
        assert_eq!(value(Rule::PerEvent), Some(9.0));
        assert_eq!(value(Rule::OfNet(1.0)), None, "there is no control");
    }

    #[test]
    fn what_was_not_counted_has_no_cost() {
        let costs = Costs { sweep: None, median: at(1.0), event: None, core_hz: 1e9, cpus: 2 };
        assert!(derive_figure(Rule::PerEvent, &costs).is_none());
    }
}
