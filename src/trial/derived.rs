//! Figures that follow from those of a case: half of what a round trip costs beyond its transfers is a switch.

use super::sweep::Sweep;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Interval};
use crate::subject::{Case, Rule};

/// The figures that the case asks for and the sweep can give.
pub(super) fn figures(case: &Case, sweep: &Sweep) -> Vec<Derived> {
    let figure = |derived: &crate::subject::Derived| {
        let (value, unit) = match derived.rule {
            Rule::OfNet(times) => (scaled(sweep.net?, times), NANOSECONDS),
            Rule::OfCost(times) => (scaled(sweep.slope, times), NANOSECONDS),
            Rule::ControlOverCost => (sweep.ratio?, ""),
        };
        Some(Derived { name: derived.name.into(), unit: unit.into(), value })
    };
    case.derived.iter().filter_map(figure).collect()
}

fn scaled(interval: Interval, times: f64) -> Interval {
    Interval { estimate: times * interval.estimate, low: times * interval.low, high: times * interval.high }
}
