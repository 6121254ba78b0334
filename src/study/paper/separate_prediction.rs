//! The rate of a busy CPU as the paper predicts it: from the cost of a message and that of the computation, each measured
//! by itself, in cases of their own.

use super::find_displacement;
use crate::record::{Displaced, Interval, Record};

/// Messages a second as predicted from the sum of two costs, beside the measured rate. The three were measured
/// independently, so their relative half-widths add up in quadrature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeparatePrediction {
    /// As measured.
    pub real: Interval,
    /// Predicted from the gap estimates.
    pub displaced: Interval,
    /// How far it is off the measured rate: 0.02 is 2 % more.
    pub displaced_off: Interval,
    /// Predicted from the accounts.
    pub charged: Interval,
    /// How far it is off.
    pub charged_off: Interval,
    /// How much more the parts cost than the whole, which was measured as one operation, ns.
    pub beyond_whole: Option<Interval>,
}

impl SeparatePrediction {
    /// The prediction for the case `whole` from those of its parts. Nothing where one of the three is missing.
    pub fn from_record(record: &Record, whole: &str, parts: [&str; 2]) -> Option<Self> {
        let whole = find_displacement(record, whole)?;
        let [send, computation] = parts.map(|part| find_displacement(record, part));
        let (send, computation) = (send?, computation?);
        let real = whole.throughput.as_ref()?.real;
        let cost = |field: fn(&Displaced) -> Option<Interval>| {
            Some(sum_independent(field(send)?, field(computation)?))
        };
        let (displaced, charged) = (cost(|o| o.gap)?, cost(|o| o.charged)?);
        Some(Self {
            real,
            displaced: operations_per_second(displaced),
            displaced_off: relative_error(displaced, real),
            charged: operations_per_second(charged),
            charged_off: relative_error(charged, real),
            beyond_whole: whole.gap.map(|whole| sum_independent(displaced, whole.map(|ns| -ns))),
        })
    }
}

fn half_width(of: Interval) -> f64 {
    0.5 * (of.high - of.low).abs()
}

fn sum_independent(one: Interval, other: Interval) -> Interval {
    Interval::around(one.estimate + other.estimate, half_width(one).hypot(half_width(other)))
}

/// Operations a second of one that takes `ns` nanoseconds.
fn operations_per_second(ns: Interval) -> Interval {
    let estimate = 1e9 / ns.estimate;
    Interval::around(estimate, estimate * half_width(ns) / ns.estimate)
}

fn relative_error(ns: Interval, real: Interval) -> Interval {
    let ratio = 1e9 / ns.estimate / real.estimate;
    Interval::around(
        ratio - 1.0,
        ratio * (half_width(ns) / ns.estimate).hypot(half_width(real) / real.estimate),
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture_paper::{measured_case, record_of_cases};
    use super::*;
    use crate::record::Throughput;

    fn cost(gap: f64, half: f64) -> Displaced {
        let gap = Some(Interval::around(gap, half));
        Displaced { gap, charged: gap.map(|gap| gap.map(|ns| 0.8 * ns)), ..Displaced::default() }
    }

    fn whole() -> Displaced {
        let throughput = Throughput { real: Interval::around(10_000.0, 100.0), ..Throughput::default() };
        Displaced { throughput: Some(throughput), ..cost(98_000.0, 0.0) }
    }

    #[test]
    fn two_costs_predict_the_rate_of_their_sum() {
        let cases = vec![
            measured_case("sender/1000B", whole()),
            measured_case("nodes/1000B", cost(20_000.0, 3_000.0)),
            measured_case("computation/1", cost(84_000.0, 4_000.0)),
        ];
        let record = record_of_cases(cases);
        let predict = |computation| {
            SeparatePrediction::from_record(&record, "sender/1000B", ["nodes/1000B", computation])
        };
        let found = predict("computation/1").expect("all three");
        let near =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-3, "{value} {expected}");
        near(found.displaced.estimate, 9_615.4);
        near(found.displaced_off.estimate, -0.038_46);
        // 5000 of 104 000 and 100 of 10 000, in quadrature.
        near(half_width(found.displaced_off), 0.961_54 * 0.049_1);
        near(found.charged.estimate, 12_019.0);
        let more = found.beyond_whole.expect("the whole has a cost");
        near(more.estimate, 6_000.0);
        near(more.high, 11_000.0);
        assert_eq!(predict("computation/2"), None);
    }
}
