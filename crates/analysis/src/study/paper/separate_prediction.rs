//! The rate of a busy CPU as the paper predicts it: from the cost of a message and that of the computation, each measured
//! by itself, in cases of their own.

use super::{COMPUTATION, find_displacement};
use syscost_engine::record::{Displaced, Interval, Record};

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
    /// Time of the computation for each message, by the gap estimate, ns.
    pub computation: Interval,
    /// How much more the parts cost than the whole, which was measured as one operation, ns.
    pub beyond_whole: Option<Interval>,
}

impl SeparatePrediction {
    /// The prediction for the case `whole` from that of a message and from as many multiplications as `whole` does for each.
    /// Nothing where one of the three is missing, or the record does not say how many they are.
    pub fn from_record(record: &Record, whole: &str, send: &str) -> Option<Self> {
        let whole = find_displacement(record, whole).filter(|whole| whole.computed > 0)?;
        let (send, computation) =
            (find_displacement(record, send)?, find_displacement(record, COMPUTATION.0)?);
        let real = whole.throughput.as_ref()?.real;
        let times = whole.computed as f64 / COMPUTATION.1;
        let cost = |field: fn(&Displaced) -> Option<Interval>| {
            Some(sum_independent(field(send)?, field(computation)?.map(|ns| times * ns)))
        };
        let (displaced, charged) = (cost(|o| o.gap)?, cost(|o| o.charged)?);
        let computation = computation.gap?.map(|ns| times * ns);
        Some(Self {
            real,
            displaced: operations_per_second(displaced),
            displaced_off: relative_error(displaced, real),
            charged: operations_per_second(charged),
            charged_off: relative_error(charged, real),
            computation,
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
    use syscost_engine::record::Throughput;

    fn cost(gap: f64, half: f64) -> Displaced {
        let gap = Some(Interval::around(gap, half));
        Displaced { gap, charged: gap.map(|gap| gap.map(|ns| 0.8 * ns)), ..Displaced::default() }
    }

    fn whole() -> Displaced {
        let throughput = Throughput { real: Interval::around(10_000.0, 100.0), ..Throughput::default() };
        Displaced { throughput: Some(throughput), computed: 240_000, ..cost(98_000.0, 0.0) }
    }

    #[test]
    fn two_costs_predict_the_rate_of_their_sum() {
        let cases = vec![
            measured_case("sender/1000B", whole()),
            measured_case("nodes/1000B", cost(20_000.0, 3_000.0)),
            // The sender does twice as many.
            measured_case(COMPUTATION.0, cost(42_000.0, 2_000.0)),
        ];
        let record = record_of_cases(cases);
        let predict = |send| SeparatePrediction::from_record(&record, "sender/1000B", send);
        let found = predict("nodes/1000B").expect("all three");
        let near =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-3, "{value} {expected}");
        near(found.computation.estimate, 84_000.0);
        near(found.displaced.estimate, 9_615.4);
        near(found.displaced_off.estimate, -0.038_46);
        // 5000 of 104 000 and 100 of 10 000, in quadrature.
        near(half_width(found.displaced_off), 0.961_54 * 0.049_1);
        near(found.charged.estimate, 12_019.0);
        let more = found.beyond_whole.expect("the whole has a cost");
        near(more.estimate, 6_000.0);
        near(more.high, 11_000.0);
        assert_eq!(predict("nodes/2000B"), None);
        let unsaid = Displaced { computed: 0, ..whole() };
        let older =
            record.groups[0].cases[1..].iter().cloned().chain([measured_case("sender/1000B", unsaid)]);
        let older = record_of_cases(older.collect());
        assert_eq!(SeparatePrediction::from_record(&older, "sender/1000B", "nodes/1000B"), None);
    }
}
