//! Figures that follow from those of a case: half of what a round trip costs beyond its transfers is a switch.

use super::sweep::Sweep;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Interval, Matrix};
use crate::statistic::median;
use crate::subject::{Case, Found, Rule};

/// The figures that the case asks for and that follow from its cost; from its control where there was a sweep.
pub(super) fn figures(case: &Case, cost: Interval, sweep: Option<&Sweep>) -> Vec<Derived> {
    let figure = |derived: &crate::subject::Derived| {
        let (value, unit) = match derived.rule {
            Rule::OfNet(times) => (scaled(sweep?.net?, times), NANOSECONDS),
            Rule::OfCost(times) => (scaled(cost, times), NANOSECONDS),
            Rule::ControlOverCost => (sweep?.ratio?, ""),
            Rule::Rate => (rate(1e9, cost), "/s"),
            Rule::Bandwidth(bytes) => (rate(bytes as f64, cost), "GB/s"),
        };
        Some(Derived { name: derived.name.into(), unit: unit.into(), value })
    };
    case.derived.iter().filter_map(figure).collect()
}

/// The median of what was found beside the time.
pub(super) fn found(found: Found) -> Option<Derived> {
    let Found { name, unit, values } = found;
    let value = (!values.is_empty()).then(|| crate::statistic::median_interval(&values))?;
    Some(Derived { name: name.into(), unit: unit.into(), value })
}

/// The median of what the batches found between every two CPUs.
pub(super) fn matrix(found: crate::subject::Matrix) -> Matrix {
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
