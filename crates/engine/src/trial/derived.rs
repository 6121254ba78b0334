//! Figures derived from those of a case, such as bytes per second, or a switch as half of a round trip's net cost.

use super::Sample;
use super::sweep::Sweep;
use crate::case::{Case, Found, Rule};
use crate::record::quantity::NANOSECONDS;
use crate::record::{Bar, Derived, Distribution, Interval, Matrix, WAITS};
use crate::statistic::{median, median_interval, percentile};
use hdrhistogram::Histogram;

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

/// The derived figures of the case, except those that its costs do not allow.
pub(super) fn derived_figures(case: &Case, costs: &Costs<'_>) -> Vec<Derived> {
    // The figure of a case that keeps working is the cost in its batches, which may differ from the slope if a batch begins
    // with more work.
    let slope = costs.sweep.filter(|_| !case.keeps_working()).map(|sweep| sweep.slope);
    let figure = |derived: &crate::case::Derived| {
        let (value, unit) = derive_figure(derived.rule, slope.unwrap_or(costs.median), costs)?;
        Some(Derived { name: derived.name.into(), unit: unit.into(), value })
    };
    case.derived.iter().filter_map(figure).collect()
}

/// Share of the timed part from which on an operation is said to wait.
const LEAST_WAIT: f64 = 0.5;
/// Largest share that is published: a larger one includes waits outside of the timed part.
const MOST_WAIT: f64 = 1.1;

/// Share of the timed part in which no thread of this process ran, nor was ready to, %; `None` if the share is less than half,
/// if the case names its waits itself (it does not claim to keep working), or if the kernel does not count how long a thread is
/// ready. Each sample comes with its timed part, ns.
pub(super) fn waiting_share(case: &Case, samples: &[(f64, &Sample)]) -> Option<Derived> {
    let share = |(timed_ns, sample): &(f64, &Sample)| {
        let ready_ns = sample.delta.counted.waited_ns?;
        let busy_ns = sample.ran_ns + sample.delta.other_threads_ns + ready_ns;
        Some((sample.elapsed_ns - busy_ns as f64) / timed_ns.max(1.0))
    };
    let shares = samples.iter().map(share).collect::<Option<Vec<f64>>>().filter(|_| case.keeps_working())?;
    let value = median_interval(&shares);
    let waits = (LEAST_WAIT..MOST_WAIT).contains(&value.estimate);
    waits.then(|| Derived {
        name: WAITS.into(),
        unit: "%".into(),
        value: value.map(|share| 100.0 * share.clamp(0.0, 1.0)),
    })
}

fn derive_figure(rule: Rule, cost: Interval, costs: &Costs<'_>) -> Option<(Interval, &'static str)> {
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
    let value = (!values.is_empty()).then(|| median_interval(&values))?;
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

// Distribution of operations that were timed one by one: percentiles and a histogram.

/// Significant decimal digits of a bar's position.
const DIGITS: u8 = 3;
/// Resolution of the bars: tenths of a nanosecond, because a call of 5 ns has a distribution too.
const UNITS_A_NS: f64 = 10.0;

/// The distribution of these durations, ns; `None` if there are none.
pub(super) fn summarize(values: &[f64]) -> Option<Distribution> {
    let percentiles =
        Distribution::percentiles_of_count(values.len()).map(|p| (p, percentile(values, p))).collect();
    let histogram = histogram_bars(values);
    (!values.is_empty()).then_some(Distribution { count: values.len(), percentiles, histogram })
}

/// Share of the values that are equal to the one before.
pub(super) fn repeated_share(values: &[f64]) -> f64 {
    let equal = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    equal as f64 / values.len().max(2) as f64
}

/// The bars that are not empty; no bars if the histogram refuses a value.
fn histogram_bars(values: &[f64]) -> Vec<Bar> {
    let Ok(mut histogram) = Histogram::<u64>::new(DIGITS) else { return Vec::new() };
    for value in values {
        if histogram.record((value * UNITS_A_NS).round() as u64).is_err() {
            return Vec::new();
        }
    }
    let bar = |unit: hdrhistogram::iterators::IterationValue<u64>| Bar {
        low: histogram.lowest_equivalent(unit.value_iterated_to()) as f64 / UNITS_A_NS,
        count: unit.count_at_value(),
    };
    histogram.iter_recorded().map(bar).collect()
}

// The frequency of the core around each sample. It changes within milliseconds, by several per cent on a machine whose
// power is shared, and the time-stamp counter does not show it. An operation that does not wait for memory takes the same
// number of cycles at each frequency. After conversion sample by sample, the executions of a case agree within tenths of
// a per cent where their times differ by several.

/// The costs of an execution's samples, converted to one frequency.
pub(super) struct Paced {
    /// Mean frequency around the samples, Hz.
    pub core_hz: f64,
    /// Cost of an iteration in each sample, in the record's unit, converted to this frequency. Unconverted if the
    /// cost does not follow the core's frequency.
    pub values: Vec<f64>,
    /// Frequency around each sample, MHz; empty where nothing was converted.
    pub mhz: Vec<u32>,
}

/// Converts the costs of these samples, if they follow the core.
pub(super) fn convert_to_mean_frequency(samples: &[Sample], values: &[f64], follows_core: bool) -> Paced {
    let core_hz = samples.iter().map(|sample| sample.core_hz).sum::<f64>() / samples.len().max(1) as f64;
    if !follows_core || samples.iter().any(|sample| sample.core_hz <= 0.0) {
        return Paced { core_hz, values: values.to_vec(), mhz: Vec::new() };
    }
    let converted = samples.iter().zip(values).map(|(sample, value)| value * sample.core_hz / core_hz);
    Paced {
        core_hz,
        values: converted.collect(),
        mhz: samples.iter().map(|sample| (sample.core_hz / 1e6).round() as u32).collect(),
    }
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
        let value = |rule| derive_figure(rule, costs.median, &costs).map(|(value, _)| value.estimate);
        assert_eq!(value(Rule::OfCost(1.0 / 4096.0)), Some(1.0));
        assert_eq!(value(Rule::Bandwidth(4096)), Some(1.0));
        assert_eq!(value(Rule::PerEvent), Some(9.0));
        assert_eq!(value(Rule::OfNet(1.0)), None, "there is no control");
    }

    #[test]
    fn without_counted_events_there_is_no_cost_per_event() {
        let costs = Costs { sweep: None, median: at(1.0), event: None, core_hz: 1e9, cpus: 2 };
        assert!(derive_figure(Rule::PerEvent, costs.median, &costs).is_none());
    }

    /// The waiting share, %, of wholly timed batches of 10 ms, in which the thread ran and was ready for these times, ms.
    fn waits(ran_ms: f64, ready_ms: Option<f64>) -> Option<f64> {
        let case = Case::prepared("wait", "", |_| || ());
        let mut sample = Sample { elapsed_ns: 1e7, ran_ns: (1e6 * ran_ms) as u64, ..Sample::default() };
        sample.delta.counted.waited_ns = ready_ms.map(|ms| (1e6 * ms) as u64);
        waiting_share(&case, &[(1e7, &sample), (1e7, &sample)]).map(|figure| figure.value.estimate)
    }

    #[test]
    fn time_without_the_cpu_is_a_wait_unless_the_thread_was_ready() {
        assert_eq!(waits(1.0, Some(0.0)), Some(90.0));
        assert_eq!(waits(9.0, Some(0.0)), None);
        assert_eq!(waits(1.0, Some(8.0)), None, "a busy machine is no wait");
        assert_eq!(waits(1.0, None), None, "nothing is known");
    }

    #[test]
    fn a_wait_outside_the_timed_part_is_not_published() {
        let case = Case::prepared("wait", "", |_| || ());
        let mut sample = Sample { elapsed_ns: 1e7, ran_ns: 1_000, ..Sample::default() };
        sample.delta.counted.waited_ns = Some(0);
        assert_eq!(waiting_share(&case, &[(1e5, &sample)]), None);
    }

    #[test]
    fn the_rate_of_a_case_that_keeps_working_is_that_of_its_batches() {
        let sweep = Sweep { slope: at(10.0), ..a_sweep() };
        let costs = Costs { sweep: Some(&sweep), median: at(80.0), event: None, core_hz: 1e9, cpus: 2 };
        let bytes = |case: Case| derived_figures(&case.bytes(80), &costs)[0].value.estimate;
        assert_eq!(bytes(Case::prepared("growing", "", |_| || ())), 1.0);
        assert_eq!(bytes(Case::looped("even", "", |_| ())), 8.0);
    }

    fn a_sweep() -> Sweep {
        Sweep {
            slope: at(1.0),
            slope_quartile: 1.0,
            intercept: at(0.0),
            control: None,
            net: None,
            ratio: None,
            doubling: at(2.0),
            unit: 1,
        }
    }

    #[test]
    fn the_bars_of_a_histogram_hold_every_value() {
        let values: Vec<f64> = (1..=5000).map(|i| f64::from(i) * 1.7).chain([1e9]).collect();
        let distribution = summarize(&values).expect("values");
        let counted: u64 = distribution.histogram.iter().map(|bar| bar.count).sum();
        assert_eq!(counted, 5001);
        assert!(distribution.histogram.is_sorted_by(|a, b| a.low < b.low));
        let last = distribution.histogram.last().expect("a bar");
        assert!(last.count == 1 && last.low <= 1e9 && last.low > 0.98e9, "{last:?}");
        assert!(distribution.histogram.len() < 4000, "{}", distribution.histogram.len());
        assert_eq!(distribution.percentiles.last(), Some(&(100.0, 1e9)));
        assert_eq!(
            (distribution.value_at(99.9).is_some(), distribution.value_at(99.99)),
            (true, None),
            "of 5001"
        );
        assert_eq!(summarize(&[]), None);
    }
}

#[cfg(test)]
mod sample_frequency_tests {
    use super::*;

    fn at(ghz: f64) -> Sample {
        Sample { core_hz: ghz * 1e9, ..Sample::default() }
    }

    #[test]
    fn equal_cycles_at_several_frequencies_are_equal_costs() {
        let samples = [at(3.0), at(2.0), at(4.0)];
        let found = convert_to_mean_frequency(&samples, &[40.0, 60.0, 30.0], true);
        assert_eq!((found.core_hz, found.mhz), (3e9, vec![3000, 2000, 4000]));
        assert!(found.values.iter().all(|ns| (ns - 40.0).abs() < 1e-9), "{:?}", found.values);
    }

    #[test]
    fn costs_that_do_not_follow_the_core_are_not_converted() {
        let samples = [at(3.0), at(2.0)];
        assert_eq!(convert_to_mean_frequency(&samples, &[40.0, 60.0], false).values, [40.0, 60.0]);
        let unknown = convert_to_mean_frequency(&[at(3.0), Sample::default()], &[40.0, 60.0], true);
        assert!(unknown.values == [40.0, 60.0] && unknown.mhz.is_empty());
    }
}
