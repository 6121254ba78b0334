//! The paper whose experiments the group `displacement` repeats (Woodside, Courtois and Schramm 1997). Its four tables are
//! compiled in; its figures show the curves of a run beside the published ones.

mod paper_figure;

pub use paper_figure::{Figure, figures};

use crate::error::Result;
use serde::Deserialize;
use syscost_engine::record::{CaseRecord, Displaced, Interval, Record};
use syscost_engine::study::executions::pool_intervals;
use syscost_engine::study::published::parse_compiled_in;

/// The group whose cases fill the tables.
pub const GROUP: &str = "displacement";

/// The case of multiplications alone, without the group's name, and the number of its multiplications. It gives the cost of a
/// sender's computation, in proportion to the sender's number of multiplications.
const COMPUTATION: (&str, f64) = ("computation/120000", 120_000.0);

const TEXT: &str = include_str!("../../fixtures/published/woodside1997.toml");

/// The four tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The machine.
    pub source: String,
    /// Table 1.
    pub compute: Vec<Cost>,
    /// Table 2.
    pub send: Vec<Cost>,
    /// Table 3.
    pub throughput: Vec<Rate>,
    /// Table 4.
    pub loops: Vec<Spread>,
}

/// A cost by both methods, µs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The id of our case without the group; for table 2 also without the way.
    pub id: String,
    /// The cost by the kernel's accounting.
    pub accounting: f64,
    /// The cost by displacement.
    pub displacement: f64,
    /// Displacement over accounting, less 1, percent.
    pub percent: f64,
}

/// Rates in messages per second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The id of our case of six senders, without the group.
    pub id: String,
    /// The id of our case of a message alone, without the group.
    pub send: String,
    /// The id of our case of one sender, which computes while its message is under way, without the group.
    pub sender: String,
    /// The measured rate.
    pub real: f64,
    /// The rate predicted from displacement.
    pub displacement: f64,
    /// The error of the prediction from displacement, percent.
    pub displacement_percent: f64,
    /// The rate predicted from accounting.
    pub accounting: f64,
    /// The error of the prediction from accounting, percent.
    pub accounting_percent: f64,
}

/// Mean and deviation over 20 runs, µs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The id of our case, without the group.
    pub id: String,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Standard deviation in percent of the mean.
    pub percent: f64,
    /// Half-width of the 95 % interval.
    pub half: f64,
}

/// The displacement record, over all executions, of the case with this id (without the group).
pub fn find_displacement(record: &Record, name: &str) -> Option<Displaced> {
    let id = format!("{GROUP}/{name}");
    displacement_of(record.cases().find(|(_, case)| case.id == id)?.1)
}

/// The displacement record of a case. Its cost is the same figure that every other table shows.
pub fn displacement_of(case: &CaseRecord) -> Option<Displaced> {
    let measured = case.measured()?;
    let displaced = measured.displaced.clone()?;
    Some(Displaced {
        gap: displaced.gap.map(|gap| measured.quiet.map_or(gap, |quiet| quiet.figure)),
        ..displaced
    })
}

impl Paper {
    /// Parses the tables that are compiled in.
    ///
    /// # Errors
    /// The compiled file is no TOML of this layout.
    pub fn read() -> Result<Self> {
        parse_compiled_in("woodside1997", TEXT, "four tables")
    }
}

// The rate of a busy CPU as the paper predicts it: from the cost of a message and the cost of the computation, each measured
// separately in its own case.

/// The rate in messages per second, predicted from the sum of two costs, and the measured rate. The three were measured
/// independently, so their relative half-widths add up in quadrature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeparatePrediction {
    /// The measured rate.
    pub real: Interval,
    /// The rate predicted from the gap estimates.
    pub displaced: Interval,
    /// The relative error of `displaced`: 0.02 is 2 % above the measured rate.
    pub displaced_off: Interval,
    /// The rate predicted from the paper's estimates, and its relative error.
    pub paper: Option<[Interval; 2]>,
    /// The rate predicted from the kernel's accounting.
    pub charged: Interval,
    /// The relative error of `charged`.
    pub charged_off: Interval,
    /// The time of the computation for each message, by the gap estimate, ns.
    pub computation: Interval,
    /// The sum of the two costs less the cost of the whole, which was measured as one operation, ns.
    pub beyond_whole: Option<Interval>,
}

impl SeparatePrediction {
    /// The prediction for the case `whole`, from the case `send` of a message and from the multiplications that `whole` does for
    /// each message. `None` if one of the three cases or the number of multiplications is missing.
    pub fn from_record(record: &Record, whole: &str, send: &str) -> Option<Self> {
        let whole = find_displacement(record, whole)?;
        let (send, computation) =
            (find_displacement(record, send)?, find_displacement(record, COMPUTATION.0)?);
        let each: Vec<Self> = whole
            .each_execution()
            .iter()
            .filter_map(|whole| Self::from_execution(whole, &send, &computation))
            .collect();
        let column = |field: fn(&Self) -> Interval| pool_intervals(each.iter().map(field));
        let papers = |at: usize| pool_intervals(each.iter().filter_map(|one| Some(one.paper?[at])));
        Some(Self {
            real: column(|one| one.real)?,
            displaced: column(|one| one.displaced)?,
            displaced_off: column(|one| one.displaced_off)?,
            paper: papers(0).zip(papers(1)).map(|(rate, off)| [rate, off]),
            charged: column(|one| one.charged)?,
            charged_off: column(|one| one.charged_off)?,
            computation: column(|one| one.computation)?,
            beyond_whole: pool_intervals(each.iter().filter_map(|one| one.beyond_whole)),
        })
    }

    /// The prediction for one execution of the sender. Each execution computes for the time of the wire found at its set-up.
    fn from_execution(whole: &Displaced, send: &Displaced, computation: &Displaced) -> Option<Self> {
        let real = whole.throughput.as_ref().filter(|_| whole.computed > 0)?.real;
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
            paper: cost(|o| o.paper).map(|ns| [operations_per_second(ns), relative_error(ns, real)]),
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

/// The rate, per second, of an operation that takes `ns` nanoseconds.
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
pub(crate) mod fixture_paper {
    //! Cases of the paper.

    use super::GROUP;
    use syscost_engine::record::{
        CaseRecord, Displaced, GroupRun, Interval, Measured, Outcome, Record, fixture_run,
    };

    /// A measured case of the paper, with this displacement.
    pub fn measured_case(name: &str, displaced: Displaced) -> CaseRecord {
        let outcome =
            Outcome::Measured(Box::new(Measured { displaced: Some(displaced), ..Measured::default() }));
        CaseRecord { id: format!("{GROUP}/{name}"), title: String::new(), outcome }
    }

    /// A run that has these cases alone.
    pub fn record_of_cases(cases: Vec<CaseRecord>) -> Record {
        let mut record = fixture_run::fixture_record();
        record.groups = vec![GroupRun { name: GROUP.into(), cases, ..GroupRun::default() }];
        record
    }

    /// The interval from 10 % below to 10 % above the estimate.
    pub fn ten_percent_interval(estimate: f64) -> Option<Interval> {
        Some(Interval { estimate, low: 0.9 * estimate, high: 1.1 * estimate })
    }
}

#[cfg(test)]
mod tests {
    use super::fixture_paper::{measured_case, record_of_cases};
    use super::*;
    use syscost_engine::record::Throughput;

    #[test]
    fn every_rate_names_existing_cases() {
        let ids = include_str!("../../../../fixtures/ids.txt");
        let rows = Paper::read().expect("four tables").throughput;
        let named = rows.into_iter().flat_map(|row| [row.id, row.send, row.sender]);
        for part in named.chain([COMPUTATION.0.into()]) {
            assert!(ids.lines().any(|id| id == format!("{GROUP}/{part}")), "{part}");
        }
        assert_eq!(COMPUTATION.0, format!("computation/{}", COMPUTATION.1));
    }

    #[test]
    fn percentages_are_those_of_the_numbers_beside_them() {
        let paper = Paper::read().expect("four tables");
        assert_eq!(
            [paper.compute.len(), paper.send.len(), paper.throughput.len(), paper.loops.len()],
            [8, 8, 8, 5]
        );
        for row in paper.compute.iter().chain(&paper.send) {
            let percent = 100.0 * (row.displacement / row.accounting - 1.0);
            assert!((percent - row.percent).abs() < 0.2, "{}: {percent}", row.id);
        }
        for row in &paper.throughput {
            for (rate, percent) in
                [(row.displacement, row.displacement_percent), (row.accounting, row.accounting_percent)]
            {
                let off = 100.0 * (rate / row.real - 1.0);
                assert!((off - percent).abs() < 0.02, "{}: {off}", row.id);
            }
        }
        for row in &paper.loops {
            assert!((100.0 * row.deviation / row.mean - row.percent).abs() < 0.01, "{}", row.id);
        }
    }

    fn cost(gap: f64, half: f64) -> Displaced {
        let gap = Some(Interval::around(gap, half));
        Displaced { gap, charged: gap.map(|gap| gap.map(|ns| 0.8 * ns)), ..Displaced::default() }
    }

    fn whole() -> Displaced {
        let throughput = Throughput { real: Interval::around(10_000.0, 100.0), ..Throughput::default() };
        Displaced { throughput: Some(throughput), computed: 240_000, ..cost(98_000.0, 0.0) }
    }

    #[test]
    fn the_figure_of_a_case_is_the_one_that_other_tables_show() {
        let mut case = measured_case("loopback/2000B", cost(18_980.0, 200.0));
        let figure = Interval::around(21_380.0, 5_000.0);
        let quiet = syscost_engine::record::Quiet { figure, ..Default::default() };
        case.measured_mut().expect("measured").quiet = Some(quiet);
        let record = record_of_cases(vec![case]);
        assert_eq!(find_displacement(&record, "loopback/2000B").and_then(|ours| ours.gap), Some(figure));
    }

    #[test]
    fn senders_that_compute_for_different_times_are_predicted_one_by_one() {
        let execution = |computed: u64, rate: f64| {
            let throughput = Throughput { real: Interval::exactly(rate), ..Throughput::default() };
            Displaced { throughput: Some(throughput), computed, ..cost(98_000.0, 0.0) }
        };
        let each = vec![execution(240_000, 10_000.0), execution(120_000, 17_000.0)];
        let pooled = Displaced { executions: each, ..execution(240_000, 13_500.0) };
        let cases = vec![
            measured_case("sender/1000B", pooled),
            measured_case("nodes/1000B", cost(20_000.0, 3_000.0)),
            measured_case(COMPUTATION.0, cost(42_000.0, 2_000.0)),
        ];
        let found = SeparatePrediction::from_record(&record_of_cases(cases), "sender/1000B", "nodes/1000B")
            .expect("all");
        // The predicted 1 / (20 µs + 84 µs) against 10 000 a second, and 1 / (20 µs + 42 µs) against 17 000.
        let off = [1e9 / 104e3 / 10_000.0 - 1.0, 1e9 / 62e3 / 17_000.0 - 1.0];
        assert!((found.displaced_off.estimate - 0.5 * (off[0] + off[1])).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn two_costs_predict_the_rate_of_their_sum() {
        let cases = vec![
            measured_case("sender/1000B", whole()),
            measured_case("nodes/1000B", cost(20_000.0, 3_000.0)),
            // The sender does twice as many multiplications.
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
        // The relative half-widths 5000 / 104 000 and 100 / 10 000, added in quadrature.
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
