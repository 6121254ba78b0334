//! Joins the results of a case's executions into one outcome.

mod displaced;

pub use displaced::pool_intervals;

use super::interval::{lone_faster_mode, quiet_from_lows};
use super::reference_frequency::{convert_executions, convert_to_frequency, core_frequency};
use crate::record::{
    Bar, Contamination, Derived, Distribution, EventRate, Interval, Matrix, Meanwhile, Measured, Quiet,
};
use crate::statistic::{mean, median, standard_deviation};

/// The pooled outcome of a case's executions, given in the order in which they ran, or of outcomes that were pooled before;
/// `None` if there are none.
///
/// All samples and disturbance counts are kept. Slope, control, net and derived figures are those of the two executions with
/// the lowest cost, converted to a core at `core_hz` if this is known. The evidence is that of the first execution, which
/// proved the case.
pub fn pool_executions(parts: &[Measured], core_hz: Option<f64>) -> Option<Measured> {
    let (first, several) = (parts.first()?, parts.len() > 1);
    let quiet = quiet_of_executions(parts, core_hz);
    let wanted = quiet.and_then(|quiet| quiet.core_hz);
    let converted: Vec<Measured> = parts.iter().map(|part| convert_to_frequency(part, wanted)).collect();
    let [lowest, second] = two_quietest(&converted)?;
    let two = |field: fn(&Measured) -> Interval| merge_intervals(field(lowest), field(second));
    let executions = parts.iter().flat_map(|part| part.executions.iter().copied()).collect();
    let values = parts.iter().flat_map(sample_costs).collect::<Vec<_>>();
    let scale = parts.iter().map(unit_per_count).find(|scale| *scale > 0.0).unwrap_or(1.0);
    let deviation = if several { standard_deviation(&values) } else { first.standard_deviation };
    let gap = quiet.map_or(first.figure(), |quiet| quiet.figure);
    let displaced = displaced::pool_displaced(parts, gap, deviation);
    Some(Measured {
        median: if several { pooled_median(parts, &values) } else { first.median },
        ticks: quiet.map_or(first.ticks, |quiet| quiet.figure.estimate / scale),
        quiet,
        executions,
        iterations: parts.iter().flat_map(|part| part.iterations.iter().copied()).collect(),
        counted: parts.iter().flat_map(|part| part.counted.iter().copied()).collect(),
        core_mhz: joined_core_mhz(parts),
        standard_deviation: deviation,
        slope: two(|part| part.slope),
        intercept: two(|part| part.intercept),
        control: merge_known_intervals(lowest.control, second.control),
        net: merge_known_intervals(lowest.net, second.net),
        derived: match &displaced {
            Some(displaced) => displaced.derived_figures(),
            None => lowest.derived.iter().map(|figure| merge_derived(figure, second)).collect(),
        },
        displaced,
        events: pooled_event_rates(parts),
        matrix: parts.iter().filter_map(|part| part.matrix.clone()).reduce(cellwise_minimum),
        distribution: pooled_distribution(parts),
        contamination: pooled_contamination(parts),
        meanwhile: pooled_meanwhile(parts),
        predicted: converted.first().and_then(|first| first.predicted.clone()),
        core_hz: lowest.core_hz,
        ..first.clone()
    })
}

/// The core's frequency around each sample, MHz; empty unless it is known for all samples.
fn joined_core_mhz(parts: &[Measured]) -> Vec<u32> {
    let is_known = parts.iter().all(|part| part.core_mhz.len() == part.counted.len());
    if is_known { parts.iter().flat_map(|part| part.core_mhz.iter().copied()).collect() } else { Vec::new() }
}

/// The quiet figure of these executions, converted to a core at `core_hz` if the frequency of each execution is known.
pub fn quiet_of_executions(parts: &[Measured], core_hz: Option<f64>) -> Option<Quiet> {
    let wanted = core_hz.filter(|_| parts.iter().all(|part| core_frequency(part).is_some()));
    let lows: Vec<f64> =
        parts.iter().flat_map(|part| convert_executions(part, wanted)).map(|e| e.low).collect();
    let adds = parts.first()?.displaced.is_none();
    quiet_from_lows(&lows, adds).map(|quiet| Quiet { core_hz: wanted, ..quiet })
}

/// The two outcomes with the lowest costs, the lowest first; twice the same if there is only one. An outcome that
/// [`quiet_of_executions`] leaves out as a lone faster mode is left out here, too.
fn two_quietest(parts: &[Measured]) -> Option<[&Measured; 2]> {
    let mut order: Vec<&Measured> = parts.iter().collect();
    order.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let costs: Vec<f64> = order.iter().map(|part| cost(part)).collect();
    let left_out = usize::from(lone_faster_mode(&costs).is_some());
    let lowest = *order.get(left_out)?;
    Some([lowest, order.get(left_out + 1).copied().unwrap_or(lowest)])
}

/// The cost of an outcome: its quiet figure if it was pooled before, or the lower quartile of a single execution.
fn cost(part: &Measured) -> f64 {
    let only = || part.executions.first().map(|execution| execution.low);
    part.quiet.map(|quiet| quiet.figure.estimate).or_else(only).unwrap_or(part.median.estimate)
}

/// The value of one count of this outcome's counter in the record's unit, such as ns per tick; 0 if the ticks are unknown.
fn unit_per_count(part: &Measured) -> f64 {
    let figure = part.quiet.map_or(part.median, |quiet| quiet.figure);
    if part.ticks > 0.0 { figure.estimate / part.ticks } else { 0.0 }
}

/// The cost per iteration of each sample, in the record's unit.
fn sample_costs(part: &Measured) -> Vec<f64> {
    let scale = unit_per_count(part);
    let samples = part.counted.iter().zip(&part.iterations);
    samples.map(|(&counted, &iterations)| scale * counted as f64 / iterations.max(1) as f64).collect()
}

/// The median of all samples, with the range of the executions' medians as its interval.
fn pooled_median(parts: &[Measured], values: &[f64]) -> Interval {
    let (low, high) = range_of(parts.iter().map(|part| part.median.estimate));
    Interval { estimate: median(values).clamp(low, high), low, high }
}

/// The lowest and the highest of these values.
fn range_of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

fn merge_intervals(a: Interval, b: Interval) -> Interval {
    Interval { estimate: (a.estimate + b.estimate) / 2.0, ..a.widened_to(b) }
}

fn merge_known_intervals(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    a.zip(b).map(|(a, b)| merge_intervals(a, b)).or(a).or(b)
}

fn merge_derived(figure: &Derived, second: &Measured) -> Derived {
    let twin = second.derived.iter().find(|other| other.name == figure.name);
    let value = twin.map_or(figure.value, |twin| merge_intervals(figure.value, twin.value));
    Derived { value, ..figure.clone() }
}

/// For each event the median rate over all executions, with their range as its interval. All executions count the same events.
fn pooled_event_rates(parts: &[Measured]) -> Vec<EventRate> {
    let pooled = |event: &EventRate| {
        let same = parts.iter().flat_map(|part| &part.events).filter(|other| other.name == event.name);
        let rates: Vec<Interval> = same.filter_map(|other| other.rate).collect();
        let estimates: Vec<f64> = rates.iter().map(|rate| rate.estimate).collect();
        let rate = rates
            .iter()
            .copied()
            .reduce(merge_intervals)
            .map(|range| Interval { estimate: median(&estimates), ..range });
        EventRate { rate, ..event.clone() }
    };
    parts.first().map_or_else(Vec::new, |first| first.events.iter().map(pooled).collect())
}

/// The matrix of the lower value for each pair of CPUs.
fn cellwise_minimum(mut a: Matrix, b: Matrix) -> Matrix {
    let cells = a.rows.iter_mut().flatten().zip(b.rows.iter().flatten());
    cells.for_each(|(mine, other)| *mine = mine.min(*other));
    a
}

fn pooled_distribution(parts: &[Measured]) -> Option<Distribution> {
    let all: Vec<&Distribution> = parts.iter().filter_map(|part| part.distribution.as_ref()).collect();
    match all.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(join_distributions(several)),
    }
}

/// One distribution of all operations. Percentiles other than 0 and 100 are read from the bars, to three digits.
fn join_distributions(parts: &[&Distribution]) -> Distribution {
    let mut histogram: Vec<Bar> = parts.iter().flat_map(|part| part.histogram.iter().copied()).collect();
    histogram.sort_by(|a, b| a.low.total_cmp(&b.low));
    histogram.dedup_by(|next, kept| {
        let same = next.low == kept.low;
        kept.count += if same { next.count } else { 0 };
        same
    });
    let count = parts.iter().map(|part| part.count).sum();
    let ends = |p: f64| parts.iter().filter_map(move |part| part.value_at(p));
    let (least, greatest) = (ends(0.0).fold(f64::MAX, f64::min), ends(100.0).fold(f64::MIN, f64::max));
    let value = |p: f64| match p {
        0.0 => least,
        100.0 => greatest,
        // A bar begins at a round number, which may lie below the least value in it.
        _ => bar_at_percentile(&histogram, p).max(least).min(greatest),
    };
    let percentiles = Distribution::percentiles_of_count(count).map(|p| (p, value(p))).collect();
    Distribution { count, percentiles, histogram }
}

/// The lower end of the bar in which this percentile lies, ns.
fn bar_at_percentile(bars: &[Bar], percentile: f64) -> f64 {
    let all: u64 = bars.iter().map(|bar| bar.count).sum();
    let mut left = percentile / 100.0 * all as f64;
    let found = bars.iter().find(|bar| {
        left -= bar.count as f64;
        left <= 0.0
    });
    found.or(bars.last()).map_or(0.0, |bar| bar.low)
}

fn pooled_contamination(parts: &[Measured]) -> Contamination {
    let mut sum = Contamination::default();
    let mut beside = Vec::new();
    for part in parts.iter().map(|part| &part.contamination) {
        sum.waited_ns.extend(&part.waited_ns);
        sum.stolen_ticks.extend(&part.stolen_ticks);
        sum.involuntary_switches.extend(&part.involuntary_switches);
        sum.faults.extend(&part.faults);
        sum.migrated.extend(&part.migrated);
        sum.held_up.extend(&part.held_up);
        beside.extend(part.busy_beside);
    }
    sum.busy_beside = (!beside.is_empty()).then(|| mean(&beside));
    sum
}

/// The other work on the machine during all executions together.
fn pooled_meanwhile(parts: &[Measured]) -> Option<Meanwhile> {
    parts.iter().filter_map(|part| part.meanwhile.clone()).reduce(|a, b| Meanwhile {
        seconds: a.seconds + b.seconds,
        others_seconds: a.others_seconds + b.others_seconds,
        stolen_seconds: a.stolen_seconds + b.stolen_seconds,
        interrupts: a.interrupts + b.interrupts,
        others_faults: a.others_faults.zip(b.others_faults).map(|(a, b)| a + b),
        free_bytes: (a.free_bytes.0, b.free_bytes.1),
        others_disk_read: a.others_disk_read + b.others_disk_read,
        others_disk_written: a.others_disk_written + b.others_disk_written,
        network_bytes: a.network_bytes + b.network_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Execution;

    /// An execution of two samples of ten iterations at this cost, by a clock of 2 ticks a nanosecond.
    fn part(ns: f64) -> Measured {
        let counted = (20.0 * ns) as u64;
        Measured {
            executions: vec![Execution { at: 0.0, samples: 2, low: ns, median: ns, core_hz: None }],
            iterations: vec![10, 10],
            counted: vec![counted, counted],
            median: Interval::exactly(ns),
            ticks: 2.0 * ns,
            slope: Interval::exactly(ns),
            net: Some(Interval::exactly(ns - 1.0)),
            derived: vec![Derived {
                name: "rate".into(),
                value: Interval::exactly(1e9 / ns),
                ..Derived::default()
            }],
            evidence: vec![format!("measured {ns}")],
            ..Measured::default()
        }
    }

    #[test]
    fn all_samples_are_kept_and_figures_are_those_of_the_two_quietest_executions() {
        let all = pool_executions(&[part(130.0), part(100.0), part(102.0)], None).expect("three");
        assert_eq!(all.counted, [2600, 2600, 2000, 2000, 2040, 2040]);
        assert_eq!(all.executions.iter().map(|e| e.samples).sum::<usize>(), all.counted.len());
        assert_eq!((all.slope.estimate, all.net.map(|net| net.estimate)), (101.0, Some(100.0)));
        assert_eq!((all.median.estimate, all.median.low, all.median.high), (102.0, 100.0, 130.0));
        assert_eq!(all.quiet.map(|quiet| quiet.figure.estimate), Some(101.0));
        assert!((all.ticks - 202.0).abs() < 1e-9, "{}", all.ticks);
        assert_eq!(all.evidence, ["measured 130"], "the first one proved it");
    }

    #[test]
    fn costs_are_converted_to_one_frequency() {
        let at = |ns: f64, ghz: f64| {
            let mut part = part(ns);
            part.executions[0].core_hz = Some(ghz * 1e9);
            part
        };
        let all =
            pool_executions(&[at(100.0, 4.0), at(125.0, 3.2), at(110.0, 4.0)], Some(4e9)).expect("three");
        let quiet = all.quiet.expect("several");
        assert_eq!((quiet.figure.estimate, quiet.core_hz, all.slope.estimate), (100.0, Some(4e9), 100.0));
        assert_eq!(all.executions[1].low, 125.0, "an execution is kept as it was");
        let unknown = pool_executions(&[at(100.0, 4.0), part(125.0)], Some(4e9))
            .and_then(|all| all.quiet)
            .expect("two");
        assert_eq!((unknown.figure.estimate, unknown.core_hz), (112.5, None));
    }

    #[test]
    fn pooling_in_steps_gives_what_pooling_at_once_gives() {
        let at = |(ns, ghz): (f64, f64)| {
            let mut part = part(ns);
            part.executions[0].core_hz = Some(ghz * 1e9);
            part
        };
        let parts = [(100.0, 4.0), (125.0, 3.2), (140.0, 4.0), (104.0, 4.0), (150.0, 3.2)].map(at);
        let pool = |parts: &[Measured], ghz: f64| pool_executions(parts, Some(ghz * 1e9)).expect("some");
        let once = pool(&parts, 4.0);
        let steps = pool(&[pool(&parts[..3], 3.2), pool(&parts[3..], 4.0)], 4.0);
        assert_eq!((steps.executions, steps.counted), (once.executions, once.counted));
        assert_eq!((steps.quiet, steps.median.estimate), (once.quiet, once.median.estimate));
        assert!((steps.ticks - once.ticks).abs() < 1e-9, "{} {}", steps.ticks, once.ticks);
    }

    #[test]
    fn a_lone_faster_mode_is_left_out_of_all_figures() {
        let all = pool_executions(&[part(339.0), part(250.0), part(340.0), part(339.5)], None).expect("four");
        assert_eq!(all.quiet.map(|quiet| (quiet.figure.estimate, quiet.faster)), Some((339.25, Some(250.0))));
        assert_eq!((all.slope.estimate, all.net.map(|net| net.estimate)), (339.25, Some(338.25)));
    }

    #[test]
    fn pooling_one_execution_does_not_change_it() {
        let one = pool_executions(&[part(100.0)], None).expect("one");
        assert_eq!((one.quiet, one.median, one.ticks), (None, Interval::exactly(100.0), 200.0));
        assert!(pool_executions(&[], None).is_none());
    }

    #[test]
    fn distributions_are_joined_bar_by_bar() {
        let distribution = |low: f64, count: u64| Distribution {
            count: count as usize,
            percentiles: vec![(0.0, low), (50.0, low), (100.0, low + 5.0)],
            histogram: vec![Bar { low, count }, Bar { low: 900.0, count: 1 }],
        };
        let all = join_distributions(&[&distribution(100.0, 10), &distribution(200.0, 30)]);
        assert_eq!(
            (all.count, all.value_at(0.0), all.value_at(50.0), all.value_at(100.0)),
            (40, Some(100.0), Some(200.0), Some(205.0))
        );
        assert_eq!((all.value_at(95.0), all.value_at(99.0)), (Some(200.0), None), "too few for the 99th");
        let many = join_distributions(&[&distribution(100.0, 900), &distribution(200.0, 100)]);
        assert_eq!(many.value_at(99.0), Some(200.0), "together there are enough");
        let bars: Vec<_> = all.histogram.iter().map(|bar| (bar.low, bar.count)).collect();
        assert_eq!(bars, [(100.0, 10), (200.0, 30), (900.0, 2)]);
    }

    #[test]
    fn the_map_of_the_cpus_keeps_the_lowest_of_each_pair() {
        let map = |ns: f64, other: f64| Measured {
            matrix: Some(Matrix { cpus: vec![0, 1, 2], rows: vec![vec![], vec![ns], vec![other, ns]] }),
            ..part(ns)
        };
        let matrix = pool_executions(&[map(50.0, 70.0), map(60.0, 40.0)], None)
            .and_then(|all| all.matrix)
            .expect("a map");
        assert_eq!(matrix.rows, [vec![], vec![50.0], vec![40.0, 50.0]]);
    }
}
